/* SPDX-License-Identifier: Apache-2.0 */
/* One module's way: files that are here → table of names → table with lines; where these are not
 * enough, debuginfod, and once more. A module is in one queue or with one thread at a time. */
#include "symbol-server/symbolize/symbolizer_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/elf_image.h"
#include "common/hash_table.h"
#include "common/log.h"
#include "symbol-server/symbolize/debug_reader.h"
#include "symbol-server/symbolize/worker.h"

enum {
	FILES_MAX = 8,               /* of one module that are looked at */
	NAMES_FIRST_BYTES = 8 << 20, /* debug files from this size on get their names first */
	MISS_FIRST_MS = 10 * 60 * 1000,
	MISS_MAX_MS = 24 * 60 * 60 * 1000,
	ROUND_MS = 5000, /* between looks for modules whose time to retry has come */
};

#define SENTENCE_NONE "no upload, symbol directory or debuginfod server has it"

/* ---- one module, outside of the lock ---- */

/* A file of the module and what is in it. */
struct candidate {
	int fd;
	bool is_elf, has_debug_info, has_symtab, has_dynsym;
	const char *source;
	uint64_t bytes;
};

struct task {
	struct symbolizer *symbolizer;
	struct build_id id;
	struct candidate files[FILES_MAX];
	size_t count;
	const char *source; /* of the file that matters most */
	char url[128];
	uint64_t fingerprint, converted;
	enum symbol_quality quality; /* of the table there is */
};

static struct module *locked_module(struct task *task)
{
	pthread_mutex_lock(&task->symbolizer->lock);
	return module_list_find(&task->symbolizer->modules, &task->id);
}

static void unlock(struct task *task)
{
	pthread_mutex_unlock(&task->symbolizer->lock);
}

static void set_state(struct task *task, enum module_state state, const char *reason)
{
	struct module *module = locked_module(task);

	module->state = state;
	module->updated_ms = symbolizer_now_ms();
	MODULE_TEXT(module->reason, reason);
	unlock(task);
	symbolizer_save(task->symbolizer, &task->id);
}

void symbolizer_save(struct symbolizer *symbolizer, const struct build_id *id)
{
	struct module copy, *module;
	struct module_row row;
	struct error err = {0};

	pthread_mutex_lock(&symbolizer->lock);
	module = module_list_find(&symbolizer->modules, id);
	if (module)
		copy = *module;
	pthread_mutex_unlock(&symbolizer->lock);
	if (!module)
		return;
	module_to_row(&copy, &row);
	if (!symbols_put_module(symbolizer->store, &row, &err))
		log_error("module state not stored", "reason=\"%s\"", err.message);
}

/* ---- its files ---- */

static void add_candidate(struct task *task, int fd, const char *source)
{
	struct elf_image *image;
	struct candidate *file;
	struct stat stat;

	if (task->count == FILES_MAX || fstat(fd, &stat) || !(image = malloc(sizeof(*image)))) {
		close(fd);
		return;
	}
	file = &task->files[task->count++];
	*file = (struct candidate){.fd = fd, .source = source, .bytes = (uint64_t)stat.st_size};
	if (elf_image_read(fd, image, NULL)) {
		file->is_elf = true;
		file->has_debug_info = image->has_debug_info;
		file->has_symtab = image->has_symtab;
		file->has_dynsym = image->has_dynsym;
	}
	free(image);
	task->fingerprint = hash_word(task->fingerprint, stat.st_dev);
	task->fingerprint = hash_word(task->fingerprint, stat.st_ino);
	task->fingerprint = hash_word(task->fingerprint, (uint64_t)stat.st_size);
	task->fingerprint = hash_word(task->fingerprint, (uint64_t)stat.st_mtim.tv_sec);
	task->fingerprint = hash_word(task->fingerprint, (uint64_t)stat.st_mtim.tv_nsec);
}

