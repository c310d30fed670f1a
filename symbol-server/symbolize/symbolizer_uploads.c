/* SPDX-License-Identifier: Apache-2.0 */
/* Files that were sent: which are asked for, how they come, how they go. */
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/log.h"
#include "symbol-server/symbolize/module_files.h"
#include "symbol-server/symbolize/symbolizer_state.h"

enum {
	/* What made room, or was deleted, is not asked for again so soon: where what is in use does
	 * not fit --upload-disk, agents would send it round and round. */
	GONE_MS = 24 * 3600 * 1000,
};

/* ---- what is here ---- */

/* Lock held. */
static void set_uploaded(struct symbolizer *symbolizer, struct module *module, bool is_uploaded)
{
	(void)symbolizer;
	module->is_unsaved |= module->is_uploaded != is_uploaded;
	module->is_uploaded = is_uploaded;
}

static void found_upload(void *context, const struct build_id *id)
{
	struct symbolizer *symbolizer = context;
	struct module *module = module_list_add(&symbolizer->modules, id, unix_time_ms());

	if (module)
		set_uploaded(symbolizer, module, true);
}

/* With the room's lock. */
static void upload_is_gone(void *context, const struct build_id *id)
{
	struct symbolizer *symbolizer = context;
	struct module *module;

	pthread_mutex_lock(&symbolizer->lock);
	module = module_list_find(&symbolizer->modules, id);
	if (module) {
		set_uploaded(symbolizer, module, false);
		module->upload_gone_ms = unix_time_ms();
	}
	pthread_mutex_unlock(&symbolizer->lock);
}

void symbolizer_find_uploads(struct symbolizer *symbolizer)
{
	uploads_each(symbolizer->uploads, found_upload, symbolizer);
	uploads_watch(symbolizer->uploads, upload_is_gone, symbolizer);
}

/* ---- asking ---- */

/* Nothing of that id is on this machine, as far as is known at once. */
static bool is_nothing_here(struct symbolizer *symbolizer, const struct build_id *id)
{
	return symbol_directories_are_read(symbolizer->directories) &&
	       !uploads_have(symbolizer->uploads, id) &&
	       !symbol_directories_has(symbolizer->directories, id);
}

/* Whoever announced it has the file and is about to send it. */
static void note_asked(struct symbolizer *symbolizer, const struct build_id *id)
{
	struct module *module;

	pthread_mutex_lock(&symbolizer->lock);
	module = module_list_find(&symbolizer->modules, id);
	if (module)
		module->asked_for_ms = unix_time_ms();
	pthread_mutex_unlock(&symbolizer->lock);
}

bool symbolizer_wants_upload(struct symbolizer *symbolizer, const struct build_id *id)
{
	bool has_servers = symbol_sources_count(symbolizer->sources) > 0;
	bool is_wanted = !has_servers, is_settled = false;
	struct module *module;

	pthread_mutex_lock(&symbolizer->lock);
	module = module_list_find(&symbolizer->modules, id);
	if (module) {
		/* Every source has been asked that could be. */
		is_settled = module->queue == QUEUE_NONE && module->retry_at_ms != 0;
		is_wanted = module->quality <= QUALITY_DYNSYM && !module->is_uploaded &&
			    !module->uploading && !module->is_dropped &&
			    unix_time_ms() - module->upload_gone_ms > GONE_MS &&
			    (is_settled || !has_servers || !module->is_gnu);
	}
	pthread_mutex_unlock(&symbolizer->lock);
	is_wanted = is_wanted && (is_settled || is_nothing_here(symbolizer, id));
	if (is_wanted)
		note_asked(symbolizer, id);
	return is_wanted;
}

/* ---- receiving ---- */

struct symbol_upload {
	struct symbolizer *symbolizer;
	struct build_id id;
	struct upload_file *file;
};

