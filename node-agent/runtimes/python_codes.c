/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/python_codes.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/hash_table.h"

struct code_key {
	struct process_key process;
	uint64_t address;
	uint64_t cookie;
};

struct code_entry {
	struct code_key key;
	struct python_code *code; /* NULL: could not be read, so many times */
	uint32_t tries;
};

struct half {
	struct code_entry *entries;
	uint32_t count, capacity;
	struct hash_table hashes;
	size_t bytes;
};

enum {
	BUCKETS = 64, /* of processes, by their ids */
	/* An entry's part of the array and the hash table, each at most half full. */
	ENTRY_BYTES = 2 * (sizeof(struct code_entry) + sizeof(struct hash_slot) + 4),
	NANOSECONDS = 1000000000,
};

struct python_codes {
	struct half halves[2];
	int newer;
	size_t limit;             /* of a half */
	uint64_t due_ns[BUCKETS]; /* what was read would have been, at an even pace */
	struct python_codes_counters counters;
};

struct python_codes *python_codes_new(size_t limit_bytes)
{
	struct python_codes *codes = calloc(1, sizeof(*codes));

	if (!codes)
		return NULL;
	codes->limit = limit_bytes / 2;
	for (int i = 0; i < 2; i++)
		hash_table_init(&codes->halves[i].hashes,
				(uint32_t)(codes->limit / ENTRY_BYTES) + 1);
	return codes;
}

static void half_clear(struct half *half)
{
	for (uint32_t i = 0; i < half->count; i++)
		free(half->entries[i].code);
	free(half->entries);
	half->entries = NULL;
	half->count = half->capacity = 0;
	half->bytes = 0;
	hash_table_clear(&half->hashes);
}

void python_codes_free(struct python_codes *codes)
{
	if (!codes)
		return;
	for (int i = 0; i < 2; i++) {
		half_clear(&codes->halves[i]);
		hash_table_release(&codes->halves[i].hashes);
	}
	free(codes);
}

static struct code_entry *half_find(struct half *half, uint64_t hash, const struct code_key *key)
{
	HASH_TABLE_EACH (i, &half->hashes, hash)
		if (!memcmp(&half->entries[i].key, key, sizeof(*key)))
			return &half->entries[i];
	return NULL;
}

static size_t entry_bytes(const struct code_entry *entry)
{
	return ENTRY_BYTES + (entry->code ? entry->code->bytes : 0);
}

void python_codes_begin(struct python_codes *codes)
{
	const size_t most = codes->limit - codes->limit / 4; /* the rest is for this stack */

	if (codes->halves[codes->newer].bytes <= most)
		return;
	codes->newer ^= 1;
	half_clear(&codes->halves[codes->newer]);
	codes->counters.given_up++;
}

/* Takes the entry's code. NULL: no room. */
static struct code_entry *codes_add(struct python_codes *codes, uint64_t hash,
				    struct code_entry entry)
{
	struct half *half = &codes->halves[codes->newer];

	if (half->bytes + entry_bytes(&entry) > codes->limit) {
		codes->counters.refused++;
		free(entry.code);
		return NULL;
	}
	if (!ARRAY_GROW(half->entries, half->count, half->capacity) ||
	    !hash_table_add(&half->hashes, hash, half->count)) {
		free(entry.code);
		return NULL;
	}
	struct code_entry *to = &half->entries[half->count++];
	*to = entry;
	half->bytes += entry_bytes(to);
	return to;
}

/* One more object of that process may be read. */
static bool may_read(struct python_codes *codes, uint32_t tgid, uint64_t now_ns)
{
	uint64_t *due_ns = &codes->due_ns[tgid % BUCKETS];
	const uint64_t each = NANOSECONDS / PYTHON_CODES_A_SECOND;

	if (*due_ns < now_ns)
		*due_ns = now_ns;
	if (*due_ns - now_ns >= each * PYTHON_CODES_BURST)
		return false;
	*due_ns += each;
	return true;
}

