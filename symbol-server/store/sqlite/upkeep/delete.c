/* SPDX-License-Identifier: Apache-2.0 */
/* samples_delete(): everything into the files first, then row by row out of them, in transactions
 * of so many rows, between which folds and queries go on. A transaction takes samples, their times
 * and their part of the hosts' accounts together and makes the roll-ups of their hours void, so
 * that wherever it ends, every sum is right. Where roll-ups are what is left, they lose rows. */
#include "symbol-server/store/rules/answerable.h"
#include "symbol-server/store/sqlite/upkeep/delete.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "symbol-server/store/sqlite/upkeep/deleting.h"
#include "symbol-server/store/sqlite/upkeep/erase.h"
#include "symbol-server/store/sqlite/days/hours.h"
#include "symbol-server/store/sqlite/series_choice.h"

static const struct text deleted_reason = {"deleted", 7};

/* --- which --- */

bool deleting_is_series_wanted(struct deleting *deleting, uint32_t series)
{
	if (!series || series >= deleting->mark.count[CATALOG_SERIES])
		return false;
	return deleting->wanted[series];
}

bool deleting_is_thread_wanted(const struct deleting *deleting, uint32_t thread)
{
	const struct samples_query *query = deleting->query;
	char joined[CONTEXT_BYTES_MAX];
	const char *context;

	if (thread >= deleting->mark.count[CATALOG_STRINGS])
		return false;
	context = catalog_string(deleting->catalog, thread)->text;
	if (deleting->lifetimes)
		context = lifetimes_join(deleting->lifetimes, context, joined);
	return query->thread_wanted(query->context, context);
}

/* Series have their numbers for good, so answers stay true from slice to slice. */
bool deleting_make_room(struct deleting *deleting, struct error *err)
{
	uint32_t count = deleting->mark.count[CATALOG_SERIES], first = deleting->wanted_room;
	uint8_t *larger;

	if (count <= deleting->wanted_room)
		return true;
	larger = realloc(deleting->wanted, count);
	if (!larger)
		return error_set(err, ERROR_MEMORY, "no memory to delete samples");
	deleting->wanted = larger;
	if (!series_choose(deleting->catalog, &deleting->mark, first ? first : 1, deleting->query,
			   larger, NULL, err))
		return false;
	deleting->wanted_room = count;
	return true;
}

/* --- statements --- */

void deleting_bind_key(sqlite3_stmt *statement, int first, const struct deleting *deleting,
		       const struct row_key *key)
{
	sqlite3_bind_int64(statement, first, deleting->query->tenant);
	sqlite3_bind_int64(statement, first + 1, key->type);
	sqlite3_bind_int64(statement, first + 2, key->bucket);
	sqlite3_bind_int64(statement, first + 3, key->series);
	sqlite3_bind_int64(statement, first + 4, key->fold);
}

/* Runs sql with its numbers. */
static bool run(sqlite3 *db, const char *sql, const int64_t *numbers, int count, struct error *err)
{
	sqlite3_stmt *statement = database_prepare(db, sql, err);
	bool ok = statement;

	for (int i = 0; statement && i < count; i++)
		sqlite3_bind_int64(statement, i + 1, numbers[i]);
	if (ok)
		ok = database_run(statement, err);
	sqlite3_finalize(statement);
	return ok;
}

static bool has_table(sqlite3 *db, const char *name, bool *has, struct error *err)
{
	sqlite3_stmt *find = database_prepare(
		db, "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", err);
	bool ok;

	if (!find)
		return false;
	sqlite3_bind_text(find, 1, name, -1, SQLITE_STATIC);
	ok = database_next(find, has, err);
	sqlite3_finalize(find);
	return ok;
}

bool deleting_row(struct deleting *deleting, const char *table, const struct row_key *key,
		  struct error *err)
{
	int64_t numbers[] = {deleting->query->tenant, key->type, key->bucket, key->series,
			     key->fold};
	char sql[160];

