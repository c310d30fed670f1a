/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/api/known_modules.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/hash_table.h"
#include "common/log.h"

enum { NAME_ROOM = 256, FORGET_MS = 60000 };

/* 128 bits of hash for an id: two modules that share them would cost one a later want at query
 * time. */
struct known_modules {
	pthread_mutex_t lock;
	struct hash_table table;
	uint64_t *seconds; /* second half of each entry's hash */
	uint32_t count;
	uint64_t evicted; /* of the symbolizer, when they were last forgotten */
	int64_t forgotten_ms;
};

struct known_modules *known_modules_new(struct error *err)
{
	struct known_modules *known = calloc(1, sizeof(*known));

	if (known)
		known->seconds = calloc(KNOWN_MODULES_MAX, sizeof(*known->seconds));
	if (!known || !known->seconds) {
		free(known);
		error_set(err, ERROR_MEMORY, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&known->lock, NULL);
	hash_table_init(&known->table, KNOWN_MODULES_MAX);
	return known;
}

void known_modules_free(struct known_modules *known)
{
	if (!known)
		return;
	hash_table_release(&known->table);
	pthread_mutex_destroy(&known->lock);
	free(known->seconds);
	free(known);
}

/* True the first time, and the first time that its htlhash is told. */
static bool is_new(struct known_modules *known, const struct batch_module *module)
{
	uint64_t alias = build_id_hash(&module->htlhash);
	uint64_t first = hash_word(build_id_hash(&module->id), alias);
	uint64_t second = hash_bytes(module->id.bytes, module->id.length, alias + 1);

	HASH_TABLE_EACH(at, &known->table, first)
		if (known->seconds[at] == second)
			return false;
	if (known->count == KNOWN_MODULES_MAX) {
		hash_table_clear(&known->table);
		known->count = 0;
	}
	if (hash_table_add(&known->table, first, known->count))
		known->seconds[known->count++] = second;
	return true;
}

static void pass_on(struct api *api, const struct batch_module *module, uint32_t sender)
{
	bool has_hash = module->htlhash.length != 0;
	bool is_gnu = !module->go_id.length &&
		      !(has_hash && build_id_equal(&module->id, &module->htlhash));
	struct error err = {0};
	char name[NAME_ROOM];

	/* a GNU id beside a Go id is still the key; only a Go id's own hash has 16 bytes */
	is_gnu = is_gnu || (module->go_id.length && module->id.length != FILE_HASH_BYTES);
	snprintf(name, sizeof(name), "%.*s", (int)module->name.length, module->name.at);
	symbolizer_want_of(api->symbolizer, &module->id, name, is_gnu, 1, sender);
	if (has_hash && !build_id_equal(&module->id, &module->htlhash) &&
	    !symbols_put_alias(api->symbols, &module->htlhash, &module->id, &err))
		log_warn("module alias not kept", "reason=\"%s\"", err.message);
}

/* What made room for others has to be told of again when it is met; not more often than now and
 * then, as one sender may keep others going. */
static void forget_evicted(struct api *api)
{
	struct known_modules *known = api->known;
	uint64_t evicted = symbolizer_evicted(api->symbolizer);
	int64_t now_ms = unix_time_ms();

	pthread_mutex_lock(&known->lock);
	if (evicted != known->evicted && llabs(now_ms - known->forgotten_ms) > FORGET_MS) {
		hash_table_clear(&known->table);
		known->count = 0;
		known->evicted = evicted;
		known->forgotten_ms = now_ms;
	}
	pthread_mutex_unlock(&known->lock);
}

void known_modules_meet(struct api *api, const struct sample_batch *batch)
{
	uint32_t sender = (uint32_t)hash_bytes(batch->sender.at, batch->sender.length, 1);

	forget_evicted(api);
	for (uint32_t i = 0; i < batch->module_count; i++) {
		bool is_first;

		if (!batch->modules[i].id.length)
			continue;
		pthread_mutex_lock(&api->known->lock);
		is_first = is_new(api->known, &batch->modules[i]);
		pthread_mutex_unlock(&api->known->lock);
		if (is_first)
			pass_on(api, &batch->modules[i], sender);
	}
}