struct symbol_upload *symbolizer_upload(struct symbolizer *symbolizer, const struct build_id *id,
					uint64_t expected_bytes, struct error *err)
{
	struct symbol_upload *upload = calloc(1, sizeof(*upload));
	struct module *module;

	if (!upload) {
		error_set(err, ERROR_MEMORY, "no memory for an upload");
		return NULL;
	}
	upload->symbolizer = symbolizer;
	upload->id = *id;
	upload->file = upload_file_open(symbolizer->uploads, expected_bytes, err);
	if (!upload->file) {
		free(upload);
		return NULL;
	}
	pthread_mutex_lock(&symbolizer->lock);
	module = module_list_add(&symbolizer->modules, id, unix_time_ms());
	if (module)
		module->uploading++;
	pthread_mutex_unlock(&symbolizer->lock);
	if (module)
		return upload;
	error_set(err, ERROR_BUSY, "%d modules are in use already; try again later", MODULES_MAX);
	upload_file_close(upload->file);
	free(upload);
	return NULL;
}

bool symbol_upload_write(struct symbol_upload *upload, const void *bytes, size_t length,
			 struct error *err)
{
	return upload_file_write(upload->file, bytes, length, err);
}

static void end_upload(struct symbol_upload *upload, bool is_kept, bool is_new)
{
	struct symbolizer *symbolizer = upload->symbolizer;
	struct module *module;

	pthread_mutex_lock(&symbolizer->lock);
	module = module_list_find(&symbolizer->modules, &upload->id);
	module->uploading--;
	symbolizer->counters.uploads += is_kept;
	symbolizer->counters.uploads_refused += !is_kept;
	module->is_uploaded |= is_kept;
	if (is_new) {
		module->failures = 0;
		module->is_dropped = false;
		symbolizer_queue(symbolizer, module, QUEUE_LOCAL);
		symbolizer_file_came(symbolizer, &upload->id);
	}
	pthread_mutex_unlock(&symbolizer->lock);
	if (is_new)
		symbolizer_save(symbolizer, &upload->id);
	upload_file_close(upload->file);
	free(upload);
}

bool symbol_upload_finish(struct symbol_upload *upload, bool *is_new, struct error *err)
{
	struct symbolizer *symbolizer = upload->symbolizer;
	struct module *module;
	bool replaces, ok;

	pthread_mutex_lock(&symbolizer->lock);
	module = module_list_find(&symbolizer->modules, &upload->id);
	replaces = module->state == MODULE_failed;
	pthread_mutex_unlock(&symbolizer->lock);
	ok = upload_file_keep(upload->file, &upload->id, replaces, is_new, err);
	end_upload(upload, ok, ok && *is_new);
	return ok;
}

void symbol_upload_abort(struct symbol_upload *upload)
{
	if (upload)
		end_upload(upload, false, false);
}

/* ---- deleting ---- */

struct upload_usage symbolizer_uploaded(struct symbolizer *symbolizer, const struct build_id *id)
{
	return uploads_usage(symbolizer->uploads, id);
}

/* What sources said of files that are here is of what is gone. */
static void forget_answers(struct symbolizer *symbolizer, const struct build_id *id)
{
	struct error err = {0};

	if (!symbols_put_candidates(symbolizer->store, id, CANDIDATE_HERE, NULL, 0, &err))
		log_warn("answers of sources not stored", "reason=\"%s\"", err.message);
}

bool symbolizer_forget_files(struct symbolizer *symbolizer, const struct build_id *id,
			     struct module_deleted *deleted, struct error *err)
{
	struct upload_usage removed = uploads_remove(symbolizer->uploads, id);
	struct module *module;
	bool is_known, has_table, is_busy;

	*deleted = (struct module_deleted){.files = removed.files, .bytes = removed.bytes};
	pthread_mutex_lock(&symbolizer->lock);
	module = module_list_find(&symbolizer->modules, id);
	is_known = module;
	has_table = module && module->quality != QUALITY_NONE;
	is_busy = module && module->queue != QUEUE_NONE;
	if (module)
		MODULE_TEXT(deleted->name, module->name);
	pthread_mutex_unlock(&symbolizer->lock);
	if (!is_known && !removed.files)
		return error_set(err, ERROR_NOT_FOUND, "nothing is known of this build-id");
	if (is_busy)
		return error_set(err, ERROR_BUSY,
				 "%u uploaded files of it are deleted; its table of names is being "
				 "made just now: try again in a moment",
				 removed.files);
	if (is_known && !symbolizer_drop_table(symbolizer, id,
					       "it was deleted; its table is made again when it is "
					       "next asked for",
					       err))
		return false;
	deleted->has_table = has_table;
	forget_answers(symbolizer, id);
	symbolizer_save(symbolizer, id);
	return true;
}