	snprintf(sql, sizeof sql,
		 "DELETE FROM %s WHERE tenant = ? AND type = ? AND bucket = ? AND series = ? "
		 "AND fold = ?",
		 table);
	return run(deleting->writer.db, sql, numbers, 5, err);
}

/* --- roll-ups: void, so that they are made again from what is left --- */

/* Deletes from first below end, of every level, tenant and type: the key begins with these. */
static bool void_table(sqlite3 *db, const char *table, uint32_t first, uint32_t end,
		       struct error *err)
{
	char find_sql[200], delete_sql[200];
	int64_t key[5] = {-1, -1, -1, first, end};
	sqlite3_stmt *find;
	bool ok, has_row = true;

	snprintf(find_sql, sizeof find_sql,
		 "SELECT level, tenant, type FROM %s WHERE (level, tenant, type) > (?, ?, ?) "
		 "ORDER BY level, tenant, type LIMIT 1",
		 table);
	snprintf(delete_sql, sizeof delete_sql,
		 "DELETE FROM %s WHERE level = ? AND tenant = ? AND type = ? AND bucket >= ? AND "
		 "bucket < ?",
		 table);
	find = database_prepare(db, find_sql, err);
	ok = find;
	while (ok && has_row) {
		for (int i = 0; i < 3; i++)
			sqlite3_bind_int64(find, i + 1, key[i]);
		ok = database_next(find, &has_row, err);
		if (!ok || !has_row)
			break;
		for (int i = 0; i < 3; i++)
			key[i] = sqlite3_column_int64(find, i);
		sqlite3_reset(find);
		ok = run(db, delete_sql, key, 5, err);
	}
	sqlite3_finalize(find);
	return ok;
}

static bool void_rollups(sqlite3 *db, uint32_t first, uint32_t end, struct error *err)
{
	int64_t range[] = {first, end};

	return void_table(db, "rollups", first, end, err) &&
	       void_table(db, "rollup_accounts", first, end, err) &&
	       run(db, "UPDATE rollup_marks SET through = 0 WHERE bucket >= ? AND bucket < ?",
		   range, 2, err);
}

/* Accounts are rolled up by the hour: its parts are made anew together. */
static bool void_hours(struct deleting *deleting, struct error *err)
{
	for (uint32_t hour = 0; hour < HOURS_PER_DAY; hour++)
		if (deleting->hours[hour] &&
		    !void_rollups(deleting->writer.db, hour * 60, hour * 60 + 60, err))
			return false;
	return true;
}

/* --- a slice --- */

static bool delete_one(struct deleting *deleting, const struct row_key *key, sqlite3_stmt *row,
		       uint64_t *gone, struct error *err)
{
	bool ok;

	*gone = (uint64_t)sqlite3_column_int64(row, 3);
	if (deleting->query->thread_wanted)
		ok = deleting_threads(deleting, key, sqlite3_column_blob(row, 4),
				      (size_t)sqlite3_column_bytes(row, 4), gone, err) &&
		     (!*gone || deleting_threads_beside(deleting, key, err));
	else
		ok = deleting_row(deleting, "samples", key, err) &&
		     (!deleting->has_moments || deleting_row(deleting, "moments", key, err)) &&
		     (!deleting->has_spans || deleting_row(deleting, "spans", key, err));
	return ok;
}

/* The next row of the type after key. 1 there is one, 0 there is none, -1 an error. */
static int next_row(struct deleting *deleting, sqlite3_stmt *find, struct row_key *key,
		    struct error *err)
{
	int code;

	sqlite3_reset(find);
	DATABASE_BIND(find, 1, deleting->query->tenant, key->type, deleting->until, key->bucket,
		      key->series, key->fold);
	code = sqlite3_step(find);
	if (code == SQLITE_DONE)
		return 0;
	if (code != SQLITE_ROW) {
		database_error(deleting->writer.db, "read", err);
		return -1;
	}
	key->bucket = (uint32_t)sqlite3_column_int64(find, 0);
	key->series = (uint32_t)sqlite3_column_int64(find, 1);
	key->fold = sqlite3_column_int64(find, 2);
	return 1;
}

