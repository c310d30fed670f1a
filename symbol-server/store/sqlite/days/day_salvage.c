/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/days/day_salvage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"
#include "symbol-server/store/sqlite/cells/moments.h"
#include "symbol-server/store/sqlite/cells/spans.h"
#include "symbol-server/store/sqlite/page_checksums.h"
#include "symbol-server/store/sqlite/days/day_tables.h"

enum { TRIES = 64 };

#define SEEN_MAX ((uint64_t)1 << 40) /* more is damage itself: pages without checksums */

struct host_sums { /* of one minute, tenant and type */
	uint64_t stored;
	struct packed_account account;
};

struct definitions { /* as they are stored */
	uint32_t kind, first, count;
	size_t length;
	uint8_t *data; /* NULL: lost */
};

struct salvage {
	struct day_reader *from;
	struct day_writer to;
	uint64_t row,
		skipped; /* of the table being read: number of this one; of the last left out */
	sqlite3_stmt *put, *put_lost;
	struct catalog *catalog;
	bool is_own;              /* read from the file, and mended */
	struct catalog_mark mark; /* numbers below are its */
	uint32_t reason;          /* string */
	struct definitions *kept; /* by falling keys */
	uint32_t kept_count, kept_room;
	struct host_sums *hosts;
	uint32_t host_count, host_room;
	struct salvaged *result;
	struct error *err; /* for what is not the file's damage */
};

/* ---- rows, as far as they can be read ---- */

/* is_lost: its data cannot be read and are NULL. */
typedef bool row_fn(struct salvage *salvage, sqlite3_stmt *row, bool is_lost);

/* In SQL, wanted(0): whether the next row's data are read; wanted(1): this row's. */
static void wanted(sqlite3_context *context, int count, sqlite3_value **values)
{
	struct salvage *salvage = sqlite3_user_data(context);

	(void)count;
	salvage->row += !sqlite3_value_int(values[0]);
	sqlite3_result_int(context, salvage->row > salvage->skipped);
}

/* *given: the last row. False: fn failed. */
static bool scan(struct salvage *salvage, sqlite3_stmt *rows, row_fn *fn, uint64_t *given,
		 bool *is_all)
{
	bool ok = true;
	int code = SQLITE_DONE;

	*given = salvage->row = 0;
	while (ok && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		*given = salvage->row;
		if (*given >= salvage->skipped)
			ok = fn(salvage, rows, *given == salvage->skipped);
	}
	sqlite3_reset(rows);
	*is_all = code == SQLITE_DONE;
	return ok;
}

/* In the order of the statement up to a page of keys that cannot be read. A row whose data are on
 * such a page is left out: one more scan goes on behind it. (A search would compare keys with those
 * of rows that are damaged, and fail with them.) */
static bool each_of_order(struct salvage *salvage, sqlite3_stmt *rows, row_fn *fn, bool *is_all)
{
	uint64_t given;
	bool ok;

	salvage->skipped = 0;
	for (unsigned i = 0; i < TRIES; i++) {
		ok = scan(salvage, rows, fn, &given, is_all);
		if (!ok || *is_all || salvage->row == given)
			return ok;
		salvage->skipped = salvage->row;
	}
	return true;
}

/* All of a table: by rising keys and, where that ends early, by falling ones, with fn_down. A page
 * of keys that cannot be read costs what is on it. False: fn failed. */
static bool each_row(struct salvage *salvage, const char *select, const char *keys,
		     const char *keys_down, row_fn *fn, row_fn *fn_down)
{
	const char *orders[] = {keys, keys_down};
	row_fn *fns[] = {fn, fn_down};
	bool ok = true, is_all = false;
	char sql[400];

	for (unsigned i = 0; ok && !is_all && i < 2; i++) {
		sqlite3_stmt *rows;

		snprintf(sql, sizeof sql, "%s ORDER BY %s", select, orders[i]);
		rows = database_prepare(salvage->from->db, sql, NULL);
		ok = !rows || each_of_order(salvage, rows, fns[i], &is_all);
		sqlite3_finalize(rows);
	}
	return ok;
}

static bool copy_row(struct salvage *salvage, sqlite3_stmt *row)
{
	for (int i = 0; i < sqlite3_column_count(row); i++)
		sqlite3_bind_value(salvage->put, i + 1, sqlite3_column_value(row, i));
	salvage->result->rows++;
	return database_run(salvage->put, salvage->err);
}

