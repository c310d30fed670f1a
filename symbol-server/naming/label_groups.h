/* SPDX-License-Identifier: Apache-2.0 */
/* The combinations of label values that a query groups by, numbered as they are met. */
#ifndef SYMBOL_SERVER_NAMING_LABEL_GROUPS_H
#define SYMBOL_SERVER_NAMING_LABEL_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/hash_table.h"
#include "symbol-server/query/query.h"

struct label_values {
	const char *values[QUERY_GROUPS_MAX]; /* of the query's groups, in their order; borrowed */
};

struct label_groups {
	struct label_values *list;
	size_t count;
	/* private below */
	size_t room;
	struct hash_table index;
	struct arena texts; /* values of samples' own names */
};

void label_groups_init(struct label_groups *groups);
/* The number of the series' (and, where it is grouped by, the thread's) values; added when new.
 * false: no memory. */
bool label_groups_take(struct label_groups *groups, const struct query *query,
		       const struct series_labels *series, const char *thread, uint32_t *number);
void label_groups_release(struct label_groups *groups);

#endif
