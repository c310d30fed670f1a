/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/flamegraph/diff_table.h"

#include <math.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/hash_table.h"
#include "symbol-server/flamegraph/diff_verdicts.h"
#include "symbol-server/flamegraph/sampling_error.h"

enum { CELLS_PER_ROW = 8 /* at the limit of rows */ };

struct diff_index { /* name, signature, module, is_process → row */
	struct hash_table table;
};

const char *const diff_state_names[] = {"same", "new", "gone", "changed"};
const char *const diff_sustained_names[] = {"too short", "no", "yes"};

struct diff_table *diff_table_new(enum diff_norm norm, bool by_total, size_t limit_rows)
{
	struct diff_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->norm = norm;
	table->by_total = by_total;
	table->limit = limit_rows;
	table->index = calloc(1, sizeof(*table->index));
	if (!table->index) {
		diff_table_free(table);
		return NULL;
	}
	hash_table_init(&table->index->table, (uint32_t)limit_rows);
	return table;
}

/* --- adding up --- */

static bool put_cell(struct diff_table *table, struct diff_row *row, uint32_t part)
{
	if (table->cell_count >= CELLS_PER_ROW * table->limit ||
	    !ARRAY_GROW(table->cells, table->cell_count, table->cell_capacity))
		return false;
	table->cells[table->cell_count++] =
		(struct diff_cell){row->number, (uint16_t)part, (uint16_t)table->side,
				   (double)row->now.value, (double)row->now.samples};
	row->now = (struct diff_sum){0};
	row->is_touched = false;
	return true;
}

static bool end_part(struct diff_table *table)
{
	struct diff_whole *whole = &table->whole[table->side];
	bool ok = true;

	for (size_t i = 0; ok && i < table->touched_count; i++)
		ok = put_cell(table, &table->rows[table->touched[i]], whole->parts - 1);
	table->touched_count = 0;
	table->in_part = false;
	return ok;
}

bool diff_table_part(struct diff_table *table, enum diff_side side, double seconds)
{
	struct diff_whole *whole = &table->whole[side];

	if (table->in_part && !end_part(table))
		return false;
	if (whole->parts < DIFF_PARTS_MAX)
		whole->parts++;
	whole->part_seconds[whole->parts - 1] += seconds;
	whole->seconds += seconds;
	table->side = side;
	table->in_part = true;
	return true;
}

static bool grow(struct diff_table *table)
{
	size_t room = table->capacity;

	return table->count < table->limit && ARRAY_GROW(table->touched, table->count, room) &&
	       ARRAY_GROW(table->rows, table->count, table->capacity);
}

static struct diff_row *row_take(struct diff_table *table, const struct flame_frame *frame,
				 bool is_process)
{
	uint64_t hash = frame_function_hash(frame) + is_process;
	uint32_t at = (uint32_t)table->count;

	HASH_TABLE_EACH(i, &table->index->table, hash)
		if (table->rows[i].is_process == is_process &&
		    frame_same_function(&table->rows[i].frame, frame))
			return &table->rows[i];
	if (!grow(table) || !hash_table_add(&table->index->table, hash, at))
		return NULL;
	table->rows[table->count++] =
		(struct diff_row){.frame = *frame, .is_process = is_process, .number = at};
	table->process_count += is_process;
	return &table->rows[at];
}

/* The measure that is compared; majority vote after Boyer and Moore. */
static void count(struct diff_table *table, struct diff_row *row, const struct diff_stack *stack,
		  uint32_t process)
{
	if (row->process == process) {
		row->votes += stack->value;
	} else if (row->votes >= stack->value) {
		row->votes -= stack->value;
	} else {
		row->process = process;
		row->votes = stack->value - row->votes;
	}
	if (!stack->is_common)
		return;
	row->now.value += stack->value;
	row->now.samples += stack->samples;
	change_weight_add(&row->weight, (double)stack->value, (double)stack->samples);
	if (!row->is_touched)
		table->touched[table->touched_count++] = row->number;
	row->is_touched = true;
}

static void add_sum(struct diff_sum *sum, const struct diff_stack *stack)
{
	sum->value += stack->value;
	sum->samples += stack->samples;
}

static bool add_functions(struct diff_table *table, const struct diff_stack *stack,
			  uint32_t process)
{
	enum diff_side side = table->side;

	table->stacks++;
	for (size_t i = 0; i < stack->depth; i++) {
		bool is_leaf = i + 1 == stack->depth, is_first;
		struct diff_row *row;

		if (!frame_is_function(&stack->frames[i]))
			continue;
		row = row_take(table, &stack->frames[i], false);
		if (!row)
			return false;
		is_first = row->last_stack != table->stacks;
		row->last_stack = table->stacks;
		if (is_first)
			add_sum(&row->total[side], stack);
		if (is_leaf)
			add_sum(&row->self[side], stack);
		if (table->by_total ? is_first : is_leaf)
			count(table, row, stack, process);
	}
	return true;
}