/* In the order of sources: what was sent, what lies here, what was downloaded. */
static void find_files(struct task *task)
{
	struct symbolizer *symbolizer = task->symbolizer;
	int fds[FILES_MAX], downloaded = -1;
	struct module *module;
	size_t count;

	task->fingerprint = 1;
	count = uploads_open_files(symbolizer->uploads, &task->id, fds);
	for (size_t i = 0; i < count; i++)
		add_candidate(task, fds[i], "upload");
	count = symbol_directories_open(symbolizer->directories, &task->id, fds, NULL,
					FILES_MAX - task->count);
	for (size_t i = 0; i < count; i++)
		add_candidate(task, fds[i], "directory");
	module = locked_module(task);
	if (module->downloaded >= 0) {
		downloaded = module->downloaded;
		module->downloaded = -1;
		MODULE_TEXT(task->url, module->url);
	}
	module->is_asked_here = true;
	unlock(task);
	if (downloaded >= 0)
		add_candidate(task, downloaded, task->url);
}

static void close_files(struct task *task)
{
	for (size_t i = 0; i < task->count; i++)
		close(task->files[i].fd);
	task->count = 0;
}

static const struct candidate *best_file(const struct task *task, bool debug_info)
{
	const struct candidate *dynsym = NULL;

	for (size_t i = 0; i < task->count; i++) {
		const struct candidate *file = &task->files[i];

		if (debug_info ? file->has_debug_info : file->has_symtab)
			return file;
		if (!debug_info && file->has_dynsym && !dynsym)
			dynsym = file;
	}
	return dynsym;
}

/* The descriptors to convert: whose DWARF, whose symbols; a kallsyms text where there is no ELF. */
static size_t choose_files(struct task *task, int *fds, uint64_t *debug_bytes)
{
	const struct candidate *debug = best_file(task, true), *symbols = best_file(task, false);
	size_t count = 0;

	*debug_bytes = debug ? debug->bytes : 0;
	if (debug) {
		fds[count++] = debug->fd;
		task->source = debug->source;
	}
	if (symbols && symbols != debug) {
		fds[count++] = symbols->fd;
		if (!debug)
			task->source = symbols->source;
	}
	for (size_t i = 0; !count && i < task->count; i++)
		if (!task->files[i].is_elf) {
			fds[count++] = task->files[i].fd;
			task->source = task->files[i].source;
		}
	return count;
}

/* ---- its table ---- */

static const char *const flag_sentences[] = {
	"split debug information (.dwo) is not here: no inlined functions",
	"a part of its debug information is in a dwz file that is not here",
	"it has more code than a table takes: the rest is left out",
	"some of its debug information is damaged and left out",
	"a relocatable object: names only",
};

static const char *sentence_for(const struct symbol_table *table)
{
	if (table->flags & SYMBOL_TABLE_UNRELOCATED)
		return flag_sentences[4];
	/* What is missing of DWARF matters where there is DWARF. */
	for (unsigned i = 0; i < 4 && table->quality == QUALITY_DWARF; i++)
		if (table->flags & 1u << i)
			return flag_sentences[i];
	switch (table->quality) {
	case QUALITY_KALLSYMS:
		return "names from kallsyms; no lines and no inlined functions";
	case QUALITY_DYNSYM:
		return "names from .dynsym: exported functions only, no lines";
	case QUALITY_MINIDEBUG:
		return "names from .gnu_debugdata; no lines and no inlined functions";
	case QUALITY_PCLNTAB:
	case QUALITY_SYMTAB:
		return "names from .symtab; no lines and no inlined functions";
	case QUALITY_NONE:
	case QUALITY_DWARF:
	case QUALITY_COUNT:
		break;
	}
	return "";
}

/* The new table is used from here on, in memory and in the store. */
static bool store_table(struct task *task, struct symbol_table *table, const struct buffer *packed,
			struct error *err)
{
	struct symbolizer *symbolizer = task->symbolizer;
	struct module *module;

