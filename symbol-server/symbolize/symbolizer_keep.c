/* SPDX-License-Identifier: Apache-2.0 */
/* What is done every second or so: rows that changed are written, what is due is tried again,
 * tables that nobody used for longest make room on the disk. */
#include "symbol-server/symbolize/symbolizer_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"

enum {
	ROUND_MS = 1000,
	DUE_ROUNDS = 5, /* between looks for modules whose time to retry has come */
	SAVED_AT_ONCE = 512,
	KEPT_SIXTEENTHS = 15, /* of --symbol-disk, after making room */
};

#define USED_STORED_MS (3600 * INT64_C(1000))

/* ---- rows ---- */

void symbolizer_save(struct symbolizer *symbolizer, const struct build_id *id)
{
	struct module copy, *module;
	struct module_row row;
	struct error err = {0};

	pthread_mutex_lock(&symbolizer->lock);
	module = module_list_find(&symbolizer->modules, id);
	module->is_unsaved = false;
	module->stored_used_ms = module->last_used_ms;
	copy = *module;
	pthread_mutex_unlock(&symbolizer->lock);
	module_to_row(&copy, &row);
	if (!symbols_put_module(symbolizer->store, &row, &err))
		log_error("module state not stored", "reason=\"%s\"", err.message);
}

static bool is_to_save(const struct module *module, bool is_end)
{
	return module->is_unsaved ||
	       module->last_used_ms - module->stored_used_ms > (is_end ? 0 : USED_STORED_MS);
}

/* Copies what is to be saved from number on; the next number. */
static uint32_t copy_unsaved(struct symbolizer *symbolizer, uint32_t number, bool is_end,
			     struct module *copies, size_t *count)
{
	*count = 0;
	pthread_mutex_lock(&symbolizer->lock);
	for (; number < symbolizer->modules.count && *count < SAVED_AT_ONCE; number++) {
		struct module *module = &symbolizer->modules.modules[number];

		if (!is_to_save(module, is_end))
			continue;
		module->is_unsaved = false;
		module->stored_used_ms = module->last_used_ms;
		copies[(*count)++] = *module;
	}
	pthread_mutex_unlock(&symbolizer->lock);
	return number;
}

static void save_all(struct symbolizer *symbolizer, bool is_end)
{
	struct module *copies = malloc(SAVED_AT_ONCE * sizeof(*copies));
	struct module_row *rows = malloc(SAVED_AT_ONCE * sizeof(*rows));
	struct error err = {0};
	uint32_t number = 0;
	size_t count;

	while (copies && rows) {
		number = copy_unsaved(symbolizer, number, is_end, copies, &count);
		if (!count)
			break;
		for (size_t i = 0; i < count; i++)
			module_to_row(&copies[i], &rows[i]);
		if (!symbols_put_modules(symbolizer->store, rows, count, &err))
			log_error("states of modules not stored", "reason=\"%s\"", err.message);
	}
	free(copies);
	free(rows);
}

void symbolizer_save_all(struct symbolizer *symbolizer)
{
	save_all(symbolizer, true);
}

/* ---- retries ---- */

/* Modules that were met again after their time to retry. */
static void queue_due(struct symbolizer *symbolizer)
{
	int64_t now = symbolizer_now_ms();

	pthread_mutex_lock(&symbolizer->lock);
	for (uint32_t i = 0; i < symbolizer->modules.count; i++) {
		struct module *module = &symbolizer->modules.modules[i];

		if (module->queue != QUEUE_NONE || !module->is_met || !module->retry_at_ms ||
		    module->retry_at_ms > now)
			continue;
		module->is_fetched = module->is_alt_asked = module->is_down = false;
		module->retry_at_ms = 0;
		symbolizer_queue(symbolizer, module, QUEUE_LOCAL);
	}
	pthread_mutex_unlock(&symbolizer->lock);
}

/* ---- --symbol-disk ---- */

struct victim {
	struct build_id id;
	int64_t used_ms;
};

static int compare_used(const void *left, const void *right)
{
	const struct victim *a = left, *b = right;

	return a->used_ms < b->used_ms ? -1 : a->used_ms > b->used_ms;
}

/* Those with a table that no thread works on, least used first; NULL: none, or no memory. */
static struct victim *list_victims(struct symbolizer *symbolizer, size_t *count)
{
	struct module_list *list = &symbolizer->modules;
	struct victim *victims;

