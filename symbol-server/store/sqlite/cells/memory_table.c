/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/cells/memory_table.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"

enum { CHUNK_FIRST = 112, CHUNK_LARGEST = 8192 }; /* bytes of a cell's chunks */

struct memory_table *memory_table_new(uint64_t start)
{
	struct memory_table *table = calloc(1, sizeof *table);

	if (!table)
		return NULL;
	table->references = 1;
	table->start = table->end = start;
	blocks_init(&table->cells, sizeof(struct memory_cell));
	hash_table_init(&table->index, BLOCK_ITEMS * BLOCKS_MAX);
	arena_init(&table->arena, MEMORY_TABLE_BYTES_MAX);
	return table;
}

struct memory_table *memory_table_take(struct memory_table *table)
{
	__atomic_add_fetch(&table->references, 1, __ATOMIC_RELAXED);
	return table;
}

void memory_table_release(struct memory_table *table)
{
	if (!table || __atomic_sub_fetch(&table->references, 1, __ATOMIC_ACQ_REL))
		return;
	blocks_release(&table->cells);
	hash_table_release(&table->index);
	arena_release(&table->arena);
	free(table->days);
	free(table);
}

size_t memory_table_bytes(const struct memory_table *table)
{
	return sizeof *table + table->arena.used + blocks_bytes(&table->cells) +
	       table->index.size * (sizeof(struct hash_slot) + 4);
}

bool memory_table_has_day(const struct memory_table *table, uint32_t day)
{
	for (uint32_t i = table->day_count; i--;)
		if (table->days[i] == day)
			return true;
	return false;
}

static bool note_day(struct memory_table *table, uint32_t day)
{
	if (memory_table_has_day(table, day))
		return true;
	if (!ARRAY_GROW(table->days, table->day_count, table->day_room))
		return false;
	table->days[table->day_count++] = day;
	return true;
}

struct memory_cell *memory_table_cell(struct memory_table *table, const struct cell_key *key)
{
	uint64_t hash = hash_word((uint64_t)key->series << 32 | key->second << 20 |
					  key->bucket << 8 | key->type,
				  (uint64_t)key->tenant << 32 | key->day);
	struct memory_cell *cell;

	HASH_TABLE_EACH(n, &table->index, hash) {
		cell = blocks_at(&table->cells, n);
		if (!memcmp(&cell->key, key, sizeof *key))
			return cell;
	}
	cell = note_day(table, key->day) ? blocks_add(&table->cells) : NULL;
	if (!cell)
		return NULL;
	if (!hash_table_add(&table->index, hash, table->cells.count - 1)) {
		table->cells.count--;
		return NULL;
	}
	cell->key = *key;
	return cell;
}

static struct memory_chunk *add_chunk(struct memory_table *table, struct memory_cell *cell,
				      uint32_t length)
{
	uint32_t capacity = cell->last ? cell->last->capacity * 2 : CHUNK_FIRST;
	struct memory_chunk *chunk;

	if (capacity > CHUNK_LARGEST)
		capacity = CHUNK_LARGEST;
	if (capacity < length)
		capacity = length;
	chunk = arena_alloc(&table->arena, sizeof *chunk + capacity);
	if (!chunk)
		return NULL;
	chunk->capacity = capacity;
	if (cell->last)
		cell->last->next = chunk;
	else
		cell->first = chunk;
	cell->last = chunk;
	return chunk;
}

bool memory_cell_append(struct memory_table *table, struct memory_cell *cell, const void *bytes,
			uint32_t length)
{
	struct memory_chunk *chunk = cell->last;

	if (!chunk || chunk->capacity - chunk->used < length)
		chunk = add_chunk(table, cell, length);
	if (!chunk)
		return false;
	memcpy(chunk->bytes + chunk->used, bytes, length);
	chunk->used += length;
	return true;
}

struct memory_snapshot memory_cell_snapshot(const struct memory_cell *cell)
{
	return (struct memory_snapshot){.key = cell->key,
					.first = cell->first,
					.last = cell->last,
					.last_used = cell->last ? cell->last->used : 0,
					.samples = cell->samples,
					.value = cell->value,
					.pairs = cell->pairs};
}

bool memory_snapshot_each(const struct memory_snapshot *snapshot,
			  bool (*fn)(void *context, const uint8_t *bytes, size_t length),
			  void *context)
{
	/* Chunks before the last are full and final; of the last only what was there then. */
	for (const struct memory_chunk *chunk = snapshot->first; chunk;
	     chunk = chunk == snapshot->last ? NULL : chunk->next)
		if (!fn(context, chunk->bytes,
			chunk == snapshot->last ? snapshot->last_used : chunk->used))
			return false;
	return true;
}
