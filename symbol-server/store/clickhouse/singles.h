/* SPDX-License-Identifier: Apache-2.0 */
/* Questions that get a row for each single sample or span, not sums. Of this folder only. */
#ifndef SYMBOL_SERVER_STORE_CLICKHOUSE_SINGLES_H
#define SYMBOL_SERVER_STORE_CLICKHOUSE_SINGLES_H

#include "symbol-server/store/clickhouse/processes.h"

struct singles {
	const struct samples_query *query;
	const char *columns; /* of the source; the context comes before them */
	void (*put_source)(const struct scope *scope, const struct samples_query *query,
			   struct buffer *sql);
	bool (*row)(void *context, struct row_reader *row);
	void *context;
	struct scope scope; /* while it is asked, as what follows */
	struct processes processes;
};

/* wide: the query of all the time in which what is wanted may be kept. */
bool singles_ask(struct singles *singles, struct samples_store *base,
		 const struct samples_query *wide, struct error *err);
/* For row(): does the query want the thread of that context? */
bool singles_want(const struct singles *singles, struct text context);

#endif
