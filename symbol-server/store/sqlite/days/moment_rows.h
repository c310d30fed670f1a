/* SPDX-License-Identifier: Apache-2.0 */
/* When single samples were taken: a day file's table, and what of it a query sees. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_DAYS_MOMENT_ROWS_H
#define SYMBOL_SERVER_STORE_SQLITE_DAYS_MOMENT_ROWS_H

#include "symbol-server/store/sqlite/cells/moments.h"
#include "symbol-server/store/sqlite/answers/view.h"

/* Sorts moments. row's sums are not looked at. */
bool day_writer_moments(struct day_writer *writer, const struct day_row *row,
			struct moment *moments, size_t count, struct error *err);

/* A view of the days and of the times in memory that may lie in the query's exact range: a sample
 * is kept with the minute its report began in. Close it with view_close(). */
bool moment_view_open(struct view *view, struct sqlite_samples *store,
		      const struct samples_query *query, unsigned type, struct error *err);

/* In the query's exact range, of the series that were chosen; thread and stack are numbers of the
 * day's dictionary. False stops, and the return is then true as well. */
typedef bool moment_row_fn(void *context, int64_t time_ms, const struct moment *moment);
bool moment_view_each(struct view *view, struct view_day *day, const struct samples_query *query,
		      unsigned type, moment_row_fn *fn, void *context, struct error *err);

/* The same as rows of counted stacks, one per series, minute and fold, or per second where steps
 * are shorter than a minute: view_each() for is_exact. */
bool moment_view_rows(struct view *view, struct view_day *day, const struct samples_query *query,
		      unsigned type, view_row_fn *fn, void *context, struct error *err);

#endif
