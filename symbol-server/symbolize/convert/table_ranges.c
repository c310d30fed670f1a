/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "symbol-server/symbolize/convert/table_builder_state.h"

/* Stable, by the first field of rows of `size` bytes. */
static bool radix_sort(struct rows *rows, size_t size)
{
	uint8_t *from = rows->at, *to = malloc((size_t)rows->count * size + 1), *spare = to;
	uint32_t key;

	if (!to)
		return false;
	for (unsigned shift = 0; shift < 32; shift += 8) {
		size_t place[257] = {0};
		uint8_t *swap = from;

		for (uint32_t i = 0; i < rows->count; i++) {
			memcpy(&key, from + i * size, sizeof(key));
			place[(key >> shift & 0xff) + 1]++;
		}
		for (unsigned i = 0; i < 256; i++)
			place[i + 1] += place[i];
		for (uint32_t i = 0; i < rows->count; i++) {
			memcpy(&key, from + i * size, sizeof(key));
			memcpy(to + place[key >> shift & 0xff]++ * size, from + i * size, size);
		}
		from = to;
		to = swap;
	}
	free(spare); /* an even number of passes: the rows are back where they were */
	return true;
}

static void write_start(struct table_builder *builder, uint32_t start, uint32_t where)
{
	const uint32_t *known = builder->range_locations.at;
	uint32_t *a, *b;

	if (builder->starts.count && known[builder->starts.count - 1] == where)
		return;
	a = table_rows_add(builder, &builder->starts, sizeof(*a));
	b = table_rows_add(builder, &builder->range_locations, sizeof(*b));
	if (!a || !b) {
		builder->no_memory = true;
		return;
	}
	*a = start;
	*b = where;
}

/* Ranges come in ascending order; what lies between them is a hole. */
static void write_range(struct table_builder *builder, uint32_t low, uint32_t high, uint32_t where)
{
	if (low > builder->written_to || (!builder->starts.count && low))
		write_start(builder, builder->written_to, SYMBOL_NONE);
	write_start(builder, low, where);
	builder->written_to = high;
}

struct filling {
	const struct code_extent *extents;
	size_t extent_count, extent;
	uint32_t leftover;
};

/* A stretch of one symbol: with lines where a row has been left over for it. */
static void fill_symbol(struct table_builder *builder, struct filling *filling, uint32_t low,
			uint32_t high, uint32_t name)
{
	uint32_t node = table_builder_node(builder, name, SYMBOL_NONE, 0, 0);
	const struct leftover *rows = builder->leftovers.at;

	while (low < high) {
		const struct leftover *row;
		uint32_t until = high;

		while (filling->leftover < builder->leftovers.count &&
		       rows[filling->leftover].high <= low)
			filling->leftover++;
		row = filling->leftover < builder->leftovers.count ? &rows[filling->leftover]
								   : NULL;
		if (row && row->low > low) {
			until = row->low < high ? row->low : high;
			row = NULL;
		} else if (row && row->high < high) {
			until = row->high;
		}
		write_range(builder, low, until,
			    table_builder_location(builder, node, row ? row->file : 0,
						   row ? row->line : 0));
		low = until;
	}
}

/* Symbols for what no function covers. */
static void fill_hole(struct table_builder *builder, struct filling *filling, uint64_t low,
		      uint64_t high)
{
	for (; filling->extent < filling->extent_count; filling->extent++) {
		const struct code_extent *extent = &filling->extents[filling->extent];
		uint64_t from = extent->low > low ? extent->low : low;
		uint64_t to = extent->high < high ? extent->high : high;

		if (extent->low >= high)
			return;
		if (from < to)
			fill_symbol(builder, filling, (uint32_t)(from - builder->first),
				    (uint32_t)(to - builder->first), extent->name);
		if (extent->high > high)
			return;
	}
}

/* Pieces over one place: several where a linker kept one of equal functions (COMDAT) and let the
 * debug information of all of them name it. */
enum { OVERLAPS_MAX = 16 }; /* what lies over as many is left out there */

