/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a module → its table, the best file first, until one is good. */
#include "symbol-server/symbolize/symbolizer_task.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/hash_table.h"
#include "symbol-server/symbolize/convert/debug_reader.h"
#include "symbol-server/symbolize/symbol_table.h"
#include "symbol-server/symbolize/worker.h"

enum { TRIES_MAX = 4 }; /* files of a module that are converted in one round */

struct module *task_module(struct task *task)
{
	pthread_mutex_lock(&task->symbolizer->lock);
	return module_list_find(&task->symbolizer->modules, &task->id);
}

void task_unlock(struct task *task)
{
	pthread_mutex_unlock(&task->symbolizer->lock);
}

void task_set_state(struct task *task, enum module_state state, const char *reason)
{
	struct module *module = task_module(task);

	module->state = state;
	module->updated_ms = unix_time_ms();
	module->is_unsaved = true;
	MODULE_TEXT(module->reason, reason);
	task_unlock(task);
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

const char *module_sentence(enum symbol_quality quality, uint32_t flags)
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
enum module_state module_state_of(enum symbol_quality quality, uint32_t flags)
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

/* Its DWARF, the best names besides, and the code, which has the stubs of the PLT; a program's own
 * tables where none has them. */
static struct attempt attempt_with(struct task *task, struct candidate *debug,
				   struct candidate *names)
{
	struct attempt attempt = {.with_extras = debug != NULL};

	add_part(&attempt, debug);
	if (!debug || !debug->has_symtab)
		add_part(&attempt, names);
	if (debug && !debug->has_code)
		add_part(&attempt, files_code(&task->files));
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
	module = task_module(task);
	symbolizer_count_table(symbolizer, module, packed->length);
	module->quality = table->quality;
	module->flags = table->flags;
	module->raw_bytes = table->bytes;
	module->functions = table->function_count;
	module->ranges = table->range_count;
	module->file_bytes = attempt->bytes;
	module->conversion_ms = ms;
	module->last_used_ms = unix_time_ms();
	module->failures = 0;
	module->is_dropped = false;
	module->is_unsaved = true;
	if (table->quality == QUALITY_DWARF)
		module->weight = 0; /* what had no names has them now */
	MODULE_TEXT(module->source, attempt->parts[0]->source);
	task_unlock(task);
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
	int64_t begin = unix_time_ms();
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
					       (uint32_t)(unix_time_ms() - begin), err));
	count_conversion(symbolizer, table != NULL, err);
	if (ok && !is_worse) {
		if (state == MODULE_STATE_COUNT)
			state = module_state_of(table->quality, table->flags);
		task_set_state(task, state,
			       reason ? reason : module_sentence(table->quality, table->flags));
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
void task_convert_names(struct task *task, const char *reason)
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
	module = task_module(task);
	task->symbolizer->alts_missing += !!task->extras.alt.length - !!module->alt.length;
	module->alt = task->extras.alt;
	task_unlock(task);
	return true;
}

bool task_is_known(const struct task *task)
{
	uint64_t files = task->extras.fingerprint
				 ? hash_word(task->files.fingerprint, task->extras.fingerprint)
				 : task->files.fingerprint;

	return files == task->known_files && task->converter == SYMBOL_CONVERTER_VERSION;
}

static void note_converted(struct task *task, bool ok, const struct error *err)
{
	struct module *module = task_module(task);

	if (!is_ending(err)) {
		module->files = task->files.fingerprint;
		if (task->extras.fingerprint)
			module->files = hash_word(module->files, task->extras.fingerprint);
		module->converter = SYMBOL_CONVERTER_VERSION;
	}
	module->has_failed = !ok;
	module->is_unsaved = true;
	task_unlock(task);
}

/* True: there is a table now. False: err says why not, unless that was known already. */
bool task_convert(struct task *task, struct error *err)
{
	bool ok;

	if (task_is_known(task) && !(task->flags & MISSING_PARTS))
		return task->quality != QUALITY_NONE;
	if (task->quality < QUALITY_SYMTAB)
		task_set_state(task, MODULE_converting, "its debug information is being converted");
	if (!gather_extras(task))
		return error_set(err, ERROR_BUSY, "the server is stopping");
	if (task->waits_for_alt) {
		task_convert_names(task, "a part of its debug information is in a dwz file, which "
					 "is being fetched; until then names only");
		return true;
	}
	if (task_is_known(task))
		return task->quality != QUALITY_NONE;
	ok = convert_best(task, err);
	note_converted(task, ok, err);
	return ok;
}