/* ---- the dictionary ---- */

static void decode_definitions(struct salvage *salvage, const struct definitions *row)
{
	struct catalog *catalog = salvage->catalog;
	const uint8_t *at = row->data;

	if (row->kind >= CATALOG_KINDS ||
	    (at && catalog_decode(catalog, row->kind, row->first, row->count, &at, at + row->length,
				  NULL)))
		return;
	catalog_mend(catalog, row->kind, row->first + row->count);
}

static struct definitions definitions_of(sqlite3_stmt *row, bool is_lost)
{
	return (struct definitions){
		.kind = (uint32_t)sqlite3_column_int64(row, 0),
		.first = (uint32_t)sqlite3_column_int64(row, 1),
		.count = (uint32_t)sqlite3_column_int64(row, 2),
		.data = is_lost ? NULL : (uint8_t *)sqlite3_column_blob(row, 3),
		.length = (size_t)sqlite3_column_bytes(row, 3),
	};
}

static bool take_definitions(struct salvage *salvage, sqlite3_stmt *row, bool is_lost)
{
	struct definitions definitions = definitions_of(row, is_lost);

	decode_definitions(salvage, &definitions);
	return true;
}

/* Each refers to those before: they are decoded by rising keys. */
static bool keep_definitions(struct salvage *salvage, sqlite3_stmt *row, bool is_lost)
{
	struct definitions kept = definitions_of(row, is_lost);
	uint8_t *copy = malloc(kept.length + 1);

	if (!copy || !ARRAY_GROW(salvage->kept, salvage->kept_count, salvage->kept_room)) {
		free(copy);
		return error_set(salvage->err, ERROR_MEMORY, "no memory to save a damaged day");
	}
	if (kept.data)
		memcpy(copy, kept.data, kept.length);
	else
		kept.length = 0;
	kept.data = copy;
	salvage->kept[salvage->kept_count++] = kept;
	return true;
}

static bool read_dictionary(struct salvage *salvage)
{
	bool ok;

	salvage->catalog = catalog_new();
	if (!salvage->catalog)
		return error_set(salvage->err, ERROR_MEMORY, "no memory for a day's dictionary");
	salvage->catalog->mends = true;
	ok = each_row(salvage,
		      "SELECT kind, first, count, CASE WHEN wanted(0) THEN data END "
		      "FROM definitions",
		      "kind, first", "kind DESC, first DESC", take_definitions, keep_definitions);
	while (salvage->kept_count) {
		struct definitions *kept = &salvage->kept[--salvage->kept_count];

		if (ok)
			decode_definitions(salvage, kept);
		free(kept->data);
	}
	return ok;
}

/* Made up where it is missing: the number of samples is known nevertheless. */
static bool is_defined(struct salvage *salvage, enum catalog_kind kind, uint32_t number)
{
	if (number < salvage->mark.count[kind])
		return true;
	if (!salvage->is_own || !catalog_mend(salvage->catalog, kind, number + 1))
		return false;
	salvage->mark = catalog_mark(salvage->catalog);
	return true;
}

/* Series that were made up have no labels: whose samples they were is not known. */
static const struct catalog_series *series_of(const struct salvage *salvage, int64_t number)
{
	const struct catalog_series *series = NULL;

	if (number > 0 && number < salvage->mark.count[CATALOG_SERIES])
		series = catalog_series(salvage->catalog, (uint32_t)number);
	return series && series->label_count ? series : NULL;
}

/* ---- rows of the tables ---- */

struct seen {
	struct salvage *salvage;
	sqlite3_stmt *row;
	uint64_t pairs, samples, value;
};

static bool see_pair(void *context, const struct packed_pair *pair)
{
	struct seen *seen = context;

	seen->pairs++;
	seen->samples += pair->samples;
	seen->value += pair->value;
	return pair->stack && is_defined(seen->salvage, CATALOG_STACKS, pair->stack) &&
	       is_defined(seen->salvage, CATALOG_STRINGS, pair->thread);
}

static bool see_moment(void *context, const struct moment *moment)
{
	struct packed_pair pair = {moment->thread, moment->stack, 1, moment->value};

	return see_pair(context, &pair);
}

