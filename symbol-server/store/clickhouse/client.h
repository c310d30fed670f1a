/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to one ClickHouse over its HTTP interface ("HTTP interface" in its documentation).
 * Thread-safe; connections are kept alive. */
#ifndef SYMBOL_SERVER_STORE_CLICKHOUSE_CLIENT_H
#define SYMBOL_SERVER_STORE_CLICKHOUSE_CLIENT_H

#include "symbol-server/store/clickhouse/address.h"
#include "symbol-server/store/clickhouse/rows.h"

struct clickhouse;

struct clickhouse *clickhouse_new(const char *url, struct error *err);
void clickhouse_free(struct clickhouse *client); /* NULL is fine */
const struct clickhouse_address *clickhouse_address(const struct clickhouse *client);

/* A table that lives during one question, to be used after IN. */
struct clickhouse_set {
	const char *columns; /* "id UInt64, …" */
	const struct buffer *rows;
	const char *name;                  /* NULL: wanted */
	const struct clickhouse_set *next; /* NULL: the last one */
};

struct clickhouse_question {
	const char *sql; /* without FORMAT; may be INSERT … SELECT, without row */
	const struct clickhouse_set *set;    /* NULL: none */
	const struct samples_limits *limits; /* NULL: none */
	bool (*is_cancelled)(void *context); /* NULL: never; then ClickHouse is told to stop */
	void *cancel_context;
	/* Called for each row of the answer. False: the caller has enough or failed. is_short when
	 * it returns: called again with more bytes, so nothing may be kept of such a call. */
	bool (*row)(void *context, struct row_reader *row);
	void *context;
	unsigned total_s; /* 0: 300 */
};

/* ERROR_LIMIT: one of the limits; ERROR_BUSY: cancelled, or ClickHouse has too much to do;
 * ERROR_REMOTE: not reached, refused; ERROR_FORMAT: the answer is none. */
bool clickhouse_ask(struct clickhouse *client, const struct clickhouse_question *question,
		    struct error *err);
/* The same without rows; whole: without the database being named, for making it. */
bool clickhouse_run(struct clickhouse *client, const char *sql, struct error *err);
bool clickhouse_run_whole(struct clickhouse *client, const char *sql, struct error *err);

/* sql: "INSERT INTO table (columns)". True when ClickHouse said that it has the rows; otherwise it
 * may have them all the same. */
bool clickhouse_insert(struct clickhouse *client, const char *sql, const struct buffer *rows,
		       struct error *err);

#endif
