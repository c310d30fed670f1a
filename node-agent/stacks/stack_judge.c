/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/stacks/stack_judge.h"

#include "bpf/frames.h"

enum {
	/* The first call is made within so many bytes of an entry point (_start of glibc, musl,
	 * bionic and ld.so: 20 to 50). */
	ENTRY_REACH = 64,
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

static bool ends_at_entry(const struct located_frame *outermost)
{
	const struct executable *executable = outermost->executable;

	return outermost->place == PLACE_FILE && executable->entry &&
	       outermost->address >= executable->entry &&
	       outermost->address - executable->entry < ENTRY_REACH;
}

/* A frame pointer of zero alone says that the outermost frame was reached. Programs without frame
 * pointers keep what they like in that register, zero too: only the entry point proves it. */
static enum walk_result judge_end(const struct sample_event *sample,
				  const struct located_frame *outermost)
{
	if (!(sample->flags & SAMPLE_END_GUESSED) || ends_at_entry(outermost))
		return WALK_complete;
	return outermost->place == PLACE_FILE ? WALK_no_table : WALK_no_frame_pointer;
}

enum walk_result stack_judge(const struct sample_event *sample, const struct located_frame *located,
			     size_t in_code)
{
	const size_t user_count = stack_frame_count(sample_user_frames(sample), sample->user_count);
	enum walk_result result = sample->result < WALK_RESULT_COUNT ? sample->result
								     : WALK_no_frame_pointer;
	const struct located_frame *last;

	if (result != WALK_complete || sample->flags & SAMPLE_KERNEL_THREAD)
		return result;
	if (!user_count)
		return WALK_no_frame_pointer;
	last = &located[in_code < user_count ? in_code : in_code - 1];
	if (last->place == PLACE_UNKNOWN || last->place == PLACE_ASKED)
		return WALK_no_mapping;
	if (in_code < user_count)
		return in_code ? WALK_not_code : WALK_leaf_not_code;
	return judge_end(sample, last);
}

size_t stack_outdated(const struct sample_event *sample, const struct located_frame *located,
		      size_t count)
{
	if (!sample->generation)
		return count;
	for (size_t i = 0; i < count; i++)
		if (located[i].since && (int32_t)(located[i].since - sample->generation) > 0)
			return i;
	return count;
}
