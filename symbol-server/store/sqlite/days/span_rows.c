/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/days/span_rows.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"

/* --- writing --- */

bool day_writer_spans(struct day_writer *writer, const struct day_row *row,
		      struct span_sample *spans, size_t count, struct error *err)
{
	sqlite3_stmt *put = database_prepare(
		writer->db, "INSERT INTO spans VALUES (?, ?, ?, ?, ?, ?, ?, ?)", err);
	struct buffer filter;
	bool ok = false;

	if (!put)
		return false;
	buffer_clear(&writer->data);
	buffer_init(&filter, 64 << 20);
	spans_encode(spans, count, &writer->data);
	spans_filter(spans, count, &filter);
	if (writer->data.failed || filter.failed) {
		error_set(err, ERROR_LIMIT, "spans of one minute's samples do not fit a row");
		goto out;
	}
	sqlite3_bind_int64(put, 1, row->bucket);
	sqlite3_bind_int64(put, 2, row->tenant);
	sqlite3_bind_int64(put, 3, row->type);
	sqlite3_bind_int64(put, 4, row->series);
	sqlite3_bind_int64(put, 5, writer->fold);
	sqlite3_bind_int64(put, 6, (int64_t)count);
	sqlite3_bind_blob64(put, 7, filter.bytes, filter.length, SQLITE_STATIC);
	sqlite3_bind_blob64(put, 8, writer->data.bytes, writer->data.length, SQLITE_STATIC);
	ok = database_run(put, err);
out:
	sqlite3_finalize(put);
	buffer_release(&filter);
	return ok;
}

/* --- reading --- */

bool span_view_open(struct view *view, struct sqlite_samples *store,
		    const struct samples_query *query, unsigned type, struct error *err)
{
	struct samples_query kept = *query;
	int64_t from_ms = store_now_ms() - store->trace_keep_ms;

	if (kept.from_ms < from_ms)
		kept.from_ms = from_ms;
	if (kept.until_ms < kept.from_ms)
		kept.until_ms = kept.from_ms;
	return view_open(view, store, &kept, (int)(type | SPANS_OF), err);
}

struct span_relay {
	const struct samples_query *query;
	struct limit_watch *watch;
	view_row_fn *fn;
	span_fn *each; /* instead of fn */
	void *context;
	struct view_row row;
	struct span_sample *spans;
	size_t count, capacity;
	struct packed_pair *pairs;
	size_t pair_room;
	struct buffer packed;
	bool is_stopped, is_full;
};

static bool has_ids(const struct samples_query *query, const uint8_t *ids)
{
	return (!query->span_wanted || query->span_wanted(query->context, ids)) &&
	       (!query->trace_id || !memcmp(ids, query->trace_id, TRACE_ID_BYTES)) &&
	       (!query->span_id || !memcmp(ids + TRACE_ID_BYTES, query->span_id, SPAN_ID_BYTES));
}

static bool collect(void *context, const struct span_sample *span)
{
	struct span_relay *relay = context;
	const uint32_t *defined = relay->row.day->mark.count;

	if (!limit_watch_goes_on(relay->watch, NULL)) {
		relay->is_stopped = true;
		return false;
	}
	if (!has_ids(relay->query, span->ids) || span->thread >= defined[CATALOG_STRINGS] ||
	    span->stack >= defined[CATALOG_STACKS])
		return true;
	if (relay->each) {
		relay->is_stopped = !relay->each(relay->context, span);
		return !relay->is_stopped;
	}
	if (!ARRAY_GROW(relay->spans, relay->count, relay->capacity)) {
		relay->is_full = true;
		return false;
	}
	relay->spans[relay->count++] = *span;
	return true;
}

static bool collect_run(void *context, const uint8_t *bytes, size_t length)
{
	return spans_each_raw(bytes, length, collect, context);
}

static void give_spans(struct span_relay *relay, const struct span_sample *spans, size_t count)
{
	struct view_row *row = &relay->row;

	if (!ARRAY_RESERVE(relay->pairs, count, relay->pair_room)) {
		relay->is_full = true;
		return;
	}
	row->samples = row->value = 0;
	for (size_t i = 0; i < count; i++) {
		relay->pairs[i] = (struct packed_pair){spans[i].thread, spans[i].stack,
						       spans[i].samples, spans[i].value};
		row->samples += spans[i].samples;
		row->value += spans[i].value;
	}
	count = packed_merge(relay->pairs, count);
	buffer_clear(&relay->packed);
	packed_encode(relay->pairs, count, &relay->packed);
	relay->is_full |= relay->packed.failed;
	row->packed = relay->packed.bytes;
	row->length = relay->packed.length;
	if (!relay->is_full)
		relay->is_stopped = !relay->fn(relay->context, row);
}

