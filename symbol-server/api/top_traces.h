/* SPDX-License-Identifier: Apache-2.0 */
/* The traces that took the most out of any number of them, in bounded memory: all that is stored is
 * read again for each part of the traces that fits, and the best of the parts are the best of all.
 */
#ifndef SYMBOL_SERVER_API_TOP_TRACES_H
#define SYMBOL_SERVER_API_TOP_TRACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "symbol-server/api/query_life.h"
#include "symbol-server/store/samples.h"

enum { TOP_TRACE_BYTES = 16 };

struct top_trace {
	uint8_t id[TOP_TRACE_BYTES];
	uint64_t value;
};

struct top_traces {
	struct top_trace *best; /* in the order of their ids */
	uint32_t best_count;
	uint64_t count;          /* of all traces */
	uint64_t value, samples; /* of all of them */
	unsigned passes;
};

/* Whether what a stack has counts; NULL: all. */
typedef bool top_stack_fn(void *context, uint64_t stack_id);

/* query: of spans, as query_to_samples() makes it; at most limit of the best. bytes: what it may
 * take beside them. life NULL: nobody asks.
 * Release it in either case. */
bool top_traces_find(struct top_traces *top, struct samples_store *store,
		     const struct samples_query *query, top_stack_fn *is_wanted, void *context,
		     uint32_t limit, size_t bytes, struct query_life *life, struct error *err);
/* Whether the trace is one of the best. */
bool top_traces_have(const struct top_traces *top, const uint8_t *id);
void top_traces_release(struct top_traces *top);

#endif
