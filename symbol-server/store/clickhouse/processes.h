/* SPDX-License-Identifier: Apache-2.0 */
/* What the processes of a range's samples are: table lifetimes. Of this folder only. */
#ifndef SYMBOL_SERVER_STORE_CLICKHOUSE_PROCESSES_H
#define SYMBOL_SERVER_STORE_CLICKHOUSE_PROCESSES_H

#include "symbol-server/store/clickhouse/scope.h"
#include "symbol-server/store/rules/lifetimes.h"

struct processes {
	struct arena arena;
	const char **told; /* contexts; 0 is none */
	size_t count, room;
	struct lifetimes *lifetimes;
	struct scope *scope;
	bool is_asked; /* else contexts are as they are */
};

/* Nothing is read where the query does not ask for processes. processes_release() in any case. */
bool processes_read(struct processes *processes, struct scope *scope, struct error *err);
/* The context with all that is known of its process: itself, or in out. */
const char *processes_join(const struct processes *processes, const char *context,
			   char out[CONTEXT_BYTES_MAX]);
void processes_release(struct processes *processes); /* zeroed is fine */

#endif
