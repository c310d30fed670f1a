/* SPDX-License-Identifier: Apache-2.0 */
/* The one hash table: 64-bit hash → 32-bit index into an array the caller owns.
 * Open addressing; the caller compares keys. A key may be added once.
 *
 *	HASH_TABLE_EACH(i, &t, hash)
 *		if (equal(&items[i], key))
 *			return &items[i];
 */
#ifndef COMMON_HASH_TABLE_H
#define COMMON_HASH_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HASH_TABLE_NONE UINT32_MAX

struct hash_slot {
	uint32_t hash;	/* upper half of the key's hash */
	uint32_t index; /* HASH_TABLE_NONE: free; HASH_TABLE_NONE - 1: removed */
};

struct hash_table {
	struct hash_slot *slots;
	uint32_t size; /* a power of two; 0 before the first add */
	uint32_t used; /* live and removed slots */
	uint32_t live;
	uint32_t limit; /* most live entries */
	uint32_t *hashes_low; /* lower halves, so that growing needs no keys */
};

void hash_table_init(struct hash_table *table, uint32_t limit_entries);
uint32_t hash_table_first(const struct hash_table *table, uint64_t hash, uint32_t *probe);
uint32_t hash_table_next(const struct hash_table *table, uint64_t hash, uint32_t *probe);

/* for (): each index that was added by that hash, and now and then by another. Both are read at
 * each step. */
#define HASH_TABLE_EACH(index_, table_, hash_)                                            \
	for (uint32_t index_##_probe = 0,                                                 \
		      index_ = hash_table_first(table_, hash_, &index_##_probe);          \
	     index_ != HASH_TABLE_NONE;                                                   \
	     index_ = hash_table_next(table_, hash_, &index_##_probe))

/* False: the limit or memory is reached; the table is unchanged. index < HASH_TABLE_NONE - 1. */
bool hash_table_add(struct hash_table *table, uint64_t hash, uint32_t index);
/* Fetches where a search for that hash begins: worth it some dozen searches before. */
static inline void hash_table_prefetch(const struct hash_table *table, uint64_t hash)
{
	uint32_t at = (uint32_t)hash & (table->size - 1);

	if (!table->size)
		return;
	__builtin_prefetch(&table->slots[at]);
	__builtin_prefetch(&table->hashes_low[at]);
}

/* Removes the entry of that hash and index; nothing happens when it is not there. */
void hash_table_remove(struct hash_table *table, uint64_t hash, uint32_t index);
/* All entries gone, memory kept. */
void hash_table_clear(struct hash_table *table);
void hash_table_release(struct hash_table *table);

/* Hash of bytes, the same on every machine and in every version that reads our files
 * (stack ids are made of it): 64-bit FNV-1a over 8-byte little-endian words with a final mix. */
uint64_t hash_bytes(const void *bytes, size_t length, uint64_t seed);
/* Mixes one 64-bit word into a running hash. */
uint64_t hash_word(uint64_t hash, uint64_t word);

#endif
