/* SPDX-License-Identifier: Apache-2.0 */
/* hours-YYYYMM.db: one hour's sums of a month of days, with a dictionary of its own, so that a
 * month is read with one. Made of the ten-minute roll-ups of the days' files; has the tables of
 * those files. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_DAYS_HOURS_H
#define SYMBOL_SERVER_STORE_SQLITE_DAYS_HOURS_H

#include "symbol-server/store/sqlite/samples_store.h"

enum {
	HOURS_PER_DAY = 24,
	DAYS_PER_MONTH_MAX = 31,
	HOURS_MAX = DAYS_PER_MONTH_MAX * HOURS_PER_DAY
};

/* First day of the month that has the day, and of the next one. */
uint32_t month_first(uint32_t day);
uint32_t month_end(uint32_t day);
/* "hours-YYYYMM.db" → its first day. */
bool month_file_parse(const char *name, uint32_t *first);
void month_file_path(const char *directory, uint32_t first, char *path, size_t room);

/* Under the set's lock. NULL: there is none (and no room for one, when make is set). */
struct day *store_find_month(struct sqlite_samples *store, uint32_t day, bool make);

/* The hours of one day that are over and not in their month's file yet, as many as until_ms allows.
 * The files are locked. *is_done: nothing is left to do now. */
bool hours_of_day(struct sqlite_samples *store, struct day *day, int64_t now_ms, int64_t until_ms,
		  bool *is_done, struct error *err);

/* What the month has of a day is not asked for any more, and made again of the day's file. Before
 * the day's samples change otherwise than by a fold. The files are locked. */
bool hours_void(struct sqlite_samples *store, uint32_t day, struct error *err);

/* What the month has of one day. */
struct hours_kept {
	uint64_t through[HOURS_PER_DAY]; /* folds; 0: nothing of that hour */
	/* The day's file, if there is one, cannot make them again: it was begun after they were. */
	bool are_alone;
};
/* The files are locked. */
bool hours_look(struct sqlite_samples *store, uint32_t day, struct hours_kept *kept,
		struct error *err);

#endif
