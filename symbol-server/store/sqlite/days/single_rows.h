/* SPDX-License-Identifier: Apache-2.0 */
/* What the tables of single samples have in common, of their times (moment_rows.h) and of their
 * spans (span_rows.h): a row per series, minute and fold, beside cells that are not folded yet. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_DAYS_SINGLE_ROWS_H
#define SYMBOL_SERVER_STORE_SQLITE_DAYS_SINGLE_ROWS_H

#include "symbol-server/store/sqlite/answers/view.h"
#include "symbol-server/store/sqlite/days/day_tables.h"

struct single_rows;

typedef bool single_bytes_fn(void *rows, const uint8_t *bytes, size_t length);

struct single_table {
	unsigned cells;     /* MOMENTS_OF, SPANS_OF */
	const char *insert; /* MOMENTS_COLUMNS, and a filter if there is one */
	/* bucket, series, data and what may_have() looks at; of a tenant and a type, from a minute
	 * to before another. */
	const char *select;
	const char *what; /* in sentences */
	/* NULL: whatever the query asks for. */
	bool (*may_have)(const struct samples_query *query, sqlite3_stmt *row);
	/* Each sample of the bytes, as stored and as in memory; rows: a struct single_rows. */
	single_bytes_fn *each, *each_raw;
	void (*end)(struct single_rows *rows); /* of a row or a cell */
};

/* writer->data has the samples. filter: NULL: the table has none. */
bool day_writer_singles(struct day_writer *writer, const struct single_table *table,
			const struct day_row *row, size_t count, const struct buffer *filter,
			struct error *err);

struct single_rows { /* the first member of what a table reads with */
	const struct single_table *table;
	struct view *view;
	const struct samples_query *query;
	struct view_row row; /* what is being read; day and type from the start */
	view_row_fn *fn;     /* of single_rows_give() */
	void *context;
	struct packed_pair *pairs; /* of single_rows_add() */
	size_t count, capacity;
	struct buffer packed;
	bool is_stopped, is_full;
};

/* Of the series that were chosen, what the file's table has, if it is there, and what memory has
 * beyond it. */
bool single_rows_walk(struct single_rows *rows, bool has_table, struct error *err);
/* False: the limits of the query end it. */
bool single_rows_goes_on(struct single_rows *rows);
bool single_rows_is_defined(const struct single_rows *rows, uint32_t thread, uint32_t stack);
/* A sample for the next row. False: no memory. */
bool single_rows_add(struct single_rows *rows, uint32_t thread, uint32_t stack, uint64_t samples,
		     uint64_t value);
/* What was added as one row of counted stacks; nothing: no row. */
void single_rows_give(struct single_rows *rows);

#endif
