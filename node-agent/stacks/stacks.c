/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/stacks/stacks.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/runtime_frames.h"
#include "bpf/thread_context.h"
#include "common/clock.h"
#include "node-agent/stacks/late_names.h"
#include "node-agent/stacks/live_code.h"
#include "node-agent/stacks/waiting_stacks.h"
#include "node-agent/unwind/stack_finish.h"

enum {
	MAPPINGS_MAX = PROCESS_BLOCKS_MAX * PROCESS_BLOCK_MAPPINGS,
	PAGES_AT_ONCE = 64,
	DRAIN_STEP_MS = 20,
	REFUSED_PAUSE_MS = 1000, /* after a publication that failed */
	CODE_READS = 100,        /* pages a second */
	JAVA_READS = 500,
};

#define NS_PER_MS   UINT64_C(1000000)
#define WAIT_MAX_NS (2000 * NS_PER_MS) /* since the sample was taken */

struct stacks {
	struct stacks_sources from;
	struct kernel_processes *processes; /* NULL: there is no walk in the kernel */
	struct waiting_stacks waiting;
	struct late_names names;
	struct live_code *live_code; /* NULL: nobody asked yet */
	struct live_code *live_java; /* the same; of memory, since a sample was taken */
	struct stacks_counters counters;
	uint64_t now_ns, publish_from_ns;
	int told_fd; /* what stacks_descriptor() said last */
	uint64_t told_started;
	struct process_mapping mappings[MAPPINGS_MAX + 1];
	union {
		struct sample_event event;
		uint8_t room[sizeof(struct sample_event) + SAMPLE_WORDS_MAX * sizeof(uint64_t) +
			     THREAD_CONTEXT_MAX];
	} whole; /* a sample while its stack is being finished */
};

static void set_time(struct stacks *stacks)
{
	stacks->now_ns = monotonic_ns();
	code_pages_set_time(stacks->from.pages, (int64_t)(stacks->now_ns / NS_PER_MS));
	if (stacks->processes)
		kernel_processes_set_time(stacks->processes, (int64_t)(stacks->now_ns / NS_PER_MS));
}

struct stacks *stacks_new(const struct stacks_sources *from, struct error *err)
{
	struct stacks *stacks = calloc(1, sizeof(*stacks));
	int processes = capture_map(from->capture, KERNEL_MAP_PROCESSES);

	if (!stacks) {
		error_set(err, ERROR_MEMORY, "no memory for stacks");
		return NULL;
	}
	stacks->from = *from;
	stacks->told_fd = -1;
	stacks->names = (struct late_names){
		.table = from->table, .jit = from->jit, .runtimes = from->runtimes};
	set_time(stacks);
	if (processes < 0)
		return stacks;
	stacks->processes =
		kernel_processes_new(process_table_processes(from->table), processes,
				     capture_map(from->capture, KERNEL_MAP_PROCESS_HEADS),
				     capture_map(from->capture, KERNEL_MAP_PROCESS_BLOCKS), err);
	if (stacks->processes)
		return stacks;
	stacks_free(stacks);
	return NULL;
}

void stacks_free(struct stacks *stacks)
{
	if (!stacks)
		return;
	waiting_stacks_release(&stacks->waiting);
	late_names_release(&stacks->names);
	live_code_free(stacks->live_code);
	live_code_free(stacks->live_java);
	kernel_processes_free(stacks->processes);
	free(stacks);
}

/* --- what the kernel side walks by --- */

/* The program's mappings, when the kernel side has others and it still runs. Returns their
 * generation. */
static uint32_t publish(struct stacks *stacks, const struct sample_event *sample)
{
	const struct process_key key = process_key_of(sample);
	uint32_t generation = process_table_generation(stacks->from.table, &key, sample->time_ns);
	size_t count;

	if (!stacks->processes || !generation ||
	    generation == kernel_processes_generation(stacks->processes, &key) ||
	    stacks->now_ns < stacks->publish_from_ns)
		return generation;
	count = process_table_mappings(stacks->from.table, &key, sample->time_ns, stacks->mappings,
				       MAPPINGS_MAX + 1, &generation);
	if (count &&
	    !kernel_processes_publish(stacks->processes, &key, generation, stacks->mappings, count))
		stacks->publish_from_ns = stacks->now_ns + REFUSED_PAUSE_MS * NS_PER_MS;
	return generation;
}