/* *is_done: no rows are left after this slice. */
static bool delete_rows(struct deleting *deleting, bool *is_done, struct error *err)
{
	sqlite3_stmt *find = database_prepare(
		deleting->writer.db,
		"SELECT bucket, series, fold, samples, data FROM samples WHERE tenant = ? AND "
		"type = ? AND bucket < ? AND (bucket, series, fold) > (?, ?, ?) "
		"ORDER BY bucket, series, fold LIMIT 1",
		err);
	struct row_key *key = &deleting->next;
	size_t bytes = 0;
	int found = find ? 1 : -1;

	for (unsigned rows = 0; found > 0 && rows < SLICE_ROWS && bytes < SLICE_BYTES;) {
		uint64_t gone = 0;

		found = next_row(deleting, find, key, err);
		if (found <= 0)
			break;
		rows++;
		if (!deleting_is_series_wanted(deleting, key->series))
			continue;
		bytes += deleting->query->thread_wanted ? (size_t)sqlite3_column_bytes(find, 4) : 0;
		if (!delete_one(deleting, key, find, &gone, err))
			found = -1;
		else if (gone)
			deleting_take(deleting, key, gone);
	}
	sqlite3_finalize(find);
	*is_done = found == 0;
	return found >= 0;
}

static struct day *find_file(struct sqlite_samples *store, uint32_t number)
{
	struct day *day;

	store_lock_days(store);
	day = store_find_day(store, number);
	if (day && !day->has_file)
		day = NULL;
	store_unlock_days(store);
	return day;
}

/* The day's dictionary with the reason in it. False without an error: the day is gone. */
static bool take_day(struct deleting *deleting, struct day **day, struct error *err)
{
	struct sqlite_samples *store = deleting->store;

	*day = find_file(store, deleting->day);
	if (!*day)
		return true;
	if (!store_open_day(store, deleting->day, true, err))
		return false;
	pthread_mutex_lock(&store->lock);
	deleting->catalog = catalog_take((*day)->catalog);
	deleting->reason = catalog_add_string(deleting->catalog, deleted_reason);
	deleting->from_mark = deleting->catalog->persisted;
	deleting->mark = catalog_mark(deleting->catalog);
	pthread_mutex_unlock(&store->lock);
	store_leave_day(store, *day); /* it does not go while the files are locked */
	*day = find_file(store, deleting->day);
	return true;
}

/* What the dictionary got goes with the rows that refer to it, as a fold does it. */
static bool commit(struct deleting *deleting, struct day *day, struct error *err)
{
	struct sqlite_samples *store = deleting->store;
	struct catalog *catalog = deleting->catalog;

	if (!deleting->taken_count)
		return true;
	deleting->writer.fold = (int64_t)deleting->folded;
	if (!deleting_change_accounts(deleting, err) ||
	    (deleting->has_rollups && !deleting_has_sums(deleting) && !void_hours(deleting, err)) ||
	    !day_writer_definitions(&deleting->writer, catalog, &deleting->from_mark,
				    &deleting->mark, err) ||
	    !erase_is_due(deleting->writer.db, err) ||
	    !day_writer_commit(&deleting->writer, deleting->day, err))
		return false;
	store_lock_all(store);
	day->names_due = true;
	catalog->persisted = deleting->mark;
	for (unsigned i = 0; i < CATALOG_KINDS; i++)
		if (catalog->logged.count[i] < deleting->mark.count[i])
			catalog->logged.count[i] = deleting->mark.count[i];
	day->rolled_through = 0; /* the fold thread looks at it again */
	store_unlock_all(store);
	return true;
}

static bool join(struct deleting *deleting, struct error *err)
{
	if (!deleting->query->thread_wanted || !deleting->query->wants_process)
		return true;
	deleting->lifetimes = catalog_lifetimes_new(deleting->catalog,
						    deleting->mark.count[CATALOG_STRINGS]);
	return deleting->lifetimes || error_set(err, ERROR_MEMORY, "no memory to delete samples");
}

