/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/symbolizer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "symbol-server/symbolize/symbolizer_state.h"
#include "symbol-server/symbolize/worker.h"

enum {
	PACKED_MAX = WORKER_TABLE_MAX,
	ROWS_BYTES_MAX = 256 << 20,
	ASKED_FOR_MS = 120 * 1000, /* how long an upload may take to begin */
	DROPPED_MS = 10 * 1000,    /* before a table that made room is made again */
};

/* ---- start and stop ---- */

/* A newer converter may succeed where the old one failed, and may know more of what it converted;
 * until then its table is used. */
static bool is_to_start(const struct module *module)
{
	if (module->is_dropped)
		return false;
	if (module->state == MODULE_wanted || module->is_met)
		return true;
	if (module->quality == QUALITY_NONE)
		return false;
	/* Its missing parts may lie here now, and what they are is not stored. */
	return module->converter != SYMBOL_CONVERTER_VERSION ||
	       module->flags & (SYMBOL_TABLE_DWO_MISSING | SYMBOL_TABLE_ALT_MISSING);
}

static void start_module(struct symbolizer *symbolizer, struct module *module)
{
	if (module->state == MODULE_failed && module->converter != SYMBOL_CONVERTER_VERSION) {
		module->state = MODULE_wanted;
		module->has_failed = false;
	}
	/* Names first, and then no time to retry: interrupted before the lines came. */
	if (module->state == MODULE_symbols && !module->retry_at_ms)
		module->is_met = true;
	if (is_to_start(module))
		symbolizer_queue(symbolizer, module, QUEUE_LOCAL);
}

static bool load_modules(struct symbolizer *symbolizer, struct error *err)
{
	struct module_row *rows;
	struct arena arena;
	bool ok = false;
	size_t count;

	arena_init(&arena, ROWS_BYTES_MAX);
	if (!symbols_modules(symbolizer->store, &arena, &rows, &count, err))
		goto out;
	for (size_t i = 0; i < count; i++) {
		struct module *module = module_list_add(&symbolizer->modules, &rows[i].id,
							rows[i].first_seen_ms);

		if (!module)
			break;
		module_from_row(module, &rows[i]);
		module->is_uploaded = false; /* symbolizer_find_uploads() */
		symbolizer->disk_bytes += module->packed_bytes;
		start_module(symbolizer, module);
	}
	ok = true;
out:
	arena_release(&arena);
	return ok;
}

void symbolizer_file_came(struct symbolizer *symbolizer, const struct build_id *id)
{
	struct module_list *list = &symbolizer->modules;
	struct module *module = module_list_find(list, id);

	if (module && module->quality < QUALITY_DWARF && !module->is_dropped)
		symbolizer_queue(symbolizer, module, QUEUE_LOCAL);
	for (uint32_t i = 0; symbolizer->alts_missing && i < list->count; i++)
		if (list->modules[i].alt.length && build_id_equal(&list->modules[i].alt, id))
			symbolizer_queue(symbolizer, &list->modules[i], QUEUE_LOCAL);
}

/* A directory has a file of that id which was not there before. */
static void file_appeared(void *context, const struct build_id *id)
{
	struct symbolizer *symbolizer = context;

	pthread_mutex_lock(&symbolizer->lock);
	symbolizer_file_came(symbolizer, id);
	pthread_mutex_unlock(&symbolizer->lock);
}

/* A server answers again that did not: modules it could not be asked for need not wait. */
static void server_is_back(void *context)
{
	struct symbolizer *symbolizer = context;

	pthread_mutex_lock(&symbolizer->lock);
	for (uint32_t i = 0; i < symbolizer->modules.count; i++) {
		struct module *module = &symbolizer->modules.modules[i];

		if (!module->is_down && (module->is_fetched || !module->is_gnu ||
					 !module->retry_at_ms || module->quality == QUALITY_DWARF))
			continue;
		module->is_down = module->is_fetched = module->is_alt_asked = false;
		module->retry_at_ms = 0;
		symbolizer_queue(symbolizer, module, QUEUE_LOCAL);
	}
	pthread_mutex_unlock(&symbolizer->lock);
}

