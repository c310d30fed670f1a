/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/flamegraph/function_heat.h"

#include <stdlib.h>

#include "symbol-server/flamegraph/sampling_error.h"

enum { OTHER, ALL, SUMS }; /* rows after those of functions */

uint64_t function_heat_cells(uint32_t columns, uint32_t rows)
{
	return (uint64_t)columns * ((uint64_t)rows + SUMS);
}

bool function_heat_init(struct function_heat *heat)
{
	hash_table_init(&heat->index, heat->rows);
	heat->cells = calloc(function_heat_cells(heat->columns, heat->rows) + 1,
			     sizeof(*heat->cells));
	heat->last_stack = calloc((size_t)heat->rows + 1, sizeof(*heat->last_stack));
	if (!heat->cells || !heat->last_stack)
		return false;
	for (uint32_t i = 0; i < heat->rows; i++)
		if (!hash_table_add(&heat->index, frame_function_hash(&heat->functions[i]->frame),
				    i))
			return false;
	return true;
}

static uint32_t row_of(const struct function_heat *heat, const struct flame_frame *frame)
{
	uint64_t hash;

	if (!frame_is_function(frame))
		return HASH_TABLE_NONE;
	hash = frame_function_hash(frame);
	HASH_TABLE_EACH(at, &heat->index, hash)
		if (frame_same_function(&heat->functions[at]->frame, frame))
			return at;
	return HASH_TABLE_NONE;
}

static void add(struct function_heat *heat, uint32_t row, uint32_t column,
		const struct heat_value *more)
{
	struct heat_value *cell = &heat->cells[(size_t)row * heat->columns + column];

	cell->value += more->value;
	cell->samples += more->samples;
	cell->squares += more->squares;
}

void function_heat_add(struct function_heat *heat, const struct flame_frame *frames, size_t depth,
		       int64_t time_ms, uint64_t value, uint64_t samples)
{
	const struct heat_value more = {value, samples,
					sampling_squares(value, samples, &heat->sampling)};
	const int64_t column = (time_ms - heat->first_ms) / heat->column_ms;
	const uint64_t stack = ++heat->stacks;
	bool is_in_row = false;

	if (time_ms < heat->first_ms || column >= heat->columns)
		return;
	for (size_t i = heat->by_total || !depth ? 0 : depth - 1; i < depth; i++) {
		uint32_t row = row_of(heat, &frames[i]);

		if (row == HASH_TABLE_NONE)
			continue;
		is_in_row = true;
		if (heat->last_stack[row] != stack)
			add(heat, row, (uint32_t)column, &more);
		heat->last_stack[row] = stack;
	}
	if (!is_in_row)
		add(heat, heat->rows + OTHER, (uint32_t)column, &more);
	add(heat, heat->rows + ALL, (uint32_t)column, &more);
}

const struct heat_value *function_heat_row(const struct function_heat *heat, uint32_t row)
{
	return heat->cells + (size_t)row * heat->columns;
}

const struct heat_value *function_heat_other(const struct function_heat *heat)
{
	return function_heat_row(heat, heat->rows + OTHER);
}

const struct heat_value *function_heat_all(const struct function_heat *heat)
{
	return function_heat_row(heat, heat->rows + ALL);
}

void function_heat_release(struct function_heat *heat)
{
	hash_table_release(&heat->index);
	free(heat->last_stack);
	free(heat->cells);
	*heat = (struct function_heat){0};
}
