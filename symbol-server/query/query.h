/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of the store: type, time, selector, the labels to group by → counted stacks. */
#ifndef SYMBOL_SERVER_QUERY_QUERY_H
#define SYMBOL_SERVER_QUERY_QUERY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/error.h"
#include "symbol-server/query/selector.h"
#include "symbol-server/store/samples_query.h"

enum {
	QUERY_GROUPS_MAX = 8,
	QUERY_LABELS_MAX = QUERY_GROUPS_MAX + SELECTOR_MATCHERS_MAX + 2,
};

struct query {
	uint32_t tenant;
	const char *type; /* NULL: all (listings only) */
	int64_t from_ms, until_ms;
	bool is_exact; /* as samples_query has it */
	struct selector selector;
	const char *selector_is; /* the parameter that it came in; NULL: match */
	const char *groups[QUERY_GROUPS_MAX]; /* label names */
	unsigned group_count;
	const char *also_labels[2]; /* more that the caller looks at; NULL: none */
	bool all_labels; /* the caller looks at labels besides those of selector and groups */
	bool by_bucket;  /* steps of step_ms are kept apart */
	int64_t step_ms;
	bool whole_minutes; /* even where seconds are known */
	bool is_part_of_mean;     /* as samples_query has it */
	bool by_span, only_spans; /* likewise */
	/* Whether a span's samples take part, given its 24 bytes of ids; NULL: all do. */
	bool (*span_wanted)(void *context, const uint8_t *ids);
	void *span_context;
	const uint64_t *stack_id;
	struct samples_limits limits;
	bool (*is_cancelled)(void *context); /* NULL: never */
	void *context;
	/* private below */
	const char *labels[QUERY_LABELS_MAX];
	const char *choosers[SELECTOR_MATCHERS_MAX];
	const struct selector_matcher *matchers[SELECTOR_MATCHERS_MAX]; /* of choosers */
	const char *thread_names[QUERY_GROUPS_MAX];
};

/* "service,thread" → groups, texts in arena; "" gives none. ERROR_OPTION. */
bool query_parse_groups(struct query *query, const char *text, struct arena *arena,
			struct error *err);

/* Whether what is asked tells samples of one series apart: by thread, attribute. */
bool query_is_by_sample(const struct query *query);

/* What the store understands; borrows from query. Its labels are those that selector and groups
 * look at, each once, without thread; none is no NULL but a count of 0. */
void query_to_samples(struct query *query, struct samples_query *out);

/* Free with samples_result_free(). Threads are kept apart when grouped by. */
struct samples_result *query_run(struct samples_store *store, struct query *query,
				 struct error *err);

#endif