	if (!symbols_put_table(symbolizer->store, &task->id, SYMBOL_TABLE_FORMAT, packed->bytes,
			       packed->length, err))
		return false;
	symbol_cache_put(symbolizer->cache, &task->id, table);
	task->quality = table->quality;
	module = locked_module(task);
	module->quality = table->quality;
	module->raw_bytes = table->bytes;
	module->packed_bytes = packed->length;
	module->functions = table->function_count;
	module->ranges = table->range_count;
	module->failures = 0;
	MODULE_TEXT(module->source, task->source);
	unlock(task);
	return true;
}

static bool convert(struct task *task, const int *fds, size_t count, bool names_only,
		    enum module_state state, const char *reason, struct error *err)
{
	struct symbolizer *symbolizer = task->symbolizer;
	struct symbol_table *table;
	struct buffer packed;
	bool ok, is_worse;

	buffer_init(&packed, WORKER_TABLE_MAX);
	table = worker_convert(fds, count, names_only, symbolizer->stop_fd,
			       symbolizer->memory_limit_bytes, &packed, err);
	is_worse = table && table->quality < task->quality;
	ok = is_worse || (table && store_table(task, table, &packed, err));
	pthread_mutex_lock(&symbolizer->lock);
	symbolizer->counters.conversions += table != NULL;
	symbolizer->counters.conversions_failed += !table && err->kind != ERROR_BUSY;
	pthread_mutex_unlock(&symbolizer->lock);
	if (ok && !is_worse)
		set_state(task, state, reason ? reason : sentence_for(table));
	symbol_table_release(table);
	buffer_release(&packed);
	return ok;
}

/* Debug information that cannot be used still leaves the names. */
static bool convert_names_after_all(struct task *task, const int *fds, size_t count,
				    uint64_t debug_bytes, struct error *err)
{
	struct error again = {0};
	char reason[200];

	if (!debug_bytes || err->kind == ERROR_BUSY)
		return false;
	snprintf(reason, sizeof(reason), "names only: %.180s", err->message);
	return convert(task, fds, count, true, MODULE_symbols, reason, &again);
}

/* True: there is a table now. False: err says why not. */
static bool convert_files(struct task *task, struct error *err)
{
	uint64_t debug_bytes;
	struct module *module;
	int fds[DEBUG_INPUTS_MAX];
	size_t count = choose_files(task, fds, &debug_bytes);
	bool ok;

	if (!count)
		return error_set(err, ERROR_NOT_FOUND,
				 "its file has neither symbols nor debug "
				 "information");
	if (task->fingerprint == task->converted)
		return task->quality != QUALITY_NONE; /* the reason is known already */
	if (task->quality < QUALITY_DWARF)
		set_state(task,
			  task->quality >= QUALITY_SYMTAB ? MODULE_symbols : MODULE_converting,
			  "its debug information is being converted");
	if (debug_bytes > NAMES_FIRST_BYTES && task->quality < QUALITY_SYMTAB)
		convert(task, fds, count, true, MODULE_symbols,
			"its debug information is being converted; until then names only", err);
	*err = (struct error){0};
	ok = convert(task, fds, count, false, debug_bytes ? MODULE_ready : MODULE_symbols, NULL,
		     err) ||
	     convert_names_after_all(task, fds, count, debug_bytes, err);
	module = locked_module(task);
	if (err->kind != ERROR_BUSY && err->kind != ERROR_SYSTEM)
		module->converted = task->fingerprint;
	module->has_failed = !ok;
	if (ok && module->state == MODULE_ready && module->quality < QUALITY_DWARF)
		module->state = MODULE_symbols;
	unlock(task);
	return ok;
}

/* ---- what comes next ---- */

static int64_t pause_after(uint32_t failures)
{
	int64_t pause = MISS_FIRST_MS;

	while (failures-- > 0 && pause < MISS_MAX_MS)
		pause *= 2;
	return pause < MISS_MAX_MS ? pause : MISS_MAX_MS;
}

