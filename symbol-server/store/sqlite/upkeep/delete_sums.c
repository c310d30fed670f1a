/* SPDX-License-Identifier: Apache-2.0 */
/* Out of roll-ups that cannot be made again: rows of whole series go, the sums without the labels
 * of instances are made anew of what is left, fold by fold, and the hosts' accounts of the same
 * buckets change with them. A bucket of a type is in one transaction. */
#include "common/array.h"
#include "symbol-server/store/sqlite/upkeep/deleting.h"
#include "symbol-server/store/sqlite/upkeep/erase.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "symbol-server/store/sqlite/rollups/rolling.h"

enum { SLICE_READ = 1 << 16, SLICE_PAIRS = 1 << 20 };

struct sum_row {
	uint32_t series, host;
	int64_t fold;
	uint64_t samples;
};

struct summing {
	struct deleting *deleting;
	struct day *file;
	enum day_level level;
	uint32_t first, end; /* minutes of the file */
	struct rolling_target at;
	struct rolling rolling;
	sqlite3_stmt *next, *find, *remove, *remove_fleet, *get_account, *put_account;
	struct sum_row *rows; /* of one bucket, that go */
	size_t count, room;
	uint64_t read, gone; /* rows of this slice */
	bool is_changed, is_any_fold;
};

/* --- opening --- */

static bool prepare(struct summing *summing, sqlite3 *db, struct error *err)
{
#define OF_BUCKET "level = ? AND tenant = ? AND type = ? AND bucket = ?"
	summing->next = database_prepare(db,
					 "SELECT bucket FROM rollups WHERE level = ? AND "
					 "tenant = ? AND type = ? AND bucket >= ? AND bucket < ? "
					 "ORDER BY bucket LIMIT 1",
					 err);
	summing->find = database_prepare(
		db, "SELECT series, fold, samples FROM rollups WHERE " OF_BUCKET, err);
	summing->remove = database_prepare(
		db, "DELETE FROM rollups WHERE " OF_BUCKET " AND fold = ? AND series = ?", err);
	summing->remove_fleet =
		database_prepare(db, "DELETE FROM rollups WHERE " OF_BUCKET " AND fold = ?", err);
	summing->get_account = database_prepare(db,
						"SELECT fold, data FROM rollup_accounts "
						"WHERE " OF_BUCKET " AND fold > ? "
						"ORDER BY fold LIMIT 1",
						err);
	summing->put_account = database_prepare(
		db,
		"UPDATE rollup_accounts SET data = ?6 WHERE level = ?1 AND tenant = ?2 AND "
		"type = ?3 AND bucket = ?4 AND fold = ?5",
		err);
	return summing->next && summing->find && summing->remove && summing->remove_fleet &&
	       summing->get_account && summing->put_account &&
	       rolling_prepare(&summing->rolling, db, summing->level, true, db, err);
}

static void bind_bucket(sqlite3_stmt *statement, enum day_level level,
			const struct rolling_target *at)
{
	DATABASE_BIND(statement, 1, level, at->tenant, at->type, at->bucket);
}

/* --- rows of one bucket --- */

static bool keep_row(struct summing *summing, const struct sum_row *row)
{
	if (!ARRAY_GROW(summing->rows, summing->count, summing->room))
		return false;
	summing->rows[summing->count++] = *row;
	return true;
}

static bool find_rows(struct summing *summing, struct error *err)
{
	struct deleting *deleting = summing->deleting;
	bool ok = true;
	int code = SQLITE_DONE;

	summing->count = 0;
	bind_bucket(summing->find, summing->level, &summing->at);
	while (ok && (code = sqlite3_step(summing->find)) == SQLITE_ROW) {
		struct sum_row row = {.series = (uint32_t)sqlite3_column_int64(summing->find, 0),
				      .fold = sqlite3_column_int64(summing->find, 1),
				      .samples = (uint64_t)sqlite3_column_int64(summing->find, 2)};

		summing->read++;
		if (!deleting_is_series_wanted(deleting, row.series))
			continue;
		row.host = catalog_series(deleting->catalog, row.series)->host;
		ok = keep_row(summing, &row) ||
		     error_set(err, ERROR_MEMORY, "no memory to delete samples");
	}
	if (ok && code != SQLITE_DONE)
		ok = database_error(deleting->writer.db, "read", err);
	sqlite3_reset(summing->find);
	return ok;
}

