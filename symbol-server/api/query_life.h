/* SPDX-License-Identifier: Apache-2.0 */
/* How long a query may go on, and how much it may take: until its client left, its time is over
 * or its limits are reached. In the request's arena. One life for a request, however often it asks
 * the store, which goes on watching it (store/limits.h):
 *
 *	limit    where it is looked at                                    then
 *	time     every loop over series, strings, rows, stacks, names;    422
 *	         SQLite's machine each 2000 steps; ClickHouse's own
 *	client   the same                                                 no answer
 *	rows     each row of a file or of memory, all calls together      422
 *	memory   store: arrays and arenas before they grow                heaviest stacks, cut
 *	         naming, trees, tables: room left when they begin         folded, or 422
 *
 *	endpoint                           time client rows   memory: what is left out
 *	/flamegraph                        yes  yes    yes    lightest stacks; nodes are folded
 *	/top /sandwich                     yes  yes    yes    lightest stacks; too many functions
 *422 /diff                              yes  yes    yes    first parts of time, then lightest
 *stacks /timeline /hotspots, by stacks     yes  yes    yes    lightest stacks; too many steps 422
 *	/heatmap?by=function               yes  yes    yes    lightest stacks; too many cells 422
 *	/timeline, of sums; /heatmap       yes  yes    yes    none: 422
 *	/traces                            yes  yes    yes    stacks looked through for a function
 *	/stacks/{id}                       yes  yes    yes    none: 422
 *	/modules                           yes  yes    yes    lightest stacks (cut_samples)
 *	/types                             yes  yes    yes    of gauges lightest stacks, counted
 *	/labels /labels/{name}             yes  yes    yes    values beyond a half ("cut": true)
 *	/modules/{id}/symbols              yes  yes    4 GiB  a fixed few
 *	/symbolicate/v5                    yes  yes    no     64 MB of names, else 413
 *	/agents                            no   no     no     65536 agents at most
 *	/buildid/…                         a file is sent as it is: its bytes are http's
 *
 * A dictionary that is not in memory is read to its end whatever the time is: the next question
 * finds it there. */
#ifndef SYMBOL_SERVER_API_QUERY_LIFE_H
#define SYMBOL_SERVER_API_QUERY_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "symbol-server/api/parameters.h"
#include "symbol-server/http/http_server.h"
#include "symbol-server/query/query.h"

struct query_life;

/* Sets the query's limits and who may cancel it. From now on its time runs. */
struct query_life *query_life_start(struct http_request *request,
				    const struct samples_limits *limits, struct query *query,
				    struct error *err);

/* The same for an endpoint whose parameters choose samples and nothing else: checks and reads them
 * first. NULL: err says why. */
struct query_life *query_life_read(struct http_request *request, enum endpoint endpoint,
				   const struct samples_limits *limits, struct query *query,
				   struct error *err);

/* The same life for one query more. */
void query_life_lend(struct query_life *life, struct query *query);

/* To be asked often, between any two steps of the work: cheap. False: ERROR_LIMIT, the time is
 * over; ERROR_BUSY, nobody waits for the answer any more. */
bool query_life_goes_on(struct query_life *life, struct error *err);

/* The same without sparing system calls. */
bool query_life_is_wanted(struct query_life *life, struct error *err);

/* Something was left out because --query-memory allows no more: the answer has to say so. */
bool query_life_is_cut(const struct query_life *life);

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