/* The page at which a walk stopped whose stack was not copied. */
static void want_page(struct stacks *stacks, const struct sample_event *sample)
{
	const struct process_key key = process_key_of(sample);
	struct located_frame frame;
	const uint64_t *user = sample_user_frames(sample);
	uint32_t at;

	if (!sample->user_count)
		return;
	at = stack_frame_last(user, sample->user_count);
	process_table_locate(stacks->from.table, &key, sample->time_ns, &user[at], 1, at == 0,
			     &frame);
	if (frame.place == PLACE_FILE && !frame.executable->is_raw)
		code_pages_want(stacks->from.pages, frame.executable->index,
				(uint32_t)(frame.address >> UNWIND_PAGE_BITS));
}

/* --- finishing --- */

/* Whose stack is being finished. */
struct looking {
	struct stacks *stacks;
	struct process_key key;
	uint64_t time_ns, leaf;
	uint32_t generation;
};

static struct stack_code locate(void *context, uint64_t address)
{
	const struct looking *looking = context;
	bool is_leaf = address == looking->leaf;
	uint64_t asked = address + !is_leaf; /* of a caller: what is located is one less */
	struct located_frame frame;

	process_table_locate(looking->stacks->from.table, &looking->key, looking->time_ns, &asked,
			     1, is_leaf, &frame);
	if (frame.since && (int32_t)(frame.since - looking->generation) > 0)
		return (struct stack_code){.place = STACK_CODE_CHANGED};
	switch (frame.place) {
	case PLACE_FILE:
		if (frame.executable->is_raw)
			break;
		return (struct stack_code){.place = STACK_CODE_FILE,
					   .executable = frame.executable->index,
					   .base = address - frame.address};
	case PLACE_ANONYMOUS:
	case PLACE_JAVA:
		break;
	case PLACE_NOT_CODE:
		return (struct stack_code){.place = STACK_CODE_NONE};
	case PLACE_UPROBE:
		return (struct stack_code){.place = STACK_CODE_UPROBE};
	case PLACE_ASKED:
		return (struct stack_code){.place = STACK_CODE_ASKED};
	case PLACE_UNKNOWN:
		return (struct stack_code){.place = STACK_CODE_UNKNOWN};
	}
	return (struct stack_code){.place = STACK_CODE_ANONYMOUS};
}

static bool read_live(const struct looking *looking, uint64_t address, void *to, uint32_t length)
{
	struct stacks *stacks = looking->stacks;

	if (!stacks->live_code)
		stacks->live_code = live_code_new(CODE_READS);
	return stacks->live_code &&
	       live_code_read(stacks->live_code, looking->key.tgid, looking->key.start_time_ns,
			      stacks->now_ns, 0, address, to, length);
}

static bool read_java(void *context, uint64_t address, void *to, uint32_t length)
{
	const struct looking *looking = context;
	struct stacks *stacks = looking->stacks;

	if (!stacks->live_java)
		stacks->live_java = live_code_new(JAVA_READS);
	return stacks->live_java &&
	       live_code_read(stacks->live_java, looking->key.tgid, looking->key.start_time_ns,
			      stacks->now_ns, looking->time_ns, address, to, length);
}

static bool find_java(const struct stacks *stacks, const struct process_key *key,
		      struct hotspot_place *place)
{
	return stacks->from.runtimes && runtimes_hotspot_place(stacks->from.runtimes, key, place);
}

/* From the file, since the process may be gone; what is in none from its memory. */
static bool read_code(void *context, uint64_t address, void *to, uint32_t length)
{
	const struct looking *looking = context;

	if (process_table_read_code(looking->stacks->from.table, &looking->key, address, to,
				    length))
		return true;
	return locate(context, address).place == STACK_CODE_ANONYMOUS &&
	       read_live(looking, address, to, length);
}

static bool is_whole_copy(const struct sample_event *sample, const struct stack_copy_event *copy)
{
	return sample->user_count && sample->user_count <= USER_FRAMES_MAX &&
	       sample->kernel_count <= KERNEL_FRAMES_MAX &&
	       sample->runtime_count <= RUNTIME_WORDS_MAX && copy->size >= sizeof(*copy) &&
	       copy->stack_bytes <= copy->size - sizeof(*copy);
}