/* From where it is; NULL: nowhere. */
static struct code_entry *codes_look(struct python_codes *codes, uint64_t hash,
				     const struct code_key *key)
{
	struct half *newer = &codes->halves[codes->newer];
	struct code_entry *entry = half_find(newer, hash, key);
	struct code_entry *old = entry ? NULL : half_find(&codes->halves[!codes->newer], hash, key);

	if (!old || newer->bytes + entry_bytes(old) > codes->limit)
		return entry ? entry : old;
	const struct code_entry moved = *old;
	old->code = NULL;
	return codes_add(codes, hash, moved);
}

static void count(struct python_codes_counters *counters, enum python_code_state state,
		  const struct python_code *code)
{
	counters->gone += state == PYTHON_CODE_GONE;
	counters->unread += state == PYTHON_CODE_UNREAD;
	counters->read += state == PYTHON_CODE_READ;
	counters->names_cut += code && code->is_name_cut;
	counters->lines_cut += code && code->is_lines_cut;
}

static struct code_key key_of(const struct process_key *process, uint64_t address, uint16_t cookie)
{
	struct code_key key;

	memset(&key, 0, sizeof key); /* all of it is compared */
	key.process = *process;
	key.address = address;
	key.cookie = cookie;
	return key;
}

/* In place of what is there; NULL: nothing. Returns its code, unless there was no room. */
static const struct python_code *codes_put(struct python_codes *codes, uint64_t hash,
					   struct code_entry *entry, struct code_entry next)
{
	if (!entry) {
		entry = codes_add(codes, hash, next);
		return entry ? entry->code : NULL;
	}
	*entry = next;
	codes->halves[codes->newer].bytes += next.code ? next.code->bytes : 0; /* or the older's */
	return next.code;
}

/* In one question where there is such a one, which costs as much as any. */
static enum python_code_state read_code(const struct python_memory *memory,
					const struct python_layout *layout, uint64_t address,
					uint16_t cookie, struct python_code **out)
{
	struct runtime_code_event told = {.address = address};

	if (!memory->copy_code || !memory->copy_code(memory->context, &told))
		return python_code_read(memory, layout, address, cookie, out);
	told.cookie = cookie;
	return python_told_read(&told, memory, layout, out);
}

const struct python_code *python_codes_find(struct python_codes *codes,
					    const struct process_key *process,
					    const struct python_memory *memory,
					    const struct python_layout *layout, uint64_t address,
					    uint16_t cookie, uint64_t now_ns)
{
	const struct code_key key = key_of(process, address, cookie);
	const uint64_t hash = hash_bytes(&key, sizeof key, 0);
	struct code_entry *entry = codes_look(codes, hash, &key);
	if (entry && (entry->code || entry->tries >= PYTHON_CODE_TRIES))
		return entry->code;
	if (!may_read(codes, process->tgid, now_ns)) {
		codes->counters.refused++;
		return NULL;
	}
	struct code_entry next = {.key = key, .tries = entry ? entry->tries + 1 : 1};
	count(&codes->counters, read_code(memory, layout, address, cookie, &next.code), next.code);
	return codes_put(codes, hash, entry, next);
}

void python_codes_tell(struct python_codes *codes, const struct process_key *process,
		       const struct python_memory *memory, const struct python_layout *layout,
		       const struct runtime_code_event *told, uint64_t now_ns)
{
	const struct code_key key = key_of(process, told->address, told->cookie);
	const uint64_t hash = hash_bytes(&key, sizeof key, 0);
	struct code_entry next = {.key = key};

	python_codes_begin(codes);
	struct code_entry *entry = codes_look(codes, hash, &key);
	if ((entry && entry->code) || !may_read(codes, process->tgid, now_ns) ||
	    python_told_read(told, memory, layout, &next.code) != PYTHON_CODE_READ)
		return;
	count(&codes->counters, PYTHON_CODE_READ, next.code);
	codes->counters.told++;
	codes_put(codes, hash, entry, next);
}

void python_codes_counters(const struct python_codes *codes, struct python_codes_counters *out)
{
	*out = codes->counters;
	out->bytes = codes->halves[0].bytes + codes->halves[1].bytes;
}
