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
#include "symbol-server/store/sqlite/upkeep/deletion.h"
#include "symbol-server/store/sqlite/upkeep/erase.h"
#include "symbol-server/store/sqlite/days/hours.h"
#include "symbol-server/store/sqlite/series_choice.h"

static const struct text deleted_reason = {"deleted", 7};

/* --- which --- */

bool deletion_is_series_wanted(struct deletion *deletion, uint32_t series)
{
	if (!series || series >= deletion->mark.count[CATALOG_SERIES])
		return false;
	return deletion->wanted[series];
}

bool deletion_is_thread_wanted(const struct deletion *deletion, uint32_t thread)
{
	const struct samples_query *query = deletion->query;
	char joined[CONTEXT_BYTES_MAX];
	const char *context;

	if (thread >= deletion->mark.count[CATALOG_STRINGS])
		return false;
	context = catalog_string(deletion->catalog, thread)->text;
	if (deletion->lifetimes)
		context = lifetimes_join(deletion->lifetimes, context, joined);
	return query->thread_wanted(query->context, context);
}

/* Series have their numbers for good, so answers stay true from slice to slice. */
bool deletion_make_room(struct deletion *deletion, struct error *err)
{
	uint32_t count = deletion->mark.count[CATALOG_SERIES], first = deletion->wanted_room;
	uint8_t *larger;

	if (count <= deletion->wanted_room)
		return true;
	larger = realloc(deletion->wanted, count);
	if (!larger)
		return error_set(err, ERROR_MEMORY, "no memory to delete samples");
	deletion->wanted = larger;
	if (!series_choose(deletion->catalog, &deletion->mark, first ? first : 1, deletion->query,
			   larger, NULL, err))
		return false;
	deletion->wanted_room = count;
	return true;
}

/* --- statements --- */

void deletion_bind_key(sqlite3_stmt *statement, int first, const struct deletion *deletion,
		       const struct row_key *key)
{
	DATABASE_BIND(statement, first, deletion->query->tenant, key->type, key->bucket,
		      key->series, key->fold);
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

bool deletion_row(struct deletion *deletion, const char *table, const struct row_key *key,
		  struct error *err)
{
	int64_t numbers[] = {deletion->query->tenant, key->type, key->bucket, key->series,
			     key->fold};
	char sql[160];

	snprintf(sql, sizeof sql,
		 "DELETE FROM %s WHERE tenant = ? AND type = ? AND bucket = ? AND series = ? "
		 "AND fold = ?",
		 table);
	return database_exec_with(deletion->writer.db, sql, numbers, 5, err);
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
		ok = database_exec_with(db, delete_sql, key, 5, err);
	}
	sqlite3_finalize(find);
	return ok;
}

static bool void_rollups(sqlite3 *db, uint32_t first, uint32_t end, struct error *err)
{
	int64_t range[] = {first, end};

	return void_table(db, "rollups", first, end, err) &&
	       void_table(db, "rollup_accounts", first, end, err) &&
	       database_exec_with(
		       db, "UPDATE rollup_marks SET through = 0 WHERE bucket >= ? AND bucket < ?",
		       range, 2, err);
}

/* Accounts are rolled up by the hour: its parts are made anew together. */
static bool void_hours(struct deletion *deletion, struct error *err)
{
	for (uint32_t hour = 0; hour < HOURS_PER_DAY; hour++)
		if (deletion->hours[hour] &&
		    !void_rollups(deletion->writer.db, hour * 60, hour * 60 + 60, err))
			return false;
	return true;
}

/* --- a slice --- */

static bool delete_one(struct deletion *deletion, const struct row_key *key, sqlite3_stmt *row,
		       uint64_t *gone, struct error *err)
{
	bool ok;

	*gone = (uint64_t)sqlite3_column_int64(row, 3);
	if (deletion->query->thread_wanted)
		ok = deletion_threads(deletion, key, sqlite3_column_blob(row, 4),
				      (size_t)sqlite3_column_bytes(row, 4), gone, err) &&
		     (!*gone || deletion_threads_beside(deletion, key, err));
	else
		ok = deletion_row(deletion, "samples", key, err) &&
		     (!deletion->has_moments || deletion_row(deletion, "moments", key, err)) &&
		     (!deletion->has_spans || deletion_row(deletion, "spans", key, err));
	return ok;
}