/* Below --source-dir and --symbol-dir. */
static bool open_source_files(struct symbolizer *symbolizer,
			      const struct symbolizer_options *options, struct error *err)
{
	size_t own = options->source_dir_count, count = own + options->symbol_dir_count;
	const char **directories = calloc(count + 1, sizeof(*directories));

	if (!directories)
		return error_set(err, ERROR_MEMORY, "no memory for the symbolizer");
	for (size_t i = 0; i < count; i++)
		directories[i] = i < own ? options->source_dirs[i] : options->symbol_dirs[i - own];
	symbolizer->source_files = source_files_start((enum source_files_mode)options->sources,
						      directories, count, err);
	free(directories);
	return symbolizer->source_files != NULL;
}

static bool open_sources(struct symbolizer *symbolizer, const struct symbolizer_options *options,
			 struct error *err)
{
	const char *cache = symbolizer->cache_directory;

	symbolizer->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	symbolizer->cache = symbol_cache_new(options->memory_limit_bytes);
	if (symbolizer->stop_fd < 0 || !symbolizer->cache)
		return error_set(err, ERROR_MEMORY, "no memory for the symbolizer");
	symbolizer->uploads = uploads_open(cache, options->upload_limit_bytes,
					   options->upload_disk_bytes, err);
	if (!symbolizer->uploads)
		return false;
	symbolizer->sources = symbol_sources_open(options->debuginfod_urls,
						  options->debuginfod_url_count, cache, err);
	if (!symbolizer->sources || !load_modules(symbolizer, err))
		return false;
	symbolizer_find_uploads(symbolizer);
	symbol_sources_watch(symbolizer->sources, server_is_back, symbolizer);
	symbolizer->directories = symbol_directories_start(
		&(struct symbol_directories_options){
			.paths = options->symbol_dirs,
			.count = options->symbol_dir_count,
			.found = file_appeared,
			.context = symbolizer,
		},
		err);
	return symbolizer->directories != NULL;
}

struct symbolizer *symbolizer_start(const struct symbolizer_options *options,
				    struct symbols_store *store, struct error *err)
{
	struct symbolizer *symbolizer = calloc(1, sizeof(*symbolizer));
	pthread_condattr_t monotonic;

	if (!symbolizer) {
		error_set(err, ERROR_MEMORY, "no memory for the symbolizer");
		return NULL;
	}
	symbolizer->store = store;
	symbolizer->stop_fd = -1;
	symbolizer->memory_limit_bytes = options->memory_limit_bytes;
	symbolizer->disk_limit_bytes = options->disk_limit_bytes;
	symbolizer->has_directories = options->symbol_dir_count > 0;
	MODULE_TEXT(symbolizer->cache_directory, options->cache_directory);
	module_list_init(&symbolizer->modules);
	pthread_mutex_init(&symbolizer->lock, NULL);
	pthread_mutex_init(&symbolizer->load_lock, NULL);
	pthread_cond_init(&symbolizer->wake, NULL);
	pthread_mutex_init(&symbolizer->save_lock, NULL);
	pthread_condattr_init(&monotonic); /* a wall clock that is set back stops no saving */
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&symbolizer->keep, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (open_source_files(symbolizer, options, err) && open_sources(symbolizer, options, err) &&
	    symbolizer_work_start(symbolizer, options->workers, err))
		return symbolizer;
	symbolizer_stop(symbolizer);
	return NULL;
}

void symbolizer_stop(struct symbolizer *symbolizer)
{
	if (!symbolizer)
		return;
	atomic_store(&symbolizer->stops, true);
	if (symbolizer->stop_fd >= 0 && eventfd_write(symbolizer->stop_fd, 1))
		log_error("symbolizer cannot stop its workers", "reason=\"%s\"", strerror(errno));
	pthread_mutex_lock(&symbolizer->lock);
	pthread_cond_broadcast(&symbolizer->wake);
	pthread_cond_broadcast(&symbolizer->keep);
	pthread_mutex_unlock(&symbolizer->lock);
	for (unsigned i = 0; i < symbolizer->thread_count; i++)
		pthread_join(symbolizer->threads[i], NULL);
	symbolizer_save_all(symbolizer);
	symbol_directories_stop(symbolizer->directories);
	symbol_sources_close(symbolizer->sources);
	source_files_stop(symbolizer->source_files);
	uploads_close(symbolizer->uploads);
	symbol_cache_free(symbolizer->cache);
	module_list_release(&symbolizer->modules);
	if (symbolizer->stop_fd >= 0)
		close(symbolizer->stop_fd);
	pthread_cond_destroy(&symbolizer->wake);
	pthread_cond_destroy(&symbolizer->keep);
	pthread_mutex_destroy(&symbolizer->load_lock);
	pthread_mutex_destroy(&symbolizer->save_lock);
	pthread_mutex_destroy(&symbolizer->lock);
	free(symbolizer);
}

