/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/samples.h"

#include <stdlib.h>
#include <string.h>

#include "node-agent/unwind/frame_rule.h"
#include "node-agent/unwind/leaf_caller.h"

enum {
	FRAMES_MAX = KERNEL_FRAMES_MAX + USER_FRAMES_MAX,
	/* The first call is made within so many bytes of an entry point (_start of glibc, musl,
	 * bionic and ld.so: 20 to 50). */
	ENTRY_REACH = 64,
};

struct samples {
	struct process_table *table;
	struct stack_counts *counts;
	struct module_announcer *modules;
	const char *service;
	struct frame_rules *rules;
	struct sample_counters counters;
	uint64_t user[USER_FRAMES_MAX + 1]; /* the user part, corrected */
	struct located_frame located[FRAMES_MAX + 1];
	struct counted_frame frames[FRAMES_MAX + 1];
};

static const char *const sentences[] = {
#define SENTENCE(name_, sentence_) sentence_,
	WALK_RESULTS(SENTENCE)};

static const char *const names[] = {
#define NAME(name_, sentence_) #name_,
	WALK_RESULTS(NAME)};

const char *walk_result_sentence(enum walk_result result)
{
	return sentences[result];
}

const char *walk_result_name(enum walk_result result)
{
	return names[result];
}

struct samples *samples_new(struct process_table *table, struct stack_counts *counts,
			    struct module_announcer *modules, const char *service,
			    struct error *err)
{
	struct samples *samples = calloc(1, sizeof *samples);

	if (!samples) {
		error_set(err, ERROR_MEMORY, "no memory for samples");
		return NULL;
	}
	samples->table = table;
	samples->counts = counts;
	samples->modules = modules;
	samples->service = service;
	samples->rules = frame_rules_new(err);
	if (!samples->rules) {
		samples_free(samples);
		return NULL;
	}
	return samples;
}

/* --- one sample --- */

static struct counted_frame counted(const struct located_frame *located,
				    enum profile_frame_kind kind)
{
	struct counted_frame frame = {.kind = kind};

	if (located->place == PLACE_FILE) {
		frame.mapping = located->executable->index;
		frame.address = located->address;
	} else if (located->place == PLACE_ANONYMOUS) {
		/* Run-time addresses of anonymous memory mean nothing elsewhere: one frame
		 * "[anon]". */
		frame.kind = PROFILE_FRAME_ANONYMOUS;
	}
	return frame;
}

static size_t add_frames(struct samples *samples, size_t depth, size_t count,
			 enum profile_frame_kind kind)
{
	for (size_t i = 0; i < count; i++, depth++) {
		samples->frames[depth] = counted(&samples->located[i], kind);
		/* a run of frames in one file counts once: near enough for "hottest first" */
		if (samples->frames[depth].mapping &&
		    (!i || samples->frames[depth].mapping != samples->frames[depth - 1].mapping))
			module_announcer_saw(samples->modules, samples->frames[depth].mapping);
	}
	return depth;
}

/* The kernel part. What cannot be located stays as a frame of the kernel without an address. */
static size_t add_kernel(struct samples *samples, const struct sample_event *sample, size_t count)
{
	process_table_locate_kernel(samples->table, (const uint64_t *)sample->frames, count, true,
				    samples->located);
	return add_frames(samples, 0, count, PROFILE_FRAME_KERNEL);
}

/* The kernel side believes a chain that ends with a zero frame pointer. Programs without frame
 * pointers keep what they like in that register, zero too: only the entry point proves the start.
 */
static bool ends_at_entry(const struct located_frame *outermost)
{
	const struct executable *executable = outermost->executable;

	return outermost->place == PLACE_FILE && executable->entry &&
	       outermost->address >= executable->entry &&
	       outermost->address - executable->entry < ENTRY_REACH;
}

static enum walk_result judge(const struct samples *samples, const struct sample_event *sample,
			      size_t user_count, size_t in_code)
{
	enum walk_result result = sample->result < WALK_RESULT_COUNT ? sample->result
								     : WALK_no_frame_pointer;
	const struct located_frame *last;

	if (result != WALK_complete || sample->flags & SAMPLE_KERNEL_THREAD)
		return result;
	if (!user_count)
		return WALK_no_frame_pointer;
	last = &samples->located[in_code < user_count ? in_code : in_code - 1];
	if (last->place == PLACE_UNKNOWN)
		return WALK_no_mapping;
	if (in_code < user_count)
		return WALK_not_code;
	return ends_at_entry(last) ? WALK_complete : WALK_no_frame_pointer;
}

/* --- the user part --- */

