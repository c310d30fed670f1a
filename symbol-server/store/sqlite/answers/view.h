/* SPDX-License-Identifier: Apache-2.0 */
/* What one query sees: for every day in range its dictionary, its file as of one transaction, and
 * the samples in memory that this transaction does not have. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_ANSWERS_VIEW_H
#define SYMBOL_SERVER_STORE_SQLITE_ANSWERS_VIEW_H

#include "symbol-server/store/sqlite/dictionary/catalog_lifetimes.h"
#include "symbol-server/store/limits.h"
#include "symbol-server/store/rules/rollup_choice.h"
#include "symbol-server/store/sqlite/samples_store.h"

struct view_cell {
	uint64_t start; /* of its generation */
	struct memory_snapshot snapshot;
};

/* Rows to be read: which of several that stand for the same time, so that each sample is in one. */
struct view_part {
	enum day_level level;
	uint32_t from, until; /* minutes */
	uint64_t above;       /* rows of later folds only */
};

struct view_parts {
	struct view_part *at;
	unsigned count;
};

struct view_day {
	struct day *day;
	struct catalog *catalog;
	struct day_reader *reader; /* NULL: no file */
	unsigned set_asides;       /* damaged files of the day, when this one was opened */
	uint64_t folded_through;
	uint64_t known_through; /* what the file had when the view was opened */
	const uint64_t *hours;  /* positions that the month's hours of this day go through */
	uint64_t *month_hours;  /* of a month: of all its hours */
	bool is_reduced;        /* the file has no minutes any more */
	uint32_t from, until;   /* minutes */
	const struct view_cell *cells;
	size_t cell_count;
	struct catalog_mark mark;            /* what of the dictionary may be looked at */
	struct view_parts samples, accounts; /* none where recent seconds are seen */
	/* The query's series, once view_choose_series() was asked: a byte each, and how many. */
	uint8_t *is_wanted;
	uint32_t wanted;
	const struct view_day *like; /* of another view, where it was chosen already; or NULL */
	/* Sorted numbers of those, when looking them up one by one is less work than reading all;
	 * and of those that fleets have rows of. NULL: all are read. */
	const uint32_t *list, *fleet;
	uint32_t fleet_count;
	struct lifetimes *lifetimes; /* once view_context() was asked for one */
};

struct view {
	struct sqlite_samples *store;
	struct limit_watch watch;  /* whatever is read of files ends with it */
	struct arena arena;        /* of the view and of whoever works with it */
	int64_t from_ms, until_ms; /* widened */
	int64_t resolution_ms;     /* of the coarsest rows */
	bool wants_threads;
	int64_t threads_from_ms; /* wanted: the rows before that are without; 0: none is */
	int64_t now_ms;
	struct rollup_wants wants;
	struct rollup_kept kept; /* at now_ms */
	unsigned month_count;    /* of days: the first ones are months */
	bool is_recent;          /* the cells are of recent.h, and all there is */
	enum day_level level;    /* of rollups: DAY_10M or DAY_10M_FLEET */
	struct view_day *days;
	unsigned day_count;
	struct memory_table **tables;
	unsigned table_count;
	struct view_cell *cells;
	size_t cell_count;
	bool has_files_locked; /* it is being opened with store_lock_files() */
};

/* type: number, or -1 for all. A day whose file turns out to be damaged is set aside and seen
 * without it. On failure there is nothing to close. */
bool view_open(struct view *view, struct sqlite_samples *store, const struct samples_query *query,
	       int type, struct error *err);
void view_close(struct view *view);

/* ---- view_open()'s own (view_parts.c) ---- */

/* Whether roll-ups can answer the query, and which. */
void view_wants(struct view *view, const struct samples_query *query);
/* The days that whole hours are taken of, and which of a month's rows that are; of months' files
 * that are open, before the files of days are. */
bool view_choose_hours(struct view *view, struct error *err);
/* Whether days of that number have hours only. */
bool view_has_hours_only(const struct view *view, int64_t day);
/* Fills the day's parts; widens the range where only roll-ups are kept. */
bool view_choose(struct view *view, struct view_day *day, struct error *err);

