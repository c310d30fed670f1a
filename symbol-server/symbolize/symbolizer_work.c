/* SPDX-License-Identifier: Apache-2.0 */
/* One module's way: files that are here → table of names → table with lines; where these are not
 * enough, debuginfod, and once more. A module is in one queue or with one thread at a time. Names
 * have threads of their own, so that they never wait for somebody else's long conversion. */
#include "symbol-server/symbolize/symbolizer_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/hash_table.h"
#include "common/log.h"
#include "symbol-server/symbolize/convert/debug_reader.h"
#include "symbol-server/symbolize/symbolizer_files.h"
#include "symbol-server/symbolize/worker.h"

enum {
	NAMES_FIRST_BYTES = 2 << 20, /* debug files from this size on get their names first */
	TRIES_MAX = 4,               /* files of a module that are converted in one round */
	ATTEMPTS_MAX = 40,           /* servers whose answers are kept */
	LOOK_THREADS = 4,            /* unpacking a package can hold one up for a while */
	MISS_FIRST_MS = 10 * 60 * 1000,
	MISS_MAX_MS = 24 * 60 * 60 * 1000,
};

#define MISSING_PARTS (SYMBOL_TABLE_DWO_MISSING | SYMBOL_TABLE_ALT_MISSING)

#define SENTENCE_NONE "no upload, symbol directory or debuginfod server has it"

/* ---- one module, outside of the lock ---- */

struct task {
	struct symbolizer *symbolizer;
	struct build_id id;
	struct module_files files;
	struct extra_files extras;
	char url[128];
	int alt_downloaded;
	/* As they were, and then of the newest table. */
	enum symbol_quality quality;
	uint32_t flags, converter;
	uint64_t known_files;
	bool may_ask_alt; /* a server may have a dwz file that is not here */
	bool waits_for_alt;
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
	module->is_unsaved = true;
	MODULE_TEXT(module->reason, reason);
	unlock(task);
}

/* ---- which table is better ---- */

static unsigned worth_of(enum symbol_quality quality, uint32_t flags)
{
	unsigned losses = 0;

	if (quality == QUALITY_DWARF)
		losses = !!(flags & SYMBOL_TABLE_DAMAGED) + !!(flags & SYMBOL_TABLE_CUT) +
			 !!(flags & SYMBOL_TABLE_DWO_MISSING) +
			 !!(flags & SYMBOL_TABLE_ALT_MISSING);
	if (quality == QUALITY_PCLNTAB)
		losses = !!(flags & SYMBOL_TABLE_DAMAGED) + !!(flags & SYMBOL_TABLE_NO_INLINES);
	return quality * 8 - losses;
}

static const char *const flag_sentences[] = {
	"split debug information (.dwo) is not here: no inlined functions",
	"a part of its debug information is in a dwz file that is not here",
	"it has more code than a table takes: the rest is left out",
	"some of its debug information is damaged and left out",
	"a relocatable object: names only",
};

static const char *sentence_for_go(uint32_t flags)
{
	if (flags & SYMBOL_TABLE_DAMAGED)
		return "names and lines from Go's own table (.gopclntab), a part of which is "
		       "damaged";
	if (flags & SYMBOL_TABLE_NO_INLINES)
		return "names and lines from Go's own table (.gopclntab); its inlined functions "
		       "were not found";
	return "names and lines from Go's own table (.gopclntab)";
}

static const char *sentence_for(enum symbol_quality quality, uint32_t flags)
{
	if (flags & SYMBOL_TABLE_UNRELOCATED)
		return flag_sentences[4];
	/* What is missing of DWARF matters where there is DWARF; split, it may be all of it. */
	for (unsigned i = 0; i < 4; i++)
		if (flags & 1u << i && (quality == QUALITY_DWARF ||
					(quality == QUALITY_SYMTAB && 1u << i & MISSING_PARTS)))
			return flag_sentences[i];
	switch (quality) {
	case QUALITY_KALLSYMS:
		return "names from kallsyms; no lines and no inlined functions";
	case QUALITY_DYNSYM:
		return "names from .dynsym: exported functions only, no lines";
	case QUALITY_MINIDEBUG:
		return "names from .gnu_debugdata; no lines and no inlined functions";
	case QUALITY_PCLNTAB:
		return sentence_for_go(flags);
	case QUALITY_SYMTAB:
		return "names from .symtab; no lines and no inlined functions";
	case QUALITY_NONE:
	case QUALITY_DWARF:
	case QUALITY_COUNT:
		break;
	}
	return "";
}

