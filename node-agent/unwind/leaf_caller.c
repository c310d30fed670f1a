/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/unwind/leaf_caller.h"

#include <string.h>

static bool cut(size_t *count, size_t to)
{
	if (*count > to)
		*count = to;
	return false;
}

/* So many bytes above the stack pointer, if that word came along. */
static bool stack_word(const struct sample_event *sample, uint16_t offset, uint64_t *word)
{
	if (!(sample->flags & SAMPLE_HAS_STACK_TOP) || offset % sizeof *word ||
	    offset / sizeof *word >= STACK_TOP_WORDS)
		return false;
	*word = sample->stack_top[offset / sizeof *word];
	return true;
}

/* Did the walk go on from the frame pointer that the caller has? */
static bool goes_on_right(const struct frame_rule *rule, const struct sample_event *sample)
{
	uint64_t fp;

	if (sample->leaf_way == LEAF_FRAME_ON_TOP)
		return !rule->keeps_fp && rule->fp_offset == 0;
	return rule->keeps_fp ||
	       (stack_word(sample, rule->fp_offset, &fp) && fp == sample->user_fp);
}

static bool correct_frameless(const struct frame_rule *rule, const struct sample_event *sample,
			      uint64_t *frames, size_t *count)
{
	bool has_caller = sample->leaf_way != LEAF_FRAME_POINTER && *count > 1;
	uint64_t address;

	if (!stack_word(sample, rule->return_offset, &address)) {
		bool is_same = rule->return_offset ==
			       (sample->leaf_way == LEAF_RETURN_ON_TOP ? 0 : sizeof address);

		return (has_caller && is_same) || cut(count, 1);
	}
	if (!has_caller) {
		memmove(frames + 2, frames + 1, (*count - 1) * sizeof *frames);
		frames[1] = address;
		++*count;
	} else if (frames[1] != address && frames[1] != address + 1) { /* + 1: a trampoline */
		frames[1] = address;
	}
	return goes_on_right(rule, sample) || cut(count, 2);
}

bool leaf_caller_correct(const struct frame_rule *rule, const struct sample_event *sample,
			 uint64_t *frames, size_t *count)
{
	if (!*count)
		return true;
	switch ((enum frame_rule_kind)rule->kind) {
	case FRAME_RULE_UNKNOWN:
		return true;
	case FRAME_RULE_STACK:
		return correct_frameless(rule, sample, frames, count);
	case FRAME_RULE_FRAME_POINTER:
		if (sample->leaf_way == LEAF_FRAME_ON_TOP)
			return cut(count, 1);
		if (sample->leaf_way == LEAF_RETURN_ON_TOP && *count > 1) {
			--*count;
			memmove(frames + 1, frames + 2, (*count - 1) * sizeof *frames);
		}
		return true;
	case FRAME_RULE_SIGNAL:
	case FRAME_RULE_OTHER:
		break;
	}
	return cut(count, 1);
}
