/* SPDX-License-Identifier: Apache-2.0 */
/* What is done every second or so: rows that changed are written, what is due is tried again,
 * tables that nobody used for longest make room on the disk. */
#include "symbol-server/symbolize/least_used.h"
#include "symbol-server/symbolize/symbolizer_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"

enum {
	ROUND_MS = 1000, /* whole seconds */
	DUE_ROUNDS = 5,  /* between looks for modules whose time to retry has come */
	SAVED_AT_ONCE = 512,
	RETRY_MAX_MS = 24 * 60 * 60 * 1000, /* the longest pause */
	KEPT_SIXTEENTHS = 15,               /* of --symbol-disk, after making room */
};

#define USED_STORED_MS (3600 * INT64_C(1000))

/* ---- rows ---- */

/* What could not be written is written with what changes next. */
static void note_unsaved(struct symbolizer *symbolizer, const struct module *copies, size_t count)
{
	pthread_mutex_lock(&symbolizer->lock);
	for (size_t i = 0; i < count; i++) {
		struct module *module = module_list_find(&symbolizer->modules, &copies[i].id);

		if (module)
			module->is_unsaved = true;
	}
	pthread_mutex_unlock(&symbolizer->lock);
}

void symbolizer_save(struct symbolizer *symbolizer, const struct build_id *id)
{
	struct module copy, *module;
	struct module_row row;
	struct error err = {0};

	pthread_mutex_lock(&symbolizer->save_lock);
	pthread_mutex_lock(&symbolizer->lock);
	module = module_list_find(&symbolizer->modules, id);
	if (!module || !module_is_kept(module)) { /* it made room for others, or may yet */
		pthread_mutex_unlock(&symbolizer->lock);
		goto out;
	}
	module->is_unsaved = false;
	module->is_stored = true;
	module->stored_used_ms = module->last_used_ms;
	copy = *module;
	pthread_mutex_unlock(&symbolizer->lock);
	module_to_row(&copy, &row);
	if (!symbols_put_module(symbolizer->store, &row, &err)) {
		log_fault_write(&symbolizer->not_saved, 1, LOG_ERROR,
				"states of modules not stored", "reason=\"%s\"", err.message);
		note_unsaved(symbolizer, &copy, 1);
	}
out:
	pthread_mutex_unlock(&symbolizer->save_lock);
}

static bool is_to_save(const struct module *module, bool is_end)
{
	return module_is_kept(module) &&
	       (module->is_unsaved ||
		module->last_used_ms - module->stored_used_ms > (is_end ? 0 : USED_STORED_MS));
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
		module->is_stored = true;
		if (module->is_uploaded && module->last_used_ms > module->stored_used_ms)
			uploads_use(symbolizer->uploads, &module->id);
		module->stored_used_ms = module->last_used_ms;
		copies[(*count)++] = *module;
	}
	pthread_mutex_unlock(&symbolizer->lock);
	return number;
}

/* Rows of modules that made room for others, and have not come back meanwhile. */
static void forget_rows(struct symbolizer *symbolizer)
{
	struct build_id *ids = malloc(SAVED_AT_ONCE * sizeof(*ids));
	struct error err = {0};
	size_t count, taken;

	pthread_mutex_lock(&symbolizer->save_lock);
	do {
		count = 0;
		pthread_mutex_lock(&symbolizer->lock);
		taken = ids ? module_list_take_forgotten(&symbolizer->modules, ids, SAVED_AT_ONCE)
			    : 0;
		for (size_t i = 0; i < taken; i++)
			if (!module_list_find(&symbolizer->modules, &ids[i]))
				ids[count++] = ids[i];
		pthread_mutex_unlock(&symbolizer->lock);
		if (count && !symbols_drop_modules(symbolizer->store, ids, count, &err))
			log_warn("modules not forgotten", "reason=\"%s\"", err.message);
	} while (taken);
	pthread_mutex_unlock(&symbolizer->save_lock);
	free(ids);
}

static void save_all(struct symbolizer *symbolizer, bool is_end)
{
	struct module *copies = malloc(SAVED_AT_ONCE * sizeof(*copies));
	struct module_row *rows = malloc(SAVED_AT_ONCE * sizeof(*rows));
	struct error err = {0};
	uint32_t number = 0;
	size_t count;

	pthread_mutex_lock(&symbolizer->save_lock);
	while (copies && rows) {
		number = copy_unsaved(symbolizer, number, is_end, copies, &count);
		if (!count)
			break;
		for (size_t i = 0; i < count; i++)
			module_to_row(&copies[i], &rows[i]);
		if (!symbols_put_modules(symbolizer->store, rows, count, &err)) {
			log_fault_write(&symbolizer->not_saved, count, LOG_ERROR,
					"states of modules not stored", "reason=\"%s\"",
					err.message);
			note_unsaved(symbolizer, copies, count);
		} else {
			log_fault_over(&symbolizer->not_saved, "states of modules not stored");
		}
	}
	pthread_mutex_unlock(&symbolizer->save_lock);
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
	int64_t now = unix_time_ms();

	pthread_mutex_lock(&symbolizer->lock);
	for (uint32_t i = 0; i < symbolizer->modules.count; i++) {
		struct module *module = &symbolizer->modules.modules[i];

		/* Further away than any pause: the clock was set back. */
		if (module->queue != QUEUE_NONE || !module->is_met || !module->retry_at_ms ||
		    (module->retry_at_ms > now && module->retry_at_ms - now <= RETRY_MAX_MS))
			continue;
		module->is_fetched = module->is_alt_asked = module->is_down = false;
		module->retry_at_ms = 0;
		symbolizer_queue(symbolizer, module, QUEUE_LOCAL);
	}
	pthread_mutex_unlock(&symbolizer->lock);
}

