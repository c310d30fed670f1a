/* SPDX-License-Identifier: Apache-2.0 */
#include "common/hash_table.h"

#include <stdlib.h>
#include <string.h>

enum { SMALLEST = 16 };
static const uint32_t removed = HASH_TABLE_NONE - 1;

void hash_table_init(struct hash_table *table, uint32_t limit_entries)
{
	*table = (struct hash_table){ .limit = limit_entries };
}

static uint32_t probe_from(const struct hash_table *table, uint64_t hash, uint32_t probe)
{
	uint32_t mask = table->size - 1;

	/* Triangular steps visit every slot of a power-of-two table. */
	for (; probe < table->size; probe++) {
		uint32_t at = ((uint32_t)hash + probe * (probe + 1) / 2) & mask;
		const struct hash_slot *slot = &table->slots[at];

		if (slot->index == HASH_TABLE_NONE)
			return table->size;
		if (slot->index != removed && slot->hash == (uint32_t)(hash >> 32) &&
		    table->hashes_low[at] == (uint32_t)hash)
			return probe;
	}
	return table->size;
}

static uint32_t index_at(const struct hash_table *table, uint64_t hash, uint32_t probe)
{
	if (probe >= table->size)
		return HASH_TABLE_NONE;
	return table->slots[((uint32_t)hash + probe * (probe + 1) / 2) & (table->size - 1)].index;
}

uint32_t hash_table_first(const struct hash_table *table, uint64_t hash, uint32_t *probe)
{
	if (!table->size)
		return HASH_TABLE_NONE;
	*probe = probe_from(table, hash, 0);
	return index_at(table, hash, *probe);
}

uint32_t hash_table_next(const struct hash_table *table, uint64_t hash, uint32_t *probe)
{
	*probe = probe_from(table, hash, *probe + 1);
	return index_at(table, hash, *probe);
}

/* Where a new key of that hash goes: the first free or removed slot. */
static uint32_t free_place(const struct hash_table *table, uint64_t hash)
{
	uint32_t mask = table->size - 1;

	for (uint32_t probe = 0;; probe++) {
		uint32_t at = ((uint32_t)hash + probe * (probe + 1) / 2) & mask;

		if (table->slots[at].index >= removed)
			return at;
	}
}

static void put(struct hash_table *table, uint64_t hash, uint32_t index)
{
	uint32_t at = free_place(table, hash);

	if (table->slots[at].index == HASH_TABLE_NONE)
		table->used++;
	table->slots[at] = (struct hash_slot){ .hash = (uint32_t)(hash >> 32), .index = index };
	table->hashes_low[at] = (uint32_t)hash;
	table->live++;
}

static bool resize(struct hash_table *table, uint32_t size)
{
	struct hash_table old = *table;

	table->slots = malloc(size * sizeof *table->slots);
	table->hashes_low = malloc(size * sizeof *table->hashes_low);
	if (!table->slots || !table->hashes_low) {
		free(table->slots);
		free(table->hashes_low);
		*table = old;
		return false;
	}
	memset(table->slots, 0xff, size * sizeof *table->slots);
	table->size = size;
	table->used = table->live = 0;
	for (uint32_t i = 0; i < old.size; i++)
		if (old.slots[i].index < removed)
			put(table, (uint64_t)old.slots[i].hash << 32 | old.hashes_low[i],
			    old.slots[i].index);
	free(old.slots);
	free(old.hashes_low);
	return true;
}

bool hash_table_add(struct hash_table *table, uint64_t hash, uint32_t index)
{
	if (table->live >= table->limit || index >= removed)
		return false;
	/* At most three quarters used, so that a search always meets a free slot. */
	if (!table->size || table->used >= table->size / 4 * 3) {
		uint32_t size = table->size ? table->size : SMALLEST;

		if (table->live >= size / 2) {
			if (size >= 1u << 31)
				return false;
			size *= 2;
		}
		if (!resize(table, size))
			return false;
	}
	put(table, hash, index);
	return true;
}

void hash_table_remove(struct hash_table *table, uint64_t hash, uint32_t index)
{
	uint32_t probe = 0;

	for (uint32_t i = hash_table_first(table, hash, &probe); i != HASH_TABLE_NONE;
	     i = hash_table_next(table, hash, &probe)) {
		if (i != index)
			continue;
		table->slots[((uint32_t)hash + probe * (probe + 1) / 2) & (table->size - 1)].index =
			removed;
		table->live--;
		return;
	}
}

void hash_table_clear(struct hash_table *table)
{
	if (table->size)
		memset(table->slots, 0xff, table->size * sizeof *table->slots);
	table->used = table->live = 0;
}

void hash_table_release(struct hash_table *table)
{
	if (!table)
		return;
	free(table->slots);
	free(table->hashes_low);
	hash_table_init(table, table->limit);
}

/* The finalizer of MurmurHash3 (public domain, Austin Appleby): every input bit reaches every output bit. */
static uint64_t final_mix(uint64_t hash)
{
	hash ^= hash >> 33;
	hash *= 0xff51afd7ed558ccdull;
	hash ^= hash >> 33;
	hash *= 0xc4ceb9fe1a85ec53ull;
	return hash ^ hash >> 33;
}

uint64_t hash_word(uint64_t hash, uint64_t word)
{
	return final_mix((hash ^ word) * 0x9e3779b97f4a7c15ull + 0x632be59bd9b4e019ull);
}

uint64_t hash_bytes(const void *bytes, size_t length, uint64_t seed)
{
	const uint8_t *at = bytes;
	uint64_t hash = 0xcbf29ce484222325ull ^ seed ^ (uint64_t)length;

	while (length) {
		size_t step = length < 8 ? length : 8;
		uint64_t word = 0;

		for (size_t i = 0; i < step; i++)
			word |= (uint64_t)at[i] << (8 * i);
		hash = (hash ^ word) * 0x100000001b3ull;
		hash ^= hash >> 29;
		at += step;
		length -= step;
	}
	return final_mix(hash);
}
