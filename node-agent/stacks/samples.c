/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/stacks/samples.h"

#include <stdlib.h>
#include <string.h>

#include "bpf/alloc.h"
#include "bpf/runtime_frames.h"
#include "node-agent/report/modules.h"
#include "node-agent/stacks/java_frames.h"
#include "node-agent/stacks/runtime_stack.h"
#include "node-agent/stacks/stack_judge.h"
#include "node-agent/stacks/stack_print.h"

enum {
	FRAMES_MAX = KERNEL_FRAMES_MAX + USER_FRAMES_MAX,
	NAMED_MAX = FRAMES_MAX + RUNTIME_FRAMES_MAX + JAVA_CALLS_MAX,
	ATTRIBUTES_MAX = 64, /* of one sample */
	/* So many processes are told of at once, and so many more a report: a host that starts
	 * thousands a second tells of some. */
	TELL_MOST = 1024,
	TELL_A_REPORT = 16,
};

struct samples {
	struct samples_sources from;
	struct sample_counters counters;
	struct kernel_scheduler scheduler;
	const struct kernel_waits *waits; /* NULL: nobody knows the kernel's functions */
	struct located_frame located[FRAMES_MAX + 1];
	struct counted_frame frames[NAMED_MAX + 1];
	struct runtime_stacks *runtimes; /* NULL: there are none */
	struct java_frames *java;        /* the same */
	struct counted_attribute attributes[ATTRIBUTES_MAX];
	uint32_t hour, tell_left; /* the report's; processes that may still be told of */
};

struct samples *samples_new(const struct samples_sources *from, struct error *err)
{
	struct samples *samples = calloc(1, sizeof *samples);

	if (!samples) {
		error_set(err, ERROR_MEMORY, "no memory for samples");
		return NULL;
	}
	samples->from = *from;
	if (from->runtimes && (!(samples->runtimes = runtime_stacks_new(from->runtimes, err)) ||
			       !(samples->java = java_frames_new(from->runtimes, err)))) {
		samples_free(samples);
		return NULL;
	}
	samples->hour = 1;
	samples->tell_left = TELL_MOST;
	return samples;
}

void samples_begin_report(struct samples *samples, uint64_t start_ns)
{
	samples->hour = (uint32_t)(start_ns / 3600000000000ull) | 1u << 31;
	samples->tell_left += TELL_A_REPORT;
	if (samples->tell_left > TELL_MOST)
		samples->tell_left = TELL_MOST;
}

/* --- one sample --- */

static struct counted_frame counted(const struct located_frame *located,
				    enum profile_frame_kind kind)
{
	struct counted_frame frame = {.kind = kind};

	if (located->place == PLACE_FILE) {
		frame.mapping = located->executable->index;
		frame.address = located->address;
	} else if (located->place == PLACE_JAVA) {
		frame = java_frame_of(located);
	} else if (located->place == PLACE_ANONYMOUS) {
		/* Run-time addresses of anonymous memory mean nothing elsewhere: one frame
		 * "[anon]", unless its program says what lies there. */
		frame.kind = PROFILE_FRAME_ANONYMOUS;
	}
	return frame;
}

/* Code that a runtime has made, by the name it has given it. */
static void name_frame(struct samples *samples, const struct sample_event *sample,
		       const struct located_frame *located, struct counted_frame *frame)
{
	const struct process_key key = process_key_of(sample);
	struct jit_name name;

	if (jit_files_find(samples->from.jit, &key, located->address, sample->time_ns, &name) !=
	    JIT_FOUND)
		return;
	*frame = (struct counted_frame){.kind = PROFILE_FRAME_NAMED,
					.function = name.function,
					.file = name.file,
					.line = name.line,
					.type = jit_language_type(name.language)};
}

static size_t add_frames(struct samples *samples, size_t depth, size_t count,
			 enum profile_frame_kind kind)
{
	for (size_t i = 0; i < count; i++, depth++) {
		samples->frames[depth] = counted(&samples->located[i], kind);
		/* a run of frames in one file counts once: near enough for "hottest first" */
		if (samples->frames[depth].mapping &&
		    (!i || samples->frames[depth].mapping != samples->frames[depth - 1].mapping))
			module_announcer_saw(samples->from.modules, samples->located[i].executable);
	}
	return depth;
}

/* The kernel part. What cannot be located stays as a frame of the kernel without an address. */
static size_t add_kernel(struct samples *samples, const struct sample_event *sample, size_t skip,
			 size_t count)
{
	process_table_locate_kernel(samples->from.table, sample_kernel_frames(sample) + skip, count,
				    !skip, samples->located);
	return add_frames(samples, 0, count, PROFILE_FRAME_KERNEL);
}

