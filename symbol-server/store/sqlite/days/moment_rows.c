/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/days/moment_rows.h"

#include "symbol-server/store/sqlite/days/single_rows.h"

struct moment_rows {
	struct single_rows rows;
	moment_row_fn *each; /* instead of rows.fn */
	bool by_second;
};

static bool see_moment(void *context, const struct moment *moment)
{
	struct moment_rows *moments = context;
	struct single_rows *rows = &moments->rows;
	int64_t bucket_ms = rows->row.day->day->day * day_ms +
			    rows->row.bucket * (int64_t)SAMPLES_BUCKET_MS;
	int64_t time_ms = moments_from_ms(bucket_ms) + moment->time_ms;
	int32_t second = (int32_t)(time_ms / 1000 - bucket_ms / 1000);

	if (!single_rows_goes_on(rows))
		return false;
	if (time_ms < rows->query->from_ms || time_ms >= rows->query->until_ms ||
	    !single_rows_is_defined(rows, moment->thread, moment->stack))
		return true;
	if (moments->each) {
		rows->is_stopped = !moments->each(rows->context, time_ms, moment);
		return !rows->is_stopped;
	}
	if (moments->by_second && second != rows->row.second) {
		single_rows_give(rows);
		rows->row.second = second;
	}
	return !rows->is_stopped &&
	       single_rows_add(rows, moment->thread, moment->stack, 1, moment->value);
}

static bool each_moment(void *rows, const uint8_t *bytes, size_t length)
{
	return moments_each(bytes, length, see_moment, rows);
}

static bool each_raw_moment(void *rows, const uint8_t *bytes, size_t length)
{
	return moments_each_raw(bytes, length, see_moment, rows);
}

static const struct single_table table = {
	.cells = MOMENTS_OF,
	.insert = "INSERT " INTO_MOMENTS,
	.select = "SELECT bucket, series, data FROM moments WHERE tenant = ? AND type = ? AND "
		  "bucket >= ? AND bucket < ?",
	.what = "times",
	.each = each_moment,
	.each_raw = each_raw_moment,
	.end = single_rows_give,
};

bool day_writer_moments(struct day_writer *writer, const struct day_row *row,
			struct moment *moments, size_t count, struct error *err)
{
	buffer_clear(&writer->data);
	moments_encode(moments, count, &writer->data);
	return day_writer_singles(writer, &table, row, count, NULL, err);
}

bool moment_view_open(struct view *view, struct sqlite_samples *store,
		      const struct samples_query *query, unsigned type, struct error *err)
{
	struct samples_query wide = *query;

	wide.from_ms -= MOMENT_SPAN_MS - MOMENT_BEFORE_MS;
	wide.until_ms += MOMENT_BEFORE_MS;
	return view_open(view, store, &wide, (int)(type | MOMENTS_OF), err);
}

bool moment_view_each(struct view *view, struct view_day *day, const struct samples_query *query,
		      unsigned type, moment_row_fn *fn, void *context, struct error *err)
{
	struct moment_rows moments = {
		{&table, view, query, {.day = day, .type = type}, NULL, context}, fn, false};

	return single_rows_walk(&moments.rows, day->reader && day->reader->has_moments, err);
}

bool moment_view_rows(struct view *view, struct view_day *day, const struct samples_query *query,
		      unsigned type, view_row_fn *fn, void *context, struct error *err)
{
	bool by_second = query->by_bucket && query->step_ms % SAMPLES_BUCKET_MS;
	struct moment_rows moments = {
		{&table, view, query, {.day = day, .type = type}, fn, context}, NULL, by_second};

	return single_rows_walk(&moments.rows, day->reader && day->reader->has_moments, err);
}
