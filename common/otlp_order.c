/* SPDX-License-Identifier: Apache-2.0 */
#include "common/otlp_order.h"

#include <stdlib.h>

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* --- locations --- */

static int by_function(const struct profile_frame *left, const struct profile_frame *right)
{
	int order = compare_numbers(left->file, right->file);

	if (!order)
		order = compare_numbers(left->function, right->function);
	return order ? order : compare_numbers(left->line, right->line);
}

static int by_mapping_and_address(const void *a, const void *b, void *context)
{
	const struct profile_frame *frames = context;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	int order = compare_numbers(frames[left].mapping, frames[right].mapping);

	if (!order)
		order = compare_numbers(frames[left].address, frames[right].address);
	if (!order)
		order = by_function(&frames[left], &frames[right]);
	return order ? order : compare_numbers(left, right);
}

static bool order_frames(struct otlp_order *order, struct arena *arena)
{
	const struct profile *profile = order->profile;
	int32_t *rows = arena_array(arena, profile->frame_count, sizeof *rows);

	order->frames = arena_array(arena, profile->frame_count, sizeof *order->frames);
	order->locations = arena_array(arena, profile->frame_index_count, sizeof *order->locations);
	if (arena->failed)
		return false;
	for (uint32_t i = 0; i < profile->frame_count; i++)
		order->frames[i] = i;
	if (profile->frame_count > 2) /* frame 0 means "none" and stays */
		qsort_r(order->frames + 1, profile->frame_count - 1, sizeof *order->frames,
			by_mapping_and_address, profile->frames);
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