static bool delete_slice(struct deleting *deleting, bool *is_done, struct error *err)
{
	uint64_t before = deleting->deleted->samples;
	struct day *day = NULL;
	char path[4096];
	bool ok;

	*is_done = true;
	deleting->taken_count = 0;
	memset(deleting->hours, 0, sizeof deleting->hours);
	if (!take_day(deleting, &day, err))
		return false;
	if (!day) { /* or its file was damaged, and nothing is left */
		catalog_release(deleting->catalog);
		deleting->catalog = NULL;
		return true;
	}
	day_file_path(deleting->store->directory, deleting->day, path, sizeof path);
	ok = deleting_make_room(deleting, err) && join(deleting, err) &&
	     day_writer_begin(&deleting->writer, path, 0, &deleting->folded, err);
	if (ok) {
		sqlite3 *db = deleting->writer.db;

		ok = has_table(db, "rollup_marks", &deleting->has_rollups, err) &&
		     has_table(db, "moments", &deleting->has_moments, err) &&
		     has_table(db, "spans", &deleting->has_spans, err) &&
		     delete_rows(deleting, is_done, err) &&
		     (!deleting->taken_count || deleting_has_sums(deleting) ||
		      hours_void(deleting->store, deleting->day, err)) &&
		     commit(deleting, day, err);
		day_writer_close(&deleting->writer);
	}
	if (!ok)
		deleting->deleted->samples = before;
	if (!ok && err->kind == ERROR_FORMAT)
		store_set_aside(deleting->store, day, store_set_asides(deleting->store, day),
				err->message);
	lifetimes_free(deleting->lifetimes);
	deleting->lifetimes = NULL;
	catalog_release(deleting->catalog);
	deleting->catalog = NULL;
	return ok;
}

/* --- a day --- */

static bool read_marks(struct deleting *deleting, struct error *err)
{
	sqlite3_stmt *find;
	sqlite3 *db;
	char path[4096];
	int code = SQLITE_DONE;

	day_file_path(deleting->store->directory, deleting->day, path, sizeof path);
	db = day_file_create(path, err);
	find = db ? database_prepare(db, "SELECT bucket, through FROM rollup_marks", err) : NULL;
	while (find && (code = sqlite3_step(find)) == SQLITE_ROW) {
		uint64_t bucket = (uint64_t)sqlite3_column_int64(find, 0) / ROLLUP_MINUTES;

		if (bucket < ROLLUPS_PER_DAY)
			deleting->rolled[bucket] = (uint64_t)sqlite3_column_int64(find, 1);
	}
	if (find && code != SQLITE_DONE)
		database_error(db, "read", err);
	sqlite3_finalize(find);
	database_close(db);
	return find && code == SQLITE_DONE;
}

/* Minutes of the day, widened to what it has. */
static void widen(struct deleting *deleting)
{
	int64_t start = deleting->day * day_ms, minute = SAMPLES_BUCKET_MS;
	uint32_t step = deleting->hours_kept.are_alone ? 60
			: deleting->is_reduced         ? ROLLUP_MINUTES
						       : 1;
	struct samples_deleted *deleted = deleting->deleted;

	deleting->from = deleting->from_ms > start
				 ? (uint32_t)((deleting->from_ms - start) / minute)
				 : 0;
	deleting->until = deleting->until_ms < start + day_ms
				  ? (uint32_t)((deleting->until_ms - start) / minute)
				  : MINUTES_PER_DAY;
	deleting->from = deleting->from / step * step;
	deleting->until = (deleting->until + step - 1) / step * step;
	if (start + deleting->from * minute < deleted->from_ms)
		deleted->from_ms = start + deleting->from * minute;
	if (start + deleting->until * minute > deleted->until_ms)
		deleted->until_ms = start + deleting->until * minute;
}