static struct frame_rule rule_at(const struct samples *samples, const struct located_frame *frame)
{
	if (frame->place != PLACE_FILE || frame->executable->base != ADDRESS_ELF)
		return (struct frame_rule){.kind = FRAME_RULE_UNKNOWN};
	return frame_rules_find(samples->rules, frame->executable->index, frame->executable->fd,
				frame->address);
}

/* The leaf alone, looked up to know where its caller is. */
static bool correct_leaf(struct samples *samples, const struct sample_event *sample,
			 const struct process_key *key, size_t *count)
{
	struct frame_rule rule;

	if (!process_table_locate(samples->table, key, sample->time_ns, samples->user, 1, true,
				  samples->located))
		return true;
	rule = rule_at(samples, &samples->located[0]);
	return leaf_caller_correct(&rule, sample, samples->user, count);
}

/* How many of the frames in code there are up to the first caller whose code keeps no frame
 * pointer: where the walk went on from there is not its caller, be it code or not. What a signal
 * interrupted may be anywhere. */
static size_t count_trusted(const struct samples *samples, size_t in_code, size_t count,
			    bool *follows_frames)
{
	bool is_interrupted = true;

	for (size_t i = 0; i < in_code && i + 1 < count; i++) {
		enum frame_rule_kind kind = rule_at(samples, &samples->located[i]).kind;

		if (!is_interrupted && (kind == FRAME_RULE_STACK || kind == FRAME_RULE_OTHER)) {
			*follows_frames = false;
			return i + 1;
		}
		is_interrupted = kind == FRAME_RULE_SIGNAL;
	}
	return in_code;
}

/* Cut where it leaves code, and where its code keeps no frame pointers. */
static size_t add_user(struct samples *samples, const struct sample_event *sample, size_t depth,
		       size_t count, enum walk_result *result)
{
	const struct process_key key = {.tgid = sample->tgid,
					.exec_id = sample->exec_id,
					.start_time_ns = sample->start_time_ns};
	size_t in_code = 0, trusted = 0;
	bool is_whole = true, follows_frames = true;

	if (count) {
		memcpy(samples->user, sample->frames + sample->kernel_count,
		       count * sizeof samples->user[0]);
		is_whole = correct_leaf(samples, sample, &key, &count);
		in_code = process_table_locate(samples->table, &key, sample->time_ns, samples->user,
					       count, true, samples->located);
		trusted = count_trusted(samples, in_code, count, &follows_frames);
	}
	*result = judge(samples, sample, count, in_code);
	if (!follows_frames || (!is_whole && in_code == count))
		*result = WALK_no_frame_pointer;
	return add_frames(samples, depth, trusted, PROFILE_FRAME_NATIVE);
}

static void describe(struct samples *samples, const struct sample_event *sample,
		     struct counted_process *process)
{
	const struct process_key key = {.tgid = sample->tgid,
					.exec_id = sample->exec_id,
					.start_time_ns = sample->start_time_ns};
	const struct process_info *info = process_table_info(samples->table, &key);

	*process = (struct counted_process){.service = samples->service};
	if (!info)
		return;
	process->executable = info->executable_path;
	process->container_id = info->container_id;
	process->pod = info->pod;
	process->namespace_ = info->namespace_;
	if (!samples->service)
		process->service = info->service;
}

static void copy_name(char out[COMM_LENGTH + 1], const char name[COMM_LENGTH])
{
	memcpy(out, name, COMM_LENGTH);
	out[COMM_LENGTH] = '\0';
}

void samples_add(struct samples *samples, const struct sample_event *sample)
{
	size_t kernel_count = sample->kernel_count, user_count = sample->user_count, depth;
	char process_name[COMM_LENGTH + 1], thread_name[COMM_LENGTH + 1];
	struct counted_process process;
	enum walk_result result;

	if (kernel_count > KERNEL_FRAMES_MAX || user_count > USER_FRAMES_MAX) {
		samples->counters.lost++; /* not a record of ours */
		return;
	}
	copy_name(process_name, sample->process_comm);
	copy_name(thread_name, sample->comm);
	depth = add_kernel(samples, sample, kernel_count);
	depth = add_user(samples, sample, depth, user_count, &result);
	describe(samples, sample, &process);
	process.name = process_name;
	samples->counters.by_result[result]++;
	if (stack_counts_add(samples->counts, &process, thread_name, samples->frames, depth,
			     walk_result_sentence(result), 1, sample->value))
		samples->counters.added++;
	else
		samples->counters.lost++;
}

void samples_counters(const struct samples *samples, struct sample_counters *out)
{
	*out = samples->counters;
}

void samples_free(struct samples *samples)
{
	if (!samples)
		return;
	frame_rules_free(samples->rules);
	free(samples);
}