/* What the month has of the day is counted there. */
static bool counts(const struct summing *summing, const struct sum_row *row)
{
	const struct hours_kept *kept = &summing->deleting->hours_kept;

	return summing->level == DAY_1H || !kept->are_alone ||
	       (uint64_t)row->fold > kept->through[summing->at.bucket / 60];
}

static bool remove_rows(struct summing *summing, struct error *err)
{
	bool ok = true;

	bind_bucket(summing->remove, summing->level, &summing->at);
	for (size_t i = 0; ok && i < summing->count; i++) {
		const struct sum_row *row = &summing->rows[i];

		DATABASE_BIND(summing->remove, 5, row->fold, row->series);
		ok = database_run(summing->remove, err);
		summing->deleting->deleted->samples += counts(summing, row) ? row->samples : 0;
	}
	return ok;
}

static int compare_rows(const void *a, const void *b)
{
	const struct sum_row *x = a, *y = b;

	if (x->fold != y->fold)
		return x->fold < y->fold ? -1 : 1;
	return (x->host > y->host) - (x->host < y->host);
}

/* Rows sorted by fold. */
static bool remake_fleet(struct summing *summing, struct error *err)
{
	struct rolling *rolling = &summing->rolling;
	uint32_t bucket = summing->at.bucket;
	bool ok = true;

	bind_bucket(summing->remove_fleet, summing->level + 1, &summing->at);
	for (size_t i = 0; ok && i < summing->count; i++) {
		int64_t fold = summing->rows[i].fold;

		if (i && summing->rows[i - 1].fold == fold)
			continue;
		rolling->above = rolling->through = (uint64_t)fold;
		sqlite3_bind_int64(summing->remove_fleet, 5, fold);
		ok = database_run(summing->remove_fleet, err) &&
		     rolling_type(rolling, &summing->at, bucket, bucket + 1, err);
	}
	return ok;
}

/* --- accounts --- */

/* One row per (fold, host), or per host. */
static void merge_rows(struct summing *summing)
{
	struct sum_row *rows = summing->rows;
	size_t kept = 0;

	for (size_t i = 0; summing->is_any_fold && i < summing->count; i++)
		rows[i].fold = 0;
	qsort(rows, summing->count, sizeof *rows, compare_rows);
	for (size_t i = 1; i < summing->count; i++)
		if (compare_rows(&rows[kept], &rows[i]))
			rows[++kept] = rows[i];
		else
			rows[kept].samples += rows[i].samples;
	summing->count = kept + 1;
}

struct account_change {
	struct summing *summing;
	int64_t fold;
};

static bool change_account(void *context, const struct packed_account *account)
{
	struct account_change *change = context;
	struct summing *summing = change->summing;
	struct sum_row key = {.host = account->host, .fold = change->fold};
	struct sum_row *row = bsearch(&key, summing->rows, summing->count, sizeof key,
				      compare_rows);
	struct packed_account changed = *account, lost = {.lost_count = 1};
	uint64_t part = row ? row->samples : 0;

	if (part > changed.samples)
		part = changed.samples;
	if (part) {
		row->samples -= part;
		changed.samples -= part;
		lost.lost[0].reason = summing->deleting->reason;
		lost.lost[0].count = part;
		account_add(&changed, &lost);
		summing->is_changed = true;
	}
	account_encode(&changed, &summing->deleting->data);
	return true;
}

static bool put_account(struct summing *summing, enum day_level level,
			const struct rolling_target *at, int64_t fold, struct error *err)
{
	const struct buffer *data = &summing->deleting->data;

	if (data->failed)
		return error_set(err, ERROR_MEMORY, "no memory to delete samples");
	bind_bucket(summing->put_account, level, at);
	sqlite3_bind_int64(summing->put_account, 5, fold);
	sqlite3_bind_blob64(summing->put_account, 6, data->bytes, data->length, SQLITE_STATIC);
	return database_run(summing->put_account, err);
}

