/* SPDX-License-Identifier: Apache-2.0 */
/* What every engine does with labels: series compared by them, and how many samples each value of
 * each label has. Pure. */
#ifndef SYMBOL_SERVER_STORE_RULES_SERIES_LABELS_H
#define SYMBOL_SERVER_STORE_RULES_SERIES_LABELS_H

#include "common/hash_table.h"
#include "symbol-server/store/samples_query.h"

/* The same names and values in the same order; equal ones have one hash. */
bool series_labels_equal(const struct series_labels *a, const struct series_labels *b);
uint64_t series_labels_hash(const struct series_labels *labels);

/* The query looks at that label; samples_query.labels NULL: at any. */
bool samples_query_asks(const struct samples_query *query, const char *label);

/* Whether the label names one instance of many alike: roll-ups by service are without those. */
bool rollup_drops_label(const char *name);

struct label_value_sum { /* texts are borrowed */
	const char *label, *value;
	uint64_t samples;
};

struct label_sums {
	struct hash_table index;
	struct label_value_sum *values;
	size_t count, capacity;
	struct arena texts;
	uint64_t most_bytes; /* 0: no limit */
	bool *is_cut;
	bool is_over;
};

/* Of what a query may take they take a half; beyond it values are left out where the query says
 * so (is_cut), else it is over. */
void label_sums_init(struct label_sums *sums, const struct samples_limits *limits);
size_t label_sums_bytes(const struct label_sums *sums);
/* Adds samples to one value of one label. texts_are_lent: they may go after the call. False: no
 * memory, or is_over. */
bool label_sums_add(struct label_sums *sums, const char *label, const char *value, uint64_t samples,
		    bool texts_are_lent);
/* Why it was false. Always false. */
bool label_sums_failed(const struct label_sums *sums, struct error *err);
/* Rows of samples_labels() and of samples_label_values(): sorted, copied into arena. What does not
 * fit it is left out likewise, or ERROR_LIMIT. */
bool label_sums_labels(struct label_sums *sums, struct arena *arena, struct label_count **rows,
		       size_t *count, struct error *err);
bool label_sums_values(struct label_sums *sums, const char *label, struct arena *arena,
		       struct value_count **rows, size_t *count, struct error *err);
void label_sums_release(struct label_sums *sums);

#endif