/* ---- --symbol-disk ---- */

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
		qsort(victims, *count, sizeof(*victims), victim_compare);
	return victims;
}

/* Nobody converts it meanwhile: what is deleted is the old table. */
static bool begin_drop(struct symbolizer *symbolizer, const struct build_id *id)
{
	struct module *module;
	bool is_free;

	pthread_mutex_lock(&symbolizer->lock);
	module = module_list_find(&symbolizer->modules, id);
	is_free = module && module->queue == QUEUE_NONE;
	if (is_free) {
		module->queue = QUEUE_BUSY;
		module->is_again = false;
	}
	pthread_mutex_unlock(&symbolizer->lock);
	return is_free;
}

/* The table is where it was, and counts. */
static void undo_drop(struct symbolizer *symbolizer, const struct build_id *id)
{
	struct module *module;

	pthread_mutex_lock(&symbolizer->lock);
	module = module_list_find(&symbolizer->modules, id);
	module->queue = QUEUE_NONE;
	if (module->is_again)
		symbolizer_queue(symbolizer, module, QUEUE_LOCAL);
	pthread_mutex_unlock(&symbolizer->lock);
}

static void end_drop(struct symbolizer *symbolizer, const struct build_id *id, const char *reason)
{
	struct module *module;

	pthread_mutex_lock(&symbolizer->lock);
	module = module_list_find(&symbolizer->modules, id);
	symbolizer_count_table(symbolizer, module, 0);
	module->queue = QUEUE_NONE;
	module->quality = QUALITY_NONE;
	module->state = MODULE_wanted;
	module->files = 0;
	module->has_failed = false;
	module->raw_bytes = 0;
	module->flags = 0;
	module->retry_at_ms = 0;
	module->is_fetched = module->is_alt_asked = false;
	module->is_dropped = module->is_unsaved = true;
	module->dropped_ms = unix_time_ms();
	MODULE_TEXT(module->reason, reason);
	if (module->is_again)
		symbolizer_queue(symbolizer, module, QUEUE_LOCAL);
	pthread_mutex_unlock(&symbolizer->lock);
}

bool symbolizer_drop_table(struct symbolizer *symbolizer, const struct build_id *id,
			   const char *reason, struct error *err)
{
	if (!begin_drop(symbolizer, id))
		return error_set(err, ERROR_BUSY, "its table of names is being made just now");
	if (!symbols_drop_table(symbolizer->store, id, err)) {
		undo_drop(symbolizer, id);
		return false;
	}
	symbol_cache_drop(symbolizer->cache, id);
	end_drop(symbolizer, id, reason);
	return true;
}

static uint64_t disk_bytes(struct symbolizer *symbolizer)
{
	uint64_t bytes;

	pthread_mutex_lock(&symbolizer->lock);
	bytes = symbolizer->disk_bytes;
	pthread_mutex_unlock(&symbolizer->lock);
	return bytes;
}

static void count_dropped(struct symbolizer *symbolizer, size_t dropped)
{
	pthread_mutex_lock(&symbolizer->lock);
	symbolizer->counters.tables_dropped += dropped;
	pthread_mutex_unlock(&symbolizer->lock);
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

		if (symbolizer_drop_table(symbolizer, &victims[i].id,
					  "its table made room for others (--symbol-disk); it is "
					  "made again when it is next asked for",
					  &err)) {
			dropped++;
		} else if (err.kind != ERROR_BUSY) {
			log_warn("symbol table not dropped", "reason=\"%s\"", err.message);
			break; /* a full disk, for one: tried again in a while */
		}
	}
	free(victims);
	count_dropped(symbolizer, dropped);
	while (!atomic_load(&symbolizer->stops) && symbols_give_back(symbolizer->store))
		;
	if (dropped)
		log_info("symbol tables made room", "dropped=%zu bytes=%llu", dropped,
			 (unsigned long long)disk_bytes(symbolizer));
}

/* ---- the thread ---- */

static void wait_round(struct symbolizer *symbolizer)
{
	struct timespec when;

	clock_gettime(CLOCK_MONOTONIC, &when);
	when.tv_sec += ROUND_MS / 1000;
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
		forget_rows(symbolizer);
		save_all(symbolizer, false);
		if (round % DUE_ROUNDS == 0)
			queue_due(symbolizer);
		make_room(symbolizer);
	}
	return NULL;
}
