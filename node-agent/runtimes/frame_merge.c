/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/frame_merge.h"

#include "bpf/runtime_frames.h"

static const char *const sentences[] = {
#define SENTENCE(name_, sentence_) sentence_,
	FRAME_MERGES(SENTENCE)};

static const char *const names[] = {
#define NAME(name_, sentence_) #name_,
	FRAME_MERGES(NAME)};

const char *frame_merge_sentence(enum frame_merge_result result)
{
	return sentences[result];
}

const char *frame_merge_name(enum frame_merge_result result)
{
	return names[result];
}

/* --- the list --- */

struct list {
	size_t words;    /* of frames, two each */
	size_t runs;     /* that are whole */
	bool has_rest;   /* frames of one more, whose entry is not among them */
	size_t passed;   /* frames that may_be_passed() … */
	bool has_passed; /* … and are */
	enum frame_merge_result state;
};

static enum frame_merge_result end_of(uint64_t word)
{
	switch (stack_frame_address(word)) {
	case RUNTIME_END_CUT:
		return MERGE_list_cut;
	case RUNTIME_END_UNREAD:
		return MERGE_list_unread;
	case RUNTIME_END_OTHER:
		return MERGE_list_other;
	default:
		return MERGE_list_wrong;
	}
}

/* Read up to its end, though another one may go on there. */
static bool is_whole(enum frame_merge_result state)
{
	return state == MERGE_joined || state == MERGE_list_other;
}

/* A generator that waits for another one: an exception that is thrown into it goes to the other one
 * at once, which alone has a loop then; it stands in the list as if it had, too (3.9 to 3.11). */
static bool may_be_passed(const uint64_t *words, size_t at)
{
	const uint64_t both = RUNTIME_FRAME_ENTRY | RUNTIME_FRAME_GENERATOR;

	return at >= 2 && (words[at + 1] & words[at - 1] & both) == both;
}

static struct list list_of(const uint64_t *words, size_t count)
{
	struct list list = {.state = MERGE_joined};
	size_t at = 0;

	for (; at + 2 <= count && stack_frame_kind(words[at]) == STACK_FRAME_PYTHON; at += 2) {
		list.has_rest = !runtime_frame_is_entry(words[at + 1]);
		list.runs += !list.has_rest;
		list.passed += may_be_passed(words, at);
	}
	list.words = at;
	if (at < count)
		list.state = stack_frame_kind(words[at]) == STACK_FRAME_RUNTIME_END
				     ? end_of(words[at])
				     : MERGE_list_wrong;
	if (list.has_rest && is_whole(list.state))
		list.state = MERGE_list_wrong;
	return list;
}

/* --- both --- */

static size_t count_loops(const struct frame_merge *stack)
{
	size_t loops = 0;

	for (size_t i = 0; i < stack->native_count; i++)
		loops += stack->roles[i] == NATIVE_LOOP;
	return loops;
}

/* The leaf is in the loop, or in what of the interpreter's own that calls: it may have been entered
 * just now, without a frame of the language yet. */
static bool is_entering(const struct frame_merge *stack)
{
	size_t i = 0;

	while (i < stack->native_count && stack->roles[i] == NATIVE_RUNTIME)
		i++;
	return i < stack->native_count && stack->roles[i] == NATIVE_LOOP;
}

/* Runs without frames at the root end, for which there is no loop, are the thread's own. Where
 * there are loops for no other interpreter, it has no frames in this thread. */
static void drop_ends(const struct frame_merge *stack, struct list *list, size_t loops)
{
	while (stack->is_native_whole && is_whole(list->state) && list->runs > loops &&
	       !stack_frame_address(stack->list[list->words - 2])) {
		list->words -= 2;
		list->runs--;
	}
	if (list->state == MERGE_list_other && stack->is_native_whole && list->runs == loops)
		list->state = MERGE_joined;
}

/* All that may be passed are, where just so many loops are missing. */
static void pass(const struct frame_merge *stack, struct list *list, size_t loops)
{
	if (!stack->is_native_whole || list->state != MERGE_joined || !list->passed ||
	    list->runs != loops + list->passed)
		return;
	list->runs -= list->passed;
	list->has_passed = true;
}

/* 3.9's ends at a generator that is passed. */
static bool ends_early(const struct frame_merge *stack, const struct list *list)
{
	return list->state == MERGE_joined && may_be_passed(stack->list, list->words - 2);
}

/* Whether runs and loops fit each other, the innermost `skipped` loops left out. Ends that are cut
 * are at the root, and what is there of both has to fit from the leaf on. */
