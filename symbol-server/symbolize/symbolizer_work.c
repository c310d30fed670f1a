/* SPDX-License-Identifier: Apache-2.0 */
/* One module's way: files that are here → table of names → table with lines; where these are not
 * enough, debuginfod, and once more. A module is in one queue or with one thread at a time. Names
 * have threads of their own, so that they never wait for somebody else's long conversion. */
#include "symbol-server/symbolize/symbolizer_task.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "symbol-server/symbolize/worker.h"

enum {
	NAMES_FIRST_BYTES = 2 << 20, /* debug files from this size on get their names first */
	LOOK_THREADS = 4,            /* a folder that does not answer holds one up */
	MISS_FIRST_MS = 10 * 60 * 1000,
	BUSY_MS = 10 * 1000,
	MISS_MAX_MS = 24 * 60 * 60 * 1000,
};

#define SENTENCE_NONE "no upload, symbol directory or debuginfod server has it"

/* ---- what comes next ---- */

static int64_t pause_after(uint32_t failures)
{
	int64_t pause = MISS_FIRST_MS;

	while (failures-- > 0 && pause < MISS_MAX_MS)
		pause *= 2;
	return pause < MISS_MAX_MS ? pause : MISS_MAX_MS;
}

static bool is_complete(const struct module *module)
{
	return module->quality == QUALITY_DWARF && !(module->flags & MISSING_PARTS) &&
	       module->converter == SYMBOL_CONVERTER_VERSION;
}

void module_give_up(struct module *module)
{
	if (module->quality == QUALITY_NONE && !module->has_failed)
		MODULE_TEXT(module->reason, SENTENCE_NONE);
	if (module->quality == QUALITY_NONE)
		module->state = module->has_failed ? MODULE_failed : MODULE_missing;
	else
		module->state = module_state_of(module->quality, module->flags);
	module->retry_at_ms = is_complete(module)
				      ? 0
				      : unix_time_ms() + pause_after(module->failures++);
}

static bool may_ask(const struct task *task, const struct module *module)
{
	if (!symbol_sources_count(task->symbolizer->sources))
		return false;
	if (module->alt.length && !module->is_alt_asked)
		return true;
	/* What only a server has is not downloaded anew for a newer converter before it is used. */
	return module->is_gnu && !module->is_fetched &&
	       (module->quality < QUALITY_DWARF ||
		(module->converter != SYMBOL_CONVERTER_VERSION && module->is_met));
}

static void ask_servers(struct symbolizer *symbolizer, struct module *module)
{
	if (module->quality == QUALITY_NONE)
		module->state = MODULE_fetching;
	if (module->quality == QUALITY_NONE && !module->has_failed)
		MODULE_TEXT(module->reason, "the debuginfod servers are being asked");
	symbolizer_queue(symbolizer, module, QUEUE_FETCH);
}

/* The module leaves the thread's hands: to the other queue, to this one again, or to rest. */
static void finish_local(struct task *task, const struct error *err)
{
	struct symbolizer *symbolizer = task->symbolizer;
	struct module *module = task_module(task);
	bool is_down = module->is_down;

	module->queue = QUEUE_NONE;
	module->updated_ms = unix_time_ms();
	if (*err->message && module->quality == QUALITY_NONE)
		MODULE_TEXT(module->reason, err->message);
	else if (module->state == MODULE_converting) /* nothing better came of it */
		MODULE_TEXT(module->reason, module_sentence(module->quality, module->flags));
	if (err->kind == ERROR_BUSY) { /* stopping: taken up at the next start */
		if (module->quality < QUALITY_DWARF)
			module->state = MODULE_wanted;
		/* Or somebody has the database: soon. */
		if (!atomic_load(&symbolizer->stops))
			module->retry_at_ms = unix_time_ms() + BUSY_MS;
	} else if (module->is_again) {
		symbolizer_queue(symbolizer, module, QUEUE_LOCAL);
	} else if (may_ask(task, module)) {
		ask_servers(symbolizer, module);
	} else if (is_down && module->quality == QUALITY_NONE && !module->has_failed) {
		module->state = MODULE_wanted; /* nothing is known of what the server has */
		module->retry_at_ms = unix_time_ms() + MISS_FIRST_MS;
	} else {
		module_give_up(module);
	}
	module->is_met = false;
	task_unlock(task);
	symbolizer_save(symbolizer, &task->id);
}

