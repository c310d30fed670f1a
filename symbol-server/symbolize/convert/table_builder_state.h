/* SPDX-License-Identifier: Apache-2.0 */
/* What table_builder's two files share: table_builder.c takes functions, rows and symbols, and
 * table_ranges.c makes the sorted ranges of them. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_CONVERT_TABLE_BUILDER_STATE_H
#define SYMBOL_SERVER_SYMBOLIZE_CONVERT_TABLE_BUILDER_STATE_H

#include "common/buffer.h"
#include "common/hash_table.h"
#include "symbol-server/symbolize/convert/code_symbols.h"
#include "symbol-server/symbolize/convert/table_builder.h"
#include "symbol-server/symbolize/symbol_table.h"

enum {
	TEXT_MAX = 64 << 10,
	TEXTS_BYTES_MAX = 1 << 30, /* below TABLE_NAME_PENDING, as symbol_table's loader has it */
	ROWS_MAX = 50000000,       /* of each kind */
	SECTIONS_MAX = 4096,
	OPEN_MAX = SYMBOL_CHAIN_MAX,
};

/* Offsets from the first section on, which is why a table spans 4 GiB at most. */
struct piece {
	uint32_t low, high;
	uint32_t location;
	uint32_t function; /* in the order they were put in */
};

struct leftover { /* a line no function covers */
	uint32_t low, high;
	uint32_t file, line;
};

struct address_range {
	uint32_t low, high;
};

struct rows { /* one growing array */
	void *at;
	uint32_t count, room;
};

struct table_builder {
	bool no_memory, is_cut;
	struct code_section sections[SECTIONS_MAX];
	uint32_t section_count;
	uint64_t first;

	struct buffer texts;
	struct hash_table text_table, node_table, location_table;
	struct rows nodes, locations, pieces, leftovers, symbols;
	struct rows covered; /* struct address_range; of the unit at hand */
	uint32_t function_count;

	/* the finished ranges */
	struct rows starts, range_locations;
	uint32_t written_to;
};

/* The next row, or NULL when memory or the ceiling is reached. */
void *table_rows_add(struct table_builder *builder, struct rows *rows, size_t size);

/* The location's number; SYMBOL_NONE when it does not fit. */
uint32_t table_builder_location(struct table_builder *builder, uint32_t node, uint32_t file,
				uint32_t line);

#endif
