/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/days/span_rows.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "symbol-server/store/sqlite/days/single_rows.h"

struct span_rows {
	struct single_rows rows;
	span_fn *each;             /* instead of rows.fn */
	struct span_sample *spans; /* of the row that is read */
	size_t count, capacity;
};

static bool has_ids(const struct samples_query *query, const uint8_t *ids)
{
	return (!query->span_wanted || query->span_wanted(query->context, ids)) &&
	       (!query->trace_id || !memcmp(ids, query->trace_id, TRACE_ID_BYTES)) &&
	       (!query->span_id || !memcmp(ids + TRACE_ID_BYTES, query->span_id, SPAN_ID_BYTES));
}

static bool see_span(void *context, const struct span_sample *span)
{
	struct span_rows *spans = context;
	struct single_rows *rows = &spans->rows;

	if (!single_rows_goes_on(rows))
		return false;
	if (!has_ids(rows->query, span->ids) ||
	    !single_rows_is_defined(rows, span->thread, span->stack))
		return true;
	if (spans->each) {
		rows->is_stopped = !spans->each(rows->context, span);
		return !rows->is_stopped;
	}
	rows->is_full |= !ARRAY_GROW(spans->spans, spans->count, spans->capacity);
	if (!rows->is_full)
		spans->spans[spans->count++] = *span;
	return !rows->is_full;
}

/* By span, those of one are one row. */
static void give_spans(struct single_rows *rows)
{
	struct span_rows *spans = (struct span_rows *)rows;
	const uint8_t *ids = NULL;

	if (rows->query->by_span)
		spans_sort(spans->spans, spans->count);
	for (size_t i = 0; i < spans->count && !rows->is_stopped && !rows->is_full; i++) {
		const struct span_sample *span = &spans->spans[i];

		if (rows->query->by_span && (!ids || memcmp(ids, span->ids, SPAN_IDS_BYTES) != 0)) {
			single_rows_give(rows);
			rows->row.span = ids = span->ids;
		}
		single_rows_add(rows, span->thread, span->stack, span->samples, span->value);
	}
	single_rows_give(rows);
	spans->count = 0;
}

static bool each_span(void *rows, const uint8_t *bytes, size_t length)
{
	return spans_each(bytes, length, see_span, rows);
}

static bool each_raw_span(void *rows, const uint8_t *bytes, size_t length)
{
	return spans_each_raw(bytes, length, see_span, rows);
}

static bool may_have(const struct samples_query *query, sqlite3_stmt *row)
{
	const uint8_t *filter = sqlite3_column_blob(row, 3);
	size_t length = (size_t)sqlite3_column_bytes(row, 3);

	return (!query->trace_id ||
		spans_may_have(filter, length, query->trace_id, TRACE_ID_BYTES)) &&
	       (!query->span_id || spans_may_have(filter, length, query->span_id, SPAN_ID_BYTES));
}

static const struct single_table table = {
	.cells = SPANS_OF,
	.insert = "INSERT " INTO_SPANS,
	.select = "SELECT bucket, series, data, filter FROM spans WHERE tenant = ? AND type = ? "
		  "AND bucket >= ? AND bucket < ?",
	.what = "spans",
	.may_have = may_have,
	.each = each_span,
	.each_raw = each_raw_span,
	.end = give_spans,
};

bool day_writer_spans(struct day_writer *writer, const struct day_row *row,
		      struct span_sample *spans, size_t count, struct error *err)
{
	struct buffer filter;
	bool ok;

	buffer_clear(&writer->data);
	buffer_init(&filter, 64 << 20);
	spans_encode(spans, count, &writer->data);
	spans_filter(spans, count, &filter);
	ok = day_writer_singles(writer, &table, row, count, &filter, err);
	buffer_release(&filter);
	return ok;
}

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

static bool walk(struct span_rows *spans, struct error *err)
{
	const struct day_reader *reader = spans->rows.row.day->reader;
	bool ok = single_rows_walk(&spans->rows, reader && reader->has_spans, err);

	free(spans->spans);
	return ok;
}

bool span_view_rows(struct view *view, struct view_day *day, const struct samples_query *query,
		    unsigned type, view_row_fn *fn, void *context, struct error *err)
{
	struct span_rows spans = {{&table, view, query, {.day = day, .type = type}, fn, context},
				  NULL};

	return walk(&spans, err);
}

bool span_view_each(struct view *view, struct view_day *day, const struct samples_query *query,
		    unsigned type, span_fn *fn, void *context, struct error *err)
{
	struct span_rows spans = {{&table, view, query, {.day = day, .type = type}, NULL, context},
				  fn};

	return walk(&spans, err);
}
