/* SPDX-License-Identifier: Apache-2.0 */
/* Counted stacks in, counted stacks out; raw (module, address), never names. The one door through
 * which ingest writes and query reads samples, whatever engine is behind it (sqlite/, clickhouse/;
 * samples_engine.h is their side of it): what comes is sample_batch.h, what is asked
 * samples_query.h, what there is to watch samples_state.h. */
#ifndef SYMBOL_SERVER_STORE_SAMPLES_H
#define SYMBOL_SERVER_STORE_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "symbol-server/store/sample_batch.h"
#include "symbol-server/store/samples_query.h"
#include "symbol-server/store/samples_state.h"

struct samples_store_options {
	const char *directory;                /* holds samples-YYYYMMDD.db, journal */
	const char *clickhouse_url;           /* NULL: SQLite in the directory */
	int64_t keep_ms[SAMPLES_RESOLUTIONS]; /* older is deleted; raw 0: kept for ever; roll-ups 0:
					       * as long as raw */
	int64_t trace_keep_ms;                /* trace and span ids of samples; 0: none are kept */
	uint64_t max_disk_bytes;              /* oldest first; 0: no limit */
	uint32_t series_max;                  /* of a tenant and day; 0: CATALOG_SERIES_MAX */
	uint64_t dictionary_bytes;            /* of all days' in memory; 0: 1 GiB */
	/* Told what opening is at, as "reads the journal"; static texts. NULL: nobody asks. */
	void (*does)(void *context, const char *doing);
	void *does_context;
};

/* Opens, migrates, replays the journal. ERROR_UNSUPPORTED: written by a newer version. */
struct samples_store *samples_open(const struct samples_store_options *options, struct error *err);

/* Records the batch; done() is called once, from another thread, when it is on disk (accepted true)
 * or could not be written (false, err says why). The batch may be freed when this returns. Profiles
 * whose id was seen before are left out; duplicates counts them. false: refused at once —
 * ERROR_BUSY (try later), ERROR_LIMIT, ERROR_SYSTEM (disk full) — and done() is not called.
 * When a day has most of series_max, a host that has its share of them gets no new ones: its
 * further profiles are stored under its series with process "other". Where there is no room for
 * that either they are refused alone (batch->refusals), and their samples count as lost by
 * "series_limit". Likewise new stacks of a host that has its share of dictionary_bytes.
 * Thread-safe. */
typedef void samples_done_fn(void *context, bool accepted, const struct error *err);
bool samples_add(struct samples_store *store, const struct sample_batch *batch,
		 samples_done_fn *done, void *context, unsigned *duplicates, struct error *err);

/* Folds what is in memory now and waits for it (tests, imports, backups). False: err says why not.
 */
bool samples_fold(struct samples_store *store, struct error *err);

/* Folds what is in memory, syncs, closes. Calls every outstanding done(). NULL is fine. */
void samples_close(struct samples_store *store);

#endif
