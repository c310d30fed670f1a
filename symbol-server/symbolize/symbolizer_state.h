/* SPDX-License-Identifier: Apache-2.0 */
/* What the symbolizer's files share: symbolizer.c answers callers, symbolizer_files.c finds a
 * module's files, symbolizer_work.c has the threads that convert and fetch (symbolizer_task.h),
 * symbolizer_uploads.c has what agents
 * send, symbolizer_keep.c what is done from time to time. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_SYMBOLIZER_STATE_H
#define SYMBOL_SERVER_SYMBOLIZE_SYMBOLIZER_STATE_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "common/log.h"
#include "symbol-server/symbolize/module_list.h"
#include "symbol-server/symbolize/symbol_cache.h"
#include "symbol-server/symbolize/sources/source_files.h"
#include "symbol-server/symbolize/sources/symbol_directories.h"
#include "symbol-server/symbolize/sources/symbol_sources.h"
#include "symbol-server/symbolize/symbolizer.h"
#include "symbol-server/symbolize/sources/uploads.h"

enum { THREADS_MAX = 128 };

struct symbolizer {
	struct symbols_store *store; /* the caller's */
	char cache_directory[PATH_MAX];
	size_t memory_limit_bytes;
	uint64_t disk_limit_bytes;
	bool has_directories;

	pthread_mutex_t save_lock; /* from copying rows to writing them: the latest is written last.
				      Taken before lock. */
	struct log_fault not_saved;
	pthread_mutex_t lock;      /* of modules, wake and what follows it */
	pthread_cond_t wake, keep; /* keep: with the monotonic clock */
	struct module_list modules;
	struct symbolizer_counters counters;
	uint64_t disk_bytes;          /* of packed tables */
	uint32_t alts_missing;        /* modules whose dwz file is not here */
	bool keeps;                   /* the keeper has something to do at once */
	unsigned workers, converting; /* threads for conversions, and how many of them are busy */

	pthread_mutex_t load_lock; /* tables are loaded one at a time */
	struct symbol_cache *cache;
	struct uploads *uploads;
	struct symbol_directories *directories;
	struct symbol_sources *sources;
	struct source_files *source_files;

	atomic_bool stops;
	int stop_fd; /* readable once it stops */
	pthread_t threads[THREADS_MAX];
	unsigned thread_count;
};

/* A line in the log about one module: by name and build-id. Takes the lock. */
void symbolizer_warn(struct symbolizer *symbolizer, const struct build_id *id, const char *event,
		     const struct error *err);

/* Puts the module where its next step is done and wakes a thread; lock held. */
void symbolizer_queue(struct symbolizer *symbolizer, struct module *module,
		      enum module_queue queue);

/* Another table of the module, or none (packed_bytes 0): what tables take on disk; lock held. */
void symbolizer_count_table(struct symbolizer *symbolizer, struct module *module,
			    uint64_t packed_bytes);

/* A file of that id is here that was not before: for the module, and for those that borrow from it
 * as a dwz file. Lock held. */
void symbolizer_file_came(struct symbolizer *symbolizer, const struct build_id *id);

/* Before the threads start: which modules have uploads, whatever their rows say. */
void symbolizer_find_uploads(struct symbolizer *symbolizer);

/* Deletes the module's table, which is made again when it is asked for; reason: as the API says it.
 * ERROR_BUSY: a thread works on it. No lock held. */
bool symbolizer_drop_table(struct symbolizer *symbolizer, const struct build_id *id,
			   const char *reason, struct error *err);

/* Starts the threads: some that look what is here, workers that convert, with servers those that
 * fetch, and the keeper. */
bool symbolizer_work_start(struct symbolizer *symbolizer, unsigned workers, struct error *err);
void *symbolizer_keep_thread(void *symbolizer);

/* Whether the module is one whose row and answers are stored; no lock held. */
bool symbolizer_keeps(struct symbolizer *symbolizer, const struct build_id *id);
/* Writes the module's row; no lock held. */
void symbolizer_save(struct symbolizer *symbolizer, const struct build_id *id);
/* Writes every row that changed, in few transactions; no lock held. */
void symbolizer_save_all(struct symbolizer *symbolizer);

#endif
