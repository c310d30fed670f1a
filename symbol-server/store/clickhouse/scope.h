/* SPDX-License-Identifier: Apache-2.0 */
/* What all questions about samples begin with: the range, the sums of its series, and which of them
 * take part. Of this folder only. */
#ifndef SYMBOL_SERVER_STORE_CLICKHOUSE_SCOPE_H
#define SYMBOL_SERVER_STORE_CLICKHOUSE_SCOPE_H

#include "common/array.h"
#include "symbol-server/store/clickhouse/parts.h"
#include "symbol-server/store/limits.h"

#define SCOPE_BYTES_MAX ((size_t)768 << 20)

struct series_sum { /* of one series and type in the range; series that profiles were deleted of too
		     */
	uint64_t id;
	uint64_t samples, value;
	uint64_t taken;            /* of profiles whose senders do not count */
	uint64_t deleted, refused; /* samples */
	uint32_t number;           /* of definitions; UINT32_MAX: none */
	uint8_t type;
	bool is_wanted; /* takes part: the query wants it, and it has samples */
	uint32_t group; /* of what is told apart; scope_groups() sets it, among those wanted */
};

struct scope {
	struct clickhouse_samples *store;
	const struct samples_query *query;
	struct limit_watch watch;
	int type;                  /* -1: all */
	int64_t from_ms, until_ms; /* widened */
	int64_t kept_from_ms;      /* from_ms, or the first minute that is kept */
	bool has_duplicates;
	struct parts parts;
	bool is_whole; /* no label of instances is asked: sums without them will do */
	struct definitions *definitions;
	struct series_sum *series;
	size_t series_count, series_room;
	size_t wanted_count;
	bool is_chosen; /* some are not wanted: the source has to leave them out */
	bool is_full;   /* no memory for rows */
};

/* As ARRAY_GROW(), of what an answer of ClickHouse fills. */
#define SCOPE_GROW(items, count, room) \
	((count) <= SCOPE_BYTES_MAX / 2 / sizeof *(items) && ARRAY_GROW(items, count, room))

/* Reads the sums and chooses series (choose.c). On failure there is nothing to close. */
bool scope_open(struct scope *scope, struct clickhouse_samples *store,
		const struct samples_query *query, int type, const struct rollup_wants *wants,
		struct error *err);
bool scope_choose(struct scope *scope, struct error *err);
void scope_close(struct scope *scope);

/* Appends "(SELECT columns …)": the profiles in the range of the series wanted, each once, and sums
 * of others; a sum's minute is its first one. */
struct source_columns {
	const char *names;
	const char *raw;    /* expressions of samples; NULL: as names */
	const char *rolled; /* of sums */
	bool is_whole;      /* sums without labels of instances will do */
};
void scope_source(const struct scope *scope, struct buffer *sql,
		  const struct source_columns *columns);
/* Appends "… AS context, " of a column thread: of what the query tells apart and looks at. */
void scope_context(const struct samples_query *query, struct buffer *sql);
/* Appends the conditions of the range: tenant, type, time. */
void scope_range(const struct scope *scope, struct buffer *sql);

/* Asks; the wanted series go along when the source has them: table wanted with columns series and
 * series_group; and table rolled with the sums' versions. sql ends without NUL. */
bool scope_ask(struct scope *scope, struct buffer *sql, bool with_groups,
	       bool (*row)(void *context, struct row_reader *row), void *context,
	       struct error *err);

/* Single samples that have a time (moments.c). The query whose scope_open() finds the series of
 * those in the exact range; appends "(SELECT …)" with columns series, minute, moment (unix ms),
 * stack, thread, one_value. */
struct samples_query scope_widen_exact(const struct samples_query *query);
void scope_exact_source(const struct scope *scope, const struct samples_query *query,
			struct buffer *sql);

/* Samples that came with spans (spans.c). Whether the query is about them; the query of the time in
 * which they are kept; appends "(SELECT …)" with columns series, minute, link, stack, thread,
 * one_count, one_value, of the trace, span and stack chosen. */
bool scope_is_traced(const struct samples_query *query);
struct samples_query scope_kept_spans(const struct clickhouse_samples *store,
				      const struct samples_query *query);
void scope_span_source(const struct scope *scope, const struct samples_query *query,
		       struct buffer *sql);

/* Gives each wanted series the number of its labels, of those that the query looks at: series with
 * equal ones are one. labels: in arena, so many as *count. False: no memory. */
bool scope_groups(struct scope *scope, struct arena *arena, struct series_labels **labels,
		  uint32_t *count);

const struct defined_series *scope_series(const struct scope *scope, const struct series_sum *sum);
struct definitions_range scope_definitions_range(const struct scope *scope);

/* The accounts of the hosts: all of them, or those that is_wanted() says have series in the answer;
 * texts in arena, *hosts malloc()ed. (hosts.c) */
bool scope_hosts(struct scope *scope, struct arena *arena, struct host_accounting **hosts,
		 uint32_t *count, struct error *err);

/* Runs again with empty dictionaries when they were full or broken. */
bool scope_again(struct clickhouse_samples *store, struct definitions *used, int attempt,
		 const struct error *err);

#endif