/* --- the user part --- */

static void use_pages(struct samples *samples, size_t count)
{
	for (size_t i = 0; samples->from.pages && i < count; i++) {
		const struct located_frame *frame = &samples->located[i];

		if (frame->place == PLACE_FILE && !frame->executable->is_raw)
			code_pages_used(samples->from.pages, frame->executable, frame->address);
	}
}

/* Fills located. Returns how many of its frames count: those in code that were found by what is
 * mapped. walked: frames whose caller the kernel side looked for. */
static size_t locate_user(struct samples *samples, const struct sample_event *sample, size_t walked,
			  enum walk_result *result)
{
	const struct process_key key = process_key_of(sample);
	const uint64_t *user = sample_user_frames(sample);
	size_t in_code = 0, outdated;

	if (sample->user_count)
		in_code = process_table_locate(samples->from.table, &key, sample->time_ns, user,
					       sample->user_count, true, samples->located);
	*result = stack_judge(sample, samples->located, in_code);
	if (walked > in_code)
		walked = in_code;
	outdated = stack_outdated(sample, samples->located, walked);
	if (outdated < walked) {
		*result = WALK_mappings_changed;
		in_code = outdated + 1;
	}
	use_pages(samples, in_code);
	return in_code;
}

/* NULL: nothing is known of its process. */
static struct process_lifetime *describe(struct samples *samples, const struct sample_event *sample,
					 struct counted_process *process,
					 struct counted_thread *thread)
{
	const struct process_key key = process_key_of(sample);
	const struct process_info *info = process_table_info(samples->from.table, &key,
							     sample->time_ns);

	if (samples->from.requests)
		requests_describe(samples->from.requests, sample, process, thread);
	if (!info)
		return NULL;
	if (*info->name && !strncmp(info->name, process->name, strlen(process->name)))
		process->name = info->name;
	process->executable = info->executable_path;
	process->container_id = info->container_id;
	process->pod = info->pod;
	process->namespace_ = info->namespace_;
	if (!samples->from.service)
		process->service = info->service;
	return info->lifetime;
}

static void copy_name(char out[COMM_LENGTH + 1], const char name[COMM_LENGTH])
{
	memcpy(out, name, COMM_LENGTH);
	out[COMM_LENGTH] = '\0';
}

/* By what its program calls it, or what the kernel does. */
static struct counted_thread thread_of(const struct samples *samples,
				       const struct sample_event *sample, const char *name)
{
	const char *given = samples->runtimes
				    ? runtime_stacks_thread_name(samples->runtimes, sample)
				    : NULL;

	if (!given && samples->java)
		given = java_frames_thread_name(samples->java, sample, name);
	return (struct counted_thread){.name = given ? given : name, .id = sample->tid};
}

/* By the sentence that its stack has, if any. */
static void count_result(struct samples *samples, const struct sample_event *sample,
			 enum walk_result result, enum frame_merge_result merge)
{
	struct sample_counters *counters = &samples->counters;

	if (result == WALK_complete && *frame_merge_sentence(merge)) {
		counters->by_merge[merge]++;
		counters->incomplete++;
		return;
	}
	counters->by_result[result]++;
	counters->incomplete += result != WALK_complete;
	if (result == WALK_complete && sample->flags & SAMPLE_FRAME_GUESSED)
		counters->guessed++;
}

/* How many leaves belong to the library that takes the sample: the rest begins with the program's
 * call of malloc() or one of its kin. */
static size_t library_frames(const struct samples *samples, const struct sample_event *sample,
			     size_t count)
{
	const struct located_frame *frames = samples->located;
	size_t at = 0;

	if (sample->type != EVENT_SAMPLE_ALLOC || sample->alloc.source != ALLOC_LIBRARY)
		return 0;
	while (at + 1 < count && frames[at + 1].place == PLACE_FILE &&
	       frames[at].place == PLACE_FILE && frames[at + 1].executable == frames[at].executable)
		at++;
	return at;
}

/* What was sampled, but for its kernel part: frames and process. Returns the depth. */
static size_t locate(struct samples *samples, const struct sample_event *sample, size_t depth,
		     size_t walked, bool from_copy, bool is_for_lock, enum walk_result *result,
		     enum frame_merge_result *merge)
{
	size_t count = locate_user(samples, sample, walked, result), skipped;

