/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of struct sqlite_samples.
 *
 * Rooms: intake/ (a request until it is folded), days/ (the files), rollups/ (coarser sums, and
 * what goes when), answers/ (queries), upkeep/ (backup, verification, deletion).
 *
 * The way of a request: samples_add() numbers its stacks in the day's catalog and puts a record
 * into the open group; the commit thread writes the group to the journal and, when it is on disk,
 * applies its records to the active generation and calls done(); the fold thread seals the
 * generation, writes it to the day files and agents.db, and releases the journal. A query reads
 * generations and day files; a day file says itself, in the transaction that the query reads, which
 * generations it has. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_SAMPLES_STORE_H
#define SYMBOL_SERVER_STORE_SQLITE_SAMPLES_STORE_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/log.h"
#include "symbol-server/store/sqlite/journal/journal.h"
#include "symbol-server/store/sqlite/cells/memory_table.h"
#include "symbol-server/store/sqlite/cells/moments.h"
#include "symbol-server/store/sqlite/journal/record.h"
#include "symbol-server/store/sqlite/reported_time.h"
#include "symbol-server/store/rules/pending_reports.h"
#include "symbol-server/store/rules/untimely_ids.h"
#include "symbol-server/store/samples_engine.h"
#include "symbol-server/store/sqlite/cells/spans.h"
#include "symbol-server/store/sqlite/days/days.h"
#include "symbol-server/store/sqlite/recent.h"
#include "symbol-server/store/sqlite/state_file.h"

enum {
	/* A group waits this long for company, and again as long as some came, at most so long. */
	GROUP_WINDOW_US = 5000,
	GROUP_WAIT_MAX_US = 25000,
	GROUP_BYTES_FULL = 256 << 10, /* a group of so many bytes does not wait for more */
	GROUP_BYTES_MAX = 32 << 20,   /* waiting to be written; more is ERROR_BUSY */
	FOLD_INTERVAL_MS = 30000,
	FOLD_BYTES = 64 << 20, /* of the active generation: fold early */
	FOLD_RETRY_MS = 5000,
	MEMORY_BYTES_MAX = 384 << 20, /* of all generations; more is ERROR_BUSY */
	JOURNAL_BYTES_MAX = 1 << 30,
	MOMENTS_OF = 1 << 7, /* in a memory cell's type: times of its samples, not their sums */
	SPANS_OF = 1 << 6,   /* likewise: those with a trace and a span */
};

struct generation {
	struct memory_table *table;
	struct state_change change;
	struct generation *next; /* newer */
	int64_t sealed_ms;       /* monotonic */
};

struct group {
	uint64_t number;
	struct buffer bytes; /* records, one after the other */
	struct {
		size_t at, length;
	} * records;
	uint32_t record_count, record_capacity;
	struct pending_reports pending;
	struct day **days; /* of its records: used until they are in memory */
	uint32_t day_count, day_capacity;
};

struct sqlite_samples {
	struct samples_store base; /* first */
	char *directory;
	int64_t keep_ms[SAMPLES_RESOLUTIONS];
	int64_t trace_keep_ms; /* 0: no traces are kept */
	int64_t traces_due_ms; /* the fold thread's */
	uint64_t max_disk_bytes;
	uint64_t disk_left_bytes; /* for what comes, under the lock; UINT64_MAX: older can go */
	uint32_t series_max;      /* of a tenant and day */
	uint64_t dictionary_max;  /* bytes of all days' dictionaries */
	struct journal *journal;
	struct state_file *state;
	pthread_t commit_thread, fold_thread;
	bool has_commit_thread, has_fold_thread;

	pthread_mutex_t file_lock; /* store_lock_files() */
	int directory_fd;          /* its flock() is what a backup holds */

	struct day_set days; /* with a lock of its own, which is taken after this one */

	pthread_mutex_t lock; /* what days' dictionaries have in them, and everything below */
	pthread_cond_t commit_wake, fold_wake, fold_done;
	bool wants_room; /* dictionaries that nobody uses are to go */
	struct recent recent;
	struct memory_table *active;
	struct generation *oldest, *newest; /* sealed, waiting to be folded */
	struct log_fault not_folded, not_stored;
	struct log_fault series_folded, stacks_folded; /* hosts have their share */
	struct log_fault no_spare, no_room, not_reduced, not_erased,
		too_much; /* the fold thread's */
	bool is_short;    /* reports are refused: reserve.h */
	struct agent_table agents;
	struct reported_time reported;
	struct report_window window;
	struct untimely_ids untimely;
	struct group *group;      /* open */
	uint64_t committed;       /* groups up to this one are on disk */
	uint64_t applied;         /* journal position of the last applied record */
	uint64_t sealed;          /* records up to this one are in sealed generations or in files */
	uint64_t state_position;  /* at opening: what agents.db had */
	uint64_t damaged_records; /* met at replay */
	struct replay_loss *losses; /* of replay: intake/replay_losses.h */
	uint32_t loss_count, loss_room;
	uint64_t fold_requests, folds_done;
	bool is_applying;             /* a group, in slices: some of it is applied */
	bool wants_spare;             /* the journal has no file for its next segment */
	int64_t spare_retry_ms;       /* the fold thread's */
	struct error fold_error;      /* why folding fails now */
	int64_t rollup_late_pause_ms; /* late samples of a day are collected so long */
	bool no_rollups;              /* of tests: none are made, queries read the minutes */
	atomic_bool is_closing;
	bool is_committed_all;
	struct samples_counters counters;
	struct buffer record, scratch, body, entry; /* reused by samples_add() */
};

