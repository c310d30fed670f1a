/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of one kind, each once: a growing array and the hash table that finds them, paid from one
 * common budget. */
#ifndef NODE_AGENT_AGGREGATE_COUNTED_TABLE_H
#define NODE_AGENT_AGGREGATE_COUNTED_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/hash_table.h"

struct budget {
	size_t used, limit; /* bytes */
};

struct counted_table {
	struct budget *budget;
	void *rows;
	size_t row_bytes, paid_bytes; /* of one row; with its share of the hash table */
	uint32_t count, capacity;
	uint32_t busiest; /* rows of the busier of the last two intervals */
	struct hash_table hashes;
};

/* copy_bytes: what somebody else allocates per row, to be paid for here as well. is_hashed false:
 * an array only, appended to. */
void counted_table_init(struct counted_table *table, struct budget *budget, size_t row_bytes,
			size_t copy_bytes, bool is_hashed);

/* Room for more rows; rows may move. false: the budget or memory. */
bool counted_table_reserve(struct counted_table *table, uint32_t more);

/* The next row, counted; there must be room. */
void *counted_table_append(struct counted_table *table);

/* The same, found by hash from now on. NULL: no memory, nothing is added. */
void *counted_table_add(struct counted_table *table, uint64_t hash);

/* Empties it; memory far beyond what the last intervals needed is given back. */
void counted_table_clear(struct counted_table *table);
void counted_table_release(struct counted_table *table);

#endif