static void give_row(struct span_relay *relay, uint32_t bucket, uint32_t series)
{
	const struct span_sample *spans = relay->spans;
	bool by_span = relay->query->by_span;
	size_t last = 0;

	relay->row.bucket = bucket;
	relay->row.series = series;
	if (by_span)
		spans_sort(relay->spans, relay->count);
	for (size_t i = 0; i < relay->count && !relay->is_full && !relay->is_stopped; i = last) {
		for (last = i + 1; last < relay->count; last++)
			if (by_span && memcmp(spans[i].ids, spans[last].ids, SPAN_IDS_BYTES))
				break;
		relay->row.span = by_span ? spans[i].ids : NULL;
		give_spans(relay, spans + i, last - i);
	}
	relay->count = 0;
}

static void each_cell(struct span_relay *relay, unsigned type)
{
	const struct view_day *day = relay->row.day;

	for (size_t i = 0; !relay->is_stopped && !relay->is_full && i < day->cell_count; i++) {
		const struct memory_snapshot *snapshot = &day->cells[i].snapshot;

		if (snapshot->key.type != (type | SPANS_OF) ||
		    day->cells[i].start < day->folded_through || snapshot->key.bucket < day->from ||
		    snapshot->key.bucket >= day->until ||
		    !view_has_series(day, snapshot->key.series))
			continue;
		relay->is_stopped = !limit_watch_row(relay->watch, NULL);
		if (relay->is_stopped)
			return;
		memory_snapshot_each(snapshot, collect_run, relay);
		give_row(relay, snapshot->key.bucket, snapshot->key.series);
	}
}

static bool may_have(const struct samples_query *query, sqlite3_stmt *row)
{
	const uint8_t *filter = sqlite3_column_blob(row, 2);
	size_t length = (size_t)sqlite3_column_bytes(row, 2);

	return (!query->trace_id ||
		spans_may_have(filter, length, query->trace_id, TRACE_ID_BYTES)) &&
	       (!query->span_id || spans_may_have(filter, length, query->span_id, SPAN_ID_BYTES));
}

static bool read_row(struct span_relay *relay, sqlite3_stmt *select, struct error *err)
{
	const struct samples_query *query = relay->query;
	uint32_t series = (uint32_t)sqlite3_column_int64(select, 1);

	if (!view_has_series(relay->row.day, series) || !may_have(query, select))
		return true;
	if (!limit_watch_row(relay->watch, err))
		return false;
	if (!spans_each(sqlite3_column_blob(select, 3), (size_t)sqlite3_column_bytes(select, 3),
			collect, relay) &&
	    !relay->is_full && !relay->is_stopped)
		return error_set(err, ERROR_FORMAT, "spans of samples are damaged");
	give_row(relay, (uint32_t)sqlite3_column_int64(select, 0), series);
	return true;
}

static bool each_stored(struct span_relay *relay, unsigned type, struct error *err)
{
	const struct view_day *day = relay->row.day;
	int code = SQLITE_DONE;
	sqlite3_stmt *select;
	bool ok = true;

	if (!day->reader->has_spans)
		return true;
	select = database_prepare(day->reader->db,
				  "SELECT bucket, series, filter, data FROM spans WHERE "
				  "tenant = ? AND type = ? AND bucket >= ? AND bucket < ?",
				  err);
	if (!select)
		return false;
	sqlite3_bind_int64(select, 1, relay->query->tenant);
	sqlite3_bind_int64(select, 2, type);
	sqlite3_bind_int64(select, 3, day->from);
	sqlite3_bind_int64(select, 4, day->until);
	while (ok && !relay->is_stopped && !relay->is_full &&
	       (code = sqlite3_step(select)) == SQLITE_ROW)
		ok = read_row(relay, select, err);
	if (ok && !relay->is_stopped && !relay->is_full && code != SQLITE_DONE)
		ok = database_error(day->reader->db, "read", err);
	sqlite3_finalize(select);
	return ok;
}

static bool relay_rows(struct view *view, struct span_relay *relay, unsigned type,
		       struct error *err)
{
	struct view_day *day = relay->row.day;
	bool ok;

	if (!day->catalog)
		return true;
	buffer_init(&relay->packed, 64 << 20);
	ok = !day->reader || each_stored(relay, type, err);
	if (ok && !relay->is_stopped && !relay->is_full)
		each_cell(relay, type);
	if (!ok || view->watch.why.kind != ERROR_NONE)
		ok = view_read_failed(view, day, err);
	buffer_release(&relay->packed);
	free(relay->pairs);
	free(relay->spans);
	return relay->is_full ? error_set(err, ERROR_MEMORY, "no memory for an answer") : ok;
}

bool span_view_rows(struct view *view, struct view_day *day, const struct samples_query *query,
		    unsigned type, view_row_fn *fn, void *context, struct error *err)
{
	struct span_relay relay = {.query = query,
				   .watch = &view->watch,
				   .fn = fn,
				   .context = context,
				   .row = {.day = day, .type = type}};

	return relay_rows(view, &relay, type, err);
}

bool span_view_each(struct view *view, struct view_day *day, const struct samples_query *query,
		    unsigned type, span_fn *fn, void *context, struct error *err)
{
	struct span_relay relay = {.query = query,
				   .watch = &view->watch,
				   .each = fn,
				   .context = context,
				   .row = {.day = day, .type = type}};

	return relay_rows(view, &relay, type, err);
}