static void take_task(struct task *task, int *downloaded)
{
	struct symbolizer *symbolizer = task->symbolizer;
	struct module *module = task_module(task);

	task->quality = module->quality;
	task->flags = module->flags;
	task->converter = module->converter;
	task->known_files = module->quality != QUALITY_NONE || module->has_failed ? module->files
										  : 0;
	task->may_ask_alt = !module->is_alt_asked && symbol_sources_count(symbolizer->sources) > 0;
	task->alt_downloaded = module->alt_downloaded;
	*downloaded = module->downloaded;
	module->downloaded = module->alt_downloaded = -1;
	MODULE_TEXT(task->url, module->url);
	module->retry_at_ms = 0; /* set again when it comes to rest */
	task_unlock(task);
}

/* What was downloaded stays for the next time. */
static void keep_downloads(struct task *task)
{
	struct module *module = task_module(task);

	for (size_t i = 0; i < task->files.count; i++)
		if (task->files.files[i].source == task->url && module->downloaded < 0)
			module->downloaded = dup(task->files.files[i].fd);
	if (task->alt_downloaded >= 0 && module->alt_downloaded < 0) {
		module->alt_downloaded = task->alt_downloaded;
		task->alt_downloaded = -1;
	}
	task_unlock(task);
}

static bool has_long_work(const struct task *task)
{
	struct module_files *files = (struct module_files *)&task->files;

	return files_debug(files, 0) && (!task_is_known(task) || task->flags & MISSING_PARTS);
}

/* Small files are not worth a table of names first, where their turn comes at once. */
static bool is_names_first(struct task *task)
{
	struct symbolizer *symbolizer = task->symbolizer;
	bool has_to_wait;

	pthread_mutex_lock(&symbolizer->lock);
	has_to_wait = symbolizer->modules.queues[QUEUE_CONVERT].count > 0 ||
		      symbolizer->converting >= symbolizer->workers;
	pthread_mutex_unlock(&symbolizer->lock);
	return has_to_wait || files_debug(&task->files, 0)->bytes >= NAMES_FIRST_BYTES;
}

/* Names now, and the rest by another thread. */
static void hand_over(struct task *task)
{
	static const char sentence[] =
		"its debug information is being converted; until then names only";
	struct module *module;

	if (is_names_first(task))
		task_convert_names(task, sentence);
	if (task->quality == QUALITY_NONE)
		task_set_state(task, MODULE_converting, "its debug information is being converted");
	keep_downloads(task);
	module = task_module(task);
	module->queue = QUEUE_NONE;
	symbolizer_queue(task->symbolizer, module, QUEUE_CONVERT);
	task_unlock(task);
}

/* No memory to work on it: it is taken up when it is met again. */
static void leave(struct symbolizer *symbolizer, const struct build_id *id)
{
	struct module *module;

	pthread_mutex_lock(&symbolizer->lock);
	module = module_list_find(&symbolizer->modules, id);
	module->queue = QUEUE_NONE;
	module->retry_at_ms = unix_time_ms() + MISS_FIRST_MS;
	pthread_mutex_unlock(&symbolizer->lock);
}

static void work_here(struct task *task)
{
	struct symbolizer *symbolizer = task->symbolizer;
	struct error err = {0};

	if (!task->files.count) {
		symbol_directories_missed(symbolizer->directories);
	} else if (!task_convert(task, &err) && *err.message && err.kind != ERROR_BUSY) {
		symbolizer_warn(symbolizer, &task->id, "module not converted", &err);
	}
	if (task->waits_for_alt)
		keep_downloads(task);
	if (err.kind != ERROR_BUSY)
		files_report(symbolizer, &task->id, &task->files);
	finish_local(task, &err);
}