	if (samples->from.print)
		stack_print(samples->from.print, sample, *result, from_copy, samples->located,
			    count);
	skipped = is_for_lock
			  ? runtime_stacks_lock_leaves(samples->runtimes, samples->located, count)
			  : library_frames(samples, sample, count);
	memmove(samples->located, samples->located + skipped,
		(count - skipped) * sizeof *samples->located);
	count -= skipped;
	add_frames(samples, depth, count, PROFILE_FRAME_NATIVE);
	for (size_t i = 0; samples->from.jit && i < count; i++)
		if (samples->located[i].place == PLACE_ANONYMOUS)
			name_frame(samples, sample, &samples->located[i],
				   &samples->frames[depth + i]);
	if (samples->runtimes) {
		struct runtime_join join = {.sample = sample,
					    .located = samples->located,
					    .is_whole = *result == WALK_complete,
					    .is_for_lock = is_for_lock};

		count = runtime_stacks_join(samples->runtimes, &join, samples->frames + depth,
					    count, NAMED_MAX - depth, merge);
		if (join.is_whole)
			*result = WALK_complete;
		count = java_frames_name(samples->java, sample, samples->frames + depth, count,
					 NAMED_MAX - depth);
		count = java_frames_group(samples->java, sample, samples->frames + depth, count,
					  NAMED_MAX - depth);
	}
	return depth + count;
}

/* What a sample counts as: of the kernel side's own types, or what is told of one that was held
 * back. */
struct worth {
	enum sample_type type;
	uint64_t value, count;
	const char *waker, *wait, *fault; /* labels that only some types have */
	const char *interrupt;      /* "": a thread's; else whose the sample is, and all of it is in
				       the kernel */
	bool is_for_lock;           /* a wait for the interpreter's lock */
	size_t skipped, kernel_end; /* the kernel frames that belong to the stack */
	struct other {              /* who woke this one, or whom this one woke */
		char process[COMM_LENGTH + 1], thread[COMM_LENGTH + 1], id[12];
		struct counted_attribute attributes[2];
		size_t count;
	} other;
};

static void count_added(struct samples *samples, const struct sample_event *sample,
			const struct worth *worth, bool is_added)
{
	if (worth->type == SAMPLE_TYPE_on_cpu) {
		samples->counters.added += is_added;
		samples->counters.lost += !is_added;
	} else {
		samples->counters.held_added += is_added;
		samples->counters.held_lost += !is_added;
	}
	samples->counters.by_type[worth->type] += is_added;
	if (is_added && samples->from.keep_times)
		stack_counts_add_time(samples->from.counts, sample->time_ns);
}

static void put_attribute(struct samples *samples, size_t *count, const char *key,
			  const char *value)
{
	if (*count < ATTRIBUTES_MAX && *value)
		samples->attributes[(*count)++] = (struct counted_attribute){key, value};
}

/* Which process it is; once an hour with what that is, which the server joins to the others. */
static void put_lifetime(struct samples *samples, size_t *count, const char *executable,
			 struct process_lifetime *lifetime)
{
	put_attribute(samples, count, "farflame.lifetime", lifetime->id);
	if (lifetime->told == samples->hour)
		return;
	if (!samples->tell_left) {
		samples->counters.processes_untold++;
		return;
	}
	samples->tell_left--;
	lifetime->told = samples->hour;
	put_attribute(samples, count, "process.command_line", lifetime->command);
	put_attribute(samples, count, "process.executable.path", executable);
	put_attribute(samples, count, "systemd.unit", lifetime->unit);
	put_attribute(samples, count, "process.linux.cgroup", lifetime->cgroup);
	put_attribute(samples, count, "process.owner", lifetime->user);
	put_attribute(samples, count, "process.parent_pid", lifetime->parent);
	put_attribute(samples, count, "process.creation.time", lifetime->started);
	put_attribute(samples, count, "farflame.program", lifetime->program);
}

/* Ours first: of too many the last are left out. */
static void add_attributes(struct samples *samples, const struct other *other,
			   const char *executable, struct process_lifetime *lifetime,
			   struct counted_thread *thread)
{
	size_t count = 0;

	if (!other->count && !lifetime)
		return;
	for (size_t i = 0; i < other->count; i++)
		samples->attributes[count++] = other->attributes[i];
	for (size_t i = 0; i < thread->attribute_count && count < ATTRIBUTES_MAX; i++)
		samples->attributes[count++] = thread->attributes[i];
	if (lifetime)
		put_lifetime(samples, &count, executable ? executable : "", lifetime);
	thread->attributes = samples->attributes;
	thread->attribute_count = count;
}

