/* SPDX-License-Identifier: Apache-2.0 */
/* Which series take part: {service="api",host=~"web.*"}, as Prometheus writes and means it
 * (prometheus.io/docs/prometheus/latest/querying/basics, "Instant vector selectors"): = != =~ !~,
 * regular expressions match the whole value, a label that is not there is the empty text. */
#ifndef SYMBOL_SERVER_QUERY_SELECTOR_H
#define SYMBOL_SERVER_QUERY_SELECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/error.h"
#include "symbol-server/store/samples_query.h"

enum { SELECTOR_TEXT_MAX = 8192, SELECTOR_MATCHERS_MAX = 32 };

enum match_operator { MATCH_EQUAL, MATCH_NOT_EQUAL, MATCH_PATTERN, MATCH_NOT_PATTERN };

struct selector_matcher {
	const char *name, *value;
	enum match_operator op;
	struct pattern *pattern; /* NULL unless MATCH_PATTERN, MATCH_NOT_PATTERN */
};

struct selector {
	struct selector_matcher matchers[SELECTOR_MATCHERS_MAX];
	unsigned count;
	bool has_trace, has_span; /* trace_id="…", span_id="…": hexadecimal, = only */
	uint8_t trace_id[16], span_id[8];
};

/* Texts in arena. Empty text and {} select everything. Values are quoted "…" or '…' with backslash
 * escapes, or `…` as they are. Names may be quoted "…" too. ERROR_OPTION names the position,
 * counted in characters from 1. Release it in either case. */
bool selector_parse(struct selector *selector, const char *text, struct arena *arena,
		    struct error *err);

/* The matchers of every label but those of samples (sample_context.h), which are no part of a
 * series. */
bool selector_matches_series(const struct selector *selector, const struct series_labels *labels);
/* The same matcher by matcher: whether one is of a series' label, and what it says of a value. */
bool selector_is_of_series(const struct selector_matcher *matcher);
bool selector_matches_value(const struct selector_matcher *matcher, const char *value);
bool selector_matches_thread(const struct selector *selector, const char *thread);
bool selector_has_series(const struct selector *selector);
bool selector_has_thread(const struct selector *selector);
/* A matcher of samples looks at more than threads' names. */
bool selector_has_context(const struct selector *selector);

/* "" when the series has no such label. */
const char *series_label(const struct series_labels *labels, const char *name);

/* [A-Za-z_][A-Za-z0-9_.]*, at most 64 characters. */
bool label_name_is_valid(const char *name, size_t length);

void selector_release(struct selector *selector);

#endif