/* Go's own table has all that DWARF would have. */
static enum module_state state_for(enum symbol_quality quality, uint32_t flags)
{
	bool has_all = quality == QUALITY_PCLNTAB && !(flags & SYMBOL_TABLE_NO_INLINES);

	return quality == QUALITY_DWARF || has_all ? MODULE_ready : MODULE_symbols;
}

/* ---- one conversion ---- */

struct attempt { /* the files of one */
	struct candidate *parts[3];
	size_t part_count;
	bool with_extras, names_only;
	uint64_t bytes;
};

static void add_part(struct attempt *attempt, struct candidate *file)
{
	for (size_t i = 0; i < attempt->part_count; i++)
		if (attempt->parts[i] == file)
			return;
	if (file && attempt->part_count < sizeof(attempt->parts) / sizeof(*attempt->parts)) {
		attempt->parts[attempt->part_count++] = file;
		attempt->bytes += file->bytes;
	}
}

/* Its DWARF, the best names besides; a program's own tables where neither has them. */
static struct attempt attempt_with(struct task *task, struct candidate *debug,
				   struct candidate *names)
{
	struct attempt attempt = {.with_extras = debug != NULL};

	add_part(&attempt, debug);
	if (!debug || !debug->has_symtab)
		add_part(&attempt, names);
	for (size_t i = 0; !debug && i < task->files.count; i++)
		if (task->files.files[i].has_pclntab)
			add_part(&attempt, &task->files.files[i]);
	return attempt;
}

static size_t descriptors_of(const struct task *task, const struct attempt *attempt,
			     int fds[DEBUG_INPUTS_MAX])
{
	size_t count = 0;

	for (size_t i = 0; i < attempt->part_count; i++)
		fds[count++] = attempt->parts[i]->fd;
	for (size_t i = 0; attempt->with_extras && !attempt->names_only && i < task->extras.count &&
			   count < DEBUG_INPUTS_MAX;
	     i++)
		fds[count++] = task->extras.fds[i];
	return count;
}

/* The new table is used from here on, in memory and in the store. */
static bool store_table(struct task *task, const struct attempt *attempt,
			struct symbol_table *table, const struct buffer *packed, uint32_t ms,
			struct error *err)
{
	struct symbolizer *symbolizer = task->symbolizer;
	struct module *module;

	if (!symbols_put_table(symbolizer->store, &task->id, SYMBOL_TABLE_FORMAT, packed->bytes,
			       packed->length, err))
		return false;
	symbol_cache_put(symbolizer->cache, &task->id, table);
	task->quality = table->quality;
	task->flags = table->flags;
	module = locked_module(task);
	symbolizer_count_table(symbolizer, module, packed->length);
	module->quality = table->quality;
	module->flags = table->flags;
	module->raw_bytes = table->bytes;
	module->functions = table->function_count;
	module->ranges = table->range_count;
	module->file_bytes = attempt->bytes;
	module->conversion_ms = ms;
	module->last_used_ms = symbolizer_now_ms();
	module->failures = 0;
	module->is_dropped = false;
	module->is_unsaved = true;
	if (table->quality == QUALITY_DWARF)
		module->weight = 0; /* what had no names has them now */
	MODULE_TEXT(module->source, attempt->parts[0]->source);
	unlock(task);
	return true;
}

static void judge_parts(const struct attempt *attempt, enum candidate_answer answer,
			const char *detail)
{
	for (size_t i = 0; i < attempt->part_count; i++) {
		attempt->parts[i]->answer = answer;
		if (detail)
			MODULE_TEXT(attempt->parts[i]->detail, detail);
	}
}

static void count_conversion(struct symbolizer *symbolizer, bool is_good, const struct error *err)
{
	pthread_mutex_lock(&symbolizer->lock);
	symbolizer->counters.conversions += is_good;
	symbolizer->counters.conversions_failed += !is_good && err->kind != ERROR_BUSY;
	pthread_mutex_unlock(&symbolizer->lock);
}

