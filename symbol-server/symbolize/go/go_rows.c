/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/go/go_rows.h"

#include <stdlib.h>

#include "common/array.h"

/* One of the tables: its value holds up to (not including) until. */
struct steps {
	struct dwarf_cursor cursor;
	uint32_t quantum;
	uint64_t until;
	int32_t value;
	bool is_first, has_ended;
};

enum { STEPS_FILE, STEPS_LINE, STEPS_INLINED, STEPS_COUNT };

/* cmd/internal/obj/pcln.go, funcpctab(): a value's change, zigzag, and a number of instructions,
 * each 7 bits a byte; a change of 0 that is not the first one ends it. */
static void next_step(struct steps *steps)
{
	uint32_t change, length = 0;

	if (steps->has_ended)
		return;
	change = (uint32_t)dwarf_uleb(&steps->cursor);
	if (change || steps->is_first)
		length = (uint32_t)dwarf_uleb(&steps->cursor);
	if (steps->cursor.failed || !length) {
		steps->has_ended = true;
		steps->value = -1;
		return;
	}
	steps->is_first = false;
	steps->value = (int32_t)((uint32_t)steps->value + (change >> 1 ^ -(change & 1)));
	steps->until += (uint64_t)length * steps->quantum;
}

static void begin_steps(struct steps *steps, const struct go_module *module, uint32_t offset)
{
	*steps = (struct steps){
		.cursor = dwarf_cursor_at(module->pcs, offset, false),
		.quantum = module->quantum,
		.value = -1,
		.is_first = true,
		.has_ended = !offset,
	};
	next_step(steps);
}

static bool take_row(struct go_rows *rows, uint64_t at, const struct steps *steps, uint32_t unit)
{
	int32_t file = steps[STEPS_FILE].value, line = steps[STEPS_LINE].value;
	if (!ARRAY_GROW(rows->rows, rows->count, rows->room))
		return false;
	rows->rows[rows->count++] = (struct go_row){
		.at = (uint32_t)at,
		.file = file < 0 || (uint32_t)file > UINT32_MAX - unit ? UINT32_MAX
								       : unit + (uint32_t)file,
		.line = line < 0 ? 0 : (uint32_t)line,
		.inlined = steps[STEPS_INLINED].value,
	};
	return true;
}

bool go_rows_read(struct go_rows *rows, const struct go_module *module,
		  const struct go_function *function, bool *damaged)
{
	uint64_t limit = function->limit - function->start, at = 0;
	struct steps steps[STEPS_COUNT];

	rows->count = 0;
	begin_steps(&steps[STEPS_FILE], module, function->file_pcs);
	begin_steps(&steps[STEPS_LINE], module, function->line_pcs);
	begin_steps(&steps[STEPS_INLINED], module, function->inline_pcs);
	do {
		bool has_end = !steps[STEPS_FILE].has_ended || !steps[STEPS_LINE].has_ended;
		uint64_t next = has_end ? UINT64_MAX : limit;

		if (!take_row(rows, at, steps, function->unit))
			return false;
		for (unsigned i = 0; i < STEPS_COUNT; i++)
			if (!steps[i].has_ended && steps[i].until < next)
				next = steps[i].until;
		for (unsigned i = 0; i < STEPS_COUNT; i++)
			if (!steps[i].has_ended && steps[i].until <= next)
				next_step(&steps[i]);
		at = next;
	} while (at < limit && (!steps[STEPS_FILE].has_ended || !steps[STEPS_LINE].has_ended));
	*damaged |= at > limit;
	for (unsigned i = 0; i < STEPS_COUNT; i++)
		*damaged |= steps[i].cursor.failed;
	rows->size = (uint32_t)(at < limit ? at : limit);
	return true;
}

void go_rows_release(struct go_rows *rows)
{
	free(rows->rows);
	*rows = (struct go_rows){0};
}

const struct go_row *go_rows_at(const struct go_rows *rows, uint32_t at)
{
	size_t low = 0, high = rows->count;

	if (at >= rows->size)
		return NULL;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (rows->rows[middle].at <= at)
			low = middle;
		else
			high = middle;
	}
	return &rows->rows[low];
}