static void add(struct samples *samples, const struct sample_event *sample, size_t walked,
		bool from_copy, const struct worth *worth)
{
	char process_name[COMM_LENGTH + 1], thread_name[COMM_LENGTH + 1];
	struct counted_process process = {.service = samples->from.service};
	struct counted_thread thread = {.name = worth->interrupt};
	struct process_lifetime *lifetime = NULL;
	enum walk_result result = WALK_complete;
	enum frame_merge_result merge = MERGE_none;
	size_t depth;

	copy_name(process_name, sample->process_comm);
	copy_name(thread_name, sample->comm);
	process.name = worth->interrupt ? worth->interrupt : process_name;
	depth = add_kernel(samples, sample, worth->skipped, worth->kernel_end - worth->skipped);
	if (worth->is_for_lock)
		samples->frames[depth++] = runtime_lock_frame();
	if (!worth->interrupt) {
		thread = thread_of(samples, sample, thread_name);
		depth = locate(samples, sample, depth, walked, from_copy, worth->is_for_lock,
			       &result, &merge);
		lifetime = describe(samples, sample, &process, &thread);
	}
	add_attributes(samples, &worth->other, process.executable, lifetime, &thread);
	process.waker = worth->waker;
	process.wait = worth->wait;
	process.fault = worth->fault;
	if (worth->type == SAMPLE_TYPE_on_cpu)
		count_result(samples, sample, result, merge);
	count_added(samples, sample, worth,
		    stack_counts_add_type(samples->from.counts, worth->type, &process, &thread,
					  samples->frames, depth,
					  result != WALK_complete ? walk_result_sentence(result)
								  : frame_merge_sentence(merge),
					  worth->count ? worth->count : 1, worth->value));
}

/* --- waits --- */

static void name_other(struct other *other, const struct sample_event *sample,
		       const char *const keys[2], const char *first)
{
	copy_name(other->process, sample->process_comm);
	copy_name(other->thread, sample->comm);
	snprintf(other->id, sizeof other->id, "%u", sample->tid);
	other->attributes[0] = (struct counted_attribute){keys[0], first};
	other->attributes[1] = (struct counted_attribute){keys[1], other->thread};
	other->count = 2;
}

/* NULL: a thread's. *own: as kernel_waits_waker() says. */
static const char *interrupt_of(const struct samples *samples, const struct sample_event *sample,
				size_t *own)
{
	enum kernel_waker waker = WAKER_THREAD;

	*own = sample->kernel_count;
	if (samples->waits)
		waker = kernel_waits_waker(samples->waits, sample_kernel_frames(sample),
					   sample->kernel_count, own);
	if (waker == WAKER_THREAD && !sample->tid)
		waker = WAKER_INTERRUPT; /* an idle CPU wakes nobody by itself */
	return waker == WAKER_THREAD ? NULL : kernel_waker_name(waker);
}

static void judge_waking(const struct samples *samples, const struct sample_event *sample,
			 const struct sample_event *woken, struct worth *worth)
{
	static const char *const keys[] = {"woken.process", "woken.thread.name"};

	worth->interrupt = interrupt_of(samples, sample, &worth->kernel_end);
	worth->skipped = kernel_scheduler_waking(&samples->scheduler, sample_kernel_frames(sample),
						 sample->kernel_count);
	if (worth->skipped > worth->kernel_end)
		worth->skipped = worth->kernel_end;
	if (woken)
		name_other(&worth->other, woken, keys, worth->other.process);
}

/* What was waited for. */
static void judge_class(const struct samples *samples, const struct sample_event *sample,
			struct worth *worth)
{
	if (samples->runtimes && runtime_stacks_is_lock(samples->runtimes, sample)) {
		worth->is_for_lock = true;
		worth->skipped = worth->kernel_end;
		worth->wait = wait_class_name(WAIT_gil);
	} else if (samples->waits) {
		worth->wait = kernel_waits_class(samples->waits, sample_kernel_frames(sample),
						 sample->kernel_count);
	}
}

static void judge_wait(const struct samples *samples, const struct sample_event *sample,
		       const struct sample_worth *held, struct worth *worth)
{
	static const char *const keys[] = {"waker.thread.id", "waker.thread.name"};
	size_t own;

	worth->skipped = kernel_scheduler_switching(
		&samples->scheduler, sample_kernel_frames(sample), sample->kernel_count);
	if (held->type == SAMPLE_TYPE_off_cpu || held->type == SAMPLE_TYPE_still_blocked)
		judge_class(samples, sample, worth);
	if (!held->other)
		return;
	worth->waker = interrupt_of(samples, held->other, &own);
	if (worth->waker)
		return;
	name_other(&worth->other, held->other, keys, worth->other.id);
	worth->waker = worth->other.process;
}