bool deleting_look(struct deleting *deleting, struct error *err)
{
	struct sqlite_samples *store = deleting->store;
	const struct day *day;
	bool has_file;

	store_lock_days(store);
	day = store_find_day(store, deleting->day);
	has_file = day && day->has_file;
	deleting->is_reduced = has_file && day->is_reduced;
	store_unlock_days(store);
	memset(deleting->rolled, 0, sizeof deleting->rolled);
	if (!hours_look(store, deleting->day, &deleting->hours_kept, err) ||
	    (has_file && deleting_has_sums(deleting) && !read_marks(deleting, err)))
		return false;
	widen(deleting);
	return true;
}

/* The fold thread may have taken the day's minutes meanwhile: then the day is begun again. */
static bool delete_type(struct deleting *deleting, uint32_t type, bool has_sums, struct error *err)
{
	bool is_done = false, ok = true;

	deleting->next = (struct row_key){.type = type, .bucket = deleting->from};
	while (ok && !is_done) {
		store_lock_files(deleting->store);
		ok = deleting_look(deleting, err);
		is_done = deleting_has_sums(deleting) != has_sums;
		if (ok && !is_done)
			ok = delete_slice(deleting, &is_done, err);
		store_unlock_files(deleting->store);
		poll(NULL, 0, PAUSE_MS);
	}
	return ok;
}

static void forget_series(struct deleting *deleting)
{
	free(deleting->wanted);
	deleting->wanted = NULL;
	deleting->wanted_room = 0;
}

static bool check_threads(const struct deleting *deleting, struct error *err)
{
	return !deleting->query->thread_wanted || !deleting_has_sums(deleting) ||
	       error_set(err, ERROR_OPTION,
			 "a part of the time range is kept as sums of ten minutes or hours, in "
			 "which all threads of a process are one: begin the range later, or leave "
			 "'thread' out");
}

static bool look(struct deleting *deleting, uint32_t day, struct error *err)
{
	bool ok;

	deleting->day = day;
	store_lock_files(deleting->store);
	ok = deleting_look(deleting, err);
	store_unlock_files(deleting->store);
	return ok && check_threads(deleting, err);
}

static bool delete_minutes(struct deleting *deleting, bool has_sums, struct error *err)
{
	bool ok = true;

	forget_series(deleting);
	for (unsigned type = 0; ok && profile_type_name(type); type++)
		if (deleting->type < 0 || type == (unsigned)deleting->type)
			ok = delete_type(deleting, type, has_sums, err);
	return ok;
}

static bool delete_whole_day(struct deleting *deleting, uint32_t day, struct error *err)
{
	bool has_sums, ok;

	do {
		if (!look(deleting, day, err))
			return false;
		has_sums = deleting_has_sums(deleting);
		forget_series(deleting);
		ok = !deleting->hours_kept.are_alone || deleting_sums(deleting, true, err);
		forget_series(deleting);
		ok = ok && (!has_sums || deleting_sums(deleting, false, err)) &&
		     delete_minutes(deleting, has_sums, err);
	} while (ok && deleting_has_sums(deleting) != has_sums);
	return ok;
}

static void count_deletion(struct sqlite_samples *store, int change)
{
	store_lock_days(store);
	store->days.deletions += (unsigned)change;
	store_unlock_days(store);
}

/* Its series keep their numbers from slice to slice: the file is written anew afterwards. */
static bool delete_day(struct deleting *deleting, uint32_t day, struct error *err)
{
	bool ok;

	count_deletion(deleting->store, 1);
	ok = delete_whole_day(deleting, day, err);
	count_deletion(deleting->store, -1);
	return ok;
}

/* --- all of it --- */

static void take_earlier(const struct deleting *deleting, const struct day *file, int64_t after,
			 int64_t *found)
{
	int64_t day = file->day, end = file->is_month ? month_end(file->day) : day + 1;

	if (day <= after)
		day = after + 1;
	if (day < deleting->from_ms / day_ms)
		day = deleting->from_ms / day_ms;
	if (file->has_file && day < end && day * day_ms < deleting->until_ms && day < *found)
		*found = day;
}

