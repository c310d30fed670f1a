/* SPDX-License-Identifier: Apache-2.0 */
/* What is acknowledged but not folded into the day files yet: one cell per (day, type, series, 60
 * s), its counted stacks appended report by report. Appended bytes never move, so a reader takes a
 * snapshot under the store's lock and reads it without. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_CELLS_MEMORY_TABLE_H
#define SYMBOL_SERVER_STORE_SQLITE_CELLS_MEMORY_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/buffer.h"
#include "common/hash_table.h"
#include "symbol-server/store/blocks.h"

enum { MEMORY_TABLE_BYTES_MAX = 512 << 20 };

struct memory_chunk {
	struct memory_chunk *next;
	uint32_t used, capacity;
	uint8_t bytes[];
};

struct cell_key {
	uint32_t day;    /* days since 1970 */
	uint32_t bucket; /* minute of the day */
	uint32_t tenant;
	uint32_t type;   /* number of the profile type */
	uint32_t series; /* number in the day's catalog; 0: the accounts of all hosts */
	uint32_t second; /* of the minute; 0 unless it is of sqlite/recent.h */
};

struct memory_cell {
	struct cell_key key;
	struct memory_chunk *first, *last;
	uint64_t samples, value;
	uint32_t pairs;
};

struct memory_table {        /* one generation: filled, sealed, folded, released */
	int references;      /* atomic */
	uint64_t start, end; /* journal positions: holds what lies in (start, end] */
	struct blocks cells; /* struct memory_cell */
	struct hash_table index;
	struct arena arena;
	uint64_t pairs;
	uint32_t *days; /* that have cells */
	uint32_t day_count, day_room;
};

struct memory_table *memory_table_new(uint64_t start);
struct memory_table *memory_table_take(struct memory_table *table);
void memory_table_release(struct memory_table *table); /* NULL is fine */
size_t memory_table_bytes(const struct memory_table *table);

bool memory_table_has_day(const struct memory_table *table, uint32_t day);

/* The cell of that key, made when new. NULL: no room. */
struct memory_cell *memory_table_cell(struct memory_table *table, const struct cell_key *key);
/* False: no room; the cell is unchanged. Large ones get a chunk each. */
bool memory_cell_append(struct memory_table *table, struct memory_cell *cell, const void *bytes,
			uint32_t length);

struct memory_snapshot { /* a cell as it was under the lock */
	struct cell_key key;
	const struct memory_chunk *first, *last;
	uint32_t last_used;
	uint64_t samples, value;
	uint32_t pairs;
};
struct memory_snapshot memory_cell_snapshot(const struct memory_cell *cell);
/* Calls fn for each run of bytes, oldest first; entries are never split over runs. False: fn did.
 */
bool memory_snapshot_each(const struct memory_snapshot *snapshot,
			  bool (*fn)(void *context, const uint8_t *bytes, size_t length),
			  void *context);

#endif