void samples_add_held(struct samples *samples, const struct sample_event *sample, size_t walked,
		      const struct sample_worth *held)
{
	struct worth worth = {.type = held->type,
			      .value = held->value,
			      .count = held->count,
			      .kernel_end = sample->kernel_count};

	if (sample->type == EVENT_SAMPLE_WAKER)
		judge_waking(samples, sample, held->other, &worth);
	else
		judge_wait(samples, sample, held, &worth);
	add(samples, sample, walked, false, &worth);
}

void samples_set_scheduler(struct samples *samples, const struct kernel_scheduler *scheduler)
{
	samples->scheduler = *scheduler;
}

void samples_set_waits(struct samples *samples, const struct kernel_waits *waits)
{
	samples->waits = waits;
}

/* SAMPLE_TYPE_COUNT: its worth is known only later. */
static enum sample_type type_of(const struct sample_event *sample)
{
	static const uint16_t records[] = {SAMPLE_TYPES(SAMPLE_TYPE_RECORD)};
	int type = 0;

	while (type < SAMPLE_TYPE_COUNT && records[type] != sample->type)
		type++;
	return (enum sample_type)type;
}

static bool is_held(const struct sample_event *sample)
{
	return type_of(sample) == SAMPLE_TYPE_COUNT;
}

/* Of a sample that says its own worth. */
static struct worth worth_of(const struct sample_event *sample)
{
	struct worth worth = {.type = type_of(sample),
			      .value = sample->tick.period_ns,
			      .kernel_end = sample->kernel_count};

	if (worth.type == SAMPLE_TYPE_page_fault) {
		worth.value = sample->fault.bytes;
		worth.fault = sample->fault.is_major ? "major" : "minor";
	}
	return worth;
}

/* False: not a record of ours. */
static bool is_valid(struct samples *samples, const struct sample_event *sample)
{
	bool ok = sample->kernel_count <= KERNEL_FRAMES_MAX &&
		  sample->user_count <= USER_FRAMES_MAX &&
		  sample->runtime_count <= RUNTIME_WORDS_MAX &&
		  (!is_held(sample) || samples->from.hold);

	samples->counters.malformed += !ok && sample->type == EVENT_SAMPLE_CPU;
	samples->counters.held_lost += !ok && sample->type != EVENT_SAMPLE_CPU;
	return ok;
}

static void add_or_hold(struct samples *samples, const struct sample_event *sample, size_t walked,
			bool from_copy)
{
	struct worth worth;

	if (is_held(sample)) {
		if (samples->runtimes)
			runtime_stacks_see(samples->runtimes, sample);
		samples->from.hold(samples->from.context, sample, walked);
		return;
	}
	worth = worth_of(sample);
	add(samples, sample, walked, from_copy, &worth);
}

void samples_add(struct samples *samples, const struct sample_event *sample)
{
	size_t walked;

	if (!is_valid(samples, sample))
		return;
	walked = stack_frame_count(sample_user_frames(sample), sample->user_count);
	if (walked && sample->result == WALK_not_loaded)
		walked--; /* there it stopped, without having looked */
	add_or_hold(samples, sample, walked, false);
}

void samples_add_finished(struct samples *samples, const struct sample_event *sample,
			  size_t kernel_side_count)
{
	if (is_valid(samples, sample))
		add_or_hold(samples, sample, kernel_side_count ? kernel_side_count - 1 : 0, true);
}

void samples_add_code(struct samples *samples, const struct runtime_code_event *told)
{
	if (samples->runtimes)
		runtime_stacks_tell(samples->runtimes, told);
}

void samples_counters(const struct samples *samples, struct sample_counters *out)
{
	*out = samples->counters;
}

void samples_runtime_counters(const struct samples *samples, struct runtime_stacks_counters *out)
{
	*out = (struct runtime_stacks_counters){.frames = 0};
	if (samples->runtimes)
		runtime_stacks_counters(samples->runtimes, out);
}

void samples_java_counters(const struct samples *samples, struct java_frames_counters *out)
{
	*out = (struct java_frames_counters){.frames = 0};
	if (samples->java)
		java_frames_counters(samples->java, out);
}

void samples_free(struct samples *samples)
{
	if (!samples)
		return;
	runtime_stacks_free(samples->runtimes);
	java_frames_free(samples->java);
	free(samples);
}
