/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/flamegraph/top_table.h"

#include <stdlib.h>

#include "common/array.h"
#include "common/hash_table.h"
#include "symbol-server/flamegraph/sampling_error.h"

struct top_index { /* name, signature, module → function */
	struct hash_table table;
};

struct top_table *top_table_new(size_t limit_functions)
{
	struct top_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->limit = limit_functions;
	table->index = calloc(1, sizeof(*table->index));
	if (!table->index) {
		top_table_free(table);
		return NULL;
	}
	hash_table_init(&table->index->table, (uint32_t)limit_functions);
	return table;
}

static struct top_function *function_take(struct top_table *table, const struct flame_frame *frame)
{
	uint64_t hash = frame_function_hash(frame);
	struct top_function *function;

	HASH_TABLE_EACH(i, &table->index->table, hash) {
		function = &table->functions[i];
		if (frame_same_function(&function->frame, frame))
			return function;
	}
	if (table->count >= table->limit ||
	    !ARRAY_GROW(table->functions, table->count, table->capacity) ||
	    !hash_table_add(&table->index->table, hash, (uint32_t)table->count))
		return NULL;
	function = &table->functions[table->count++];
	*function = (struct top_function){.frame = *frame};
	return function;
}

/* Where the function ran itself says more than where it called from. */
static void vote_line(struct top_function *function, const struct flame_frame *frame,
		      uint64_t value, bool is_self)
{
	if (is_self && !function->self)
		function->line_votes = 0;
	if (!is_self && function->self)
		return;
	if (!frame_line_changes(&function->line_votes, value, function->frame.line == frame->line))
		return;
	function->frame.line = frame->line;
	function->frame.file = frame->file;
}

bool top_table_add(struct top_table *table, const struct flame_frame *frames, size_t depth,
		   uint64_t value, uint64_t samples)
{
	double squares = sampling_squares(value, samples, &table->sampling);
	uint64_t stack = ++table->stacks;

	table->last_self = UINT32_MAX;
	if (depth) {
		table->self_of_kind[frames[depth - 1].kind] += value;
		table->squares_of_kind[frames[depth - 1].kind] += squares;
	}
	for (size_t i = 0; i < depth; i++) {
		struct top_function *function;
		bool is_self = i + 1 == depth;

		if (!frame_is_function(&frames[i]))
			continue;
		function = function_take(table, &frames[i]);
		if (!function && (!table->folds || table->count < table->limit))
			return false;
		if (!function) {
			table->cut += is_self ? value : 0;
			continue;
		}
		vote_line(function, &frames[i], value, is_self);
		if (function->last_stack != stack) {
			function->last_stack = stack;
			function->total += value;
			function->total_samples += samples;
			function->total_squares += squares;
		}
		if (is_self) {
			table->last_self = (uint32_t)(function - table->functions);
			function->self += value;
			function->self_samples += samples;
			function->self_squares += squares;
		}
	}
	return true;
}

static int compare_pair(uint64_t a, uint64_t b, uint64_t a2, uint64_t b2)
{
	if (a != b)
		return a < b ? 1 : -1;
	return a2 < b2 ? 1 : a2 > b2 ? -1 : 0;
}

static int compare_self(const void *left, const void *right)
{
	const struct top_function *a = left, *b = right;
	int order = compare_pair(a->self, b->self, a->total, b->total);

	return order ? order : frame_compare_names(&a->frame, &b->frame);
}

static int compare_total(const void *left, const void *right)
{
	const struct top_function *a = left, *b = right;
	int order = compare_pair(a->total, b->total, a->self, b->self);

	return order ? order : frame_compare_names(&a->frame, &b->frame);
}

void top_table_sort(struct top_table *table, bool by_total)
{
	if (table->count)
		qsort(table->functions, table->count, sizeof(*table->functions),
		      by_total ? compare_total : compare_self);
}

void top_table_free(struct top_table *table)
{
	if (!table)
		return;
	if (table->index)
		hash_table_release(&table->index->table);
	free(table->index);
	free(table->functions);
	free(table);
}
