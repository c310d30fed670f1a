/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/days/hours.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "symbol-server/store/sqlite/upkeep/erase.h"
#include "symbol-server/store/sqlite/rollups/rollup_pass.h"
#include "symbol-server/store/sqlite/days/day_tables.h"

enum {
	HOUR_MINUTES = 60,
	HOUR_MS = 3600000,
};

/* --- months --- */

static uint32_t day_of_month(uint32_t day, int months)
{
	time_t seconds = (time_t)day * 86400;
	struct tm tm;

	gmtime_r(&seconds, &tm);
	tm.tm_mday = 1;
	tm.tm_mon += months;
	return (uint32_t)(timegm(&tm) / 86400);
}

uint32_t month_first(uint32_t day)
{
	return day_of_month(day, 0);
}

uint32_t month_end(uint32_t day)
{
	return day_of_month(day, 1);
}

void month_file_path(const char *directory, uint32_t first, char *path, size_t room)
{
	time_t seconds = (time_t)first * 86400;
	struct tm tm;

	gmtime_r(&seconds, &tm);
	snprintf(path, room, "%s/hours-%04d%02d.db", directory, tm.tm_year + 1900, tm.tm_mon + 1);
}

bool month_file_parse(const char *name, uint32_t *first)
{
	struct tm tm = {.tm_mday = 1};
	char again[64];
	int end = 0;

	if (sscanf(name, "hours-%4d%2d.db%n", &tm.tm_year, &tm.tm_mon, &end) != 2 || !end ||
	    name[end])
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	*first = (uint32_t)(timegm(&tm) / 86400);
	month_file_path("", *first, again, sizeof again);
	return !strcmp(again + 1, name);
}

struct day *store_find_month(struct sqlite_samples *store, uint32_t day, bool make)
{
	uint32_t first = month_first(day);
	unsigned at = store->days.month_count;
	struct day *month;

	for (unsigned i = 0; i < store->days.month_count; i++)
		if (store->days.months[i]->day == first)
			return store->days.months[i];
	if (!make || at == MONTHS_MAX)
		return NULL;
	month = calloc(1, sizeof *month);
	if (!month)
		return NULL;
	month->day = first;
	month->is_month = true;
	for (; at && store->days.months[at - 1]->day > first; at--)
		store->days.months[at] = store->days.months[at - 1];
	store->days.months[at] = month;
	store->days.month_count++;
	return month;
}

/* --- what is to be done --- */

struct hours {
	struct sqlite_samples *store;
	struct day *day, *month;
	uint32_t start;                  /* minute of the month at which the day starts */
	uint64_t through[HOURS_PER_DAY]; /* as the month has them */
	uint64_t newest[HOURS_PER_DAY];  /* as the day has them */
	bool is_clean[HOURS_PER_DAY];    /* all of the hour is in the day's roll-ups */
	uint64_t folded;                 /* of the day's file */
	sqlite3 *from;
	struct day_writer writer;
	struct rollup_pass pass;
};

static bool read_marks(struct hours *hours, struct error *err)
{
	sqlite3_stmt *marks = database_prepare(
		hours->from, "SELECT bucket, through, newest FROM rollup_marks", err);
	bool ok = marks;

	for (unsigned i = 0; i < HOURS_PER_DAY; i++)
		hours->is_clean[i] = true;
	while (database_row(marks, &ok, err)) {
		uint64_t hour = (uint64_t)sqlite3_column_int64(marks, 0) / HOUR_MINUTES;
		uint64_t newest = (uint64_t)sqlite3_column_int64(marks, 2);

		if (hour >= HOURS_PER_DAY)
			continue;
		if ((uint64_t)sqlite3_column_int64(marks, 1) < newest)
			hours->is_clean[hour] = false;
		if (newest > hours->newest[hour])
			hours->newest[hour] = newest;
	}
	sqlite3_finalize(marks);
	return ok;
}

static bool read_month_marks(struct hours *hours, struct error *err)
{
	sqlite3_stmt *marks = database_prepare(hours->writer.db,
					       "SELECT bucket, through FROM rollup_marks "
					       "WHERE bucket >= ? AND bucket < ?",
					       err);
	bool ok = marks;

	if (ok)
		DATABASE_BIND(marks, 1, hours->start, hours->start + MINUTES_PER_DAY);
	while (database_row(marks, &ok, err)) {
		int64_t hour = (sqlite3_column_int64(marks, 0) - hours->start) / HOUR_MINUTES;

		hours->through[hour] = (uint64_t)sqlite3_column_int64(marks, 1);
	}
	sqlite3_finalize(marks);
	return ok;
}

/* --- rolling up --- */