bool diff_table_add(struct diff_table *table, const struct diff_stack *stack)
{
	const struct flame_frame frame = {
		.name = stack->process, .file = "", .module = FRAME_NO_MODULE, .kind = FRAME_group};
	struct diff_whole *whole = &table->whole[table->side];
	struct diff_row *process = row_take(table, &frame, true);

	if (!process)
		return false;
	whole->value += stack->value;
	whole->samples += stack->samples;
	if (stack->is_common) {
		whole->common += (double)stack->value;
		whole->part_values[whole->parts - 1] += (double)stack->value;
	}
	add_sum(&process->self[table->side], stack);
	add_sum(&process->total[table->side], stack);
	count(table, process, stack, process->number);
	return add_functions(table, stack, process->number);
}

/* --- comparing --- */

static double scale_of(const struct diff_table *table)
{
	const struct diff_whole *base = &table->whole[DIFF_BASE];
	const struct diff_whole *compare = &table->whole[DIFF_COMPARE];
	double scale = 1;

	if (table->norm == DIFF_SHARE)
		scale = (double)compare->value / (double)base->value;
	if (table->norm == DIFF_PER_SECOND)
		scale = compare->seconds / base->seconds;
	return isfinite(scale) && scale > 0 ? scale : 1;
}

double diff_table_normalized(const struct diff_table *table, enum diff_side side, uint64_t value)
{
	const struct diff_whole *whole = &table->whole[side];
	double by = table->norm == DIFF_SHARE        ? (double)whole->value
		    : table->norm == DIFF_PER_SECOND ? whole->seconds
						     : 1;

	return by > 0 ? (double)value / by : 0;
}

double diff_table_error(const struct diff_table *table, enum diff_side side,
			const struct diff_row *row)
{
	const struct diff_sum *sum = &(table->by_total ? row->total : row->self)[side];
	double at = side == DIFF_BASE ? row->before : row->after;
	double count = (double)sum->samples * (table->effective > 0 ? table->effective : 1);
	double rest = table->norm == DIFF_SHARE ? 1 - at : 1;

	return count > 0 ? NORMAL_95 * sqrt(count * fmax(0, rest) + 1) * at / count : 0;
}

static void compare_sides(const struct diff_table *table, struct diff_row *row)
{
	const struct diff_sum *sums = table->by_total ? row->total : row->self;
	uint64_t before = sums[DIFF_BASE].value, after = sums[DIFF_COMPARE].value;

	row->before = diff_table_normalized(table, DIFF_BASE, before);
	row->after = diff_table_normalized(table, DIFF_COMPARE, after);
	row->change = row->before > 0 ? row->after / row->before - 1 : NAN;
	row->change_low = row->change_high = NAN;
	row->state = before == 0 && after > 0   ? DIFF_NEW
		     : before > 0 && after == 0 ? DIFF_GONE
		     : row->is_recorded         ? DIFF_CHANGED
						: DIFF_SAME;
}

static int compare_change(const void *left, const void *right)
{
	const struct diff_row *a = left, *b = right;
	double x = fabs(a->after - a->before), y = fabs(b->after - b->before);
	int order;

	if (a->is_process != b->is_process)
		return a->is_process ? -1 : 1;
	if (x != y)
		return x > y ? -1 : 1;
	order = frame_compare_names(&a->frame, &b->frame);
	return order ? order
		     : (a->frame.module > b->frame.module) - (a->frame.module < b->frame.module);
}

static void sort(struct diff_table *table)
{
	if (table->count)
		qsort(table->rows, table->count, sizeof(*table->rows), compare_change);
	table->processes = table->rows;
	table->functions = table->rows + table->process_count;
	table->function_count = table->count - table->process_count;
}

bool diff_table_test(struct diff_table *table, size_t intervals)
{
	struct diff_verdicts verdicts;
	bool ok;

	if (table->in_part && !end_part(table))
		return false;
	table->scale = scale_of(table);
	ok = diff_verdicts_make(&verdicts, table);
	if (ok) {
		for (size_t i = 0; i < table->count; i++)
			compare_sides(table, &table->rows[i]);
		sort(table);
		intervals = intervals < DIFF_INTERVALS_MAX ? intervals : DIFF_INTERVALS_MAX;
		for (size_t i = 0; i < intervals && i < table->process_count; i++)
			diff_verdicts_interval(&verdicts, &table->processes[i]);
		for (size_t i = 0; i < intervals && i < table->function_count; i++)
			diff_verdicts_interval(&verdicts, &table->functions[i]);
	}
	diff_verdicts_release(&verdicts);
	return ok;
}

void diff_table_free(struct diff_table *table)
{
	if (!table)
		return;
	if (table->index)
		hash_table_release(&table->index->table);
	free(table->index);
	free(table->rows);
	free(table->touched);
	free(table->cells);
	free(table);
}