static bool see_span(void *context, const struct span_sample *span)
{
	struct packed_pair pair = {span->thread, span->stack, span->samples, span->value};
	struct seen *seen = context;
	const uint8_t *filter = sqlite3_column_blob(seen->row, 7);
	size_t length = (size_t)sqlite3_column_bytes(seen->row, 7);

	return length && spans_may_have(filter, length, span->ids, TRACE_ID_BYTES) &&
	       spans_may_have(filter, length, span->ids + TRACE_ID_BYTES, SPAN_ID_BYTES) &&
	       see_pair(seen, &pair);
}

static bool see_account(void *context, const struct packed_account *account)
{
	struct salvage *salvage = context;
	bool ok = is_defined(salvage, CATALOG_STRINGS, account->host);

	for (unsigned i = 0; i < account->lost_count; i++)
		ok = ok && is_defined(salvage, CATALOG_STRINGS, account->lost[i].reason);
	return ok;
}

#define BLOB(row_, column_) \
	sqlite3_column_blob(row_, column_), (size_t)sqlite3_column_bytes(row_, column_)

/* Its sums have no data. */
static bool lose_samples(struct salvage *salvage, sqlite3_stmt *row)
{
	int64_t samples = sqlite3_column_int64(row, 6);

	salvage->result->rows_lost++;
	if (samples <= 0 || (uint64_t)samples > SEEN_MAX)
		return true;
	for (int i = 0; i < 3; i++)
		sqlite3_bind_value(salvage->put_lost, i + 1, sqlite3_column_value(row, i));
	sqlite3_bind_int64(salvage->put_lost, 4, samples);
	return database_run(salvage->put_lost, salvage->err);
}

/* SAMPLES_COLUMNS. */
static bool take_samples(struct salvage *salvage, sqlite3_stmt *row, bool is_lost)
{
	struct seen seen = {.salvage = salvage};

	if (is_lost || !series_of(salvage, sqlite3_column_int64(row, 3)) ||
	    !packed_each(BLOB(row, 8), see_pair, &seen) ||
	    (int64_t)seen.pairs != sqlite3_column_int64(row, 5) ||
	    (int64_t)seen.samples != sqlite3_column_int64(row, 6) ||
	    (int64_t)seen.value != sqlite3_column_int64(row, 7))
		return lose_samples(salvage, row);
	salvage->result->samples += seen.samples;
	return copy_row(salvage, row);
}

/* ACCOUNTS_COLUMNS. */
static bool take_accounts(struct salvage *salvage, sqlite3_stmt *row, bool is_lost)
{
	if (!is_lost && account_each(BLOB(row, 4), see_account, salvage))
		return copy_row(salvage, row);
	salvage->result->rows_lost++;
	return true;
}

/* MOMENTS_COLUMNS. */
static bool take_moments(struct salvage *salvage, sqlite3_stmt *row, bool is_lost)
{
	struct seen seen = {.salvage = salvage};

	if (!is_lost && series_of(salvage, sqlite3_column_int64(row, 3)) &&
	    moments_each(BLOB(row, 6), see_moment, &seen) &&
	    (int64_t)seen.pairs == sqlite3_column_int64(row, 5))
		return copy_row(salvage, row);
	salvage->result->rows_lost++;
	return true;
}

/* SPANS_COLUMNS. */
static bool take_spans(struct salvage *salvage, sqlite3_stmt *row, bool is_lost)
{
	struct seen seen = {.salvage = salvage, .row = row};

	if (!is_lost && series_of(salvage, sqlite3_column_int64(row, 3)) &&
	    spans_each(BLOB(row, 6), see_span, &seen) &&
	    (int64_t)seen.pairs == sqlite3_column_int64(row, 5))
		return copy_row(salvage, row);
	salvage->result->rows_lost++;
	return true;
}

/* ---- tables ---- */

#define MINUTE "tenant, type, bucket"
#define DATA   "CASE WHEN wanted(0) THEN data END "

static bool copy_table(struct salvage *salvage, const char *put, const char *select,
		       const char *keys, const char *keys_down, row_fn *fn)
{
	bool ok;

	salvage->put = database_prepare_insert(salvage->to.db, put, salvage->err);
	ok = salvage->put && each_row(salvage, select, keys, keys_down, fn, fn);
	sqlite3_finalize(salvage->put);
	salvage->put = NULL;
	return ok;
}

