/* SPDX-License-Identifier: Apache-2.0 */
/* Samples with a trace and a span: a day file's table, and what of it a query sees. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_DAYS_SPAN_ROWS_H
#define SYMBOL_SERVER_STORE_SQLITE_DAYS_SPAN_ROWS_H

#include "symbol-server/store/sqlite/cells/spans.h"
#include "symbol-server/store/sqlite/answers/view.h"

/* Sorts spans. row's sums are not looked at. */
bool day_writer_spans(struct day_writer *writer, const struct day_row *row,
		      struct span_sample *spans, size_t count, struct error *err);

/* A view of the days and of the spans in memory; nothing of before the trace retention. */
bool span_view_open(struct view *view, struct sqlite_samples *store,
		    const struct samples_query *query, unsigned type, struct error *err);

/* Those with the query's ids as rows of counted stacks, one per series, minute and fold, or per
 * span of these: view_each(). */
bool span_view_rows(struct view *view, struct view_day *day, const struct samples_query *query,
		    unsigned type, view_row_fn *fn, void *context, struct error *err);

/* The same as they are stored, nothing added up. False from fn stops, and the return is then true
 * as well. */
bool span_view_each(struct view *view, struct view_day *day, const struct samples_query *query,
		    unsigned type, span_fn *fn, void *context, struct error *err);

#endif
