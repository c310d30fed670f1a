/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/symbol_table.h"

#include <stdlib.h>
#include <string.h>

#include "symbol-server/symbolize/table_memory.h"

struct symbol_table *symbol_table_hold(struct symbol_table *table)
{
	atomic_fetch_add_explicit(&table->references, 1, memory_order_relaxed);
	return table;
}

void symbol_table_release(struct symbol_table *table)
{
	/* The arrays lie behind the struct in one allocation. */
	if (table && atomic_fetch_sub_explicit(&table->references, 1, memory_order_acq_rel) == 1)
		table_memory_give(table, table->bytes);
}

/* The range that holds the offset: the last start at or below it. */
static uint32_t find_range(const struct symbol_table *table, uint32_t offset)
{
	uint32_t bucket = offset >> table->bucket_shift;
	uint32_t low = table->buckets[bucket], high = table->buckets[bucket + 1];

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (table->starts[middle] <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low - 1; /* starts[0] is 0, so low is at least 1 */
}

unsigned symbol_table_lookup(const struct symbol_table *table, enum address_base base,
			     uint64_t address, struct symbol_frame frames[SYMBOL_CHAIN_MAX])
{
	uint64_t offset = address + table->bases[base].address - table->first;
	const struct symbol_location *location;
	uint32_t row, node, file, line;
	unsigned count = 0;

	/* The last range is the hole at the end: what lies behind it has no bucket. */
	if (!table->bases[base].is_known || !table->range_count ||
	    offset >= table->starts[table->range_count - 1])
		return 0;
	row = table->locations[find_range(table, (uint32_t)offset)];
	if (row == SYMBOL_NONE)
		return 0;
	location = &table->location_rows[row];
	file = location->file;
	line = location->line;
	for (node = location->node; node != SYMBOL_NONE; node = table->nodes[node].parent) {
		const struct symbol_node *at = &table->nodes[node];

		frames[count++] = (struct symbol_frame){
			.name = table->strings + at->name,
			.file = table->strings + file,
			.line = line,
			.is_inline = at->parent != SYMBOL_NONE,
		};
		/* Who asks reads them next, and they lie anywhere. */
		__builtin_prefetch(table->strings + at->name);
		__builtin_prefetch(table->strings + at->name + 64);
		__builtin_prefetch(table->strings + file);
		file = at->call_file;
		line = at->call_line;
	}
	return count;
}

/* The outermost function's node of a range; SYMBOL_NONE: a hole. */
static uint32_t outermost(const struct symbol_table *table, uint32_t range)
{
	uint32_t row = table->locations[range], node;

	if (row == SYMBOL_NONE)
		return SYMBOL_NONE;
	node = table->location_rows[row].node;
	while (table->nodes[node].parent != SYMBOL_NONE)
		node = table->nodes[node].parent;
	return node;
}

bool symbol_table_extent(const struct symbol_table *table, enum address_base base, uint64_t address,
			 uint64_t *start, uint64_t *end)
{
	uint64_t first = table->first - table->bases[base].address, offset = address - first;
	uint32_t low, high, node;

	if (!table->bases[base].is_known || !table->range_count ||
	    offset >= table->starts[table->range_count - 1])
		return false;
	low = find_range(table, (uint32_t)offset);
	node = outermost(table, low);
	if (node == SYMBOL_NONE)
		return false;
	/* The last range is a hole, so high stays inside. */
	for (high = low + 1; outermost(table, high) == node;)
		high++;
	while (low > 0 && outermost(table, low - 1) == node)
		low--;
	*start = first + table->starts[low];
	*end = first + table->starts[high];
	return true;
}

bool symbol_table_has_file(const struct symbol_table *table,
			   bool (*is)(void *context, const char *file), void *context)
{
	uint32_t last = 0;

	for (uint32_t i = 0; i < table->location_count; i++) {
		uint32_t file = table->location_rows[i].file;

		if (file != last && is(context, table->strings + file))
			return true;
		last = file;
	}
	last = 0;
	for (uint32_t i = 0; i < table->node_count; i++) {
		uint32_t file = table->nodes[i].call_file;

		if (file != last && is(context, table->strings + file))
			return true;
		last = file;
	}
	return false;
}
