/* SPDX-License-Identifier: Apache-2.0 */
/* How long a query may go on, and how much it may take: until its client left, its time is over
 * or its limits are reached. In the request's arena. */
#ifndef SYMBOL_SERVER_API_QUERY_LIFE_H
#define SYMBOL_SERVER_API_QUERY_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "symbol-server/http/http_server.h"
#include "symbol-server/query/query.h"

struct query_life;

/* Sets the query's limits and who may cancel it. From now on its time runs. */
struct query_life *query_life_start(struct http_request *request,
				    const struct samples_limits *limits, struct query *query,
				    struct error *err);

/* The same life for one query more. */
void query_life_lend(struct query_life *life, struct query *query);

/* Milliseconds of limits.time_ms that are left, at least 1; 0: there is no limit. */
int64_t query_life_time_left(const struct query_life *life);

/* To be asked often, between any two steps of the work: cheap. False: ERROR_LIMIT, the time is
 * over; ERROR_BUSY, nobody waits for the answer any more. */
bool query_life_goes_on(struct query_life *life, struct error *err);

/* The same without sparing system calls. */
bool query_life_is_wanted(struct query_life *life, struct error *err);

struct http_request *query_life_request(const struct query_life *life);

/* Bytes that what the query led to holds, and holds no more: what comes later has less room. */
void query_life_take(struct query_life *life, uint64_t bytes);
void query_life_give(struct query_life *life, uint64_t bytes);
/* What is left of limits.bytes; SIZE_MAX: there is no limit. */
uint64_t query_life_bytes(const struct query_life *life);
/* Sets err: something needed more than that. Always false. */
bool query_life_no_memory(const struct query_life *life, struct error *err);

/* How many things of size bytes there is room left for, at most most. */
size_t query_life_room(const struct query_life *life, size_t size, size_t most);

struct query_counters {   /* since the start */
	uint64_t gone;    /* their client left before the answer */
	uint64_t limited; /* answered with 422: over a limit */
};
void query_life_counters(struct query_counters *out);
void query_life_count_limited(void);

#endif
