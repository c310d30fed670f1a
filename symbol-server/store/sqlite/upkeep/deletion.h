/* SPDX-License-Identifier: Apache-2.0 */
/* One samples_delete() under way: what its files share. delete.c goes through days and slices,
 * delete_threads.c rewrites rows of which some threads go, delete_accounts.c says in the hosts'
 * accounts what went, delete_sums.c deletes out of roll-ups that cannot be made again. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_UPKEEP_DELETION_H
#define SYMBOL_SERVER_STORE_SQLITE_UPKEEP_DELETION_H

#include "symbol-server/store/sqlite/dictionary/catalog_lifetimes.h"
#include "symbol-server/store/sqlite/cells/moments.h"
#include "symbol-server/store/sqlite/cells/spans.h"
#include "symbol-server/store/sqlite/days/hours.h"
#include "symbol-server/store/sqlite/samples_store.h"

enum {
	SLICE_ROWS = 512,
	SLICE_BYTES = 8 << 20, /* of rows that are decoded because of a thread */
	PAUSE_MS = 2,          /* between transactions: others want the files */
	ROW_BYTES_MAX = 256 << 20,
};

struct row_key {
	uint32_t type, bucket, series;
	int64_t fold;
};

struct taken { /* from one host in one minute, as one fold brought it */
	uint32_t type, bucket, host;
	int64_t fold;
	uint64_t samples;
};

struct deletion {
	struct sqlite_samples *store;
	const struct samples_query *query;
	int type; /* -1: all */
	int64_t from_ms, until_ms;
	struct samples_deleted *deleted;

	/* one day */
	uint32_t day, from, until; /* minutes, until excluded */
	/* What makes its roll-ups and hours cannot be read again: they lose rows themselves. */
	bool is_reduced;
	struct hours_kept hours_kept;
	uint64_t
		rolled[ROLLUPS_PER_DAY]; /* with is_reduced: rows up to that fold are in roll-ups */
	struct row_key next;             /* where the next slice begins: after this row */
	uint8_t *wanted;                 /* by series: 1 yes, 0 no */
	uint32_t wanted_room;

	/* one slice */
	struct day_writer writer;
	struct catalog *catalog;
	struct lifetimes *lifetimes; /* NULL: nobody asks what processes are */
	struct catalog_mark from_mark, mark;
	uint32_t reason; /* string */
	uint64_t folded;
	struct taken taken[SLICE_ROWS];
	unsigned taken_count;
	bool hours[HOURS_PER_DAY]; /* that lost something */
	bool has_rollups, has_moments, has_spans;
	struct packed_pair *kept;
	size_t kept_count, kept_room;
	struct buffer data;
};

/* Tenant, type, bucket, series and fold from parameter first on. */
void deletion_bind_key(sqlite3_stmt *statement, int first, const struct deletion *deletion,
		       const struct row_key *key);
/* Deletes one row of the table. */
bool deletion_row(struct deletion *deletion, const char *table, const struct row_key *key,
		  struct error *err);

/* The thread, a string of the day, is one of those that go. */
bool deletion_is_thread_wanted(const struct deletion *deletion, uint32_t thread);
/* One row without those threads, or the whole of it when nothing is left. */
bool deletion_threads(struct deletion *deletion, const struct row_key *key, const uint8_t *data,
		      size_t length, uint64_t *gone, struct error *err);
/* The same of the times and of the spans of its samples. */
bool deletion_threads_beside(struct deletion *deletion, const struct row_key *key,
			     struct error *err);

/* The row's samples went: kept until the slice ends. */
void deletion_take(struct deletion *deletion, const struct row_key *key, uint64_t samples);
/* Out of the roll-ups of the day's file, or of what the month has of the day. */
bool deletion_sums(struct deletion *deletion, bool of_month, struct error *err);

/* Asks for each series once a file. */
bool deletion_is_series_wanted(struct deletion *deletion, uint32_t series);
/* For the series of this slice's catalog. */
bool deletion_make_room(struct deletion *deletion, struct error *err);
/* What the day is like now; the files are locked. Minutes from and until follow. */
bool deletion_look(struct deletion *deletion, struct error *err);
/* The roll-ups are what is deleted from. */
static inline bool deletion_has_sums(const struct deletion *deletion)
{
	return deletion->is_reduced || deletion->hours_kept.are_alone;
}

/* Writes all that was taken into the accounts of its minutes, as lost by "deleted". */
bool deletion_change_accounts(struct deletion *deletion, struct error *err);

#endif
