/* SPDX-License-Identifier: Apache-2.0 */
/* One samples_query() under way. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_ANSWERS_QUERY_RUN_H
#define SYMBOL_SERVER_STORE_SQLITE_ANSWERS_QUERY_RUN_H

#include "symbol-server/store/sqlite/answers/view.h"

struct piece {           /* one row */
	uint32_t series; /* of the result */
	uint32_t day;    /* of the view */
	int64_t step_ms; /* since 1970, when its step begins; 0 unless by_bucket */
	uint32_t length; /* of bytes[at …]; cells: 0 */
	uint32_t span;   /* of the result; 0 unless by_span */
	size_t at;
	const struct view_cell *cell;
};

struct day_maps { /* numbers of a day's catalog → numbers of the result + 1; 0: not met yet */
	uint32_t *series, *stacks;
	uint32_t *modules; /* when stacks are put into the result */
	const char **strings;
	uint32_t *threads;  /* UINT32_MAX: not wanted */
	uint8_t *is_untold; /* threads, once they were met: nobody told of their process */
	uint8_t *is_host;   /* strings: took part in a row that was read */
};

struct sum {
	uint64_t samples, value;
};

struct thread_sum { /* of by_thread queries */
	uint32_t thread, stack;
	struct sum sum;
};

/* A stack of the result, whichever series have it. */
struct distinct_stack {
	const struct catalog_stack *from;
	struct view_day *day;
	const uint32_t *locations; /* of the result */
	uint32_t node;
};

struct query_run {
	struct view view;
	const struct samples_query *query;
	struct samples_result *result;
	unsigned type;
	struct day_maps *maps;
	struct hash_table stack_index, series_index, thread_index, span_index; /* across days */
	/* Rows that are not added up yet. */
	struct piece *pieces;
	size_t piece_count, piece_room;
	const struct piece *group; /* of those that are being added up: the first one */
	uint8_t *bytes;
	size_t byte_count, byte_room;
	unsigned flushes;
	struct distinct_stack *stacks;
	struct sum *sums; /* by stack; zero between series */
	uint32_t *touched;
	uint32_t stack_count, touched_count, stack_capacity;
	const char **threads;
	size_t thread_count, thread_room;
	struct thread_sum *thread_sums;
	size_t thread_sum_count, thread_sum_room;
	size_t series_room, stack_room, span_room; /* of the result */
	struct view_day *day;                      /* being read */
	struct view_day *damaged;                  /* a row of it cannot be read, as err says */
	unsigned steps;
	struct error *err;
	bool is_traced;      /* of a trace or a span: spans are read */
	uint64_t most_bytes; /* 0: what does not fit fails; else it is cut */
	bool is_indexed;     /* stack_index has all distinct stacks */
	bool is_cut;         /* some were cut: sums have to be merged */
	bool is_full;        /* no room, not said yet */
	bool is_stopped;     /* err is set */
};

static inline struct day_maps *query_run_maps(struct query_run *run, const struct view_day *day)
{
	return &run->maps[day - run->view.days];
}

/* A catalog's string as the result's own; "" for 0 and when the result is full (is_full says so).
 */
const char *query_run_string(struct query_run *run, struct view_day *day, uint32_t string);

/* To be asked between any two steps of the work: whether somebody waits for the answer and its
 * limits allow more. False: is_stopped, and err says why. */
bool query_run_goes_on(struct query_run *run);

/* ---- what does not fit --query-memory (query_cut.c) ---- */

/* Begins, when a part of the answer is one, too. */
void query_run_cut_start(struct query_run *run);
size_t query_run_bytes(const struct query_run *run);
/* How many pieces, and bytes of them, are collected before they are added up. */
size_t query_run_chunk_bytes(const struct query_run *run);
size_t query_run_chunk_pieces(const struct query_run *run);
/* Whether an array may grow to so many bytes. */
bool query_run_may_have(const struct query_run *run, size_t bytes);
void query_run_cut(struct query_run *run, uint64_t samples, uint64_t value);
/* Half of the result's sums go, the lightest ones. False: no memory, or over. */
bool query_run_cut_sums(struct query_run *run);
/* Distinct stacks that no sum of the result has make room, half of the sums having gone. All are in
 * the result. */
bool query_run_forget_stacks(struct query_run *run);
/* The sums of stacks that are not kept go. */
void query_run_keep_stacks(struct query_run *run, const uint8_t *is_kept);
/* Numbers of the distinct stacks, the heaviest first. NULL: no memory. */
uint32_t *query_run_order_stacks(const struct query_run *run);

/* ---- adding up (query_sums.c) ---- */

/* Adds up the pieces; the sums go to the result, with a stack's number as depth. */
bool query_run_add_pieces(struct query_run *run);
/* All pieces were added: what several calls put of the same stack becomes one. */
bool query_run_merge_sums(struct query_run *run);
/* The same at any time. */
bool query_run_join_sums(struct query_run *run);
void query_run_release_sums(struct query_run *run);

/* The nodes, locations and modules of the stacks that are in the result. False: no room. */
bool query_run_put_locations(struct query_run *run);

/* A host of a row whose series has none: of a roll-up. */
void query_run_keep_host(void *context, uint32_t host);
/* The accounts of the hosts. */
bool query_run_put_hosts(struct query_run *run, struct error *err);

#endif