/* ---- wanted ---- */

void symbolizer_want(struct symbolizer *symbolizer, const struct build_id *id, const char *name,
		     bool is_gnu, uint64_t samples)
{
	symbolizer_want_of(symbolizer, id, name, is_gnu, samples, 0);
}

/* Known already, and new in samples: its row is stored from now on, with what sources answer. */
static void begin_to_keep(struct symbolizer *symbolizer, struct module *module)
{
	module->is_unsaved = true;
	if (module->queue == QUEUE_NONE && module->quality == QUALITY_NONE && !module->is_dropped)
		symbolizer_queue(symbolizer, module, QUEUE_LOCAL);
}

void symbolizer_want_of(struct symbolizer *symbolizer, const struct build_id *id, const char *name,
			bool is_gnu, uint64_t samples, uint32_t sender)
{
	struct module_list *list = &symbolizer->modules;
	struct module *module;
	bool is_known, was_kept;

	pthread_mutex_lock(&symbolizer->lock);
	if (!samples && list->announced >= ANNOUNCED_MAX && !module_list_find(list, id))
		module_list_make_room(list, false);
	is_known = module_list_find(list, id) != NULL;
	module = module_list_add(list, id, unix_time_ms());
	if (module) {
		was_kept = module_is_kept(module);
		module_list_meet(list, module, samples, sender, unix_time_ms());
		if (module->quality < QUALITY_SYMTAB)
			module_list_weigh(list, module, samples);
		module->is_met = true;
		if (name && *name && !*module->name)
			MODULE_TEXT(module->name, name);
		if (is_gnu && !module->is_gnu) {
			module->is_gnu = module->is_unsaved = true;
			/* Asked here as something else before: there are more to ask. */
			if (module->state == MODULE_missing)
				symbolizer_queue(symbolizer, module, QUEUE_LOCAL);
		}
		if (is_known && !was_kept && module_is_kept(module))
			begin_to_keep(symbolizer, module);
		module->is_unsaved |= !is_known;
		if (!is_known)
			symbolizer_queue(symbolizer, module, QUEUE_LOCAL);
	}
	pthread_mutex_unlock(&symbolizer->lock);
}

/* Lock held. What was asked before counts for nothing; a thread that has it now goes on. */
static void begin_anew(struct symbolizer *symbolizer, struct module *module)
{
	if (module->queue != QUEUE_NONE)
		return;
	if (module->quality == QUALITY_NONE && !module->has_failed) {
		module->state = MODULE_wanted;
		MODULE_TEXT(module->reason, "it waits for its turn");
	}
	module->failures = 0;
	module->retry_at_ms = module->upload_gone_ms = 0;
	module->is_fetched = module->is_alt_asked = module->is_dropped = module->is_down = false;
	module->is_unsaved = true;
	symbolizer_queue(symbolizer, module, QUEUE_LOCAL);
}

bool symbolizer_ask_again(struct symbolizer *symbolizer, const struct build_id *id,
			  struct error *err)
{
	struct module *module;

	symbol_directories_missed(symbolizer->directories);
	symbol_sources_forgive(symbolizer->sources, id);
	pthread_mutex_lock(&symbolizer->lock);
	module = module_list_find(&symbolizer->modules, id);
	if (module)
		begin_anew(symbolizer, module);
	pthread_mutex_unlock(&symbolizer->lock);
	return module || error_set(err, ERROR_NOT_FOUND, "nothing is known of this build-id");
}

uint64_t symbolizer_evicted(struct symbolizer *symbolizer)
{
	uint64_t evicted;

	pthread_mutex_lock(&symbolizer->lock);
	evicted = symbolizer->modules.evicted;
	pthread_mutex_unlock(&symbolizer->lock);
	return evicted;
}

bool symbolizer_keeps(struct symbolizer *symbolizer, const struct build_id *id)
{
	const struct module *module;
	bool keeps;

	pthread_mutex_lock(&symbolizer->lock);
	module = module_list_find(&symbolizer->modules, id);
	keeps = module && module_is_kept(module);
	pthread_mutex_unlock(&symbolizer->lock);
	return keeps;
}