/* Nobody has more now: asked again after a pause that grows. */
static void give_up_for_now(struct module *module)
{
	if (module->quality == QUALITY_NONE && !module->has_failed)
		MODULE_TEXT(module->reason, SENTENCE_NONE);
	if (module->quality == QUALITY_NONE)
		module->state = module->has_failed ? MODULE_failed : MODULE_missing;
	else if (module->state != MODULE_ready)
		module->state = MODULE_symbols;
	module->retry_at_ms = module->state == MODULE_ready
				      ? 0
				      : symbolizer_now_ms() + pause_after(module->failures++);
}

/* The module leaves the thread's hands: to the other queue, to this one again, or to rest. */
static void finish_local(struct task *task, const struct error *err)
{
	struct symbolizer *symbolizer = task->symbolizer;
	struct module *module = locked_module(task);
	bool asks = module->quality < QUALITY_DWARF && module->is_gnu && !module->is_fetched &&
		    symbol_sources_count(symbolizer->sources) > 0;

	module->queue = QUEUE_NONE;
	module->updated_ms = symbolizer_now_ms();
	if (*err->message)
		MODULE_TEXT(module->reason, err->message);
	if (err->kind == ERROR_BUSY) { /* stopping: taken up at the next start */
		module->state = MODULE_wanted;
	} else if (module->is_again) {
		symbolizer_queue(symbolizer, module, QUEUE_LOCAL);
	} else if (asks) {
		if (module->quality == QUALITY_NONE)
			module->state = MODULE_fetching;
		if (module->quality == QUALITY_NONE && !module->has_failed)
			MODULE_TEXT(module->reason, "the debuginfod servers are being asked");
		symbolizer_queue(symbolizer, module, QUEUE_FETCH);
	} else {
		give_up_for_now(module);
	}
	module->is_met = false;
	unlock(task);
	symbolizer_save(symbolizer, &task->id);
}

static void work_locally(struct symbolizer *symbolizer, const struct build_id *id)
{
	struct task task = {.symbolizer = symbolizer, .id = *id};
	struct module *module = locked_module(&task);
	struct error err = {0};
	bool has_table;

	task.quality = module->quality;
	task.converted = module->converted;
	module->retry_at_ms = 0; /* set again when it comes to rest */
	unlock(&task);
	find_files(&task);
	if (task.count) {
		has_table = convert_files(&task, &err);
		if (!has_table && *err.message && err.kind != ERROR_BUSY)
			log_warn("module not converted", "reason=\"%s\"", err.message);
	} else {
		symbol_directories_missed(symbolizer->directories);
	}
	finish_local(&task, &err);
	close_files(&task);
	if (*task.url && err.kind != ERROR_BUSY)
		symbol_sources_forget(symbolizer->sources, id);
}

/* ---- debuginfod ---- */

static void finish_fetch(struct task *task, enum source_answer answer, int fd, const char *url,
			 int64_t retry_at_ms, const struct error *err)
{
	struct symbolizer *symbolizer = task->symbolizer;
	struct module *module = locked_module(task);

	module->queue = QUEUE_NONE;
	module->updated_ms = symbolizer_now_ms();
	module->is_met = false;
	symbolizer->counters.fetches += answer == SOURCE_FOUND;
	symbolizer->counters.fetches_failed += answer == SOURCE_DOWN;
	switch (answer) {
	case SOURCE_FOUND:
		module->is_fetched = true;
		module->downloaded = fd;
		MODULE_TEXT(module->url, url);
		symbolizer_queue(symbolizer, module, QUEUE_LOCAL);
		break;
	case SOURCE_NOT_FOUND:
	case SOURCE_WRONG_FILE:
	case SOURCE_TOO_LARGE:
	case SOURCE_CLOSED:
		module->is_fetched = true;
		give_up_for_now(module);
		break;
	case SOURCE_DOWN: /* says nothing about the module */
	case SOURCE_NO_ROOM:
		if (module->quality == QUALITY_NONE)
			module->state = MODULE_wanted;
		MODULE_TEXT(module->reason, err->message);
		module->retry_at_ms = retry_at_ms;
		module->is_met = true;
		break;
	case SOURCE_STOPPED:
		if (module->quality == QUALITY_NONE)
			module->state = MODULE_wanted;
		break;
	}
	if (answer != SOURCE_FOUND && module->is_again)
		symbolizer_queue(symbolizer, module, QUEUE_LOCAL);
	unlock(task);
	symbolizer_save(symbolizer, &task->id);
}

