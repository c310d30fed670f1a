/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/symbol_cache.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/hash_table.h"
#include "symbol-server/symbolize/symbol_table.h"

enum { TABLES_MAX = 16384 };

struct cached {
	struct build_id id;
	struct symbol_table *table; /* NULL: a free entry */
	uint32_t newer, older;      /* HASH_TABLE_NONE at the ends */
};

struct symbol_cache {
	pthread_mutex_t lock;
	struct hash_table by_id;
	struct cached entries[TABLES_MAX];
	uint32_t used; /* entries ever used; freed ones are chained by newer */
	uint32_t free;
	uint32_t newest, oldest;
	uint64_t tables, bytes;
	size_t limit_bytes;
};

struct symbol_cache *symbol_cache_new(size_t limit_bytes)
{
	struct symbol_cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return NULL;
	pthread_mutex_init(&cache->lock, NULL);
	hash_table_init(&cache->by_id, TABLES_MAX);
	cache->free = cache->newest = cache->oldest = HASH_TABLE_NONE;
	cache->limit_bytes = limit_bytes;
	return cache;
}

void symbol_cache_free(struct symbol_cache *cache)
{
	if (!cache)
		return;
	for (uint32_t i = 0; i < cache->used; i++)
		symbol_table_release(cache->entries[i].table);
	hash_table_release(&cache->by_id);
	pthread_mutex_destroy(&cache->lock);
	free(cache);
}

/* ---- with the lock held ---- */

static void unlink_entry(struct symbol_cache *cache, uint32_t number)
{
	struct cached *entry = &cache->entries[number];

	if (entry->newer != HASH_TABLE_NONE)
		cache->entries[entry->newer].older = entry->older;
	else
		cache->newest = entry->older;
	if (entry->older != HASH_TABLE_NONE)
		cache->entries[entry->older].newer = entry->newer;
	else
		cache->oldest = entry->newer;
}

static void link_newest(struct symbol_cache *cache, uint32_t number)
{
	struct cached *entry = &cache->entries[number];

	entry->newer = HASH_TABLE_NONE;
	entry->older = cache->newest;
	if (cache->newest != HASH_TABLE_NONE)
		cache->entries[cache->newest].newer = number;
	else
		cache->oldest = number;
	cache->newest = number;
}

static uint32_t find_entry(const struct symbol_cache *cache, const struct build_id *id)
{
	uint64_t hash = build_id_hash(id);

	HASH_TABLE_EACH(i, &cache->by_id, hash)
		if (build_id_equal(&cache->entries[i].id, id))
			return i;
	return HASH_TABLE_NONE;
}

static void drop_entry(struct symbol_cache *cache, uint32_t number)
{
	struct cached *entry = &cache->entries[number];

	unlink_entry(cache, number);
	hash_table_remove(&cache->by_id, build_id_hash(&entry->id), number);
	cache->bytes -= entry->table->bytes;
	cache->tables--;
	symbol_table_release(entry->table);
	entry->table = NULL;
	entry->newer = cache->free;
	cache->free = number;
}

static uint32_t free_entry(struct symbol_cache *cache)
{
	uint32_t number = cache->free;

	if (number != HASH_TABLE_NONE)
		cache->free = cache->entries[number].newer;
	else if (cache->used < TABLES_MAX)
		number = cache->used++;
	return number;
}

/* ---- */

struct symbol_table *symbol_cache_take(struct symbol_cache *cache, const struct build_id *id)
{
	struct symbol_table *table = NULL;
	uint32_t number;

	pthread_mutex_lock(&cache->lock);
	number = find_entry(cache, id);
	if (number != HASH_TABLE_NONE) {
		unlink_entry(cache, number);
		link_newest(cache, number);
		table = symbol_table_hold(cache->entries[number].table);
	}
	pthread_mutex_unlock(&cache->lock);
	return table;
}

void symbol_cache_put(struct symbol_cache *cache, const struct build_id *id,
		      struct symbol_table *table)
{
	uint32_t number;

	pthread_mutex_lock(&cache->lock);
	number = find_entry(cache, id);
	if (number != HASH_TABLE_NONE)
		drop_entry(cache, number);
	/* One that is larger than the whole limit is used by who loaded it, and not kept. */
	while (cache->oldest != HASH_TABLE_NONE &&
	       (cache->bytes + table->bytes > cache->limit_bytes || cache->tables == TABLES_MAX))
		drop_entry(cache, cache->oldest);
	number = table->bytes <= cache->limit_bytes ? free_entry(cache) : HASH_TABLE_NONE;
	if (number != HASH_TABLE_NONE && hash_table_add(&cache->by_id, build_id_hash(id), number)) {
		cache->entries[number].id = *id;
		cache->entries[number].table = symbol_table_hold(table);
		link_newest(cache, number);
		cache->bytes += table->bytes;
		cache->tables++;
	} else if (number != HASH_TABLE_NONE) {
		cache->entries[number].newer = cache->free;
		cache->free = number;
	}
	pthread_mutex_unlock(&cache->lock);
}

void symbol_cache_drop(struct symbol_cache *cache, const struct build_id *id)
{
	uint32_t number;

	pthread_mutex_lock(&cache->lock);
	number = find_entry(cache, id);
	if (number != HASH_TABLE_NONE)
		drop_entry(cache, number);
	pthread_mutex_unlock(&cache->lock);
}

void symbol_cache_size(struct symbol_cache *cache, uint64_t *tables, uint64_t *bytes)
{
	pthread_mutex_lock(&cache->lock);
	*tables = cache->tables;
	*bytes = cache->bytes;
	pthread_mutex_unlock(&cache->lock);
}
