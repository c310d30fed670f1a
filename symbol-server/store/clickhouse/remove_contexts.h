/* SPDX-License-Identifier: Apache-2.0 */
/* samples_delete() of some threads: which contexts go, and what is left of a row without them. Of
 * this folder only. */
#ifndef SYMBOL_SERVER_STORE_CLICKHOUSE_REMOVE_CONTEXTS_H
#define SYMBOL_SERVER_STORE_CLICKHOUSE_REMOVE_CONTEXTS_H

#include "symbol-server/store/clickhouse/scope.h"

struct contexts_gone {
	struct buffer literals; /* of ClickHouse: 'a','b' … */
	struct context_part {   /* as many as a statement takes */
		size_t at, length;
	} * parts;
	size_t part_count, part_room;
	uint64_t samples; /* that they have */
};

/* Of the minutes of the series wanted: which contexts the query's thread_wanted says of. */
bool contexts_gone_read(struct contexts_gone *gone, struct scope *scope, struct error *err);
void contexts_gone_release(struct contexts_gone *gone);

/* Appends " UPDATE … WHERE …" of a table of profiles: those contexts' elements leave its arrays,
 * and what they had is deleted. */
void contexts_gone_put(const struct contexts_gone *gone, const struct context_part *part,
		       const char *table, struct buffer *sql);

#endif
