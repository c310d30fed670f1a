/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/naming/demangle_cache.h"

#include <pthread.h>
#include <string.h>

#include "common/hash_table.h"
#include "symbol-server/naming/demangle.h"

enum { NAMES_MAX = 1 << 18, NAMES_BYTES = 48 << 20 };

static struct {
	pthread_mutex_t lock;
	bool is_ready;
	struct arena arena;
	struct hash_table index;
	struct {
		const char *name;
		struct demangled_name plain;
	} names[NAMES_MAX];
	uint32_t count;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool find(const char *name, uint64_t hash, struct demangled_name *plain)
{
	bool is_found = false;

	pthread_mutex_lock(&kept.lock);
	HASH_TABLE_EACH(at, &kept.index, hash)
		if (!strcmp(kept.names[at].name, name)) {
			*plain = kept.names[at].plain;
			is_found = true;
			break;
		}
	pthread_mutex_unlock(&kept.lock);
	return is_found;
}

static const char *copy(const char *text)
{
	return text ? arena_text(&kept.arena, text, strlen(text)) : NULL;
}

/* Twice the same, when two ask at once, does no harm. */
static void keep(const char *name, struct demangled_name plain, uint64_t hash)
{
	const char *own;

	pthread_mutex_lock(&kept.lock);
	if (!kept.is_ready) {
		arena_init(&kept.arena, NAMES_BYTES);
		hash_table_init(&kept.index, NAMES_MAX);
		kept.is_ready = true;
	}
	own = kept.count < NAMES_MAX ? copy(name) : NULL;
	plain.shown = own ? copy(plain.shown) : NULL;
	plain.signature = plain.shown ? copy(plain.signature) : NULL;
	if (own && !kept.arena.failed && hash_table_add(&kept.index, hash, kept.count)) {
		kept.names[kept.count].name = own;
		kept.names[kept.count++].plain = plain;
	}
	pthread_mutex_unlock(&kept.lock);
}

struct demangled_name demangle_cached(const char *name, struct arena *arena)
{
	struct demangled_name plain = {0};
	uint64_t hash;

	if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R')) {
		plain.shown = demangle(name, arena); /* quick, and most often the name itself */
		return plain;
	}
	hash = hash_bytes(name, strlen(name), 0);
	if (find(name, hash, &plain))
		return plain;
	plain.shown = demangle(name, arena);
	plain.signature = demangle_signature(name, arena);
	if (plain.signature && !strcmp(plain.signature, plain.shown))
		plain.signature = NULL;
	if (!arena->failed) /* else it may be the name as it was for want of room */
		keep(name, plain, hash);
	return plain;
}