/* True: there is a table as good as this can give, in the store. state COUNT: as the table says. */
static bool convert(struct task *task, struct attempt *attempt, enum module_state state,
		    const char *reason, struct error *err)
{
	struct symbolizer *symbolizer = task->symbolizer;
	int64_t begin = symbolizer_now_ms();
	int fds[DEBUG_INPUTS_MAX];
	struct symbol_table *table;
	struct buffer packed;
	bool ok, is_worse;

	*err = (struct error){0};
	buffer_init(&packed, WORKER_TABLE_MAX);
	table = worker_convert(fds, descriptors_of(task, attempt, fds), attempt->names_only,
			       symbolizer->stop_fd, symbolizer->memory_limit_bytes, &packed, err);
	is_worse = table &&
		   worth_of(table->quality, table->flags) < worth_of(task->quality, task->flags);
	ok = is_worse || (table && store_table(task, attempt, table, &packed,
					       (uint32_t)(symbolizer_now_ms() - begin), err));
	count_conversion(symbolizer, table != NULL, err);
	if (ok && !is_worse) {
		if (state == MODULE_STATE_COUNT)
			state = state_for(table->quality, table->flags);
		set_state(task, state,
			  reason ? reason : sentence_for(table->quality, table->flags));
		judge_parts(attempt, CANDIDATE_used, NULL);
	} else if (!table && err->kind != ERROR_BUSY && err->kind != ERROR_SYSTEM) {
		judge_parts(attempt, CANDIDATE_unusable, err->message);
	}
	symbol_table_release(table);
	buffer_release(&packed);
	return ok;
}

static bool is_ending(const struct error *err)
{
	return err->kind == ERROR_BUSY || err->kind == ERROR_SYSTEM || err->kind == ERROR_MEMORY;
}

/* ---- all conversions of a module's files, best first ---- */

/* Every file that has debug information, until one gives all of it. True: there is a table. */
static bool convert_debug(struct task *task, struct error *err)
{
	bool any = false;

	for (size_t i = 0; i < TRIES_MAX; i++) {
		struct candidate *debug = files_debug(&task->files, i);
		struct candidate *names = files_names(&task->files, 0);
		struct attempt attempt = attempt_with(task, debug, names);
		struct error one;
		bool ok;

		if (!debug)
			break;
		ok = convert(task, &attempt, MODULE_STATE_COUNT, NULL, &one);
		/* A damaged companion is no reason to have nothing. */
		if (!ok && attempt.part_count > 1 && !is_ending(&one)) {
			attempt = attempt_with(task, debug, NULL);
			ok = convert(task, &attempt, MODULE_STATE_COUNT, NULL, &one);
		}
		any |= ok;
		if (!ok && (!*err->message || is_ending(&one)))
			*err = one;
		if (is_ending(&one) || (ok && task->quality == QUALITY_DWARF &&
					!(task->flags & (SYMBOL_TABLE_DAMAGED | SYMBOL_TABLE_CUT))))
			break;
	}
	return any;
}

/* The best file of names that can be read. why: what became of its debug information, or NULL. */
static bool convert_names(struct task *task, const char *why, struct error *err)
{
	struct candidate *names;

	for (size_t i = 0; i < TRIES_MAX && (names = files_names(&task->files, i)) != NULL; i++) {
		struct attempt attempt = attempt_with(task, NULL, names);
		struct error one;

		attempt.names_only = why != NULL;
		if (convert(task, &attempt, MODULE_symbols, why, &one))
			return true;
		if (!*err->message || is_ending(&one))
			*err = one;
		if (is_ending(&one))
			return false;
	}
	return false;
}

static bool convert_text(struct task *task, struct error *err)
{
	struct candidate *text = files_text(&task->files);
	struct attempt attempt = {0};

	if (!text)
		return error_set(err, ERROR_NOT_FOUND,
				 "its file has neither symbols nor debug information");
	add_part(&attempt, text);
	return convert(task, &attempt, MODULE_symbols, NULL, err);
}

static bool convert_best(struct task *task, struct error *err)
{
	char reason[200];

	if (files_debug(&task->files, 0)) {
		if (convert_debug(task, err))
			return true;
		if (is_ending(err))
			return false;
		snprintf(reason, sizeof(reason), "names only: %.180s", err->message);
		return convert_names(task, reason, &(struct error){0});
	}
	if (files_names(&task->files, 0))
		return convert_names(task, NULL, err);
	return convert_text(task, err);
}

/* Names within milliseconds, while the rest takes its time. */
static void convert_names_first(struct task *task, const char *reason)
{
	struct candidate *debug = files_debug(&task->files, 0);
	struct candidate *names = files_names(&task->files, 0);
	struct attempt attempt = attempt_with(task, debug, names);
	struct error err;

	attempt.names_only = true;
	if (task->quality < QUALITY_SYMTAB && names)
		convert(task, &attempt, MODULE_symbols, reason, &err);
}