static bool copy_tables(struct salvage *salvage)
{
	const struct day_reader *from = salvage->from;

	return copy_table(salvage, "INSERT OR IGNORE " INTO_SAMPLES,
			  "SELECT " MINUTE ", series, fold, pairs, samples, value, " DATA
			  "FROM samples",
			  MINUTE ", series, fold",
			  "tenant DESC, type DESC, bucket DESC, series DESC, fold DESC",
			  take_samples) &&
	       copy_table(salvage, "INSERT OR IGNORE " INTO_ACCOUNTS,
			  "SELECT " MINUTE ", fold, " DATA "FROM accounts", MINUTE ", fold",
			  "tenant DESC, type DESC, bucket DESC, fold DESC", take_accounts) &&
	       (!from->has_moments ||
		copy_table(salvage, "INSERT OR IGNORE " INTO_MOMENTS,
			   "SELECT " MINUTE ", series, fold, count, " DATA "FROM moments",
			   MINUTE ", series, fold",
			   "tenant DESC, type DESC, bucket DESC, series DESC, fold DESC",
			   take_moments)) &&
	       (!from->has_spans ||
		copy_table(salvage, "INSERT OR IGNORE " INTO_SPANS,
			   "SELECT " MINUTE ", series, fold, count, " DATA
			   ", CASE WHEN wanted(1) THEN filter END FROM spans",
			   "bucket, tenant, type, series, fold",
			   "bucket DESC, tenant DESC, type DESC, series DESC, fold DESC",
			   take_spans));
}

/* ---- accounts ---- */

static struct host_sums *sums_of(struct salvage *salvage, uint32_t host)
{
	for (uint32_t i = salvage->host_count; i--;)
		if (salvage->hosts[i].account.host == host)
			return &salvage->hosts[i];
	if (!ARRAY_GROW(salvage->hosts, salvage->host_count, salvage->host_room)) {
		error_set(salvage->err, ERROR_MEMORY, "no memory to save a damaged day");
		return NULL;
	}
	salvage->hosts[salvage->host_count] = (struct host_sums){.account.host = host};
	return &salvage->hosts[salvage->host_count++];
}

static bool add_account(void *context, const struct packed_account *account)
{
	struct host_sums *sums = sums_of(context, account->host);

	if (sums)
		account_add(&sums->account, account);
	return sums;
}

/* What a minute has in the new file. Columns: what, a number, data. */
static bool add_row(struct salvage *salvage, sqlite3_stmt *row, uint64_t *seen_lost)
{
	enum { SAMPLES, ACCOUNT, LOST };
	const struct catalog_series *series;
	struct host_sums *sums;

	switch (sqlite3_column_int(row, 0)) {
	case SAMPLES:
		series = series_of(salvage, sqlite3_column_int64(row, 1));
		sums = series ? sums_of(salvage, series->host) : NULL;
		if (sums)
			sums->stored += (uint64_t)sqlite3_column_int64(row, 2);
		return sums;
	case ACCOUNT:
		return account_each(BLOB(row, 3), add_account, salvage);
	default:
		*seen_lost += (uint64_t)sqlite3_column_int64(row, 2);
		return true;
	}
}

static void lose(struct salvage *salvage, struct host_sums *sums, uint64_t count, uint64_t taken)
{
	struct packed_account change = {
		.host = sums->account.host, .taken = taken, .lost_count = 1};

	change.lost[0].reason = salvage->reason;
	change.lost[0].count = count;
	account_add(&sums->account, &change);
	salvage->result->samples_lost += count;
}

/* Samples that an account has and no row any more are lost; what rows have beyond it was in an
 * account that is lost. Lost rows that no account knows were nobody's. False: nothing changed. */
static bool balance(struct salvage *salvage, uint64_t seen_lost)
{
	uint64_t before = salvage->result->samples_lost, missing;
	bool is_changed = false;
	struct host_sums *nobody;

	for (uint32_t i = 0; i < salvage->host_count; i++) {
		struct host_sums *sums = &salvage->hosts[i];

		is_changed |= sums->account.samples != sums->stored;
		if (sums->account.samples > sums->stored)
			lose(salvage, sums, sums->account.samples - sums->stored, 0);
		else
			sums->account.taken += sums->stored - sums->account.samples;
		sums->account.samples = sums->stored;
	}
	missing = salvage->result->samples_lost - before;
	if (seen_lost <= missing || !(nobody = sums_of(salvage, salvage->reason)))
		return is_changed;
	lose(salvage, nobody, seen_lost - missing, seen_lost - missing);
	return true;
}