struct open_pieces {
	const struct piece *at[OVERLAPS_MAX];
	unsigned count;
};

static void open_piece(struct open_pieces *open, const struct piece *piece)
{
	if (open->count < OVERLAPS_MAX)
		open->at[open->count++] = piece;
}

static void close_pieces(struct open_pieces *open, uint32_t at)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < open->count; i++)
		if (open->at[i]->high > at)
			open->at[kept++] = open->at[i];
	open->count = kept;
}

/* The first function put in counts, all of it: the one of the first unit, as llvm-symbolizer and
 * addr2line have it. NULL: none is open. */
static const struct piece *first_piece(const struct open_pieces *open)
{
	const struct piece *first = open->count ? open->at[0] : NULL;

	for (unsigned i = 1; i < open->count; i++)
		if (open->at[i]->function < first->function)
			first = open->at[i];
	return first;
}

static bool write_ranges(struct table_builder *builder, const struct code_extent *extents,
			 size_t extent_count)
{
	struct filling filling = {.extents = extents, .extent_count = extent_count};
	struct open_pieces open = {.count = 0};
	const struct piece *pieces, *piece, *end;
	uint32_t at = 0;

	if (!radix_sort(&builder->pieces, sizeof(struct piece)) ||
	    !radix_sort(&builder->leftovers, sizeof(struct leftover)))
		return false;
	pieces = builder->pieces.at;
	end = pieces ? pieces + builder->pieces.count : pieces;
	for (;;) {
		uint32_t until;

		close_pieces(&open, at);
		for (; pieces < end && pieces->low <= at; pieces++)
			open_piece(&open, pieces);
		piece = first_piece(&open);
		if (!piece && pieces == end)
			break;
		until = piece ? piece->high : pieces->low;
		if (piece && pieces < end && pieces->low < until)
			until = pieces->low;
		if (piece)
			write_range(builder, at, until, piece->location);
		else
			fill_hole(builder, &filling, builder->first + at, builder->first + until);
		at = until;
	}
	fill_hole(builder, &filling, builder->first + at, UINT64_MAX);
	write_start(builder, builder->written_to, SYMBOL_NONE);
	return !builder->no_memory;
}

static void settle_names(struct table_builder *builder, const uint32_t *pending)
{
	struct symbol_node *nodes = builder->nodes.at;

	for (uint32_t i = 0; i < builder->nodes.count; i++)
		if (nodes[i].name & TABLE_NAME_PENDING)
			nodes[i].name = pending[nodes[i].name & ~TABLE_NAME_PENDING];
}

bool table_builder_finish(struct table_builder *builder, const uint32_t *pending,
			  struct symbol_table *table, struct error *err)
{
	uint32_t symbols = builder->symbols.count;
	struct code_extent *extents = malloc((2 * (size_t)symbols + 1) * sizeof(*extents));
	bool ok = extents != NULL;
	size_t count = 0;

	if (ok)
		count = code_symbols_extents(builder->symbols.at, symbols, builder->sections,
					     builder->section_count, extents);
	ok = ok && write_ranges(builder, extents, count) && !builder->texts.failed;
	free(extents);
	if (!ok)
		return error_set(err, ERROR_MEMORY, "its table does not fit the memory limit");
	if (!builder->nodes.count || !builder->locations.count)
		return error_set(err, ERROR_NOT_FOUND,
				 "it is stripped: no debug information, no names of functions");
	settle_names(builder, pending);
	table->range_count = builder->starts.count;
	table->location_count = builder->locations.count;
	table->node_count = builder->nodes.count;
	table->string_bytes = (uint32_t)builder->texts.length;
	table->function_count = builder->function_count > symbols ? builder->function_count
								  : symbols;
	table->first = builder->first;
	table->starts = builder->starts.at;
	table->locations = builder->range_locations.at;
	table->location_rows = builder->locations.at;
	table->nodes = builder->nodes.at;
	table->strings = (const char *)builder->texts.bytes;
	return true;
}
