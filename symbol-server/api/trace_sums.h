/* SPDX-License-Identifier: Apache-2.0 */
/* A result of spans (samples_query.by_span) → its traces, the most valuable first. */
#ifndef SYMBOL_SERVER_API_TRACE_SUMS_H
#define SYMBOL_SERVER_API_TRACE_SUMS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/hash_table.h"
#include "symbol-server/api/query_life.h"
#include "symbol-server/flamegraph/sampling_error.h"
#include "symbol-server/formats/json_writer.h"
#include "symbol-server/store/samples.h"

enum { TRACE_TEXTS_MAX = 32, TRACE_NAMES = 4 };

struct trace_sum {
	uint8_t id[16];
	uint32_t spans;            /* with a wanted sample */
	uint64_t value, samples;   /* of the stacks that were wanted */
	double squares;            /* sampling_error.h */
	uint64_t trace_value;      /* of all its stacks in the result */
	int64_t from_ms, until_ms; /* whole steps of the query */
};

struct trace_texts { /* distinct values of one name, as they were met; borrowed */
	const char *list[TRACE_TEXTS_MAX];
	unsigned count;
	bool is_part; /* there are more */
};

struct trace_sums {
	const struct sampling *sampling; /* borrowed; NULL: all there is was told */
	struct trace_sum *list;
	uint32_t count;
	uint32_t *order; /* most valuable first: wanted_count of them */
	uint32_t wanted_count;
	uint64_t value, samples; /* of all wanted */
	/* private below */
	const struct samples_result *result;
	uint32_t *of_span; /* span of the result → list */
	uint64_t held;
	struct hash_table index;
	struct query_life *life;
};

typedef bool trace_stack_fn(void *context, const struct result_stack *stack);

/* is_wanted NULL: all. A trace without a wanted stack is not in order. Borrows the result and
 * sampling. False: err says why. Release it in either case. */
bool trace_sums_make(struct trace_sums *sums, const struct samples_result *result,
		     const struct sampling *sampling, trace_stack_fn *is_wanted, void *context,
		     struct query_life *life, struct error *err);

/* "traces":[…] of the first limit, with the distinct values of names (labels of series, thread).
 * Also sets *shown to their value. False: no memory. */
bool trace_sums_json(const struct trace_sums *sums, struct json *json, uint32_t limit,
		     trace_stack_fn *is_wanted, void *context, uint64_t *shown);

/* How many of those wanted that leaves out. */
uint64_t trace_sums_left_out(const struct trace_sums *sums, uint32_t limit);

void trace_sums_release(struct trace_sums *sums);

#endif
