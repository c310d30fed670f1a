/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/api/query_life.h"

#include "common/clock.h"
#include "symbol-server/api/api.h"
#include "symbol-server/store/limits.h"

enum {
	ASK_EVERY_MS = 20, /* whether the client is there: a system call */
	ASK_STEPS = 256,   /* what time it is */
};

struct query_life {
	struct http_request *request;
	struct samples_limits limits;
	int64_t started_ms, asked_ms;
	uint64_t bytes; /* held by what it led to */
	uint64_t rows;  /* read */
	unsigned steps;
	bool is_gone, is_cut;
};

static _Atomic uint64_t gone, limited;

void query_life_counters(struct query_counters *out)
{
	*out = (struct query_counters){.gone = gone, .limited = limited};
}

void query_life_count_limited(void)
{
	limited++;
}

/* A client that closed its side is taken for gone: whether it still reads cannot be seen. */
static bool is_cancelled(void *context)
{
	struct query_life *life = context;
	int64_t now_ms = monotonic_ms();

	if (!life->is_gone && now_ms - life->asked_ms >= ASK_EVERY_MS) {
		life->asked_ms = now_ms;
		life->is_gone = http_request_is_gone(life->request);
		gone += life->is_gone;
	}
	return life->is_gone;
}

struct query_life *query_life_start(struct http_request *request,
				    const struct samples_limits *limits, struct query *query,
				    struct error *err)
{
	struct query_life *life = arena_alloc(http_request_arena(request), sizeof(*life));

	if (!life) {
		error_no_memory(err);
		return NULL;
	}
	*life = (struct query_life){
		.request = request, .limits = *limits, .started_ms = monotonic_ms()};
	query_life_lend(life, query);
	return life;
}

struct query_life *query_life_read(struct http_request *request, enum endpoint endpoint,
				   const struct samples_limits *limits, struct query *query,
				   struct error *err)
{
	struct parameters asked;

	if (!parameters_open(&asked, request, endpoint, err) ||
	    !parameters_query(&asked, query, err))
		return NULL;
	return query_life_start(request, limits, query, err);
}

void query_life_lend(struct query_life *life, struct query *query)
{
	query->limits = life->limits;
	query->limits.started_ms = life->started_ms;
	query->limits.rows_read = &life->rows;
	query->limits.is_cut = &life->is_cut;
	if (life->limits.bytes) /* 0 would be no limit */
		query->limits.bytes = query_life_bytes(life) ? query_life_bytes(life) : 1;
	query->is_cancelled = is_cancelled;
	query->context = life;
}

bool query_life_goes_on(struct query_life *life, struct error *err)
{
	return life->steps++ % ASK_STEPS ? true : query_life_is_wanted(life, err);
}

bool query_life_is_wanted(struct query_life *life, struct error *err)
{
	if (is_cancelled(life))
		return error_set(err, ERROR_BUSY, "nobody waits for this answer any more");
	if (life->limits.time_ms && monotonic_ms() - life->started_ms > life->limits.time_ms)
		return error_set(err, ERROR_LIMIT,
				 "the query took longer than --query-time allows (%lld ms): narrow "
				 "the time range or the selection",
				 (long long)life->limits.time_ms);
	return true;
}

bool query_life_is_cut(const struct query_life *life)
{
	return life->is_cut;
}

struct http_request *query_life_request(const struct query_life *life)
{
	return life->request;
}

void query_life_take(struct query_life *life, uint64_t bytes)
{
	life->bytes += bytes;
}

void query_life_give(struct query_life *life, uint64_t bytes)
{
	life->bytes -= bytes;
}

uint64_t query_life_bytes(const struct query_life *life)
{
	if (!life->limits.bytes)
		return SIZE_MAX;
	return life->limits.bytes > life->bytes ? life->limits.bytes - life->bytes : 0;
}

bool query_life_no_memory(const struct query_life *life, struct error *err)
{
	if (!life->limits.bytes)
		return error_no_memory(err);
	return error_set(err, ERROR_LIMIT,
			 "the answer takes more memory than --query-memory allows (%llu MiB): "
			 "narrow the time range or the selection, or ask for fewer nodes",
			 (unsigned long long)(life->limits.bytes >> 20));
}

size_t query_life_room(const struct query_life *life, size_t size, size_t most)
{
	uint64_t room = query_life_bytes(life) / size;

	return room < most ? (size_t)room : most;
}