	*count = 0;
	pthread_mutex_lock(&symbolizer->lock);
	victims = malloc((list->count + 1) * sizeof(*victims));
	for (uint32_t i = 0; victims && i < list->count; i++)
		if (list->modules[i].quality != QUALITY_NONE &&
		    list->modules[i].queue == QUEUE_NONE)
			victims[(*count)++] = (struct victim){list->modules[i].id,
							      list->modules[i].last_used_ms};
	pthread_mutex_unlock(&symbolizer->lock);
	if (*count)
		qsort(victims, *count, sizeof(*victims), compare_used);
	return victims;
}

/* Nobody converts it meanwhile: what is deleted is the old table. */
static bool begin_drop(struct symbolizer *symbolizer, const struct build_id *id)
{
	struct module *module;
	bool is_free;

	pthread_mutex_lock(&symbolizer->lock);
	module = module_list_find(&symbolizer->modules, id);
	is_free = module->quality != QUALITY_NONE && module->queue == QUEUE_NONE;
	if (is_free) {
		module->queue = QUEUE_BUSY;
		module->is_again = false;
	}
	pthread_mutex_unlock(&symbolizer->lock);
	return is_free;
}

static void end_drop(struct symbolizer *symbolizer, const struct build_id *id)
{
	struct module *module;

	pthread_mutex_lock(&symbolizer->lock);
	module = module_list_find(&symbolizer->modules, id);
	symbolizer_count_table(symbolizer, module, 0);
	symbolizer->counters.tables_dropped++;
	module->queue = QUEUE_NONE;
	module->quality = QUALITY_NONE;
	module->state = MODULE_wanted;
	module->files = 0;
	module->raw_bytes = 0;
	module->flags = 0;
	module->retry_at_ms = 0;
	module->is_fetched = module->is_alt_asked = false;
	module->is_dropped = module->is_unsaved = true;
	module->dropped_ms = symbolizer_now_ms();
	MODULE_TEXT(module->reason, "its table made room for others (--symbol-disk); it is made "
				    "again when it is next asked for");
	if (module->is_again)
		symbolizer_queue(symbolizer, module, QUEUE_LOCAL);
	pthread_mutex_unlock(&symbolizer->lock);
}

static uint64_t disk_bytes(struct symbolizer *symbolizer)
{
	uint64_t bytes;

	pthread_mutex_lock(&symbolizer->lock);
	bytes = symbolizer->disk_bytes;
	pthread_mutex_unlock(&symbolizer->lock);
	return bytes;
}

/* Down to a bit less than the limit, so that not every new table makes it look again. */
static void make_room(struct symbolizer *symbolizer)
{
	uint64_t limit = symbolizer->disk_limit_bytes, kept = limit / 16 * KEPT_SIXTEENTHS;
	struct victim *victims;
	size_t count, dropped = 0;

	if (!limit || disk_bytes(symbolizer) <= limit)
		return;
	victims = list_victims(symbolizer, &count);
	for (size_t i = 0; i < count && disk_bytes(symbolizer) > kept; i++) {
		struct error err = {0};

		if (!begin_drop(symbolizer, &victims[i].id))
			continue;
		if (!symbols_drop_table(symbolizer->store, &victims[i].id, &err))
			log_warn("symbol table not dropped", "reason=\"%s\"", err.message);
		symbol_cache_drop(symbolizer->cache, &victims[i].id);
		end_drop(symbolizer, &victims[i].id);
		dropped++;
	}
	free(victims);
	while (!atomic_load(&symbolizer->stops) && symbols_give_back(symbolizer->store))
		;
	log_info("symbol tables made room", "dropped=%zu bytes=%llu", dropped,
		 (unsigned long long)disk_bytes(symbolizer));
}

/* ---- the thread ---- */

static void wait_round(struct symbolizer *symbolizer)
{
	int64_t until = symbolizer_now_ms() + ROUND_MS;
	struct timespec when = {.tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000};

	pthread_mutex_lock(&symbolizer->lock);
	while (!atomic_load(&symbolizer->stops) && !symbolizer->keeps)
		if (pthread_cond_timedwait(&symbolizer->keep, &symbolizer->lock, &when) ==
		    ETIMEDOUT)
			break;
	symbolizer->keeps = false;
	pthread_mutex_unlock(&symbolizer->lock);
}

void *symbolizer_keep_thread(void *context)
{
	struct symbolizer *symbolizer = context;

	for (unsigned round = 0; !atomic_load(&symbolizer->stops); round++) {
		wait_round(symbolizer);
		save_all(symbolizer, false);
		if (round % DUE_ROUNDS == 0)
			queue_due(symbolizer);
		make_room(symbolizer);
	}
	return NULL;
}
