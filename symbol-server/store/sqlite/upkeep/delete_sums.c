/* SPDX-License-Identifier: Apache-2.0 */
/* Out of roll-ups that cannot be made again: rows of whole series go, the sums without the labels
 * of instances are made anew of what is left, fold by fold, and the hosts' accounts of the same
 * buckets change with them. A bucket of a type is in one transaction. */
#include "common/array.h"
#include "symbol-server/store/sqlite/upkeep/deletion.h"
#include "symbol-server/store/sqlite/upkeep/erase.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "symbol-server/store/sqlite/rollups/rollup_pass.h"

enum { SLICE_READ = 1 << 16, SLICE_PAIRS = 1 << 20 };

struct sum_row {
	uint32_t series, host;
	int64_t fold;
	uint64_t samples;
};

struct sums_slice {
	struct deletion *deletion;
	struct day *file;
	enum day_level level;
	uint32_t first, end; /* minutes of the file */
	struct rollup_target at;
	struct rollup_pass pass;
	sqlite3_stmt *next, *find, *remove, *remove_fleet, *get_account, *put_account;
	struct sum_row *rows; /* of one bucket, that go */
	size_t count, room;
	uint64_t read, gone; /* rows of this slice */
	bool is_changed, is_any_fold;
};

/* --- opening --- */

static bool prepare(struct sums_slice *slice, sqlite3 *db, struct error *err)
{
#define OF_BUCKET "level = ? AND tenant = ? AND type = ? AND bucket = ?"
	slice->next = database_prepare(db,
				       "SELECT bucket FROM rollups WHERE level = ? AND "
				       "tenant = ? AND type = ? AND bucket >= ? AND bucket < ? "
				       "ORDER BY bucket LIMIT 1",
				       err);
	slice->find = database_prepare(
		db, "SELECT series, fold, samples FROM rollups WHERE " OF_BUCKET, err);
	slice->remove = database_prepare(
		db, "DELETE FROM rollups WHERE " OF_BUCKET " AND fold = ? AND series = ?", err);
	slice->remove_fleet =
		database_prepare(db, "DELETE FROM rollups WHERE " OF_BUCKET " AND fold = ?", err);
	slice->get_account = database_prepare(db,
					      "SELECT fold, data FROM rollup_accounts "
					      "WHERE " OF_BUCKET " AND fold > ? "
					      "ORDER BY fold LIMIT 1",
					      err);
	slice->put_account = database_prepare(
		db,
		"UPDATE rollup_accounts SET data = ?6 WHERE level = ?1 AND tenant = ?2 AND "
		"type = ?3 AND bucket = ?4 AND fold = ?5",
		err);
	return slice->next && slice->find && slice->remove && slice->remove_fleet &&
	       slice->get_account && slice->put_account &&
	       rollup_pass_prepare(&slice->pass, db, slice->level, true, db, err);
}

static void bind_bucket(sqlite3_stmt *statement, enum day_level level,
			const struct rollup_target *at)
{
	DATABASE_BIND(statement, 1, level, at->tenant, at->type, at->bucket);
}

/* --- rows of one bucket --- */

static bool keep_row(struct sums_slice *slice, const struct sum_row *row)
{
	if (!ARRAY_GROW(slice->rows, slice->count, slice->room))
		return false;
	slice->rows[slice->count++] = *row;
	return true;
}

static bool find_rows(struct sums_slice *slice, struct error *err)
{
	struct deletion *deletion = slice->deletion;
	bool ok = true;

	slice->count = 0;
	bind_bucket(slice->find, slice->level, &slice->at);
	while (database_row(slice->find, &ok, err)) {
		struct sum_row row = {.series = (uint32_t)sqlite3_column_int64(slice->find, 0),
				      .fold = sqlite3_column_int64(slice->find, 1),
				      .samples = (uint64_t)sqlite3_column_int64(slice->find, 2)};

		slice->read++;
		if (!deletion_is_series_wanted(deletion, row.series))
			continue;
		row.host = catalog_series(deletion->catalog, row.series)->host;
		ok = keep_row(slice, &row) ||
		     error_set(err, ERROR_MEMORY, "no memory to delete samples");
	}
	sqlite3_reset(slice->find);
	return ok;
}

