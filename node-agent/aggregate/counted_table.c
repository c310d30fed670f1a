/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/aggregate/counted_table.h"

#include <stdlib.h>
#include <string.h>

enum {
	SMALLEST = 64,
	/* A table is at most three quarters used and at least a quarter live after growing, with 12
	 * bytes a slot: this much for every row that the array has room for. */
	HASH_BYTES_PER_ROW = 32,
	SPARE_FACTOR = 4,
};

void counted_table_init(struct counted_table *table, struct budget *budget, size_t row_bytes,
			size_t copy_bytes, bool is_hashed)
{
	*table = (struct counted_table){
		.budget = budget,
		.row_bytes = row_bytes,
		.paid_bytes = row_bytes + copy_bytes + (is_hashed ? HASH_BYTES_PER_ROW : 0),
	};
	hash_table_init(&table->hashes, UINT32_MAX - 2);
}

bool counted_table_reserve(struct counted_table *table, uint32_t more)
{
	uint32_t capacity = table->capacity ? table->capacity : SMALLEST;
	size_t price;
	void *grown;

	if (table->capacity - table->count >= more)
		return true;
	if (more > UINT32_MAX / 4 - table->count)
		return false;
	while (capacity - table->count < more)
		capacity *= 2;
	price = (size_t)(capacity - table->capacity) * table->paid_bytes;
	if (price > table->budget->limit - table->budget->used)
		return false;
	grown = realloc(table->rows, capacity * table->row_bytes);
	if (!grown)
		return false;
	table->rows = grown;
	table->capacity = capacity;
	table->budget->used += price;
	return true;
}

void *counted_table_append(struct counted_table *table)
{
	void *row = (char *)table->rows + table->count++ * table->row_bytes;

	return memset(row, 0, table->row_bytes);
}

void *counted_table_add(struct counted_table *table, uint64_t hash)
{
	if (!hash_table_add(&table->hashes, hash, table->count))
		return NULL;
	return counted_table_append(table);
}

static void give_back(struct counted_table *table)
{
	free(table->rows);
	hash_table_release(&table->hashes);
	table->budget->used -= (size_t)table->capacity * table->paid_bytes;
	table->rows = NULL;
	table->capacity = 0;
}

void counted_table_clear(struct counted_table *table)
{
	uint32_t needed = table->count > table->busiest ? table->count : table->busiest;

	table->busiest = table->count;
	table->count = 0;
	if (table->capacity > SMALLEST && table->capacity / SPARE_FACTOR > needed)
		give_back(table);
	else
		hash_table_clear(&table->hashes);
}

void counted_table_release(struct counted_table *table)
{
	give_back(table);
}