static bool fit(const struct frame_merge *stack, const struct list *list, size_t loops,
		size_t *skipped)
{
	const size_t runs = list->runs + list->has_rest;
	const bool is_list_whole = list->state == MERGE_joined;

	*skipped = is_list_whole && loops == runs + 1 && is_entering(stack);
	if (is_list_whole && loops > runs + *skipped)
		return false;
	return !stack->is_native_whole || runs + *skipped <= loops;
}

/* Up to the innermost frame of code that was made at run time, or nothing. */
static struct frame_merge up_to_made(const struct frame_merge *stack)
{
	struct frame_merge before = *stack;

	before.is_native_whole = false;
	before.native_count = 0;
	for (size_t i = 0; i < stack->native_count && !before.native_count; i++)
		if (stack->roles[i] == NATIVE_MADE)
			before.native_count = i + 1;
	return before;
}

static bool fits_up_to(const struct frame_merge *whole, size_t count)
{
	struct frame_merge stack = *whole;
	struct list list = list_of(stack.list, stack.list_words);
	size_t loops, skipped;

	stack.native_count = count;
	stack.is_native_whole = true;
	loops = count_loops(&stack);
	drop_ends(&stack, &list, loops);
	return list.words && fit(&stack, &list, loops, &skipped);
}

size_t frame_merge_running(const struct frame_merge *stack)
{
	for (size_t i = 0; i < stack->native_count; i++)
		if (stack->roles[i] == NATIVE_SWITCH &&
		    (!i || stack->roles[i - 1] != NATIVE_SWITCH) && fits_up_to(stack, i + 1))
			return i + 1;
	return stack->native_count;
}

struct merging {
	const struct frame_merge *stack;
	const struct list *list;
	struct merged_frame *out;
	size_t count, at; /* frames in out; words of the list that are used */
	bool has_language;
};

/* The frames of the next run; what is at address 0 stands for none. */
static void add_run(struct merging *to)
{
	const uint64_t *words = to->stack->list;
	bool is_entry = false;

	for (; to->at < to->list->words && !is_entry; to->at += 2) {
		is_entry = runtime_frame_is_entry(words[to->at + 1]) &&
			   !(to->list->has_passed && may_be_passed(words, to->at));
		if (!stack_frame_address(words[to->at]))
			continue;
		to->out[to->count++] = (struct merged_frame){.at = (uint32_t)to->at,
							     .is_language = true};
		to->has_language = true;
	}
}

static void add_native(struct merging *to, size_t i)
{
	to->out[to->count++] = (struct merged_frame){
		.at = (uint32_t)i,
		.is_runtime = to->has_language && (to->stack->roles[i] == NATIVE_RUNTIME ||
						   to->stack->roles[i] == NATIVE_LOOP),
	};
}

static size_t native_alone(const struct frame_merge *stack, struct merged_frame *out)
{
	for (size_t i = 0; i < stack->native_count; i++)
		out[i] = (struct merged_frame){.at = (uint32_t)i};
	return stack->native_count;
}

enum frame_merge_result frame_merge(const struct frame_merge *stack, struct merged_frame *out,
				    size_t *count)
{
	struct list list = list_of(stack->list, stack->list_words);
	struct merging to = {
		.stack = stack, .list = &list, .out = out, .has_language = stack->is_for_lock};
	const size_t loops = count_loops(stack);
	struct frame_merge before;
	size_t skipped;

	*count = native_alone(stack, out);
	if (!list.words && list.state == MERGE_joined) /* no list at all */
		return loops ? MERGE_no_list : MERGE_none;
	if (!list.words && list.state != MERGE_list_other)
		return list.state;
	drop_ends(stack, &list, loops);
	if (!list.words)
		return loops ? list.state : MERGE_none;
	if (ends_early(stack, &list))
		return MERGE_differ;
	pass(stack, &list, loops);
	if (!fit(stack, &list, loops, &skipped)) {
		before = up_to_made(stack);
		if (!before.native_count || !fit(&before, &list, count_loops(&before), &skipped))
			return MERGE_differ;
		to.stack = &before;
		list.state = list.state == MERGE_joined ? MERGE_guessed : list.state;
	}
	for (size_t i = 0; i < to.stack->native_count; i++) {
		if (stack->roles[i] == NATIVE_LOOP) {
			if (skipped)
				skipped--;
			else
				add_run(&to);
		}
		add_native(&to, i);
	}
	while (to.at < list.words) /* of loops behind the native frames' end */
		add_run(&to);
	*count = to.count;
	return list.state;
}
