/* SPDX-License-Identifier: Apache-2.0 */
/* What the store says of itself and of its agents. */
#ifndef SYMBOL_SERVER_STORE_SAMPLES_STATE_H
#define SYMBOL_SERVER_STORE_SAMPLES_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/error.h"
#include "symbol-server/store/sample_batch.h"

struct samples_store;

enum samples_resolution { SAMPLES_RAW, SAMPLES_10M, SAMPLES_1H, SAMPLES_RESOLUTIONS };

struct agent_state {
	const char *host, *version, *kernel;
	uint32_t rate_hz;
	int64_t last_seen_ms;
	uint64_t heard;  /* SQLite: the larger was heard later, whatever clocks say */
	int64_t lag_ms;  /* received − end of the report's interval, of the last report */
	bool has_skew;   /* known since this server started */
	int64_t skew_ms; /* the agent's clock − this server's, the way included, of the last report
			  */
	/* SQLite: as heard since this server started */
	uint64_t lacks[AGENT_LACK_COUNT];
	uint64_t clock_jumps; /* times its host's clock was set by more than a second */
	uint64_t cpus;        /* online on its host; 0: not known */
	uint64_t taken, lost;
	struct named_count *lost_by, *stacks; /* by reason; by result of the walk */
	unsigned lost_count, stacks_count;
};
bool samples_agents(struct samples_store *store, uint32_t tenant, struct arena *arena,
		    struct agent_state **rows, size_t *count, struct error *err);

/* CPUs of those hosts together, as their agents heard last said since this server started. names:
 * sorted by strcmp(). 0: one of them is not known to have any, or the engine does not keep it. */
uint64_t samples_cpus(struct samples_store *store, uint32_t tenant, const char *const *names,
		      uint32_t count);

struct samples_counters { /* for /metrics; cumulative unless said */
	uint64_t reports, profiles, duplicates, samples, refused_busy;
	uint64_t journal_bytes, journal_syncs, folds, fold_errors, replayed;
	uint64_t recent_bytes; /* now: of the newest minutes by the second */
	uint64_t unfolded_ms; /* now: since when the oldest samples wait to be folded; 0: none do */
	uint64_t disk_bytes, days;                 /* now */
	int64_t oldest_ms;                         /* begin of the first day or month; 0: none */
	uint64_t level_bytes[SAMPLES_RESOLUTIONS]; /* files that have minutes; that have roll-ups
						      only */
	uint64_t days_reduced, days_deleted,
		months_deleted; /* by retention and the limit of disk */
	uint64_t rollup_lag_ms; /* now: age of the oldest closed bucket without its roll-up */
	uint64_t forecast_bytes,
		disk_full_seconds; /* now: where retention ends; 0: not known, never */
	uint64_t rollup_pairs,
		rollup_cpu_us; /* counted stacks read to be rolled up; its CPU time */
	uint64_t series, stacks, memory_bytes; /* now */
	/* Profiles and their samples that found no room for one more series; samples whose stack
	 * found no room in the day's dictionary and is shown as that sentence. */
	uint64_t times_refused, /* of single samples, far outside of their report */
		moments;        /* times kept */
	uint64_t series_refused_profiles, series_refused_samples, stacks_overflowed;
	/* Those that are their host's "other" instead, as it has its share of the series. */
	uint64_t series_folded_profiles, series_folded_samples;
	uint64_t dictionary_bytes, dictionaries_dropped; /* now; for room, before they were idle */
	/* Now, unix: start of the newest day, or when an agent was heard last if that is later; 0:
	 * nothing is known. A right clock is not before it. */
	int64_t newest_ms;
	uint64_t samples_damaged;               /* of days, lost so */
	uint64_t days_damaged, journal_damaged; /* set aside; records not usable; since the start */
	/* What agents reported of how their stack walks ended; names without room are "other". */
	struct named_count walks[BATCH_STACK_RESULTS];
	unsigned walk_count;
	/* What they reported as lost; likewise. */
	struct named_count lost[BATCH_LOST_REASONS];
	unsigned lost_count;
	/* Now: why reports are refused, and why what was taken stays in the journal; ERROR_NONE:
	 * not so. The first is forgotten some seconds after the last report that was refused. */
	struct error refusing, waiting;
};
void samples_counters(struct samples_store *store, struct samples_counters *out);

#endif