static bool make_room(struct rollup_pass *pass, struct error *err)
{
	const uint32_t *count = pass->mark.count;
	uint32_t stacks = pass->to->items[CATALOG_STACKS].count + count[CATALOG_STACKS];

	pass->series_map = calloc(count[CATALOG_SERIES], sizeof *pass->series_map);
	pass->stack_map = calloc(count[CATALOG_STACKS], sizeof *pass->stack_map);
	pass->string_map = calloc(count[CATALOG_STRINGS], sizeof *pass->string_map);
	return rollup_pass_make_room(pass, stacks, err) &&
	       ((pass->series_map && pass->stack_map && pass->string_map) ||
		error_set(err, ERROR_MEMORY, "no memory to roll samples up"));
}

/* Both dictionaries, which only work needs. */
static bool start_rolling(struct hours *hours, struct error *err)
{
	struct rollup_pass *pass = &hours->pass;
	struct catalog *from;

	if (pass->from)
		return true;
	*pass = (struct rollup_pass){.store = hours->store,
				     .level = DAY_1H,
				     .account_level = DAY_1H,
				     .through = hours->folded};
	from = store_load_day(hours->store, hours->day, false, err);
	if (!from)
		return false;
	pass->from = from;
	pass->to = store_load_day(hours->store, hours->month, true, err);
	if (!pass->to)
		return false;
	pthread_mutex_lock(&hours->store->lock);
	pass->mark = catalog_mark(from);
	pthread_mutex_unlock(&hours->store->lock);
	return rollup_pass_prepare(pass, hours->from, DAY_10M, false, hours->writer.db, err) &&
	       make_room(pass, err);
}

static bool put_mark(struct hours *hours, unsigned hour, struct error *err)
{
	const int64_t mark[] = {hours->start + hour * HOUR_MINUTES, (int64_t)hours->folded,
				(int64_t)hours->folded};

	hours->through[hour] = hours->folded;
	return database_exec_with(hours->writer.db,
				  "INSERT OR REPLACE " INTO_ROLLUP_MARKS " VALUES (?, ?, ?)", mark,
				  3, err) &&
	       database_put_fact(hours->writer.db, "folded_through", (int64_t)hours->folded, err);
}

static bool roll_hour(struct hours *hours, unsigned hour, struct error *err)
{
	uint32_t first = hour * HOUR_MINUTES, end = first + HOUR_MINUTES;
	struct rollup_pass *pass = &hours->pass;

	if (!start_rolling(hours, err))
		return false;
	pass->above = hours->through[hour];
	return rollup_pass_samples(pass, first, end, hours->start + first, err) &&
	       rollup_pass_accounts(pass, first, end, hours->start + first, err) &&
	       put_mark(hours, hour, err) && rollup_pass_commit(pass, &hours->writer, err) &&
	       database_exec(hours->writer.db, "BEGIN IMMEDIATE", err);
}

static int64_t hour_end_ms(const struct hours *hours, unsigned hour)
{
	return hours->day->day * day_ms + (hour + 1) * (int64_t)HOUR_MS;
}

static bool roll_hours(struct hours *hours, int64_t now_ms, int64_t until_ms, bool *is_done,
		       struct error *err)
{
	bool is_whole = true;

	hours->day->hours_due_ms = INT64_MAX;
	for (unsigned i = 0; i < HOURS_PER_DAY; i++) {
		bool is_over = hour_end_ms(hours, i) + 2 * ROLLUP_CLOSED_MS <= now_ms;

		if (!is_over || !hours->is_clean[i]) {
			is_whole = false;
			if (!is_over && hours->day->hours_due_ms == INT64_MAX)
				hours->day->hours_due_ms = hour_end_ms(hours, i) +
							   2 * ROLLUP_CLOSED_MS;
			continue;
		}
		if (hours->newest[i] <= hours->through[i])
			continue;
		if (hours->store->is_closing || store_now_ms() > until_ms)
			return true;
		if (!roll_hour(hours, i, err))
			return false;
	}
	*is_done = true;
	if (!is_whole)
		return true;
	/* All of the day, and nothing else: its file needs no look for this. */
	for (unsigned i = 0; i < HOURS_PER_DAY; i++)
		if (hours->through[i] < hours->folded && !put_mark(hours, i, err))
			return false;
	return database_exec(hours->writer.db, "COMMIT", err);
}

static bool open_files(struct hours *hours, struct error *err)
{
	uint64_t unused;
	int64_t folded;
	char path[4096];

	store_day_path(hours->store, hours->day, path, sizeof path);
	hours->from = day_file_create(path, err);
	if (!hours->from || !database_exec(hours->from, "BEGIN", err) ||
	    !database_get_fact(hours->from, "folded_through", &folded, err))
		return false;
	hours->folded = (uint64_t)folded;
	store_day_path(hours->store, hours->month, path, sizeof path);
	return day_writer_begin(&hours->writer, path, 0, &unused, err);
}

static void close_files(struct hours *hours)
{
	struct catalog *from = (struct catalog *)hours->pass.from, *to = hours->pass.to;

	if (from)
		rollup_pass_release(&hours->pass);
	catalog_release(from);
	catalog_release(to);
	day_writer_close(&hours->writer);
	if (hours->from)
		sqlite3_exec(hours->from, "ROLLBACK", NULL, NULL, NULL);
	database_close(hours->from);
}

