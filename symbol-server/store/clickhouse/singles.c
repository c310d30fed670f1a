/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/clickhouse/singles.h"

#include <stdio.h>

#include "symbol-server/store/rules/answerable.h"
#include "symbol-server/store/sample_context.h"

bool singles_want(const struct singles *singles, struct text context)
{
	const struct samples_query *query = singles->query;
	char name[CONTEXT_BYTES_MAX], joined[CONTEXT_BYTES_MAX];

	if (!query->thread_wanted)
		return true;
	snprintf(name, sizeof name, "%.*s", (int)context.length, context.at);
	return query->thread_wanted(query->context,
				    processes_join(&singles->processes, name, joined));
}

static bool ask(struct singles *singles, struct error *err)
{
	struct buffer sql;
	bool ok;

	buffer_init(&sql, 8192);
	buffer_append_text(&sql, "SELECT ");
	scope_context(singles->query, &sql);
	buffer_printf(&sql, "%s FROM ", singles->columns);
	singles->put_source(&singles->scope, singles->query, &sql);
	ok = scope_ask(&singles->scope, &sql, false, singles->row, singles->context, err);
	buffer_release(&sql);
	return ok;
}

bool singles_ask(struct singles *singles, struct samples_store *base,
		 const struct samples_query *wide, struct error *err)
{
	const struct rollup_wants wants = {.sums = false};
	bool ok;
	int type;

	if (!answerable_type(singles->query, &type, err) ||
	    !scope_open(&singles->scope, clickhouse_samples_of(base), wide, type, &wants, err))
		return false;
	ok = processes_read(&singles->processes, &singles->scope, err) &&
	     (!singles->scope.wanted_count || ask(singles, err));
	processes_release(&singles->processes);
	scope_close(&singles->scope);
	return ok;
}