static inline struct sqlite_samples *sqlite_samples_of(struct samples_store *store)
{
	return (struct sqlite_samples *)store;
}

int64_t store_monotonic_ms(void);
int64_t store_now_ms(void);

/* ---- files (samples.c) ---- */

/* Whoever changes databases (fold, rollup, deletion, setting aside) holds this, so that they agree
 * with each other whenever it is free: a backup by another process begins its transactions while
 * it has the same flock(). Taken before lock. */
void store_lock_files(struct sqlite_samples *store);
void store_unlock_files(struct sqlite_samples *store);

/* Holds the reserve where there is room for it; reports are refused where there is too little. */
void store_hold_reserve(struct sqlite_samples *store);
/* Something found no room. */
void store_give_reserve_up(struct sqlite_samples *store);
/* Why reports are refused then. False. */
bool store_set_short(struct error *err);

/* ---- retention (retention.c) ---- */

/* Deletes what is too old or too much, forgets idle catalogs, rolls up. No lock held. */
void store_tidy(struct sqlite_samples *store, int64_t now_ms);
/* Start of the newest day that a right clock can have made; 0: there is none. Under the set's lock.
 */
int64_t store_newest_ms(const struct sqlite_samples *store);
/* What is older than this is not kept, and not answered any more. 0: everything is. Under no
 * lock or any. */
int64_t store_kept_from_ms(const struct sqlite_samples *store, enum samples_resolution resolution,
			   int64_t now_ms);

/* ---- committing (definitions.c, commit.c) ---- */

/* What the journal and the day's file do not define yet, as records of their own. False: the group
 * has no room. */
bool store_log_definitions(struct sqlite_samples *store, struct day *day);

struct group *group_new(uint64_t number);
void group_free(struct group *group);
bool group_add_record(struct group *group, const struct buffer *record);
/* The group has records of the day, and uses it. */
bool group_add_day(struct sqlite_samples *store, struct group *group, struct day *day);
void *store_commit_thread(void *store);
/* Applies one record to memory; under the lock. is_replay: definitions and ids are new. */
void store_apply(struct sqlite_samples *store, uint64_t end, const uint8_t *bytes, size_t length,
		 bool is_replay);
size_t store_memory_bytes(const struct sqlite_samples *store);

/* ---- folding (fold.c) ---- */

void *store_fold_thread(void *store);
/* Records were applied that no sealed generation and no file stands for: their samples, but also
 * their agents' counts and ids alone. Under the lock. */
bool store_has_unsealed(const struct sqlite_samples *store);
bool sqlite_samples_fold(struct samples_store *base, struct error *err);

/* ---- the rest of the engine, as samples.h says ---- */

bool sqlite_samples_add(struct samples_store *base, const struct sample_batch *batch,
			samples_done_fn *done, void *context, unsigned *duplicates,
			struct error *err);
struct samples_result *sqlite_samples_query(struct samples_store *base,
					    const struct samples_query *query, struct error *err);
bool sqlite_samples_types(struct samples_store *base, const struct samples_query *query,
			  struct arena *arena, struct type_count **rows, size_t *count,
			  struct error *err);
bool sqlite_samples_labels(struct samples_store *base, const struct samples_query *query,
			   struct arena *arena, struct label_count **rows, size_t *count,
			   struct error *err);
struct samples_timeline *sqlite_samples_timeline(struct samples_store *base,
						 const struct samples_query *query,
						 struct error *err);
bool sqlite_samples_label_values(struct samples_store *base, const struct samples_query *query,
				 const char *label, struct arena *arena, struct value_count **rows,
				 size_t *count, struct error *err);
bool sqlite_samples_moments(struct samples_store *base, const struct samples_query *query,
			    samples_moment_fn *fn, void *context, struct error *err);
bool sqlite_samples_spans(struct samples_store *base, const struct samples_query *query,
			  samples_span_fn *fn, void *context, struct error *err);

#endif