static bool put_accounts(struct salvage *salvage, const struct day_row *row, sqlite3_stmt *drop)
{
	struct buffer data;
	bool ok;

	buffer_init(&data, 256 << 20);
	for (uint32_t i = 0; i < salvage->host_count; i++)
		account_encode(&salvage->hosts[i].account, &data);
	ok = data.failed ? error_set(salvage->err, ERROR_MEMORY, "no memory for hosts' accounts")
			 : database_run(drop, salvage->err) &&
				   day_writer_accounts(&salvage->to, row, &data, salvage->err);
	buffer_release(&data);
	return ok;
}

static void bind_minute(sqlite3_stmt *statement, const struct day_row *row)
{
	DATABASE_BIND(statement, 1, row->tenant, row->type, row->bucket);
}

static bool balance_minute(struct salvage *salvage, const struct day_row *row, sqlite3_stmt *all,
			   sqlite3_stmt *drop)
{
	uint64_t seen_lost = 0;
	bool ok = true;
	int code = SQLITE_DONE;

	salvage->host_count = 0;
	bind_minute(all, row);
	while (ok && (code = sqlite3_step(all)) == SQLITE_ROW)
		ok = add_row(salvage, all, &seen_lost);
	sqlite3_reset(all);
	if (!ok || code != SQLITE_DONE)
		return salvage->err->kind ? false
					  : error_set(salvage->err, ERROR_SYSTEM,
						      "what was saved cannot be read again");
	bind_minute(drop, row);
	return !balance(salvage, seen_lost) || put_accounts(salvage, row, drop);
}

#define OF_MINUTE " WHERE tenant = ?1 AND type = ?2 AND bucket = ?3"

static bool balance_accounts(struct salvage *salvage)
{
	sqlite3 *db = salvage->to.db;
	sqlite3_stmt *minutes = NULL, *all = NULL, *drop = NULL;
	struct error *err = salvage->err;
	bool ok;

	ok = database_exec(db,
			   "CREATE TEMP TABLE minutes AS SELECT " MINUTE " FROM samples UNION "
			   "SELECT " MINUTE " FROM accounts UNION SELECT " MINUTE " FROM lost",
			   err) &&
	     (minutes = database_prepare(db, "SELECT " MINUTE " FROM minutes", err)) &&
	     (drop = database_prepare(db, "DELETE FROM accounts" OF_MINUTE, err)) &&
	     (all = database_prepare(db,
				     "SELECT 0, series, samples, NULL FROM samples" OF_MINUTE
				     " UNION ALL SELECT 1, 0, 0, data FROM accounts" OF_MINUTE
				     " UNION ALL SELECT 2, 0, samples, NULL FROM lost" OF_MINUTE,
				     err));
	while (database_row(minutes, &ok, err)) {
		struct day_row row = {.tenant = (uint32_t)sqlite3_column_int64(minutes, 0),
				      .type = (uint32_t)sqlite3_column_int64(minutes, 1),
				      .bucket = (uint32_t)sqlite3_column_int64(minutes, 2)};

		ok = balance_minute(salvage, &row, all, drop);
	}
	sqlite3_finalize(minutes);
	sqlite3_finalize(drop);
	sqlite3_finalize(all);
	return ok;
}

/* ---- the file ---- */

#define LOST                                                                             \
	"CREATE TEMP TABLE lost (tenant INTEGER, type INTEGER, bucket INTEGER, samples " \
	"INTEGER, PRIMARY KEY (tenant, type, bucket))"
#define PUT_LOST                                                                               \
	"INSERT INTO lost (tenant, type, bucket, samples) VALUES (?, ?, ?, ?) ON CONFLICT DO " \
	"UPDATE SET "                                                                          \
	"samples = samples + excluded.samples"

/* Names of what was deleted are still to leave it: upkeep/erase.h. */
static bool keep_names_due(struct salvage *salvage)
{
	int64_t due = 0;

	return !database_get_fact(salvage->from->db, "names_due", &due, NULL) || !due ||
	       database_put_fact(salvage->to.db, "names_due", 1, salvage->err);
}