/* The next row of the type after key. 1 there is one, 0 there is none, -1 an error. */
static int next_row(struct deletion *deletion, sqlite3_stmt *find, struct row_key *key,
		    struct error *err)
{
	int code;

	sqlite3_reset(find);
	DATABASE_BIND(find, 1, deletion->query->tenant, key->type, deletion->until, key->bucket,
		      key->series, key->fold);
	code = sqlite3_step(find);
	if (code == SQLITE_DONE)
		return 0;
	if (code != SQLITE_ROW) {
		database_error(deletion->writer.db, "read", err);
		return -1;
	}
	key->bucket = (uint32_t)sqlite3_column_int64(find, 0);
	key->series = (uint32_t)sqlite3_column_int64(find, 1);
	key->fold = sqlite3_column_int64(find, 2);
	return 1;
}

/* *is_done: no rows are left after this slice. */
static bool delete_rows(struct deletion *deletion, bool *is_done, struct error *err)
{
	sqlite3_stmt *find = database_prepare(
		deletion->writer.db,
		"SELECT bucket, series, fold, samples, data FROM samples WHERE tenant = ? AND "
		"type = ? AND bucket < ? AND (bucket, series, fold) > (?, ?, ?) "
		"ORDER BY bucket, series, fold LIMIT 1",
		err);
	struct row_key *key = &deletion->next;
	size_t bytes = 0;
	int found = find ? 1 : -1;

	for (unsigned rows = 0; found > 0 && rows < SLICE_ROWS && bytes < SLICE_BYTES;) {
		uint64_t gone = 0;

		found = next_row(deletion, find, key, err);
		if (found <= 0)
			break;
		rows++;
		if (!deletion_is_series_wanted(deletion, key->series))
			continue;
		bytes += deletion->query->thread_wanted ? (size_t)sqlite3_column_bytes(find, 4) : 0;
		if (!delete_one(deletion, key, find, &gone, err))
			found = -1;
		else if (gone)
			deletion_take(deletion, key, gone);
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
static bool take_day(struct deletion *deletion, struct day **day, struct error *err)
{
	struct sqlite_samples *store = deletion->store;

	*day = find_file(store, deletion->day);
	if (!*day)
		return true;
	if (!store_open_day(store, deletion->day, true, err))
		return false;
	pthread_mutex_lock(&store->lock);
	deletion->catalog = catalog_take((*day)->catalog);
	deletion->reason = catalog_add_string(deletion->catalog, deleted_reason);
	deletion->from_mark = deletion->catalog->persisted;
	deletion->mark = catalog_mark(deletion->catalog);
	pthread_mutex_unlock(&store->lock);
	store_leave_day(store, *day); /* it does not go while the files are locked */
	*day = find_file(store, deletion->day);
	return true;
}

/* What the dictionary got goes with the rows that refer to it, as a fold does it. */
static bool commit(struct deletion *deletion, struct day *day, struct error *err)
{
	struct sqlite_samples *store = deletion->store;
	struct catalog *catalog = deletion->catalog;

	if (!deletion->taken_count)
		return true;
	deletion->writer.fold = (int64_t)deletion->folded;
	if (!deletion_change_accounts(deletion, err) ||
	    (deletion->has_rollups && !deletion_has_sums(deletion) && !void_hours(deletion, err)) ||
	    !day_writer_definitions(&deletion->writer, catalog, &deletion->from_mark,
				    &deletion->mark, err) ||
	    !erase_is_due(deletion->writer.db, err) ||
	    !day_writer_commit(&deletion->writer, deletion->day, err))
		return false;
	store_lock_all(store);
	day->names_due = true;
	catalog->persisted = deletion->mark;
	for (unsigned i = 0; i < CATALOG_KINDS; i++)
		if (catalog->logged.count[i] < deletion->mark.count[i])
			catalog->logged.count[i] = deletion->mark.count[i];
	day->rolled_through = 0; /* the fold thread looks at it again */
	store_unlock_all(store);
	return true;
}

static bool join(struct deletion *deletion, struct error *err)
{
	if (!deletion->query->thread_wanted || !deletion->query->wants_process)
		return true;
	deletion->lifetimes = catalog_lifetimes_new(deletion->catalog,
						    deletion->mark.count[CATALOG_STRINGS]);
	return deletion->lifetimes || error_set(err, ERROR_MEMORY, "no memory to delete samples");
}

static bool delete_slice(struct deletion *deletion, bool *is_done, struct error *err)
{
	uint64_t before = deletion->deleted->samples;
	struct day *day = NULL;
	char path[4096];
	bool ok;

	*is_done = true;
	deletion->taken_count = 0;
	memset(deletion->hours, 0, sizeof deletion->hours);
	if (!take_day(deletion, &day, err))
		return false;
	if (!day) { /* or its file was damaged, and nothing is left */
		catalog_release(deletion->catalog);
		deletion->catalog = NULL;
		return true;
	}
	day_file_path(deletion->store->directory, deletion->day, path, sizeof path);
	ok = deletion_make_room(deletion, err) && join(deletion, err) &&
	     day_writer_begin(&deletion->writer, path, 0, &deletion->folded, err);
	if (ok) {
		sqlite3 *db = deletion->writer.db;

		ok = has_table(db, "rollup_marks", &deletion->has_rollups, err) &&
		     has_table(db, "moments", &deletion->has_moments, err) &&
		     has_table(db, "spans", &deletion->has_spans, err) &&
		     delete_rows(deletion, is_done, err) &&
		     (!deletion->taken_count || deletion_has_sums(deletion) ||
		      hours_void(deletion->store, deletion->day, err)) &&
		     commit(deletion, day, err);
		day_writer_close(&deletion->writer);
	}
	if (!ok)
		deletion->deleted->samples = before;
	if (!ok && err->kind == ERROR_FORMAT)
		store_set_aside(deletion->store, day, store_set_asides(deletion->store, day),
				err->message);
	lifetimes_free(deletion->lifetimes);
	deletion->lifetimes = NULL;
	catalog_release(deletion->catalog);
	deletion->catalog = NULL;
	return ok;
}

/* --- a day --- */

static bool read_marks(struct deletion *deletion, struct error *err)
{
	sqlite3_stmt *find;
	sqlite3 *db;
	char path[4096];
	bool ok;

	day_file_path(deletion->store->directory, deletion->day, path, sizeof path);
	db = day_file_create(path, err);
	find = db ? database_prepare(db, "SELECT bucket, through FROM rollup_marks", err) : NULL;
	ok = find;
	while (database_row(find, &ok, err)) {
		uint64_t bucket = (uint64_t)sqlite3_column_int64(find, 0) / ROLLUP_MINUTES;

		if (bucket < ROLLUPS_PER_DAY)
			deletion->rolled[bucket] = (uint64_t)sqlite3_column_int64(find, 1);
	}
	sqlite3_finalize(find);
	database_close(db);
	return ok;
}

/* Minutes of the day, widened to what it has. */
static void widen(struct deletion *deletion)
{
	int64_t start = deletion->day * day_ms, minute = SAMPLES_BUCKET_MS;
	uint32_t step = deletion->hours_kept.are_alone ? 60
			: deletion->is_reduced         ? ROLLUP_MINUTES
						       : 1;
	struct samples_deleted *deleted = deletion->deleted;

	deletion->from = deletion->from_ms > start
				 ? (uint32_t)((deletion->from_ms - start) / minute)
				 : 0;
	deletion->until = deletion->until_ms < start + day_ms
				  ? (uint32_t)((deletion->until_ms - start) / minute)
				  : MINUTES_PER_DAY;
	deletion->from = deletion->from / step * step;
	deletion->until = (deletion->until + step - 1) / step * step;
	if (start + deletion->from * minute < deleted->from_ms)
		deleted->from_ms = start + deletion->from * minute;
	if (start + deletion->until * minute > deleted->until_ms)
		deleted->until_ms = start + deletion->until * minute;
}

bool deletion_look(struct deletion *deletion, struct error *err)
{
	struct sqlite_samples *store = deletion->store;
	const struct day *day;
	bool has_file;

	store_lock_days(store);
	day = store_find_day(store, deletion->day);
	has_file = day && day->has_file;
	deletion->is_reduced = has_file && day->is_reduced;
	store_unlock_days(store);
	memset(deletion->rolled, 0, sizeof deletion->rolled);
	if (!hours_look(store, deletion->day, &deletion->hours_kept, err) ||
	    (has_file && deletion_has_sums(deletion) && !read_marks(deletion, err)))
		return false;
	widen(deletion);
	return true;
}

/* The fold thread may have taken the day's minutes meanwhile: then the day is begun again. */
static bool delete_type(struct deletion *deletion, uint32_t type, bool has_sums, struct error *err)
{
	bool is_done = false, ok = true;

	deletion->next = (struct row_key){.type = type, .bucket = deletion->from};
	while (ok && !is_done) {
		store_lock_files(deletion->store);
		ok = deletion_look(deletion, err);
		is_done = deletion_has_sums(deletion) != has_sums;
		if (ok && !is_done)
			ok = delete_slice(deletion, &is_done, err);
		store_unlock_files(deletion->store);
		poll(NULL, 0, PAUSE_MS);
	}
	return ok;
}

static void forget_series(struct deletion *deletion)
{
	free(deletion->wanted);
	deletion->wanted = NULL;
	deletion->wanted_room = 0;
}

static bool check_threads(const struct deletion *deletion, struct error *err)
{
	return !deletion->query->thread_wanted || !deletion_has_sums(deletion) ||
	       error_set(err, ERROR_OPTION,
			 "a part of the time range is kept as sums of ten minutes or hours, in "
			 "which all threads of a process are one: begin the range later, or leave "
			 "'thread' out");
}

static bool look(struct deletion *deletion, uint32_t day, struct error *err)
{
	bool ok;

	deletion->day = day;
	store_lock_files(deletion->store);
	ok = deletion_look(deletion, err);
	store_unlock_files(deletion->store);
	return ok && check_threads(deletion, err);
}

static bool delete_minutes(struct deletion *deletion, bool has_sums, struct error *err)
{
	bool ok = true;

	forget_series(deletion);
	for (unsigned type = 0; ok && profile_type_name(type); type++)
		if (deletion->type < 0 || type == (unsigned)deletion->type)
			ok = delete_type(deletion, type, has_sums, err);
	return ok;
}

static bool delete_whole_day(struct deletion *deletion, uint32_t day, struct error *err)
{
	bool has_sums, ok;

	do {
		if (!look(deletion, day, err))
			return false;
		has_sums = deletion_has_sums(deletion);
		forget_series(deletion);
		ok = !deletion->hours_kept.are_alone || deletion_sums(deletion, true, err);
		forget_series(deletion);
		ok = ok && (!has_sums || deletion_sums(deletion, false, err)) &&
		     delete_minutes(deletion, has_sums, err);
	} while (ok && deletion_has_sums(deletion) != has_sums);
	return ok;
}

static void count_deletion(struct sqlite_samples *store, int change)
{
	store_lock_days(store);
	store->days.deletions += (unsigned)change;
	store_unlock_days(store);
}

/* Its series keep their numbers from slice to slice: the file is written anew afterwards. */
static bool delete_day(struct deletion *deletion, uint32_t day, struct error *err)
{
	bool ok;

	count_deletion(deletion->store, 1);
	ok = delete_whole_day(deletion, day, err);
	count_deletion(deletion->store, -1);
	return ok;
}

/* --- all of it --- */

static void take_earlier(const struct deletion *deletion, const struct day *file, int64_t after,
			 int64_t *found)
{
	int64_t day = file->day, end = file->is_month ? month_end(file->day) : day + 1;

	if (day <= after)
		day = after + 1;
	if (day < deletion->from_ms / day_ms)
		day = deletion->from_ms / day_ms;
	if (file->has_file && day < end && day * day_ms < deletion->until_ms && day < *found)
		*found = day;
}

/* The next day in range after the last one: days may come and go meanwhile. */
static bool next_day(struct deletion *deletion, int64_t after, uint32_t *number)
{
	struct sqlite_samples *store = deletion->store;
	int64_t found = INT64_MAX;
	const struct day *file;

	store_lock_days(store);
	for (unsigned i = 0; (file = store_day_at(store, i)); i++)
		take_earlier(deletion, file, after, &found);
	store_unlock_days(store);
	*number = (uint32_t)found;
	return found < INT64_MAX;
}

static bool start(struct deletion *deletion, const struct samples_query *query, struct error *err)
{
	int64_t from = query->from_ms < 0 ? 0 : query->from_ms;
	int64_t until = query->until_ms < from ? from : query->until_ms;

	deletion->query = query;
	if (!answerable_any_type(query, &deletion->type, err))
		return false;
	if (until > (int64_t)UINT32_MAX * 1000 * 1000)
		return error_set(err, ERROR_OPTION, "the end of the time range is beyond all time");
	deletion->from_ms = from / SAMPLES_BUCKET_MS * SAMPLES_BUCKET_MS;
	deletion->until_ms = (until + SAMPLES_BUCKET_MS - 1) / SAMPLES_BUCKET_MS *
			     SAMPLES_BUCKET_MS;
	*deletion->deleted = (struct samples_deleted){.from_ms = deletion->from_ms,
						      .until_ms = deletion->until_ms};
	buffer_init(&deletion->data, ROW_BYTES_MAX);
	return true;
}

static bool each_day(struct deletion *deletion,
		     bool (*fn)(struct deletion *deletion, uint32_t day, struct error *err),
		     struct error *err)
{
	uint32_t day = 0;
	bool ok = true;

	for (int64_t after = -1; ok && next_day(deletion, after, &day); after = day)
		ok = fn(deletion, day, err);
	return ok;
}

/* On a full disk nothing can be folded before something went: what is in the files, first. The fold
 * thread writes these anew then, and tries again. */
static bool fold(struct deletion *deletion, struct samples_store *base, struct error *err)
{
	if (samples_fold(base, err))
		return true;
	if (!error_is_no_room(err))
		return false;
	*err = (struct error){0};
	if (!each_day(deletion, look, err) || !each_day(deletion, delete_day, err))
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
	struct deletion *deletion = calloc(1, sizeof *deletion);
	struct error why = {0};
	bool ok = false;

	*deleted = (struct samples_deleted){0};
	if (!deletion)
		return error_set(err, ERROR_MEMORY, "no memory to delete samples");
	deletion->store = sqlite_samples_of(base);
	deletion->deleted = deleted;
	/* What cannot be done is found before anything is. */
	if (start(deletion, query, &why) && fold(deletion, base, &why) &&
	    each_day(deletion, look, &why)) {
		ok = each_day(deletion, delete_day, &why);
		log_info("samples deleted", "samples=%llu%s%s%s",
			 (unsigned long long)deleted->samples, ok ? "" : " and then=\"",
			 ok ? "" : why.message, ok ? "" : "\"");
		forget_recent(deletion->store);
		if (deleted->samples)
			samples_fold(base, NULL); /* its turn writes the files anew */
	}
	if (!ok && err)
		*err = why;
	buffer_release(&deletion->data);
	free(deletion->wanted);
	free(deletion->kept);
	free(deletion);
	return ok;
}
