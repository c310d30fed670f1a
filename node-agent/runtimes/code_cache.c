/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/code_cache.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/hash_table.h"

struct entry {
	struct code_cache_key key;
	void *value; /* NULL: could not be read, so many times */
	uint32_t bytes, tries;
};

struct half {
	struct entry *entries;
	uint32_t count, capacity;
	struct hash_table hashes;
	size_t bytes;
};

enum {
	BUCKETS = 64, /* of processes, by their ids */
	/* An entry's part of the array and the hash table, each at most half full. */
	ENTRY_BYTES = 2 * (sizeof(struct entry) + sizeof(struct hash_slot) + 4),
	NANOSECONDS = 1000000000,
};

struct code_cache {
	struct half halves[2];
	int newer;
	size_t limit;             /* of a half */
	uint64_t due_ns[BUCKETS]; /* what was read would have been, at an even pace */
};

struct code_cache *code_cache_new(size_t limit_bytes)
{
	struct code_cache *cache = calloc(1, sizeof *cache);

	if (!cache)
		return NULL;
	cache->limit = limit_bytes / 2;
	for (int i = 0; i < 2; i++)
		hash_table_init(&cache->halves[i].hashes,
				(uint32_t)(cache->limit / ENTRY_BYTES) + 1);
	return cache;
}

static void half_clear(struct half *half)
{
	for (uint32_t i = 0; i < half->count; i++)
		free(half->entries[i].value);
	free(half->entries);
	half->entries = NULL;
	half->count = half->capacity = 0;
	half->bytes = 0;
	hash_table_clear(&half->hashes);
}

void code_cache_free(struct code_cache *cache)
{
	if (!cache)
		return;
	for (int i = 0; i < 2; i++) {
		half_clear(&cache->halves[i]);
		hash_table_release(&cache->halves[i].hashes);
	}
	free(cache);
}

bool code_cache_begin(struct code_cache *cache)
{
	const size_t most = cache->limit - cache->limit / 4; /* the rest is for this stack */

	if (cache->halves[cache->newer].bytes <= most)
		return false;
	cache->newer ^= 1;
	half_clear(&cache->halves[cache->newer]);
	return true;
}

static uint64_t hash_of(const struct code_cache_key *key)
{
	return hash_bytes(key, sizeof *key, 0);
}

static struct entry *half_find(struct half *half, const struct code_cache_key *key)
{
	HASH_TABLE_EACH (i, &half->hashes, hash_of(key))
		if (!memcmp(&half->entries[i].key, key, sizeof *key))
			return &half->entries[i];
	return NULL;
}

/* Takes the entry's value, whatever becomes of it. NULL: no room. */
static struct entry *add(struct code_cache *cache, struct entry entry)
{
	struct half *half = &cache->halves[cache->newer];
	const size_t bytes = ENTRY_BYTES + entry.bytes;

	if (half->bytes + bytes > cache->limit ||
	    !ARRAY_GROW(half->entries, half->count, half->capacity) ||
	    !hash_table_add(&half->hashes, hash_of(&entry.key), half->count)) {
		free(entry.value);
		return NULL;
	}
	half->entries[half->count] = entry;
	half->bytes += bytes;
	return &half->entries[half->count++];
}

/* From where it is; NULL: nowhere. */
static struct entry *look(struct code_cache *cache, const struct code_cache_key *key)
{
	struct half *newer = &cache->halves[cache->newer];
	struct entry *entry = half_find(newer, key);
	struct entry *old = entry ? NULL : half_find(&cache->halves[!cache->newer], key);

	if (!old || newer->bytes + ENTRY_BYTES + old->bytes > cache->limit)
		return entry ? entry : old;
	const struct entry moved = *old;
	old->value = NULL;
	old->tries = 0;
	return add(cache, moved);
}

bool code_cache_find(struct code_cache *cache, const struct code_cache_key *key, const void **value)
{
	const struct entry *entry = look(cache, key);

	*value = entry ? entry->value : NULL;
	return entry && (entry->value || entry->tries >= CODE_CACHE_TRIES);
}

bool code_cache_may_read(struct code_cache *cache, uint32_t tgid, uint64_t now_ns)
{
	uint64_t *due_ns = &cache->due_ns[tgid % BUCKETS];
	const uint64_t each = NANOSECONDS / CODE_CACHE_A_SECOND;

	if (*due_ns < now_ns)
		*due_ns = now_ns;
	if (*due_ns - now_ns >= each * CODE_CACHE_BURST)
		return false;
	*due_ns += each;
	return true;
}

const void *code_cache_put(struct code_cache *cache, const struct code_cache_key *key, void *value,
			   size_t bytes)
{
	struct half *newer = &cache->halves[cache->newer];
	struct entry *entry = look(cache, key);

	bytes = value ? bytes : 0;
	if (!entry) {
		entry = add(cache, (struct entry){*key, value, (uint32_t)bytes, !value});
		return entry ? entry->value : NULL;
	}
	if (!value) {
		entry->tries++;
		return NULL;
	}
	if (newer->bytes + bytes > cache->limit) {
		free(value);
		return NULL;
	}
	free(entry->value);
	entry->value = value;
	entry->bytes += (uint32_t)bytes; /* both were paid for, until the half goes */
	newer->bytes += bytes;
	return value;
}

size_t code_cache_bytes(const struct code_cache *cache)
{
	return cache->halves[0].bytes + cache->halves[1].bytes;
}