static bool change_accounts(struct summing *summing, enum day_level level,
			    const struct rolling_target *at, struct error *err)
{
	sqlite3_stmt *get = summing->get_account;
	int64_t fold = -1;
	bool ok = true, has_more = true;

	while (ok && has_more) {
		struct account_change change = {summing, 0};

		bind_bucket(get, level, at);
		sqlite3_bind_int64(get, 5, fold);
		ok = database_next(get, &has_more, err);
		summing->is_changed = false;
		buffer_clear(&summing->deleting->data);
		if (ok && has_more) {
			fold = sqlite3_column_int64(get, 0);
			change.fold = summing->is_any_fold ? 0 : fold;
			ok = account_each(sqlite3_column_blob(get, 1),
					  (size_t)sqlite3_column_bytes(get, 1), change_account,
					  &change) ||
			     error_set(err, ERROR_FORMAT, "accounts cannot be decoded");
		}
		sqlite3_reset(get);
		if (ok && summing->is_changed)
			ok = put_account(summing, level, at, fold, err);
	}
	return ok;
}

/* The hour of a day's accounts is one sum over its buckets and folds: before the others, because
 * what is found is used up. */
static bool change_hour(struct summing *summing, struct error *err)
{
	struct rolling_target hour = summing->at;
	size_t count = summing->count;
	struct sum_row *rows;
	bool ok;

	if (summing->level != DAY_10M)
		return true;
	rows = malloc(count * sizeof *rows);
	if (!rows)
		return error_set(err, ERROR_MEMORY, "no memory to delete samples");
	memcpy(rows, summing->rows, count * sizeof *rows);
	hour.bucket = hour.bucket / 60 * 60;
	summing->is_any_fold = true;
	merge_rows(summing);
	ok = change_accounts(summing, DAY_1H, &hour, err);
	summing->is_any_fold = false;
	memcpy(summing->rows, rows, count * sizeof *rows);
	summing->count = count;
	free(rows);
	return ok;
}

/* --- a slice --- */

static bool delete_bucket(struct summing *summing, struct error *err)
{
	if (!find_rows(summing, err))
		return false;
	if (!summing->count)
		return true;
	summing->gone += summing->count;
	qsort(summing->rows, summing->count, sizeof *summing->rows, compare_rows);
	if (!remove_rows(summing, err) || !remake_fleet(summing, err) || !change_hour(summing, err))
		return false;
	merge_rows(summing);
	return change_accounts(summing, summing->level, &summing->at, err);
}

/* The next bucket, of this type or the next one that is wanted. 1, 0: none, -1: an error. */
static int next_bucket(struct summing *summing, struct error *err)
{
	const struct deleting *deleting = summing->deleting;
	struct rolling_target *at = &summing->at;

	for (; profile_type_name(at->type); at->type++, at->bucket = summing->first) {
		int code;

		if (deleting->type >= 0 && at->type != (unsigned)deleting->type)
			continue;
		bind_bucket(summing->next, summing->level, at);
		sqlite3_bind_int64(summing->next, 5, summing->end);
		code = sqlite3_step(summing->next);
		if (code == SQLITE_ROW)
			at->bucket = (uint32_t)sqlite3_column_int64(summing->next, 0);
		sqlite3_reset(summing->next);
		if (code == SQLITE_ROW)
			return 1;
		if (code != SQLITE_DONE) {
			database_error(deleting->writer.db, "read", err);
			return -1;
		}
	}
	return 0;
}

static bool delete_buckets(struct summing *summing, bool *is_done, struct error *err)
{
	int found = 1;

	while (summing->read < SLICE_READ && summing->gone < SLICE_ROWS &&
	       summing->rolling.pairs_read < SLICE_PAIRS &&
	       (found = next_bucket(summing, err)) > 0) {
		if (!delete_bucket(summing, err))
			return false;
		summing->at.bucket++;
	}
	*is_done = found == 0;
	return found >= 0;
}

