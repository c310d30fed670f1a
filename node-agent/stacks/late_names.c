/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/stacks/late_names.h"

#include "bpf/frames.h"
#include "bpf/results.h"

/* As many as this wait no second. */
enum { MANY = 64 };

/* Nobody gets through code of no file but by guessing. */
static bool may_be_in_such_code(const struct sample_event *sample)
{
	return sample->flags & (SAMPLE_FRAME_GUESSED | SAMPLE_END_GUESSED) ||
	       sample->result != WALK_complete;
}

static bool waits_for_names(struct late_names *names, const struct sample_event *sample)
{
	const struct process_key key = process_key_of(sample);
	const bool may_be_made = names->jit && may_be_in_such_code(sample);
	const bool may_be_run = names->runtimes && !sample->runtime_count &&
				runtimes_is_new(names->runtimes, &key);
	size_t count;

	if (!may_be_made && !may_be_run)
		return false;
	count = process_table_locate(names->table, &key, sample->time_ns,
				     sample_user_frames(sample), sample->user_count, true,
				     names->located);
	for (size_t i = 0; may_be_made && i < count; i++)
		if (names->located[i].place == PLACE_ANONYMOUS &&
		    jit_files_is_coming(names->jit, &key, sample->time_ns,
					names->waiting.count >= MANY))
			return true;
	return may_be_run && runtimes_is_unsure(names->runtimes, &key, names->located, count);
}

/* What is held back anyway is named when it is counted. */
static bool is_counted_at_once(const struct sample_event *sample)
{
	return sample->type == EVENT_SAMPLE_CPU || sample->type == EVENT_SAMPLE_FAULT;
}

bool late_names_hold(struct late_names *names, const struct sample_event *sample, bool is_finished,
		     uint32_t kernel_side_count)
{
	struct waiting_stack *waiting;

	if (!is_counted_at_once(sample) || !sample->user_count ||
	    sample->user_count > USER_FRAMES_MAX || sample->kernel_count > KERNEL_FRAMES_MAX ||
	    !waits_for_names(names, sample))
		return false;
	waiting = waiting_stacks_add(&names->waiting, sample, NULL);
	if (!waiting)
		return false;
	waiting->is_finished = is_finished;
	waiting->kernel_side_count = kernel_side_count;
	return true;
}

const struct waiting_stack *late_names_next(struct late_names *names, uint64_t expired_ns,
					    uint32_t *at)
{
	const uint32_t progress = (names->jit ? jit_files_progress(names->jit) : 0) +
				  (names->runtimes ? runtimes_progress(names->runtimes) : 0);
	const bool has_changed = progress != names->progress;

	for (*at = 0; *at < names->waiting.count; ++*at) {
		const struct waiting_stack *waiting = names->waiting.items[*at];

		if (waiting->sample->time_ns < expired_ns ||
		    (has_changed && !waits_for_names(names, waiting->sample)))
			return waiting;
	}
	names->progress = progress;
	return NULL;
}

void late_names_remove(struct late_names *names, uint32_t at)
{
	waiting_stacks_remove(&names->waiting, at);
}

void late_names_release(struct late_names *names)
{
	waiting_stacks_release(&names->waiting);
}
