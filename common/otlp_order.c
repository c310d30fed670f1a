/* SPDX-License-Identifier: Apache-2.0 */
#include "common/otlp_order.h"

#include <stdlib.h>

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* --- locations --- */

struct frames {
	const struct profile_frame *frames;
	uint32_t *first_lines; /* string → the lowest line of a function of that name */
	size_t strings;
};

static uint32_t first_line(const struct frames *of, const struct profile_frame *frame)
{
	return frame->function < of->strings ? of->first_lines[frame->function] : 0;
}

/* As they stand in their file, which is how they call each other more often than not. */
static int by_function(const struct frames *of, const struct profile_frame *left,
		       const struct profile_frame *right)
{
	int order = compare_numbers(left->file, right->file);

	if (!order)
		order = compare_numbers(first_line(of, left), first_line(of, right));
	if (!order)
		order = compare_numbers(left->function, right->function);
	return order ? order : compare_numbers(left->line, right->line);
}

/* An interpreter's own frames have an attribute more: they stand together. */
static int by_mapping_and_address(const void *a, const void *b, void *context)
{
	const struct frames *of = context;
	const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	const struct profile_frame *x = &of->frames[left], *y = &of->frames[right];
	int order = compare_numbers(x->mapping, y->mapping);

	if (!order)
		order = compare_numbers(x->kind == PROFILE_FRAME_RUNTIME,
					y->kind == PROFILE_FRAME_RUNTIME);
	if (!order)
		order = compare_numbers(x->address, y->address);
	if (!order)
		order = by_function(of, x, y);
	return order ? order : compare_numbers(left, right);
}

static bool find_first_lines(const struct profile *profile, struct arena *arena, struct frames *of)
{
	of->frames = profile->frames;
	of->strings = profile->string_count;
	of->first_lines = arena_array(arena, of->strings, sizeof(uint32_t));
	for (size_t i = 0; of->first_lines && i < profile->frame_count; i++) {
		const struct profile_frame *frame = &profile->frames[i];
		const uint32_t known = first_line(of, frame);

		if (frame->kind == PROFILE_FRAME_NAMED && frame->function < of->strings &&
		    (!known || frame->line < known))
			of->first_lines[frame->function] = frame->line;
	}
	return of->first_lines || !of->strings;
}

static bool order_frames(struct otlp_order *order, struct arena *arena)
{
	const struct profile *profile = order->profile;
	int32_t *rows = arena_array(arena, profile->frame_count, sizeof *rows);
	struct frames of;

	order->frames = arena_array(arena, profile->frame_count, sizeof *order->frames);
	order->locations = arena_array(arena, profile->frame_index_count, sizeof *order->locations);
	if (!find_first_lines(profile, arena, &of) || arena->failed)
		return false;
	for (uint32_t i = 0; i < profile->frame_count; i++)
		order->frames[i] = i;
	if (profile->frame_count > 2) /* frame 0 means "none" and stays */
		qsort_r(order->frames + 1, profile->frame_count - 1, sizeof *order->frames,
			by_mapping_and_address, &of);
	for (uint32_t i = 0; i < profile->frame_count; i++)
		rows[order->frames[i]] = (int32_t)i;
	for (size_t i = 0; i < profile->frame_index_count; i++)
		order->locations[i] = rows[profile->frame_indices[i]];
	return true;
}

/* --- stacks --- */

static int from_the_root(const void *a, const void *b, void *context)
{
	const struct otlp_order *order = context;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	const struct profile_stack *x = &order->profile->stacks[left];
	const struct profile_stack *y = &order->profile->stacks[right];
	const int32_t *x_end = order->locations + x->first_index + x->depth;
	const int32_t *y_end = order->locations + y->first_index + y->depth;
	uint32_t shorter = x->depth < y->depth ? x->depth : y->depth;

	for (uint32_t i = 1; i <= shorter; i++)
		if (x_end[-(int)i] != y_end[-(int)i])
			return x_end[-(int)i] < y_end[-(int)i] ? -1 : 1;
	return x->depth != y->depth ? compare_numbers(x->depth, y->depth)
				    : compare_numbers(left, right);
}

static bool order_stacks(struct otlp_order *order, struct arena *arena)
{
	size_t count = order->profile->stack_count;

	order->stacks = arena_array(arena, count, sizeof *order->stacks);
	order->stack_rows = arena_array(arena, count, sizeof *order->stack_rows);
	if (arena->failed)
		return false;
	for (uint32_t i = 0; i < count; i++)
		order->stacks[i] = i;
	if (count > 1)
		qsort_r(order->stacks, count, sizeof *order->stacks, from_the_root, order);
	for (uint32_t i = 0; i < count; i++)
		order->stack_rows[order->stacks[i]] = (int32_t)i + 1;
	return true;
}

/* --- samples --- */

static int by_attributes_and_values(const void *a, const void *b, void *context)
{
	const struct otlp_order *order = context;
	const struct profile_stack *stacks = order->profile->stacks;
	const struct profile_sample *left = a, *right = b;
	int result = compare_numbers(left->process, right->process);

	if (!result)
		result = compare_numbers(left->type, right->type);
	if (!result)
		result = compare_numbers(left->thread, right->thread);
	if (!result)
		result = compare_numbers(left->thread_id, right->thread_id);
	if (!result)
		result = compare_numbers(stacks[left->stack].incomplete,
					 stacks[right->stack].incomplete);
	if (!result)
		result = compare_numbers(left->count, right->count);
	if (!result)
		result = compare_numbers(left->value, right->value);
	return result ? result
		      : compare_numbers((uint32_t)order->stack_rows[left->stack],
					(uint32_t)order->stack_rows[right->stack]);
}

static bool order_samples(struct otlp_order *order, struct arena *arena)
{
	const struct profile *profile = order->profile;

	order->samples = arena_copy(arena, profile->samples,
				    profile->sample_count * sizeof *order->samples);
	if (!order->samples)
		return false;
	if (profile->sample_count > 1)
		qsort_r(order->samples, profile->sample_count, sizeof *order->samples,
			by_attributes_and_values, order);
	return true;
}

bool otlp_order_make(struct otlp_order *order, const struct profile *profile, struct arena *arena)
{
	order->profile = profile;
	return order_frames(order, arena) && order_stacks(order, arena) &&
	       order_samples(order, arena);
}
