/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/days/moment_rows.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "symbol-server/store/rules/answerable.h"

/* --- writing --- */

bool day_writer_moments(struct day_writer *writer, const struct day_row *row,
			struct moment *moments, size_t count, struct error *err)
{
	sqlite3_stmt *put = database_prepare(
		writer->db, "INSERT INTO moments VALUES (?, ?, ?, ?, ?, ?, ?)", err);
	bool ok = false;

	if (!put)
		return false;
	buffer_clear(&writer->data);
	moments_encode(moments, count, &writer->data);
	if (writer->data.failed) {
		error_set(err, ERROR_LIMIT, "times of one minute's samples do not fit a row");
		goto out;
	}
	sqlite3_bind_int64(put, 1, row->tenant);
	sqlite3_bind_int64(put, 2, row->type);
	sqlite3_bind_int64(put, 3, row->bucket);
	sqlite3_bind_int64(put, 4, row->series);
	sqlite3_bind_int64(put, 5, writer->fold);
	sqlite3_bind_int64(put, 6, (int64_t)count);
	sqlite3_bind_blob64(put, 7, writer->data.bytes, writer->data.length, SQLITE_STATIC);
	ok = database_run(put, err);
out:
	sqlite3_finalize(put);
	return ok;
}

/* --- reading --- */

bool moment_view_open(struct view *view, struct sqlite_samples *store,
		      const struct samples_query *query, unsigned type, struct error *err)
{
	struct samples_query wide = *query;

	wide.from_ms -= MOMENT_SPAN_MS - MOMENT_BEFORE_MS;
	wide.until_ms += MOMENT_BEFORE_MS;
	return view_open(view, store, &wide, (int)(type | MOMENTS_OF), err);
}

struct moment_relay {
	const struct samples_query *query;
	struct limit_watch *watch;
	moment_row_fn *fn;
	void *context;
	struct moment_row row;
	int64_t start_ms; /* of the row's times */
	bool is_stopped;
};

static void set_row(struct moment_relay *relay, uint32_t bucket, uint32_t series)
{
	relay->row.bucket = bucket;
	relay->row.series = series;
	relay->start_ms = moments_from_ms(relay->row.day->day->day * day_ms +
					  (int64_t)bucket * SAMPLES_BUCKET_MS);
}

static bool relay_moment(void *context, const struct moment *moment)
{
	struct moment_relay *relay = context;
	const struct samples_query *query = relay->query;
	const uint32_t *count = relay->row.day->mark.count;

	relay->row.time_ms = relay->start_ms + moment->time_ms;
	relay->row.moment = moment;
	if (!limit_watch_goes_on(relay->watch, NULL))
		relay->is_stopped = true;
	else if (relay->row.time_ms >= query->from_ms && relay->row.time_ms < query->until_ms &&
		 moment->thread < count[CATALOG_STRINGS] && moment->stack < count[CATALOG_STACKS])
		relay->is_stopped = !relay->fn(relay->context, &relay->row);
	return !relay->is_stopped;
}

static bool relay_run(void *context, const uint8_t *bytes, size_t length)
{
	return moments_each_raw(bytes, length, relay_moment, context);
}

/* Times in memory that the file's transaction does not have. */
static void each_cell(struct moment_relay *relay)
{
	const struct view_day *day = relay->row.day;

	for (size_t i = 0; !relay->is_stopped && i < day->cell_count; i++) {
		const struct memory_snapshot *snapshot = &day->cells[i].snapshot;

		if (!(snapshot->key.type & MOMENTS_OF) ||
		    day->cells[i].start < day->folded_through ||
		    !view_has_series(day, snapshot->key.series) ||
		    !limit_watch_row(relay->watch, NULL))
			continue;
		set_row(relay, snapshot->key.bucket, snapshot->key.series);
		memory_snapshot_each(snapshot, relay_run, relay);
	}
}

static bool each_stored(struct moment_relay *relay, unsigned type, struct error *err)
{
	const struct view_day *day = relay->row.day;
	sqlite3_stmt *select;
	int code = SQLITE_DONE;

	if (!day->reader->has_moments)
		return true;
	select = database_prepare(day->reader->db,
				  "SELECT bucket, series, data FROM moments WHERE tenant = ? AND "
				  "type = ? AND bucket >= ? AND bucket < ?",
				  err);
	if (!select)
		return false;
	sqlite3_bind_int64(select, 1, relay->query->tenant);
	sqlite3_bind_int64(select, 2, type);
	sqlite3_bind_int64(select, 3, day->from);
	sqlite3_bind_int64(select, 4, day->until);
	while (!relay->is_stopped && (code = sqlite3_step(select)) == SQLITE_ROW) {
		uint32_t series = (uint32_t)sqlite3_column_int64(select, 1);

		if (!view_has_series(day, series))
			continue;
		if (!limit_watch_row(relay->watch, err)) {
			sqlite3_finalize(select);
			return false;
		}
		set_row(relay, (uint32_t)sqlite3_column_int64(select, 0), series);
		if (!moments_each(sqlite3_column_blob(select, 2),
				  (size_t)sqlite3_column_bytes(select, 2), relay_moment, relay) &&
		    !relay->is_stopped) {
			sqlite3_finalize(select);
			return error_set(err, ERROR_FORMAT, "times of samples are damaged");
		}
	}
	if (!relay->is_stopped && code != SQLITE_DONE)
		database_error(day->reader->db, "read", err);
	sqlite3_finalize(select);
	return relay->is_stopped || code == SQLITE_DONE;
}

