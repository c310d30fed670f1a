/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/api/demangled_names.h"

#include <pthread.h>
#include <string.h>

#include "common/hash_table.h"
#include "symbol-server/symbolize/symbolizer.h"

enum { NAMES_MAX = 1 << 18, NAMES_BYTES = 24 << 20 };

static struct {
	pthread_mutex_t lock;
	bool is_ready;
	struct arena arena;
	struct hash_table index;
	struct {
		const char *name, *shown;
	} names[NAMES_MAX];
	uint32_t count;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *find(const char *name, uint64_t hash)
{
	const char *shown = NULL;
	uint32_t probe;

	pthread_mutex_lock(&kept.lock);
	for (uint32_t at = hash_table_first(&kept.index, hash, &probe); at != HASH_TABLE_NONE;
	     at = hash_table_next(&kept.index, hash, &probe))
		if (!strcmp(kept.names[at].name, name)) {
			shown = kept.names[at].shown;
			break;
		}
	pthread_mutex_unlock(&kept.lock);
	return shown;
}

/* Twice the same, when two ask at once, does no harm. */
static void keep(const char *name, const char *shown, uint64_t hash)
{
	const char *own, *own_shown;

	pthread_mutex_lock(&kept.lock);
	if (!kept.is_ready) {
		arena_init(&kept.arena, NAMES_BYTES);
		hash_table_init(&kept.index, NAMES_MAX);
		kept.is_ready = true;
	}
	own = kept.count < NAMES_MAX ? arena_text(&kept.arena, name, strlen(name)) : NULL;
	own_shown = own ? arena_text(&kept.arena, shown, strlen(shown)) : NULL;
	if (own_shown && hash_table_add(&kept.index, hash, kept.count)) {
		kept.names[kept.count].name = own;
		kept.names[kept.count++].shown = own_shown;
	}
	pthread_mutex_unlock(&kept.lock);
}

const char *demangled_name(const char *name, struct arena *arena)
{
	uint64_t hash;
	const char *shown;

	if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R'))
		return demangle(name, arena); /* quick, and most often the name itself */
	hash = hash_bytes(name, strlen(name), 0);
	shown = find(name, hash);
	if (shown)
		return shown;
	shown = demangle(name, arena);
	if (shown && !arena->failed) /* else it may be the name as it was for want of room */
		keep(name, shown, hash);
	return shown;
}