/* What the month has of the day is counted there. */
static bool counts(const struct sums_slice *slice, const struct sum_row *row)
{
	const struct hours_kept *kept = &slice->deletion->hours_kept;

	return slice->level == DAY_1H || !kept->are_alone ||
	       (uint64_t)row->fold > kept->through[slice->at.bucket / 60];
}

static bool remove_rows(struct sums_slice *slice, struct error *err)
{
	bool ok = true;

	bind_bucket(slice->remove, slice->level, &slice->at);
	for (size_t i = 0; ok && i < slice->count; i++) {
		const struct sum_row *row = &slice->rows[i];

		DATABASE_BIND(slice->remove, 5, row->fold, row->series);
		ok = database_run(slice->remove, err);
		slice->deletion->deleted->samples += counts(slice, row) ? row->samples : 0;
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
static bool remake_fleet(struct sums_slice *slice, struct error *err)
{
	struct rollup_pass *pass = &slice->pass;
	uint32_t bucket = slice->at.bucket;
	bool ok = true;

	bind_bucket(slice->remove_fleet, slice->level + 1, &slice->at);
	for (size_t i = 0; ok && i < slice->count; i++) {
		int64_t fold = slice->rows[i].fold;

		if (i && slice->rows[i - 1].fold == fold)
			continue;
		pass->above = pass->through = (uint64_t)fold;
		sqlite3_bind_int64(slice->remove_fleet, 5, fold);
		ok = database_run(slice->remove_fleet, err) &&
		     rollup_pass_type(pass, &slice->at, bucket, bucket + 1, err);
	}
	return ok;
}

/* --- accounts --- */

/* One row per (fold, host), or per host. */
static void merge_rows(struct sums_slice *slice)
{
	struct sum_row *rows = slice->rows;
	size_t kept = 0;

	for (size_t i = 0; slice->is_any_fold && i < slice->count; i++)
		rows[i].fold = 0;
	qsort(rows, slice->count, sizeof *rows, compare_rows);
	for (size_t i = 1; i < slice->count; i++)
		if (compare_rows(&rows[kept], &rows[i]))
			rows[++kept] = rows[i];
		else
			rows[kept].samples += rows[i].samples;
	slice->count = kept + 1;
}

struct account_change {
	struct sums_slice *slice;
	int64_t fold;
};

static bool change_account(void *context, const struct packed_account *account)
{
	struct account_change *change = context;
	struct sums_slice *slice = change->slice;
	struct sum_row key = {.host = account->host, .fold = change->fold};
	struct sum_row *row = bsearch(&key, slice->rows, slice->count, sizeof key, compare_rows);
	struct packed_account changed = *account, lost = {.lost_count = 1};
	uint64_t part = row ? row->samples : 0;

	if (part > changed.samples)
		part = changed.samples;
	if (part) {
		row->samples -= part;
		changed.samples -= part;
		lost.lost[0].reason = slice->deletion->reason;
		lost.lost[0].count = part;
		account_add(&changed, &lost);
		slice->is_changed = true;
	}
	account_encode(&changed, &slice->deletion->data);
	return true;
}

static bool put_account(struct sums_slice *slice, enum day_level level,
			const struct rollup_target *at, int64_t fold, struct error *err)
{
	const struct buffer *data = &slice->deletion->data;

	if (data->failed)
		return error_set(err, ERROR_MEMORY, "no memory to delete samples");
	bind_bucket(slice->put_account, level, at);
	sqlite3_bind_int64(slice->put_account, 5, fold);
	sqlite3_bind_blob64(slice->put_account, 6, data->bytes, data->length, SQLITE_STATIC);
	return database_run(slice->put_account, err);
}

static bool change_accounts(struct sums_slice *slice, enum day_level level,
			    const struct rollup_target *at, struct error *err)
{
	sqlite3_stmt *get = slice->get_account;
	int64_t fold = -1;
	bool ok = true, has_more = true;

	while (ok && has_more) {
		struct account_change change = {slice, 0};

		bind_bucket(get, level, at);
		sqlite3_bind_int64(get, 5, fold);
		ok = database_next(get, &has_more, err);
		slice->is_changed = false;
		buffer_clear(&slice->deletion->data);
		if (ok && has_more) {
			fold = sqlite3_column_int64(get, 0);
			change.fold = slice->is_any_fold ? 0 : fold;
			ok = account_each(sqlite3_column_blob(get, 1),
					  (size_t)sqlite3_column_bytes(get, 1), change_account,
					  &change) ||
			     error_set(err, ERROR_FORMAT, "accounts cannot be decoded");
		}
		sqlite3_reset(get);
		if (ok && slice->is_changed)
			ok = put_account(slice, level, at, fold, err);
	}
	return ok;
}

/* The hour of a day's accounts is one sum over its buckets and folds: before the others, because
 * what is found is used up. */
static bool change_hour(struct sums_slice *slice, struct error *err)
{
	struct rollup_target hour = slice->at;
	size_t count = slice->count;
	struct sum_row *rows;
	bool ok;

	if (slice->level != DAY_10M)
		return true;
	rows = malloc(count * sizeof *rows);
	if (!rows)
		return error_set(err, ERROR_MEMORY, "no memory to delete samples");
	memcpy(rows, slice->rows, count * sizeof *rows);
	hour.bucket = hour.bucket / 60 * 60;
	slice->is_any_fold = true;
	merge_rows(slice);
	ok = change_accounts(slice, DAY_1H, &hour, err);
	slice->is_any_fold = false;
	memcpy(slice->rows, rows, count * sizeof *rows);
	slice->count = count;
	free(rows);
	return ok;
}

/* --- a slice --- */

static bool delete_bucket(struct sums_slice *slice, struct error *err)
{
	if (!find_rows(slice, err))
		return false;
	if (!slice->count)
		return true;
	slice->gone += slice->count;
	qsort(slice->rows, slice->count, sizeof *slice->rows, compare_rows);
	if (!remove_rows(slice, err) || !remake_fleet(slice, err) || !change_hour(slice, err))
		return false;
	merge_rows(slice);
	return change_accounts(slice, slice->level, &slice->at, err);
}

/* The next bucket, of this type or the next one that is wanted. 1, 0: none, -1: an error. */
static int next_bucket(struct sums_slice *slice, struct error *err)
{
	const struct deletion *deletion = slice->deletion;
	struct rollup_target *at = &slice->at;

	for (; profile_type_name(at->type); at->type++, at->bucket = slice->first) {
		int code;

		if (deletion->type >= 0 && at->type != (unsigned)deletion->type)
			continue;
		bind_bucket(slice->next, slice->level, at);
		sqlite3_bind_int64(slice->next, 5, slice->end);
		code = sqlite3_step(slice->next);
		if (code == SQLITE_ROW)
			at->bucket = (uint32_t)sqlite3_column_int64(slice->next, 0);
		sqlite3_reset(slice->next);
		if (code == SQLITE_ROW)
			return 1;
		if (code != SQLITE_DONE) {
			database_error(deletion->writer.db, "read", err);
			return -1;
		}
	}
	return 0;
}

static bool delete_buckets(struct sums_slice *slice, bool *is_done, struct error *err)
{
	int found = 1;

	while (slice->read < SLICE_READ && slice->gone < SLICE_ROWS &&
	       slice->pass.pairs_read < SLICE_PAIRS && (found = next_bucket(slice, err)) > 0) {
		if (!delete_bucket(slice, err))
			return false;
		slice->at.bucket++;
	}
	*is_done = found == 0;
	return found >= 0;
}

static bool commit(struct sums_slice *slice, struct error *err)
{
	struct deletion *deletion = slice->deletion;

	if (!slice->gone)
		return true;
	/* The month's hours of the day are made again. */
	if (slice->level == DAY_10M && !deletion->hours_kept.are_alone &&
	    !hours_void(deletion->store, deletion->day, err))
		return false;
	slice->pass.pairs_read = 0; /* nothing was rolled up that was not before */
	if (!erase_is_due(deletion->writer.db, err))
		return false;
	store_lock_days(deletion->store);
	slice->file->names_due = true;
	store_unlock_days(deletion->store);
	return rollup_pass_commit(&slice->pass, &deletion->writer, err);
}

static bool take_catalog(struct sums_slice *slice, struct error *err)
{
	static const struct text reason = {"deleted", 7};
	struct deletion *deletion = slice->deletion;
	struct sqlite_samples *store = deletion->store;
	struct catalog *catalog = store_load_day(store, slice->file, true, err);

	if (!catalog)
		return false;
	deletion->catalog = catalog;
	pthread_mutex_lock(&store->lock);
	deletion->reason = catalog_add_string(catalog, reason);
	deletion->mark = catalog_mark(catalog);
	pthread_mutex_unlock(&store->lock);
	slice->pass = (struct rollup_pass){.store = store,
					   .day = slice->file,
					   .from = catalog,
					   .to = catalog,
					   .mark = deletion->mark,
					   .level = slice->level,
					   .only_fleet = true};
	return true;
}

static void close_file(struct sums_slice *slice)
{
	sqlite3_stmt *const statements[] = {slice->next,        slice->find,
					    slice->remove,      slice->remove_fleet,
					    slice->get_account, slice->put_account};

	for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
		sqlite3_finalize(statements[i]);
	rollup_pass_release(&slice->pass);
	day_writer_close(&slice->deletion->writer);
	catalog_release(slice->deletion->catalog);
	slice->deletion->catalog = NULL;
	free(slice->rows);
}

static bool sums_slice(struct deletion *deletion, struct day *file, struct rollup_target *at,
		       bool *is_done, struct error *err)
{
	uint32_t start = file->is_month ? (deletion->day - file->day) * MINUTES_PER_DAY : 0;
	struct sums_slice slice = {.deletion = deletion,
				   .file = file,
				   .level = file->is_month ? DAY_1H : DAY_10M,
				   .first = start + deletion->from,
				   .end = start + deletion->until,
				   .at = *at};
	uint64_t before = deletion->deleted->samples;
	char path[4096];
	bool ok;

	if (!at->tenant)
		slice.at = (struct rollup_target){deletion->query->tenant, 0, slice.first};
	store_day_path(deletion->store, file, path, sizeof path);
	ok = take_catalog(&slice, err) && deletion_make_room(deletion, err) &&
	     rollup_pass_make_room(&slice.pass, slice.pass.mark.count[CATALOG_STACKS], err) &&
	     day_writer_begin(&deletion->writer, path, 0, &deletion->folded, err) &&
	     prepare(&slice, deletion->writer.db, err) && delete_buckets(&slice, is_done, err) &&
	     commit(&slice, err);
	close_file(&slice);
	*at = slice.at;
	if (!ok)
		deletion->deleted->samples = before;
	if (!ok && err->kind == ERROR_FORMAT)
		store_set_aside(deletion->store, file, store_set_asides(deletion->store, file),
				err->message);
	return ok;
}

/* NULL: there is none any more. The files are locked. */
static struct day *find_file(struct deletion *deletion, bool of_month)
{
	struct sqlite_samples *store = deletion->store;
	struct day *file;

	store_lock_days(store);
	file = of_month ? store_find_month(store, deletion->day, false)
			: store_find_day(store, deletion->day);
	if (file && !file->has_file)
		file = NULL;
	store_unlock_days(store);
	return file;
}

bool deletion_sums(struct deletion *deletion, bool of_month, struct error *err)
{
	struct rollup_target at = {0};
	bool is_done = false, ok = true;

	while (ok && !is_done) {
		struct day *file;

		store_lock_files(deletion->store);
		file = find_file(deletion, of_month);
		is_done = !file;
		if (file)
			ok = deletion_look(deletion, err) &&
			     sums_slice(deletion, file, &at, &is_done, err);
		store_unlock_files(deletion->store);
		poll(NULL, 0, PAUSE_MS);
	}
	return ok;
}