/* What the debug information needs. False: the server stops. */
static bool gather_extras(struct task *task)
{
	const struct candidate *debug = files_debug(&task->files, 0);
	struct module *module;
	struct error err = {0};

	if (debug && !files_find_extras(task->symbolizer, &task->id, &task->files, debug,
					task->alt_downloaded, &task->extras, &err))
		/* Its conversion finds out what is wrong with it. */
		return err.kind != ERROR_BUSY;
	task->waits_for_alt = task->extras.alt.length && task->may_ask_alt;
	module = locked_module(task);
	task->symbolizer->alts_missing += !!task->extras.alt.length - !!module->alt.length;
	module->alt = task->extras.alt;
	unlock(task);
	return true;
}

static bool is_known(const struct task *task)
{
	uint64_t files = task->extras.fingerprint
				 ? hash_word(task->files.fingerprint, task->extras.fingerprint)
				 : task->files.fingerprint;

	return files == task->known_files && task->converter == SYMBOL_CONVERTER_VERSION;
}

static void note_converted(struct task *task, bool ok, const struct error *err)
{
	struct module *module = locked_module(task);

	if (!is_ending(err)) {
		module->files = task->files.fingerprint;
		if (task->extras.fingerprint)
			module->files = hash_word(module->files, task->extras.fingerprint);
		module->converter = SYMBOL_CONVERTER_VERSION;
	}
	module->has_failed = !ok;
	module->is_unsaved = true;
	unlock(task);
}