void symbolizer_warn(struct symbolizer *symbolizer, const struct build_id *id, const char *event,
		     const struct error *err)
{
	char hex[BUILD_ID_HEX], name[sizeof((struct module *)0)->name] = "";
	struct module *module;

	build_id_format(id, hex);
	pthread_mutex_lock(&symbolizer->lock);
	module = module_list_find(&symbolizer->modules, id);
	if (module)
		MODULE_TEXT(name, module->name);
	pthread_mutex_unlock(&symbolizer->lock);
	log_warn(event, "module=\"%s\" build_id=%s reason=\"%s\"", name, hex, err->message);
}

void symbolizer_have_names(struct symbolizer *symbolizer, const struct build_id *const *ids,
			   size_t count, bool *has_table)
{
	pthread_mutex_lock(&symbolizer->lock);
	for (size_t i = 0; i < count; i++) {
		const struct module *module = NULL;

		if (ids[i]->length)
			module = module_list_find(&symbolizer->modules, ids[i]);
		has_table[i] = module && module->quality > QUALITY_NONE;
	}
	pthread_mutex_unlock(&symbolizer->lock);
}

/* ---- tables ---- */

void symbolizer_count_table(struct symbolizer *symbolizer, struct module *module,
			    uint64_t packed_bytes)
{
	symbolizer->disk_bytes += packed_bytes - module->packed_bytes;
	module->packed_bytes = packed_bytes;
	if (symbolizer->disk_limit_bytes && symbolizer->disk_bytes > symbolizer->disk_limit_bytes) {
		symbolizer->keeps = true;
		pthread_cond_signal(&symbolizer->keep);
	}
}

/* Its table made room for others, and now it is asked for: not again and again where the tables in
 * use do not fit at all. */
static void make_again(struct symbolizer *symbolizer, struct module *module)
{
	if (unix_time_ms() - module->dropped_ms < DROPPED_MS)
		return;
	module->is_dropped = false;
	module->is_unsaved = true;
	MODULE_TEXT(module->reason, "its table is being made anew");
	symbolizer_queue(symbolizer, module, QUEUE_LOCAL);
}

static void explain(struct symbolizer *symbolizer, const struct build_id *id, char *reason,
		    size_t room)
{
	struct module *module;

	pthread_mutex_lock(&symbolizer->lock);
	module = module_list_find(&symbolizer->modules, id);
	if (module) {
		module->is_met = true;
		if (module->is_dropped)
			make_again(symbolizer, module);
	}
	if (reason)
		snprintf(reason, room, "%s",
			 module ? module->reason : "it has not been met in samples yet");
	pthread_mutex_unlock(&symbolizer->lock);
}

/* The stored table cannot be read, or is of an older format: it is made anew. */
static void table_is_lost(struct symbolizer *symbolizer, const struct build_id *id)
{
	struct module *module;

	pthread_mutex_lock(&symbolizer->lock);
	module = module_list_find(&symbolizer->modules, id);
	if (module) {
		symbolizer_count_table(symbolizer, module, 0);
		module->quality = QUALITY_NONE;
		module->state = MODULE_wanted;
		module->files = 0;
		module->is_fetched = module->is_alt_asked = false;
		module->is_unsaved = true;
		MODULE_TEXT(module->reason, "its table is being made anew");
		symbolizer_queue(symbolizer, module, QUEUE_LOCAL);
	}
	pthread_mutex_unlock(&symbolizer->lock);
}

static struct symbol_table *load_table(struct symbolizer *symbolizer, const struct build_id *id)
{
	struct symbol_table *table = NULL;
	struct error err = {0};
	struct buffer packed;
	uint32_t format;

	buffer_init(&packed, PACKED_MAX);
	if (symbols_get_table(symbolizer->store, id, &format, &packed, &err))
		table = symbol_table_unpack(packed.bytes, packed.length,
					    symbolizer->memory_limit_bytes, &err);
	buffer_release(&packed);
	if (table)
		symbol_cache_put(symbolizer->cache, id, table);
	else if (err.kind == ERROR_FORMAT || err.kind == ERROR_NOT_FOUND)
		table_is_lost(symbolizer, id);
	if (!table)
		symbolizer_warn(symbolizer, id, "symbol table not loaded", &err);
	return table;
}