static void work_remotely(struct symbolizer *symbolizer, const struct build_id *id)
{
	struct task task = {.symbolizer = symbolizer, .id = *id};
	struct error err = {0};
	const char *url = "";
	int64_t retry_at_ms;
	int fd = -1;
	enum source_answer answer = symbol_sources_fetch(
		symbolizer->sources, id, symbolizer->stop_fd, &fd, &url, &retry_at_ms, &err);

	/* What libdebuginfod notes down about a miss is of no use: we remember it ourselves. */
	if (answer != SOURCE_FOUND)
		symbol_sources_forget(symbolizer->sources, id);
	finish_fetch(&task, answer, fd, url, retry_at_ms, &err);
}

/* ---- threads ---- */

int64_t symbolizer_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

void symbolizer_queue(struct symbolizer *symbolizer, struct module *module, enum module_queue queue)
{
	module_list_queue(&symbolizer->modules, module, queue);
	pthread_cond_broadcast(&symbolizer->wake);
}

/* Modules that were met again after their time to retry; lock held. */
static void queue_due(struct symbolizer *symbolizer)
{
	int64_t now = symbolizer_now_ms();

	for (uint32_t i = 0; i < symbolizer->modules.count; i++) {
		struct module *module = &symbolizer->modules.modules[i];

		if (module->queue != QUEUE_NONE || !module->is_met || !module->retry_at_ms ||
		    module->retry_at_ms > now)
			continue;
		module->is_fetched = false;
		module->retry_at_ms = 0;
		symbolizer_queue(symbolizer, module, QUEUE_LOCAL);
	}
}

static bool take_next(struct symbolizer *symbolizer, enum module_queue queue, struct build_id *id)
{
	struct module *module = NULL;

	pthread_mutex_lock(&symbolizer->lock);
	while (!atomic_load(&symbolizer->stops) &&
	       !(module = module_list_take(&symbolizer->modules, queue))) {
		int64_t until = symbolizer_now_ms() + ROUND_MS;
		struct timespec when = {.tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000};

		if (pthread_cond_timedwait(&symbolizer->wake, &symbolizer->lock, &when) ==
		    ETIMEDOUT)
			queue_due(symbolizer);
	}
	if (module)
		*id = module->id;
	pthread_mutex_unlock(&symbolizer->lock);
	return module != NULL;
}

static void *local_thread(void *context)
{
	struct build_id id;

	while (take_next(context, QUEUE_LOCAL, &id))
		work_locally(context, &id);
	return NULL;
}

static void *fetch_thread(void *context)
{
	struct build_id id;

	while (take_next(context, QUEUE_FETCH, &id))
		work_remotely(context, &id);
	return NULL;
}

bool symbolizer_work_start(struct symbolizer *symbolizer, unsigned workers, struct error *err)
{
	unsigned fetchers = symbol_sources_threads(symbolizer->sources);

	if (!workers)
		workers = 1;
	if (workers > THREADS_MAX - fetchers)
		workers = THREADS_MAX - fetchers;
	for (unsigned i = 0; i < workers + fetchers; i++) {
		int rc = pthread_create(&symbolizer->threads[i], NULL,
					i < workers ? local_thread : fetch_thread, symbolizer);

		if (rc)
			return error_set_system(err, rc, "start a thread of the symbolizer");
		symbolizer->thread_count++;
	}
	return true;
}