/* What followed the native frames follows those that there are now. */
static void end_whole(struct sample_event *whole, const struct sample_event *sample)
{
	const uint32_t end = sample_event_frames_end(whole);
	const struct thread_context *context;
	uint32_t bytes;

	memcpy((uint64_t *)sample_runtime_frames(whole), sample_runtime_frames(sample),
	       sample->runtime_count * sizeof(uint64_t));
	context = sample_event_context(sample, &bytes);
	if (bytes > THREAD_CONTEXT_MAX)
		context = NULL;
	whole->size = end + (context ? bytes : 0);
	if (context)
		memcpy((uint8_t *)whole + end, context, bytes);
}

static void hand_on(struct stacks *stacks, const struct sample_event *sample)
{
	if (!late_names_hold(&stacks->names, sample, false, 0))
		samples_add(stacks->from.samples, sample);
}

/* The sample as if it had been walked to its end. False: it has to wait for *page. */
static bool finish(struct stacks *stacks, const struct sample_event *sample,
		   const struct stack_copy_event *copy, uint32_t generation,
		   struct unwind_page_key *page)
{
	struct looking looking = {stacks, process_key_of(sample), sample->time_ns,
				  stack_frame_address(*sample_user_frames(sample)), generation};
	struct sample_event *whole = &stacks->whole.event;
	struct hotspot_place java;
	struct stack_finish input = {
		.copy = copy,
		.count = sample->user_count,
		.limit = stacks->from.max_frames,
		.locate = locate,
		.read_code = read_code,
		.java = find_java(stacks, &looking.key, &java) ? &java : NULL,
		.read_java = read_java,
		.context = &looking,
		.now_s = (uint32_t)(stacks->now_ns / 1000000000),
	};
	const uint32_t walked = stack_frame_count(sample_user_frames(sample), sample->user_count);
	struct stack_finished finished;

	memcpy(whole, sample, sample->size);
	input.frames = (uint64_t *)sample_user_frames(whole);
	finished = stack_finish(&input, code_pages_rows(stacks->from.pages));
	if (finished.is_waiting) {
		*page = (struct unwind_page_key){finished.executable, finished.page};
		return false;
	}
	whole->user_count = (uint16_t)finished.count;
	end_whole(whole, sample);
	whole->result = (uint8_t)finished.result;
	whole->flags &= (uint16_t) ~(SAMPLE_HAS_COPY | SAMPLE_FRAME_GUESSED | SAMPLE_END_GUESSED);
	if (finished.is_guessed)
		whole->flags |= SAMPLE_FRAME_GUESSED;
	if (finished.is_end_guessed)
		whole->flags |= SAMPLE_END_GUESSED;
	stacks->counters.finished++;
	if (!late_names_hold(&stacks->names, whole, true, walked))
		samples_add_finished(stacks->from.samples, whole, walked);
	return true;
}

/* The same; pages that are decided at once are not waited for. */
static bool finish_now(struct stacks *stacks, const struct sample_event *sample,
		       const struct stack_copy_event *copy, uint32_t generation,
		       struct unwind_page_key *page)
{
	for (int pages = 0; pages < PAGES_AT_ONCE; pages++) {
		if (finish(stacks, sample, copy, generation, page))
			return true;
		if (!page->executable || code_pages_want(stacks->from.pages, page->executable,
							 page->page) == UNWIND_PAGE_ABSENT)
			break;
	}
	return false;
}

static void add_copied(struct stacks *stacks, const struct sample_event *sample,
		       const struct stack_copy_event *copy, uint32_t generation)
{
	struct waiting_stack *waiting;
	struct unwind_page_key page;

	if (finish_now(stacks, sample, copy, generation, &page))
		return;
	waiting = waiting_stacks_add(&stacks->waiting, sample, copy);
	if (!waiting) {
		stacks->counters.refused++;
		hand_on(stacks, sample);
		return;
	}
	waiting->generation = generation;
	waiting->page = page;
	waiting->files = process_table_files(stacks->from.table);
}

