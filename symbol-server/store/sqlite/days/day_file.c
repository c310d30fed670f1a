/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/days/day_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "symbol-server/embedded.h"
#include "symbol-server/store/sqlite/days/day_tables.h"

enum {
	DEFINITIONS_PER_ROW = 4096,
	DATA_MAX = 256 << 20, /* bytes of one row's data */
};

static const char *const migrations[] = {embedded_samples_0001_sql, embedded_samples_0002_sql,
					 embedded_samples_0003_sql, embedded_samples_0004_sql,
					 NULL};
static const struct database_schema schema = {APPLICATION_SAMPLES, migrations};

void day_file_path(const char *directory, uint32_t day, char *path, size_t room)
{
	time_t seconds = (time_t)day * 86400;
	struct tm tm;

	gmtime_r(&seconds, &tm);
	snprintf(path, room, "%s/samples-%04d%02d%02d.db", directory, tm.tm_year + 1900,
		 tm.tm_mon + 1, tm.tm_mday);
}

bool day_file_parse(const char *name, uint32_t *day)
{
	struct tm tm = {0};
	char again[64];
	int end = 0;

	if (sscanf(name, "samples-%4d%2d%2d.db%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &end) !=
		    3 ||
	    !end || name[end])
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	*day = (uint32_t)(timegm(&tm) / 86400);
	day_file_path("", *day, again, sizeof again);
	return !strcmp(again + 1, name); /* no 31st of June */
}

sqlite3 *day_file_create(const char *path, struct error *err)
{
	return database_open(path, &schema, err);
}

/* --- writing --- */

bool day_writer_begin(struct day_writer *writer, const char *path, uint64_t fold,
		      uint64_t *folded_through, struct error *err)
{
	int64_t folded;

	memset(writer, 0, sizeof *writer);
	buffer_init(&writer->data, DATA_MAX);
	writer->fold = (int64_t)fold;
	writer->db = database_open(path, &schema, err);
	if (!writer->db)
		return false;
	writer->put_definitions =
		database_prepare_insert(writer->db, "INSERT OR REPLACE " INTO_DEFINITIONS, err);
	writer->put_samples = database_prepare_insert(writer->db, "INSERT " INTO_SAMPLES, err);
	writer->put_accounts = database_prepare_insert(writer->db, "INSERT " INTO_ACCOUNTS, err);
	if (!writer->put_definitions || !writer->put_samples || !writer->put_accounts ||
	    !database_exec(writer->db, "BEGIN IMMEDIATE", err) ||
	    !database_get_fact(writer->db, "folded_through", &folded, err)) {
		day_writer_close(writer);
		return false;
	}
	*folded_through = (uint64_t)folded;
	return true;
}

void day_writer_close(struct day_writer *writer)
{
	sqlite3_finalize(writer->put_definitions);
	sqlite3_finalize(writer->put_samples);
	sqlite3_finalize(writer->put_accounts);
	if (writer->db && !sqlite3_get_autocommit(writer->db))
		sqlite3_exec(writer->db, "ROLLBACK", NULL, NULL, NULL);
	database_close(writer->db);
	buffer_release(&writer->data);
	memset(writer, 0, sizeof *writer);
}

static bool put_definitions(struct day_writer *writer, const struct catalog *catalog,
			    enum catalog_kind kind, uint32_t first, uint32_t count,
			    struct error *err)
{
	buffer_clear(&writer->data);
	catalog_encode(catalog, kind, first, count, &writer->data);
	if (writer->data.failed)
		return error_set(err, ERROR_LIMIT, "definitions of a day do not fit a row");
	DATABASE_BIND(writer->put_definitions, 1, kind, first, count);
	sqlite3_bind_blob64(writer->put_definitions, 4, writer->data.bytes, writer->data.length,
			    SQLITE_STATIC);
	return database_run(writer->put_definitions, err);
}

bool day_writer_definitions(struct day_writer *writer, const struct catalog *catalog,
			    const struct catalog_mark *from, const struct catalog_mark *to,
			    struct error *err)
{
	for (unsigned kind = 0; kind < CATALOG_KINDS; kind++) {
		uint32_t first = from->count[kind] ? from->count[kind] : 1;

		while (first < to->count[kind]) {
			uint32_t count = to->count[kind] - first;

			if (count > DEFINITIONS_PER_ROW)
				count = DEFINITIONS_PER_ROW;
			if (!put_definitions(writer, catalog, kind, first, count, err))
				return false;
			first += count;
		}
	}
	return true;
}

bool day_writer_samples(struct day_writer *writer, const struct day_row *row,
			const struct packed_pair *pairs, size_t count, struct error *err)
{
	sqlite3_stmt *put = writer->put_samples;

	buffer_clear(&writer->data);
	packed_encode(pairs, count, &writer->data);
	if (writer->data.failed)
		return error_set(err, ERROR_LIMIT, "samples of one minute do not fit a row");
	writer->is_touched[row->bucket / ROLLUP_MINUTES % ROLLUPS_PER_DAY] = true;
	DATABASE_BIND(put, 1, row->tenant, row->type, row->bucket, row->series, writer->fold,
		      (int64_t)count, (int64_t)row->samples, (int64_t)row->value);
	sqlite3_bind_blob64(put, 9, writer->data.bytes, writer->data.length, SQLITE_STATIC);
	return database_run(put, err);
}

bool day_writer_accounts(struct day_writer *writer, const struct day_row *row,
			 const struct buffer *data, struct error *err)
{
	sqlite3_stmt *put = writer->put_accounts;

	writer->is_touched[row->bucket / ROLLUP_MINUTES % ROLLUPS_PER_DAY] = true;
	DATABASE_BIND(put, 1, row->tenant, row->type, row->bucket, writer->fold);
	sqlite3_bind_blob64(put, 5, data->bytes, data->length, SQLITE_STATIC);
	return database_run(put, err);
}

static bool put_marks(struct day_writer *writer, struct error *err)
{
	sqlite3_stmt *put = database_prepare(
		writer->db,
		"INSERT INTO rollup_marks (bucket, through, newest) VALUES (?, 0, ?) "
		"ON CONFLICT (bucket) DO UPDATE SET newest = excluded.newest",
		err);
	bool ok = put;

	for (unsigned i = 0; ok && i < ROLLUPS_PER_DAY; i++) {
		if (!writer->is_touched[i])
			continue;
		DATABASE_BIND(put, 1, i * ROLLUP_MINUTES, writer->fold);
		ok = database_run(put, err);
	}
	sqlite3_finalize(put);
	return ok;
}

bool day_writer_commit(struct day_writer *writer, uint32_t day, struct error *err)
{
	return put_marks(writer, err) && database_put_fact(writer->db, "day", day, err) &&
	       database_put_fact(writer->db, "folded_through", writer->fold, err) &&
	       database_exec(writer->db, "COMMIT", err);
}

/* --- reading --- */

#define ROW_COLUMNS    "bucket, series, samples, value, data"
#define ROLLUP_COLUMNS "bucket, series, samples, value, data, hosts"
#define WITHIN         "tenant = ? AND type = ? AND bucket >= ? AND bucket < ? AND fold > ?"
#define OF_SERIES      "tenant = ? AND type = ? AND bucket = ? AND series = ? AND fold > ?"

static bool prepare_rollups(struct day_reader *reader, struct error *err)
{
	reader->rollups = database_prepare(
		reader->db, "SELECT " ROLLUP_COLUMNS " FROM rollups WHERE " WITHIN " AND level = ?",
		err);
	reader->rollups_series = database_prepare(
		reader->db,
		"SELECT " ROLLUP_COLUMNS " FROM rollups WHERE " OF_SERIES " AND level = ?", err);
	reader->rollup_accounts = database_prepare(
		reader->db,
		"SELECT bucket, 0, 0, 0, data FROM rollup_accounts WHERE " WITHIN " AND level = ?",
		err);
	reader->marks = database_prepare(reader->db,
					 "SELECT bucket, through, newest FROM rollup_marks", err);
	return reader->rollups && reader->rollups_series && reader->rollup_accounts &&
	       reader->marks;
}

static bool prepare_reader(struct day_reader *reader, struct error *err)
{
	int version = 0;

	if (!database_version(reader->db, &version, err))
		return false;
	reader->has_rollups = version > 1;
	reader->has_moments = version > 2;
	reader->has_spans = version > 3;
	reader->scan = database_prepare(reader->db,
					"SELECT " ROW_COLUMNS " FROM samples WHERE " WITHIN, err);
	reader->scan_series = database_prepare(
		reader->db, "SELECT " ROW_COLUMNS " FROM samples WHERE " OF_SERIES, err);
	reader->accounts = database_prepare(
		reader->db, "SELECT bucket, 0, 0, 0, data FROM accounts WHERE " WITHIN, err);
	return reader->scan && reader->scan_series && reader->accounts &&
	       (!reader->has_rollups || prepare_rollups(reader, err));
}

struct day_reader *day_reader_open(const char *path, struct error *err)
{
	struct day_reader *reader = calloc(1, sizeof *reader);
	int64_t reduced = 0;

	if (!reader) {
		error_set(err, ERROR_MEMORY, "no memory to read '%s'", path);
		return NULL;
	}
	reader->db = database_open_reader(path, &schema, err);
	if (reader->db && database_get_fact(reader->db, "reduced", &reduced, err) &&
	    prepare_reader(reader, err)) {
		reader->is_reduced = reduced;
		return reader;
	}
	day_reader_close(reader);
	return NULL;
}

struct day_reader *day_reader_open_damaged(const char *path, uint64_t *folded_through,
					   struct error *err)
{
	struct day_reader *reader = calloc(1, sizeof *reader);
	int64_t reduced = 0, folded = 0;

	if (!reader) {
		error_set(err, ERROR_MEMORY, "no memory to read '%s'", path);
		return NULL;
	}
	reader->db = database_open_damaged(path, &schema, err);
	if (!reader->db || !prepare_reader(reader, err) ||
	    !database_exec(reader->db, "BEGIN", err)) {
		day_reader_close(reader);
		return NULL;
	}
	database_get_fact(reader->db, "reduced", &reduced, NULL);
	database_get_fact(reader->db, "folded_through", &folded, NULL);
	reader->is_reduced = reduced;
	*folded_through = (uint64_t)folded;
	return reader;
}

void day_reader_close(struct day_reader *reader)
{
	if (!reader)
		return;
	sqlite3_finalize(reader->scan);
	sqlite3_finalize(reader->scan_series);
	sqlite3_finalize(reader->accounts);
	sqlite3_finalize(reader->rollups);
	sqlite3_finalize(reader->rollups_series);
	sqlite3_finalize(reader->rollup_accounts);
	sqlite3_finalize(reader->marks);
	database_close(reader->db);
	free(reader);
}

bool day_reader_begin(struct day_reader *reader, uint64_t *folded_through, struct error *err)
{
	int64_t folded;

	if (!database_exec(reader->db, "BEGIN", err))
		return false;
	if (!database_get_fact(reader->db, "folded_through", &folded, err)) {
		day_reader_end(reader);
		return false;
	}
	*folded_through = (uint64_t)folded;
	return true;
}

void day_reader_end(struct day_reader *reader)
{
	sqlite3_exec(reader->db, "COMMIT", NULL, NULL, NULL);
}

/* Rows in key order: strings before modules before locations …, as references need it. */
bool day_reader_catalog(struct day_reader *reader, struct catalog *catalog, struct error *err)
{
	sqlite3_stmt *statement = database_prepare(
		reader->db, "SELECT kind, first, count, data FROM definitions ORDER BY kind, first",
		err);
	bool ok = statement;

	if (!ok)
		return false;
	catalog->is_indexed = false;
	while (database_row(statement, &ok, err)) {
		const uint8_t *at = sqlite3_column_blob(statement, 3);
		const uint8_t *end = at + sqlite3_column_bytes(statement, 3);

		ok = catalog_decode(catalog, (enum catalog_kind)sqlite3_column_int(statement, 0),
				    (uint32_t)sqlite3_column_int64(statement, 1),
				    (uint32_t)sqlite3_column_int64(statement, 2), &at, end, err);
	}
	sqlite3_finalize(statement);
	catalog->logged = catalog->persisted = catalog_mark(catalog);
	return ok;
}

struct row_sink {
	bool with_data;
	bool (*is_wanted)(void *context, uint32_t series);
	day_row_fn *fn;
	void *context;
	bool is_stopped;
};

static void get_data(sqlite3_stmt *statement, bool with_data, struct day_data *data)
{
	if (with_data) {
		data->data = sqlite3_column_blob(statement, 4);
		data->length = (size_t)sqlite3_column_bytes(statement, 4);
	}
	if (sqlite3_column_count(statement) == 5)
		return;
	data->hosts = sqlite3_column_blob(statement, 5);
	data->hosts_length = (size_t)sqlite3_column_bytes(statement, 5);
}

static bool each_row(sqlite3_stmt *statement, const struct day_range *range, struct row_sink *sink,
		     struct error *err)
{
	int code = SQLITE_DONE;

	while (!sink->is_stopped && (code = sqlite3_step(statement)) == SQLITE_ROW) {
		struct day_row row = {.tenant = range->tenant, .type = range->type};
		struct day_data data = {0};

		row.series = (uint32_t)sqlite3_column_int64(statement, 1);
		if (sink->is_wanted && !sink->is_wanted(sink->context, row.series))
			continue;
		row.bucket = (uint32_t)sqlite3_column_int64(statement, 0);
		row.samples = (uint64_t)sqlite3_column_int64(statement, 2);
		row.value = (uint64_t)sqlite3_column_int64(statement, 3);
		get_data(statement, sink->with_data, &data);
		sink->is_stopped = !sink->fn(sink->context, &row, &data);
	}
	sqlite3_reset(statement);
	return sink->is_stopped || code == SQLITE_DONE ||
	       database_error(sqlite3_db_handle(statement), "read", err);
}

static void bind_range(sqlite3_stmt *statement, const struct day_range *range)
{
	DATABASE_BIND(statement, 1, range->tenant, range->type, range->from, range->until,
		      (int64_t)range->above);
	if (range->level != DAY_RAW)
		sqlite3_bind_int64(statement, 6, range->level);
}

static uint32_t step_of(enum day_level level)
{
	return level == DAY_RAW                             ? 1
	       : level == DAY_10M || level == DAY_10M_FLEET ? ROLLUP_MINUTES
							    : 60;
}

bool day_reader_samples(struct day_reader *reader, const struct day_range *range,
			const uint32_t *series, uint32_t series_count, bool with_data,
			bool (*is_wanted)(void *context, uint32_t series), day_row_fn *fn,
			void *context, struct error *err)
{
	struct row_sink sink = {with_data, series ? NULL : is_wanted, fn, context, false};
	sqlite3_stmt *scan = range->level ? reader->rollups : reader->scan;
	sqlite3_stmt *find = range->level ? reader->rollups_series : reader->scan_series;
	uint32_t step = step_of(range->level);
	bool ok = true;

	if (!series) {
		bind_range(scan, range);
		return each_row(scan, range, &sink, err);
	}
	bind_range(find, range);
	for (uint32_t minute = range->from; ok && minute < range->until; minute += step)
		for (uint32_t i = 0; ok && !sink.is_stopped && i < series_count; i++) {
			DATABASE_BIND(find, 3, minute, series[i]);
			ok = each_row(find, range, &sink, err);
		}
	return ok;
}

bool day_reader_accounts(struct day_reader *reader, const struct day_range *range, day_row_fn *fn,
			 void *context, struct error *err)
{
	sqlite3_stmt *scan = range->level ? reader->rollup_accounts : reader->accounts;
	struct row_sink sink = {true, NULL, fn, context, false};

	bind_range(scan, range);
	return each_row(scan, range, &sink, err);
}

bool day_reader_marks(struct day_reader *reader, day_mark_fn *fn, void *context, struct error *err)
{
	sqlite3_stmt *scan = reader->marks;
	bool wants_more = true;
	int code;

	if (!scan)
		return true;
	while (wants_more && (code = sqlite3_step(scan)) == SQLITE_ROW) {
		struct day_mark mark = {(uint32_t)sqlite3_column_int64(scan, 0),
					(uint64_t)sqlite3_column_int64(scan, 1),
					(uint64_t)sqlite3_column_int64(scan, 2)};

		wants_more = fn(context, &mark);
	}
	sqlite3_reset(scan);
	return !wants_more || code == SQLITE_DONE ||
	       database_error(sqlite3_db_handle(scan), "read", err);
}