/* ---- recent seconds (view_recent.c) ---- */

/* Whether they are asked for and all there; the range is then widened to them only. Under the
 * lock, as the next one. */
bool view_is_recent(struct view *view, const struct samples_query *query, int type);
/* False: no memory. */
bool view_take_recent(struct view *view, const struct samples_query *query, int type);
/* Of the series wanted nothing was left out for want of room, as far as *is_whole says so. */
bool view_recent_is_whole(struct view *view, const struct samples_query *query, bool *is_whole,
			  struct error *err);

/* One run of counted stacks of one series and minute, or its sums; or of a roll-up, whose bucket is
 * its first minute, and whose threads are 0. */
struct view_row {
	struct view_day *day;
	uint32_t type, bucket, series;
	int32_t second; /* since the bucket began; 0 where it is not known */
	uint64_t samples, value;
	const void *packed; /* from a file; valid during the call */
	size_t length;
	const struct view_cell *cell; /* from memory; valid while the view is open */
	const void *hosts; /* of a series without hosts: who is in it; valid during the call */
	size_t hosts_length;
	const uint8_t *span; /* 24 bytes, of a row of one span; valid during the call */
};
static inline int64_t view_row_ms(const struct view_row *row)
{
	return row->day->day->day * day_ms + row->bucket * (int64_t)SAMPLES_BUCKET_MS +
	       row->second * INT64_C(1000);
}
typedef bool view_row_fn(void *context, const struct view_row *row);

/* The rows of a cell of recent seconds, of the series that were chosen. False: fn said so. */
bool view_each_recent(const struct view_row *cell, view_row_fn *fn, void *context);

/* Every row of the type in one day, of the series that were chosen. False from fn stops, and the
 * return is then true as well. ERROR_FORMAT: the file is damaged and has been set aside.
 * ERROR_LIMIT, ERROR_BUSY: as the view's watch says. */
bool view_each(struct view *view, struct view_day *day, const struct samples_query *query,
	       unsigned type, bool with_data, view_row_fn *fn, void *context, struct error *err);
/* The same for the accounts of hosts; series is 0. */
bool view_each_account(struct view *view, struct view_day *day, const struct samples_query *query,
		       unsigned type, view_row_fn *fn, void *context, struct error *err);

/* Reading the day's file ended with err, which the watch's own reason takes the place of; a damaged
 * one is set aside. Always false. */
bool view_read_failed(struct view *view, struct view_day *day, struct error *err);
/* A row of the day turned out to be damaged, which err says: the file is renamed, its reader
 * closed. Not while rows are read. */
void view_set_aside(struct view *view, struct view_day *day, const struct error *err);

/* Calls fn for every counted stack of a row. False: damaged, or fn said so. */
bool view_each_pair(const struct view_row *row, packed_pair_fn *fn, void *context);
/* Calls fn with the string of every host that took part in a row whose series has no host. */
typedef void view_host_fn(void *context, uint32_t host);
void view_each_host(const struct view_row *row, view_host_fn *fn, void *context);
bool view_each_entry(const struct view_row *row, packed_account_fn *fn, void *context);

/* A thread's context, with what its process is where the query asks for that; "" for 0. In out, or
 * the dictionary's own. NULL: no memory. */
const char *view_context(struct view_day *day, const struct samples_query *query, uint32_t thread,
			 char out[CONTEXT_BYTES_MAX]);

/* ---- which series take part ---- */

/* Once for a day, whatever is asked of it then. */
bool view_choose_series(struct view *view, struct view_day *day, const struct samples_query *query,
			struct error *err);
/* What was chosen for one view holds for another one of the same query. */
void view_lend_series(const struct view *from, struct view *to);
static inline bool view_has_series(const struct view_day *day, uint32_t series)
{
	return series && series < day->mark.count[CATALOG_SERIES] && day->is_wanted[series];
}

#endif
