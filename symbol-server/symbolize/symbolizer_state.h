/* SPDX-License-Identifier: Apache-2.0 */
/* What the symbolizer's two files share: symbolizer.c answers callers, symbolizer_work.c has the
 * threads. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_SYMBOLIZER_STATE_H
#define SYMBOL_SERVER_SYMBOLIZE_SYMBOLIZER_STATE_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "symbol-server/symbolize/module_list.h"
#include "symbol-server/symbolize/symbol_cache.h"
#include "symbol-server/symbolize/symbol_directories.h"
#include "symbol-server/symbolize/symbol_sources.h"
#include "symbol-server/symbolize/symbolizer.h"
#include "symbol-server/symbolize/uploads.h"

enum { FETCH_THREADS = 2, THREADS_MAX = 64 };

struct symbolizer {
	struct symbols_store *store; /* the caller's */
	char cache_directory[PATH_MAX];
	size_t memory_limit_bytes;

	pthread_mutex_t lock; /* of modules, wake and what follows it */
	pthread_cond_t wake;
	struct module_list modules;
	struct symbolizer_counters counters;

	pthread_mutex_t load_lock; /* tables are loaded one at a time */
	struct symbol_cache *cache;
	struct uploads *uploads;
	struct symbol_directories *directories;
	struct symbol_sources *sources;

	atomic_bool stops;
	int stop_fd; /* readable once it stops */
	pthread_t threads[THREADS_MAX];
	unsigned thread_count;
};

int64_t symbolizer_now_ms(void); /* unix time */

/* Puts the module where its next step is done and wakes a thread; lock held. */
void symbolizer_queue(struct symbolizer *symbolizer, struct module *module,
		      enum module_queue queue);

/* Starts the threads: workers that convert, and with servers those that fetch. */
bool symbolizer_work_start(struct symbolizer *symbolizer, unsigned workers, struct error *err);

/* Writes the module's row; no lock held. */
void symbolizer_save(struct symbolizer *symbolizer, const struct build_id *id);

#endif