/* Whether there is one; it is in use, and a better one is worth a look when its time has come. */
static bool use_table(struct symbolizer *symbolizer, const struct build_id *id)
{
	struct module *module;
	bool has;

	pthread_mutex_lock(&symbolizer->lock);
	module = module_list_find(&symbolizer->modules, id);
	has = module && module->quality != QUALITY_NONE;
	if (has) {
		module->is_met = true;
		module->last_used_ms = unix_time_ms();
	}
	pthread_mutex_unlock(&symbolizer->lock);
	return has;
}

struct symbol_table *symbolizer_take_table(struct symbolizer *symbolizer, const struct build_id *id,
					   char *reason, size_t room)
{
	bool has_table = use_table(symbolizer, id);
	struct symbol_table *table = symbol_cache_take(symbolizer->cache, id);

	if (table)
		return table;
	if (has_table) {
		pthread_mutex_lock(&symbolizer->load_lock);
		table = symbol_cache_take(symbolizer->cache, id);
		if (!table)
			table = load_table(symbolizer, id);
		pthread_mutex_unlock(&symbolizer->load_lock);
	}
	if (!table)
		explain(symbolizer, id, reason, room);
	return table;
}

/* ---- states ---- */

/* A row as the API shows it: what an agent was asked for a while ago is on its way, not missing. */
static bool show_module(const struct module *module, struct arena *arena, struct module_row *row)
{
	static const char on_its_way[] = "an agent that has the file was asked to send it";
	const char *reason = module->reason;

	module_to_row(module, row);
	row->is_working = module->queue != QUEUE_NONE;
	if (module->state == MODULE_missing &&
	    unix_time_ms() - module->asked_for_ms < ASKED_FOR_MS) {
		row->state = MODULE_wanted;
		reason = on_its_way;
	}
	row->name = arena_text(arena, module->name, strlen(module->name));
	row->reason = arena_text(arena, reason, strlen(reason));
	row->source = arena_text(arena, module->source, strlen(module->source));
	return row->name && row->reason && row->source;
}

bool symbolizer_modules(struct symbolizer *symbolizer, struct arena *arena,
			struct module_row **rows, size_t *count, struct error *err)
{
	struct module_list *list = &symbolizer->modules;
	struct module_row *copy;
	bool ok = true;

	pthread_mutex_lock(&symbolizer->lock);
	copy = arena_array(arena, list->count + 1, sizeof(*copy));
	for (uint32_t i = 0; copy && ok && i < list->count; i++)
		ok = show_module(&list->modules[i], arena, &copy[i]);
	*rows = copy;
	*count = list->count;
	pthread_mutex_unlock(&symbolizer->lock);
	return (copy && ok) || error_set(err, ERROR_MEMORY, "no memory for the list of modules");
}

bool symbolizer_candidates(struct symbolizer *symbolizer, struct arena *arena,
			   struct candidate_row **rows, size_t *count, struct error *err)
{
	return symbols_candidates(symbolizer->store, arena, rows, count, err);
}

void symbolizer_counters(struct symbolizer *symbolizer, struct symbolizer_counters *out)
{
	struct uploads_counts uploads;

	uploads_count(symbolizer->uploads, &uploads); /* not under the lock */
	pthread_mutex_lock(&symbolizer->lock);
	*out = symbolizer->counters;
	out->uploads_damaged = uploads.damaged;
	out->upload_bytes = uploads.bytes;
	out->upload_files = uploads.files;
	out->upload_limit_bytes = uploads.limit_bytes;
	out->uploads_evicted = uploads.evicted_files;
	out->disk_bytes = symbolizer->disk_bytes;
	out->modules_evicted = symbolizer->modules.evicted;
	out->modules_refused = symbolizer->modules.refused;
	out->tables_on_disk = 0;
	for (uint32_t i = 0; i < symbolizer->modules.count; i++) {
		out->modules_by_state[symbolizer->modules.modules[i].state]++;
		out->tables_on_disk += symbolizer->modules.modules[i].quality != QUALITY_NONE;
	}
	out->queue = 0;
	for (int i = 0; i < QUEUE_COUNT; i++)
		out->queue += symbolizer->modules.queues[i].count;
	pthread_mutex_unlock(&symbolizer->lock);
	symbol_cache_size(symbolizer->cache, &out->tables_in_memory, &out->table_bytes);
}

struct symbol_sources *symbolizer_sources(struct symbolizer *symbolizer)
{
	return symbolizer->sources;
}

struct symbol_directories *symbolizer_directories(struct symbolizer *symbolizer)
{
	return symbolizer->directories;
}