/* True: there is a table now. False: err says why not, unless that was known already. */
static bool convert_files(struct task *task, struct error *err)
{
	bool ok;

	if (is_known(task) && !(task->flags & MISSING_PARTS))
		return task->quality != QUALITY_NONE;
	if (task->quality < QUALITY_SYMTAB)
		set_state(task, MODULE_converting, "its debug information is being converted");
	if (!gather_extras(task))
		return error_set(err, ERROR_BUSY, "the server is stopping");
	if (task->waits_for_alt) {
		convert_names_first(task, "a part of its debug information is in a dwz file, which "
					  "is being fetched; until then names only");
		return true;
	}
	if (is_known(task))
		return task->quality != QUALITY_NONE;
	ok = convert_best(task, err);
	note_converted(task, ok, err);
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

static bool is_complete(const struct module *module)
{
	return module->quality == QUALITY_DWARF && !(module->flags & MISSING_PARTS) &&
	       module->converter == SYMBOL_CONVERTER_VERSION;
}

/* Nobody has more now: asked again after a pause that grows. */
static void give_up_for_now(struct module *module)
{
	if (module->quality == QUALITY_NONE && !module->has_failed)
		MODULE_TEXT(module->reason, SENTENCE_NONE);
	if (module->quality == QUALITY_NONE)
		module->state = module->has_failed ? MODULE_failed : MODULE_missing;
	else
		module->state = state_for(module->quality, module->flags);
	module->retry_at_ms = is_complete(module)
				      ? 0
				      : symbolizer_now_ms() + pause_after(module->failures++);
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
	struct module *module = locked_module(task);
	bool is_down = module->is_down;

	module->queue = QUEUE_NONE;
	module->updated_ms = symbolizer_now_ms();
	if (*err->message && module->quality == QUALITY_NONE)
		MODULE_TEXT(module->reason, err->message);
	else if (module->state == MODULE_converting) /* nothing better came of it */
		MODULE_TEXT(module->reason, sentence_for(module->quality, module->flags));
	if (err->kind == ERROR_BUSY) { /* stopping: taken up at the next start */
		if (module->quality < QUALITY_DWARF)
			module->state = MODULE_wanted;
	} else if (module->is_again) {
		symbolizer_queue(symbolizer, module, QUEUE_LOCAL);
	} else if (may_ask(task, module)) {
		ask_servers(symbolizer, module);
	} else if (is_down && module->quality == QUALITY_NONE && !module->has_failed) {
		module->state = MODULE_wanted; /* nothing is known of what the server has */
		module->retry_at_ms = symbolizer_now_ms() + MISS_FIRST_MS;
	} else {
		give_up_for_now(module);
	}
	module->is_met = false;
	unlock(task);
	symbolizer_save(symbolizer, &task->id);
}

static void take_task(struct task *task, int *downloaded)
{
	struct symbolizer *symbolizer = task->symbolizer;
	struct module *module = locked_module(task);

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
	module->is_asked_here = true;
	unlock(task);
}

/* What was downloaded stays for the next time. */
static void keep_downloads(struct task *task)
{
	struct module *module = locked_module(task);

	for (size_t i = 0; i < task->files.count; i++)
		if (task->files.files[i].source == task->url && module->downloaded < 0)
			module->downloaded = dup(task->files.files[i].fd);
	if (task->alt_downloaded >= 0 && module->alt_downloaded < 0) {
		module->alt_downloaded = task->alt_downloaded;
		task->alt_downloaded = -1;
	}
	unlock(task);
}

static bool has_long_work(const struct task *task)
{
	struct module_files *files = (struct module_files *)&task->files;

	return files_debug(files, 0) && (!is_known(task) || task->flags & MISSING_PARTS);
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
		convert_names_first(task, sentence);
	if (task->quality == QUALITY_NONE)
		set_state(task, MODULE_converting, "its debug information is being converted");
	keep_downloads(task);
	module = locked_module(task);
	module->queue = QUEUE_NONE;
	symbolizer_queue(task->symbolizer, module, QUEUE_CONVERT);
	unlock(task);
}

/* No memory to work on it: it is taken up when it is met again. */
static void leave(struct symbolizer *symbolizer, const struct build_id *id)
{
	struct module *module;

	pthread_mutex_lock(&symbolizer->lock);
	module = module_list_find(&symbolizer->modules, id);
	module->queue = QUEUE_NONE;
	module->retry_at_ms = symbolizer_now_ms() + MISS_FIRST_MS;
	pthread_mutex_unlock(&symbolizer->lock);
}

static void work_here(struct task *task)
{
	struct symbolizer *symbolizer = task->symbolizer;
	struct error err = {0};

	if (!task->files.count) {
		symbol_directories_missed(symbolizer->directories);
	} else if (!convert_files(task, &err) && *err.message && err.kind != ERROR_BUSY) {
		log_warn("module not converted", "reason=\"%s\"", err.message);
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

/* ---- debuginfod ---- */

struct attempts { /* what each server said */
	struct candidate_row rows[ATTEMPTS_MAX];
	char texts[ATTEMPTS_MAX][2][300];
	size_t count;
	bool is_alt; /* it was asked for the dwz file */
};

static enum candidate_answer answer_of(enum source_answer answer)
{
	switch (answer) {
	case SOURCE_FOUND:
		return CANDIDATE_found;
	case SOURCE_NOT_FOUND:
		return CANDIDATE_not_found;
	case SOURCE_WRONG_FILE:
		return CANDIDATE_wrong_file;
	case SOURCE_TOO_LARGE:
		return CANDIDATE_too_large;
	case SOURCE_DOWN:
		return CANDIDATE_down;
	case SOURCE_CLOSED:
		return CANDIDATE_closed;
	case SOURCE_NO_ROOM:
		return CANDIDATE_no_room;
	case SOURCE_STOPPED:
		break;
	}
	return CANDIDATE_stopped;
}

static void note_attempt(void *context, const struct source_attempt *attempt)
{
	struct attempts *attempts = context;
	size_t at = attempts->count;

	if (at == ATTEMPTS_MAX)
		return;
	MODULE_TEXT(attempts->texts[at][0], attempt->source);
	snprintf(attempts->texts[at][1], sizeof(attempts->texts[at][1]), "%s%.280s",
		 attempts->is_alt ? "dwz file: " : "", attempt->sentence);
	attempts->rows[attempts->count++] =
		(struct candidate_row){.source = attempts->texts[at][0],
				       .answer = answer_of(attempt->answer),
				       .detail = attempts->texts[at][1],
				       .bytes = attempt->bytes,
				       .ms = attempt->ms,
				       .at_ms = attempt->at_ms};
}

/* The dwz file came, or will not come: its borrower is converted either way. */
static void finish_alt(struct symbolizer *symbolizer, struct module *module,
		       enum source_answer answer, const struct source_result *result)
{
	module->is_alt_asked = true;
	if (answer == SOURCE_FOUND)
		module->alt_downloaded = result->fd;
	module->is_down |= answer == SOURCE_DOWN || answer == SOURCE_NO_ROOM;
	symbolizer_queue(symbolizer, module, QUEUE_LOCAL);
}

/* Nothing is known about the module: it is asked again when the servers are back. */
static void wait_for_servers(struct module *module, const struct source_result *result)
{
	if (module->quality == QUALITY_NONE) {
		module->state = MODULE_wanted;
		MODULE_TEXT(module->reason, result->sentence);
	}
	module->retry_at_ms = result->retry_at_ms;
	module->is_met = module->is_down = true;
}

/* A server has something under this id, and it is of no use. */
static void give_up_on_file(struct module *module, enum source_answer answer,
			    const struct source_result *result)
{
	bool is_told = module->quality != QUALITY_NONE || module->has_failed;

	module->is_fetched = true;
	give_up_for_now(module);
	if (is_told)
		return;
	MODULE_TEXT(module->reason, result->sentence);
	if (answer == SOURCE_TOO_LARGE)
		module->state = MODULE_failed;
}

static void finish_main(struct symbolizer *symbolizer, struct module *module,
			enum source_answer answer, const struct source_result *result)
{
	switch (answer) {
	case SOURCE_FOUND:
		module->is_fetched = true;
		module->downloaded = result->fd;
		module->is_down = result->retry_at_ms != INT64_MAX; /* one may have a better */
		MODULE_TEXT(module->url, result->url);
		symbolizer_queue(symbolizer, module, QUEUE_LOCAL);
		break;
	case SOURCE_NOT_FOUND:
	case SOURCE_CLOSED:
		module->is_fetched = true;
		give_up_for_now(module);
		break;
	case SOURCE_WRONG_FILE:
	case SOURCE_TOO_LARGE:
		give_up_on_file(module, answer, result);
		break;
	case SOURCE_DOWN:
	case SOURCE_NO_ROOM:
		wait_for_servers(module, result);
		break;
	case SOURCE_STOPPED:
		if (module->quality == QUALITY_NONE)
			module->state = MODULE_wanted;
		break;
	}
}

static void finish_fetch(struct symbolizer *symbolizer, const struct build_id *id, bool is_alt,
			 enum source_answer answer, const struct source_result *result, int64_t ms)
{
	struct module *module;

	pthread_mutex_lock(&symbolizer->lock);
	module = module_list_find(&symbolizer->modules, id);
	module->queue = QUEUE_NONE;
	module->updated_ms = symbolizer_now_ms();
	module->is_met = false;
	symbolizer->counters.fetches += answer == SOURCE_FOUND;
	symbolizer->counters.fetches_failed += answer == SOURCE_DOWN;
	if (answer == SOURCE_FOUND && !is_alt)
		module->fetch_ms = (uint32_t)ms;
	if (is_alt && answer != SOURCE_STOPPED)
		finish_alt(symbolizer, module, answer, result);
	else
		finish_main(symbolizer, module, answer, result);
	if (module->is_again && module->queue == QUEUE_NONE)
		symbolizer_queue(symbolizer, module, QUEUE_LOCAL);
	pthread_mutex_unlock(&symbolizer->lock);
	symbolizer_save(symbolizer, id);
}

/* Which file of the module is asked for: its own, or the dwz file it borrows from. */
static struct build_id id_to_ask(struct symbolizer *symbolizer, const struct build_id *id,
				 bool *is_alt)
{
	struct build_id asked = *id;
	struct module *module;

	pthread_mutex_lock(&symbolizer->lock);
	module = module_list_find(&symbolizer->modules, id);
	*is_alt = module->alt.length && !module->is_alt_asked;
	if (*is_alt)
		asked = module->alt;
	pthread_mutex_unlock(&symbolizer->lock);
	return asked;
}

static void work_remotely(struct symbolizer *symbolizer, const struct build_id *id)
{
	struct attempts *attempts = calloc(1, sizeof(*attempts));
	struct source_result result = {.fd = -1};
	int64_t begin = symbolizer_now_ms();
	enum source_answer answer;
	struct error err = {0};
	bool is_alt;
	struct build_id asked = id_to_ask(symbolizer, id, &is_alt);
	struct source_question question = {.id = &asked,
					   .stop_fd = symbolizer->stop_fd,
					   .note = attempts ? note_attempt : NULL,
					   .context = attempts};

	if (attempts)
		attempts->is_alt = is_alt;
	answer = symbol_sources_ask(symbolizer->sources, &question, &result);
	if (attempts && answer != SOURCE_STOPPED &&
	    !symbols_put_candidates(symbolizer->store, id,
				    is_alt ? CANDIDATE_REMOTE_ALT : CANDIDATE_REMOTE,
				    attempts->rows, attempts->count, &err))
		log_warn("answers of servers not stored", "reason=\"%s\"", err.message);
	finish_fetch(symbolizer, id, is_alt, answer, &result, symbolizer_now_ms() - begin);
	free(attempts);
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
		work_remotely(context, &id);
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