void stacks_add(struct stacks *stacks, const struct sample_event *sample,
		const struct stack_copy_event *copy)
{
	uint32_t generation = 0;

	set_time(stacks);
	if (!(sample->flags & SAMPLE_KERNEL_THREAD) && sample->user_count)
		generation = publish(stacks, sample);
	if (sample->result == WALK_not_loaded && copy && is_whole_copy(sample, copy)) {
		add_copied(stacks, sample, copy, generation);
		return;
	}
	if (sample->result == WALK_not_loaded)
		want_page(stacks, sample);
	hand_on(stacks, sample);
}

/* --- waiting --- */

static bool has_finished(struct stacks *stacks, struct waiting_stack *stack)
{
	const struct unwind_page_key page = stack->page;
	uint32_t files = process_table_files(stacks->from.table);
	bool is_there = page.executable ? code_pages_want(stacks->from.pages, page.executable,
							  page.page) != UNWIND_PAGE_ABSENT
					: files != stack->files;

	stack->files = files;
	return is_there &&
	       finish_now(stacks, stack->sample, stack->copy, stack->generation, &stack->page);
}

/* Those that wait no longer than since then go on with the frames they have. */
static void look_at_waiting(struct stacks *stacks, uint64_t expired_ns)
{
	for (uint32_t at = 0; at < stacks->waiting.count;) {
		struct waiting_stack *stack = stacks->waiting.items[at];

		if (has_finished(stacks, stack)) {
			publish(stacks, stack->sample); /* its files may be known since */
		} else {
			if (stack->sample->time_ns >= expired_ns) {
				at++;
				continue;
			}
			stacks->counters.expired++;
			hand_on(stacks, stack->sample);
		}
		waiting_stacks_remove(&stacks->waiting, at);
	}
}

/* The same for names. */
static void look_at_nameless(struct stacks *stacks, uint64_t expired_ns)
{
	const struct waiting_stack *stack;
	uint32_t at;

	while ((stack = late_names_next(&stacks->names, expired_ns, &at))) {
		if (stack->is_finished)
			samples_add_finished(stacks->from.samples, stack->sample,
					     stack->kernel_side_count);
		else
			samples_add(stacks->from.samples, stack->sample);
		late_names_remove(&stacks->names, at);
	}
}

void stacks_run(struct stacks *stacks)
{
	set_time(stacks);
	while (code_pages_next(stacks->from.pages))
		;
	if (stacks->from.jit)
		jit_files_run(stacks->from.jit, (int64_t)(stacks->now_ns / NS_PER_MS));
	look_at_waiting(stacks, stacks->now_ns - WAIT_MAX_NS);
	look_at_nameless(stacks, stacks->now_ns - WAIT_MAX_NS);
}

bool stacks_descriptor(struct stacks *stacks, int *fd)
{
	uint64_t started = code_pages_workers(stacks->from.pages);

	*fd = code_pages_fd(stacks->from.pages);
	if (*fd == stacks->told_fd && started == stacks->told_started)
		return false;
	stacks->told_fd = *fd;
	stacks->told_started = started;
	return true;
}

void stacks_drain(struct stacks *stacks, int timeout_ms)
{
	uint64_t end_ns = monotonic_ns() + (uint64_t)timeout_ms * NS_PER_MS;

	for (;;) {
		struct pollfd answers = {.fd = code_pages_fd(stacks->from.pages), .events = POLLIN};

		stacks_run(stacks);
		if ((!stacks->waiting.count && !stacks->names.waiting.count) ||
		    stacks->now_ns >= end_ns)
			break;
		poll(&answers, 1, DRAIN_STEP_MS);
	}
	look_at_waiting(stacks, UINT64_MAX);
	look_at_nameless(stacks, UINT64_MAX);
}

void stacks_counters(const struct stacks *stacks, struct stacks_counters *out)
{
	*out = stacks->counters;
	out->waiting = stacks->names.waiting.count;
	for (uint32_t i = 0; i < stacks->waiting.count; i++)
		out->waiting += stacks->waiting.items[i]->sample->type == EVENT_SAMPLE_CPU;
	out->waiting_bytes = stacks->waiting.bytes;
	if (stacks->processes)
		kernel_processes_counters(stacks->processes, &out->processes);
}