/* The next day in range after the last one: days may come and go meanwhile. */
static bool next_day(struct deleting *deleting, int64_t after, uint32_t *number)
{
	struct sqlite_samples *store = deleting->store;
	int64_t found = INT64_MAX;
	const struct day *file;

	store_lock_days(store);
	for (unsigned i = 0; (file = store_day_at(store, i)); i++)
		take_earlier(deleting, file, after, &found);
	store_unlock_days(store);
	*number = (uint32_t)found;
	return found < INT64_MAX;
}

static bool start(struct deleting *deleting, const struct samples_query *query, struct error *err)
{
	int64_t from = query->from_ms < 0 ? 0 : query->from_ms;
	int64_t until = query->until_ms < from ? from : query->until_ms;

	deleting->query = query;
	if (!answerable_any_type(query, &deleting->type, err))
		return false;
	if (until > (int64_t)UINT32_MAX * 1000 * 1000)
		return error_set(err, ERROR_OPTION, "the end of the time range is beyond all time");
	deleting->from_ms = from / SAMPLES_BUCKET_MS * SAMPLES_BUCKET_MS;
	deleting->until_ms = (until + SAMPLES_BUCKET_MS - 1) / SAMPLES_BUCKET_MS *
			     SAMPLES_BUCKET_MS;
	*deleting->deleted = (struct samples_deleted){.from_ms = deleting->from_ms,
						      .until_ms = deleting->until_ms};
	buffer_init(&deleting->data, ROW_BYTES_MAX);
	return true;
}

static bool each_day(struct deleting *deleting,
		     bool (*fn)(struct deleting *deleting, uint32_t day, struct error *err),
		     struct error *err)
{
	uint32_t day = 0;
	bool ok = true;

	for (int64_t after = -1; ok && next_day(deleting, after, &day); after = day)
		ok = fn(deleting, day, err);
	return ok;
}

/* On a full disk nothing can be folded before something went: what is in the files, first. The fold
 * thread writes these anew then, and tries again. */
static bool fold(struct deleting *deleting, struct samples_store *base, struct error *err)
{
	if (samples_fold(base, err))
		return true;
	if (!error_is_no_room(err))
		return false;
	*err = (struct error){0};
	if (!each_day(deleting, look, err) || !each_day(deleting, delete_day, err))
		return false;
	return samples_fold(base, NULL) || samples_fold(base, err);
}

static void forget_recent(struct sqlite_samples *store)
{
	pthread_mutex_lock(&store->lock);
	recent_forget(&store->recent, store_now_ms());
	pthread_mutex_unlock(&store->lock);
}

bool sqlite_samples_delete(struct samples_store *base, const struct samples_query *query,
			   struct samples_deleted *deleted, struct error *err)
{
	struct deleting *deleting = calloc(1, sizeof *deleting);
	struct error why = {0};
	bool ok = false;

	*deleted = (struct samples_deleted){0};
	if (!deleting)
		return error_set(err, ERROR_MEMORY, "no memory to delete samples");
	deleting->store = sqlite_samples_of(base);
	deleting->deleted = deleted;
	/* What cannot be done is found before anything is. */
	if (start(deleting, query, &why) && fold(deleting, base, &why) &&
	    each_day(deleting, look, &why)) {
		ok = each_day(deleting, delete_day, &why);
		log_info("samples deleted", "samples=%llu%s%s%s",
			 (unsigned long long)deleted->samples, ok ? "" : " and then=\"",
			 ok ? "" : why.message, ok ? "" : "\"");
		forget_recent(deleting->store);
		if (deleted->samples)
			samples_fold(base, NULL); /* its turn writes the files anew */
	}
	if (!ok && err)
		*err = why;
	buffer_release(&deleting->data);
	free(deleting->wanted);
	free(deleting->kept);
	free(deleting);
	return ok;
}