/* long_work: it is this thread's to convert; others only look. */
static void work_locally(struct symbolizer *symbolizer, const struct build_id *id, bool long_work)
{
	struct task *task = calloc(1, sizeof(*task));
	int downloaded;

	if (!task) {
		leave(symbolizer, id);
		return;
	}
	task->symbolizer = symbolizer;
	task->id = *id;
	take_task(task, &downloaded);
	files_find(symbolizer, id, downloaded, task->url, &task->files);
	if (!long_work && has_long_work(task))
		hand_over(task);
	else
		work_here(task);
	files_close_extras(&task->extras);
	files_close(&task->files);
	if (task->alt_downloaded >= 0)
		close(task->alt_downloaded);
	free(task);
}

/* ---- threads ---- */

void symbolizer_queue(struct symbolizer *symbolizer, struct module *module, enum module_queue queue)
{
	module_list_queue(&symbolizer->modules, module, queue);
	pthread_cond_broadcast(&symbolizer->wake);
}

static bool take_next(struct symbolizer *symbolizer, enum module_queue queue, struct build_id *id)
{
	struct module *module = NULL;

	pthread_mutex_lock(&symbolizer->lock);
	while (!atomic_load(&symbolizer->stops) &&
	       !(module = module_list_take(&symbolizer->modules, queue)))
		pthread_cond_wait(&symbolizer->wake, &symbolizer->lock);
	if (module)
		*id = module->id;
	pthread_mutex_unlock(&symbolizer->lock);
	return module != NULL;
}

static void *look_thread(void *context)
{
	struct build_id id;

	while (take_next(context, QUEUE_LOCAL, &id))
		work_locally(context, &id, false);
	return NULL;
}

static void count_converting(struct symbolizer *symbolizer, int more)
{
	pthread_mutex_lock(&symbolizer->lock);
	symbolizer->converting += (unsigned)more;
	pthread_mutex_unlock(&symbolizer->lock);
}

static void *convert_thread(void *context)
{
	struct build_id id;

	while (take_next(context, QUEUE_CONVERT, &id)) {
		count_converting(context, 1);
		work_locally(context, &id, true);
		count_converting(context, -1);
	}
	return NULL;
}

static void *fetch_thread(void *context)
{
	struct build_id id;

	while (take_next(context, QUEUE_FETCH, &id))
		symbolizer_fetch(context, &id);
	return NULL;
}

static bool start_threads(struct symbolizer *symbolizer, void *(*run)(void *), unsigned count,
			  struct error *err)
{
	for (unsigned i = 0; i < count; i++) {
		int rc = pthread_create(&symbolizer->threads[symbolizer->thread_count], NULL, run,
					symbolizer);

		if (rc)
			return error_set_system(err, rc, "start a thread of the symbolizer");
		symbolizer->thread_count++;
	}
	return true;
}

bool symbolizer_work_start(struct symbolizer *symbolizer, unsigned workers, struct error *err)
{
	unsigned fetchers = symbol_sources_count(symbolizer->sources)
				    ? symbol_sources_threads(symbolizer->sources)
				    : 0;

	if (fetchers > THREADS_MAX / 2 - LOOK_THREADS - 1)
		fetchers = THREADS_MAX / 2 - LOOK_THREADS - 1;
	if (!workers)
		workers = 1;
	if (workers > THREADS_MAX / 2)
		workers = THREADS_MAX / 2;
	symbolizer->workers = workers;
	return start_threads(symbolizer, symbolizer_keep_thread, 1, err) &&
	       start_threads(symbolizer, fetch_thread, fetchers, err) &&
	       start_threads(symbolizer, look_thread, LOOK_THREADS, err) &&
	       start_threads(symbolizer, convert_thread, workers, err);
}