static bool commit(struct summing *summing, struct error *err)
{
	struct deleting *deleting = summing->deleting;

	if (!summing->gone)
		return true;
	/* The month's hours of the day are made again. */
	if (summing->level == DAY_10M && !deleting->hours_kept.are_alone &&
	    !hours_void(deleting->store, deleting->day, err))
		return false;
	summing->rolling.pairs_read = 0; /* nothing was rolled up that was not before */
	if (!erase_is_due(deleting->writer.db, err))
		return false;
	store_lock_days(deleting->store);
	summing->file->names_due = true;
	store_unlock_days(deleting->store);
	return rolling_commit(&summing->rolling, &deleting->writer, err);
}

static bool take_catalog(struct summing *summing, struct error *err)
{
	static const struct text reason = {"deleted", 7};
	struct deleting *deleting = summing->deleting;
	struct sqlite_samples *store = deleting->store;
	struct catalog *catalog = store_load_day(store, summing->file, true, err);

	if (!catalog)
		return false;
	deleting->catalog = catalog;
	pthread_mutex_lock(&store->lock);
	deleting->reason = catalog_add_string(catalog, reason);
	deleting->mark = catalog_mark(catalog);
	pthread_mutex_unlock(&store->lock);
	summing->rolling = (struct rolling){.store = store,
					    .day = summing->file,
					    .from = catalog,
					    .to = catalog,
					    .mark = deleting->mark,
					    .level = summing->level,
					    .only_fleet = true};
	return true;
}

static void close_file(struct summing *summing)
{
	sqlite3_stmt *const statements[] = {summing->next,        summing->find,
					    summing->remove,      summing->remove_fleet,
					    summing->get_account, summing->put_account};

	for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
		sqlite3_finalize(statements[i]);
	rolling_release(&summing->rolling);
	day_writer_close(&summing->deleting->writer);
	catalog_release(summing->deleting->catalog);
	summing->deleting->catalog = NULL;
	free(summing->rows);
}

static bool sums_slice(struct deleting *deleting, struct day *file, struct rolling_target *at,
		       bool *is_done, struct error *err)
{
	uint32_t start = file->is_month ? (deleting->day - file->day) * MINUTES_PER_DAY : 0;
	struct summing summing = {.deleting = deleting,
				  .file = file,
				  .level = file->is_month ? DAY_1H : DAY_10M,
				  .first = start + deleting->from,
				  .end = start + deleting->until,
				  .at = *at};
	uint64_t before = deleting->deleted->samples;
	char path[4096];
	bool ok;

	if (!at->tenant)
		summing.at = (struct rolling_target){deleting->query->tenant, 0, summing.first};
	store_day_path(deleting->store, file, path, sizeof path);
	ok = take_catalog(&summing, err) && deleting_make_room(deleting, err) &&
	     rolling_make_room(&summing.rolling, summing.rolling.mark.count[CATALOG_STACKS], err) &&
	     day_writer_begin(&deleting->writer, path, 0, &deleting->folded, err) &&
	     prepare(&summing, deleting->writer.db, err) &&
	     delete_buckets(&summing, is_done, err) && commit(&summing, err);
	close_file(&summing);
	*at = summing.at;
	if (!ok)
		deleting->deleted->samples = before;
	if (!ok && err->kind == ERROR_FORMAT)
		store_set_aside(deleting->store, file, store_set_asides(deleting->store, file),
				err->message);
	return ok;
}

/* NULL: there is none any more. The files are locked. */
static struct day *find_file(struct deleting *deleting, bool of_month)
{
	struct sqlite_samples *store = deleting->store;
	struct day *file;

	store_lock_days(store);
	file = of_month ? store_find_month(store, deleting->day, false)
			: store_find_day(store, deleting->day);
	if (file && !file->has_file)
		file = NULL;
	store_unlock_days(store);
	return file;
}

bool deleting_sums(struct deleting *deleting, bool of_month, struct error *err)
{
	struct rolling_target at = {0};
	bool is_done = false, ok = true;

	while (ok && !is_done) {
		struct day *file;

		store_lock_files(deleting->store);
		file = find_file(deleting, of_month);
		is_done = !file;
		if (file)
			ok = deleting_look(deleting, err) &&
			     sums_slice(deleting, file, &at, &is_done, err);
		store_unlock_files(deleting->store);
		poll(NULL, 0, PAUSE_MS);
	}
	return ok;
}