bool moment_view_each(struct view *view, struct view_day *day, const struct samples_query *query,
		      unsigned type, moment_row_fn *fn, void *context, struct error *err)
{
	struct moment_relay relay = {query, &view->watch, fn, context, {.day = day}, 0, false};

	if (!day->catalog)
		return true;
	if (day->reader && !each_stored(&relay, type, err))
		return view_read_failed(view, day, err);
	each_cell(&relay);
	return view->watch.why.kind == ERROR_NONE || view_read_failed(view, day, err);
}

/* --- as counted stacks --- */

struct moment_rows {
	view_row_fn *fn;
	void *context;
	unsigned type;
	struct view_day *day;
	uint32_t bucket, series;
	int32_t second;
	bool by_second; /* steps shorter than a bucket are asked for */
	struct packed_pair *pairs;
	size_t count, capacity;
	struct buffer packed;
	bool is_stopped, is_full;
};

static bool give_row(struct moment_rows *rows)
{
	struct view_row row = {.day = rows->day,
			       .type = rows->type,
			       .bucket = rows->bucket,
			       .second = rows->second,
			       .series = rows->series};

	if (!rows->count)
		return true;
	rows->count = packed_merge(rows->pairs, rows->count);
	for (size_t i = 0; i < rows->count; i++) {
		row.samples += rows->pairs[i].samples;
		row.value += rows->pairs[i].value;
	}
	buffer_clear(&rows->packed);
	packed_encode(rows->pairs, rows->count, &rows->packed);
	rows->is_full |= rows->packed.failed;
	row.packed = rows->packed.bytes;
	row.length = rows->packed.length;
	rows->count = 0;
	rows->is_stopped = rows->is_full || !rows->fn(rows->context, &row);
	return !rows->is_stopped;
}

/* Since the minute that its report began in. */
static int32_t second_of(const struct moment_row *row)
{
	int64_t bucket_ms = row->day->day->day * day_ms + row->bucket * (int64_t)SAMPLES_BUCKET_MS;

	return (int32_t)(row->time_ms / 1000 - bucket_ms / 1000);
}

static bool collect(void *context, const struct moment_row *row)
{
	struct moment_rows *rows = context;
	int32_t second = rows->by_second ? second_of(row) : 0;

	if ((row->bucket != rows->bucket || row->series != rows->series ||
	     second != rows->second) &&
	    !give_row(rows))
		return false;
	rows->second = second;
	rows->bucket = row->bucket;
	rows->series = row->series;
	if (!ARRAY_GROW(rows->pairs, rows->count, rows->capacity)) {
		rows->is_full = true;
		return false;
	}
	rows->pairs[rows->count++] = (struct packed_pair){row->moment->thread, row->moment->stack,
							  1, row->moment->value};
	return true;
}

bool moment_view_rows(struct view *view, struct view_day *day, const struct samples_query *query,
		      unsigned type, view_row_fn *fn, void *context, struct error *err)
{
	struct moment_rows rows = {.fn = fn,
				   .context = context,
				   .type = type,
				   .day = day,
				   .by_second = query->by_bucket &&
						query->step_ms % SAMPLES_BUCKET_MS};
	bool ok;

	buffer_init(&rows.packed, 64 << 20);
	ok = moment_view_each(view, day, query, type, collect, &rows, err);
	if (ok && !rows.is_stopped && !rows.is_full)
		give_row(&rows);
	buffer_release(&rows.packed);
	free(rows.pairs);
	return rows.is_full ? error_set(err, ERROR_MEMORY, "no memory for an answer") : ok;
}

/* --- the door --- */

struct moment_query {
	const struct samples_query *query;
	uint8_t *threads; /* 0 not asked, 1 wanted, 2 not */
	samples_moment_fn *fn;
	void *context;
	bool is_stopped;
};

static bool is_thread_wanted(struct moment_query *moments, const struct moment_row *row)
{
	uint8_t *known = &moments->threads[row->moment->thread];

	char joined[CONTEXT_BYTES_MAX];
	const char *text;

	if (*known)
		return *known == 1;
	text = view_context(row->day, moments->query, row->moment->thread, joined);
	*known = text && moments->query->thread_wanted(moments->query->context, text) ? 1 : 2;
	return *known == 1;
}

static bool pass(void *context, const struct moment_row *row)
{
	struct moment_query *moments = context;

	if (!moments->query->thread_wanted || is_thread_wanted(moments, row))
		moments->is_stopped = !moments->fn(moments->context, row->time_ms,
						   row->moment->value);
	return !moments->is_stopped;
}

static bool query_day(struct view *view, struct view_day *day, unsigned type,
		      struct moment_query *moments, struct error *err)
{
	if (!view_choose_series(view, day, moments->query, err))
		return false;
	moments->threads = arena_array(&view->arena, day->mark.count[CATALOG_STRINGS] + 1, 1);
	if (!moments->threads)
		return error_set(err, ERROR_MEMORY, "no memory for an answer");
	return !day->wanted ||
	       moment_view_each(view, day, moments->query, type, pass, moments, err);
}

bool sqlite_samples_moments(struct samples_store *base, const struct samples_query *query,
			    samples_moment_fn *fn, void *context, struct error *err)
{
	struct moment_query moments = {.query = query, .fn = fn, .context = context};
	struct view view;
	bool ok = true;
	int type;

	if (!answerable_type(query, &type, err))
		return false;
	if (!moment_view_open(&view, sqlite_samples_of(base), query, (unsigned)type, err))
		return false;
	for (unsigned i = 0; ok && !moments.is_stopped && i < view.day_count; i++)
		ok = query_day(&view, &view.days[i], (unsigned)type, &moments, err);
	ok = ok && limit_watch_allows(&view.watch, view.arena.used, err);
	view_close(&view);
	return ok;
}