/* 'whole' in the day's file, once: whether the month's hours are made of it alone. They have more
 * than a file that was begun for late samples after its day had gone. */
enum { WHOLE = 1, NOT_WHOLE };

static bool note_whole(struct hours *hours, struct error *err)
{
	int64_t whole = 0;
	bool has_hours = false;

	if (!database_get_fact(hours->from, "whole", &whole, err) || whole)
		return whole;
	for (unsigned i = 0; i < HOURS_PER_DAY; i++)
		has_hours |= hours->through[i] != 0;
	return database_put_fact(hours->from, "whole", has_hours ? NOT_WHOLE : WHOLE, err) &&
	       database_exec(hours->from, "COMMIT", err) &&
	       database_exec(hours->from, "BEGIN", err);
}

bool hours_of_day(struct sqlite_samples *store, struct day *day, int64_t now_ms, int64_t until_ms,
		  bool *is_done, struct error *err)
{
	struct hours hours = {.store = store, .day = day};
	bool ok;

	*is_done = false;
	store_lock_days(store);
	hours.month = store_find_month(store, day->day, true);
	store_unlock_days(store);
	if (!hours.month)
		return error_set(err, ERROR_LIMIT, "more than %d months of samples", MONTHS_MAX);
	hours.start = (day->day - hours.month->day) * MINUTES_PER_DAY;
	ok = open_files(&hours, err);
	store_lock_days(store);
	hours.month->has_file |= hours.writer.db != NULL;
	store_unlock_days(store);
	ok = ok && read_marks(&hours, err) && read_month_marks(&hours, err) &&
	     note_whole(&hours, err) && roll_hours(&hours, now_ms, until_ms, is_done, err);
	if (ok && *is_done) {
		uint64_t least = UINT64_MAX;

		for (unsigned i = 0; i < HOURS_PER_DAY; i++)
			least = hours.through[i] < least ? hours.through[i] : least;
		day->hours_through = least;
		day->hours_seen = hours.folded;
	}
	if (ok && !*is_done)
		day->hours_due_ms = 0;
	close_files(&hours);
	return ok;
}

/* --- undoing --- */

bool hours_void(struct sqlite_samples *store, uint32_t number, struct error *err)
{
	static const char *const tables[] = {"rollups", "rollup_accounts", "rollup_marks"};
	struct day_writer writer = {0};
	struct day *month, *day;
	uint64_t unused;
	uint32_t start;
	char path[4096];
	bool ok;

	store_lock_days(store);
	month = store_find_month(store, number, false);
	day = store_find_day(store, number);
	if (day)
		day->rolled_through = day->hours_through = day->hours_seen = 0;
	store_unlock_days(store);
	if (!month || !month->has_file)
		return true;
	store_day_path(store, month, path, sizeof path);
	start = (number - month->day) * MINUTES_PER_DAY;
	ok = day_writer_begin(&writer, path, 0, &unused, err);
	for (unsigned i = 0; ok && i < 3; i++) {
		char sql[120];

		snprintf(sql, sizeof sql, "DELETE FROM %s WHERE bucket >= %u AND bucket < %u",
			 tables[i], start, start + MINUTES_PER_DAY);
		ok = database_exec(writer.db, sql, err);
	}
	ok = ok && erase_is_due(writer.db, err) && database_exec(writer.db, "COMMIT", err);
	day_writer_close(&writer);
	store_lock_days(store);
	month->names_due |= ok;
	store_unlock_days(store);
	return ok;
}

/* --- what there is --- */

static bool is_day_whole(struct sqlite_samples *store, const struct day *day, bool *is,
			 struct error *err)
{
	int64_t whole = 0;
	char path[4096];
	sqlite3 *db;
	bool ok;

	store_day_path(store, day, path, sizeof path);
	db = day_file_create(path, err);
	ok = db && database_get_fact(db, "whole", &whole, err);
	database_close(db);
	*is = whole == WHOLE;
	return ok;
}

bool hours_look(struct sqlite_samples *store, uint32_t number, struct hours_kept *kept,
		struct error *err)
{
	struct hours hours = {.store = store};
	struct day *month, *day;
	bool ok, has_any = false, is = false;
	char path[4096];

	*kept = (struct hours_kept){0};
	store_lock_days(store);
	month = store_find_month(store, number, false);
	day = store_find_day(store, number);
	store_unlock_days(store);
	if (!month || !month->has_file)
		return true;
	hours.start = (number - month->day) * MINUTES_PER_DAY;
	store_day_path(store, month, path, sizeof path);
	hours.writer.db = day_file_create(path, err);
	ok = hours.writer.db && read_month_marks(&hours, err);
	database_close(hours.writer.db);
	for (unsigned i = 0; i < HOURS_PER_DAY; i++)
		has_any |= (kept->through[i] = hours.through[i]) != 0;
	if (ok && has_any && day && day->has_file)
		ok = is_day_whole(store, day, &is, err);
	kept->are_alone = has_any && !is;
	return ok;
}