static bool write_all(struct salvage *salvage, const char *to, uint32_t day)
{
	struct catalog_mark none = {{0}};
	struct error *err = salvage->err;
	uint64_t before;
	bool ok;

	if (!day_writer_begin(&salvage->to, to, salvage->result->folded_through, &before, err))
		return false;
	for (unsigned i = 0; i < ROLLUPS_PER_DAY; i++)
		salvage->to.is_touched[i] = true; /* sums are made anew of what there is */
	ok = database_exec(salvage->to.db, LOST, err) &&
	     (salvage->put_lost = database_prepare(salvage->to.db, PUT_LOST, err)) &&
	     keep_names_due(salvage) && copy_tables(salvage) && balance_accounts(salvage) &&
	     day_writer_definitions(&salvage->to, salvage->catalog, &none, &salvage->mark, err) &&
	     day_writer_commit(&salvage->to, day, err);
	sqlite3_finalize(salvage->put_lost);
	day_writer_close(&salvage->to);
	return ok;
}

static bool see_fold(struct salvage *salvage, sqlite3_stmt *row, bool is_lost)
{
	uint64_t fold = (uint64_t)sqlite3_column_int64(row, 0);

	if (!is_lost && salvage->result->folded_through < fold)
		salvage->result->folded_through = fold;
	return true;
}

static bool open_damaged(struct salvage *salvage, const char *path)
{
	salvage->from = day_reader_open_damaged(path, &salvage->result->folded_through,
						salvage->err);
	if (!salvage->from)
		return false;
	if (sqlite3_create_function(salvage->from->db, "wanted", 1, SQLITE_UTF8, salvage, wanted,
				    NULL, NULL) != SQLITE_OK)
		return database_error(salvage->from->db, "read", salvage->err);
	if (!salvage->result->folded_through) /* its facts are damaged: that of its rows */
		each_row(salvage, "SELECT fold, wanted(0) FROM accounts", MINUTE ", fold",
			 "tenant DESC, type DESC, bucket DESC, fold DESC", see_fold, see_fold);
	return !salvage->from->is_reduced ||
	       error_set(salvage->err, ERROR_UNSUPPORTED,
			 "it has sums only: they are not saved in part");
}

static void remove_database(const char *path)
{
	static const char *const suffixes[] = {"", "-wal", "-shm"};
	char name[4200];

	for (unsigned i = 0; i < 3; i++) {
		snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
		unlink(name);
	}
}

static void release(struct salvage *salvage)
{
	if (salvage->from) {
		database_leave_log(salvage->from->db);
		day_reader_end(salvage->from);
	}
	day_reader_close(salvage->from);
	catalog_release(salvage->catalog);
	free(salvage->kept);
	free(salvage->hosts);
}

static bool take_dictionary(struct salvage *salvage, const struct salvage_dictionary *dictionary)
{
	const struct text reason = {SALVAGE_REASON, sizeof SALVAGE_REASON - 1};

	if (dictionary) {
		salvage->catalog = catalog_take(dictionary->catalog);
		salvage->mark = dictionary->mark;
		salvage->reason = dictionary->reason;
		return true;
	}
	salvage->is_own = true;
	if (!read_dictionary(salvage))
		return false;
	salvage->reason = catalog_add_string(salvage->catalog, reason);
	salvage->mark = catalog_mark(salvage->catalog);
	return salvage->reason ||
	       error_set(salvage->err, ERROR_MEMORY, "no memory for a day's dictionary");
}

bool day_salvage(const char *from, const char *to, uint32_t day,
		 const struct salvage_dictionary *dictionary, struct salvaged *salvaged,
		 struct error *err)
{
	struct error why = {0};
	struct salvage salvage = {.result = salvaged, .err = &why};
	bool ok;

	*salvaged = (struct salvaged){0};
	remove_database(to);
	page_checksums_trust_first(true);
	ok = open_damaged(&salvage, from) && take_dictionary(&salvage, dictionary) &&
	     write_all(&salvage, to, day);
	if (salvage.is_own && salvage.catalog)
		salvaged->definitions_lost = salvage.catalog->mended;
	release(&salvage);
	page_checksums_trust_first(false);
	if (!ok)
		remove_database(to);
	if (!ok && err)
		*err = why;
	return ok;
}
