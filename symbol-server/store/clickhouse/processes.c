/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/clickhouse/processes.h"

#include <stdlib.h>

static const char *text_of(const void *context, uint32_t number)
{
	const struct processes *processes = context;

	return processes->told[number];
}

static bool put(struct processes *processes, const char *told)
{
	if (!told || processes->count >= UINT32_MAX / 4 ||
	    !SCOPE_GROW(processes->told, processes->count, processes->room))
		return false;
	processes->told[processes->count++] = told;
	return processes->count == 1 ||
	       lifetimes_add(processes->lifetimes, (uint32_t)processes->count - 1);
}

static bool keep_told(void *context, struct row_reader *row)
{
	struct processes *processes = context;
	struct text told = row_text(row);

	if (row->is_short)
		return true;
	processes->scope->is_full |= !put(processes,
					  arena_text(&processes->arena, told.at, told.length));
	return !processes->scope->is_full && limit_watch_goes_on(&processes->scope->watch, NULL);
}

bool processes_read(struct processes *processes, struct scope *scope, struct error *err)
{
	struct buffer sql;
	bool ok;

	*processes = (struct processes){.scope = scope, .is_asked = scope->query->wants_process};
	if (!processes->is_asked)
		return true;
	arena_init(&processes->arena, SCOPE_BYTES_MAX);
	processes->lifetimes = lifetimes_new(text_of, processes, UINT32_MAX >> 1);
	if (!processes->lifetimes || !put(processes, ""))
		return error_set(err, ERROR_MEMORY, "no memory for an answer");
	buffer_init(&sql, 1024);
	buffer_printf(&sql,
		      "SELECT context FROM lifetimes WHERE tenant = %u AND day >= %u AND day <= %u "
		      "ORDER BY day",
		      scope->query->tenant, day_number(scope->kept_from_ms),
		      day_number(scope->until_ms));
	ok = scope_ask(scope, &sql, false, keep_told, processes, err);
	buffer_release(&sql);
	return ok;
}

const char *processes_join(const struct processes *processes, const char *context,
			   char out[CONTEXT_BYTES_MAX])
{
	return processes->is_asked ? lifetimes_join(processes->lifetimes, context, out) : context;
}

void processes_release(struct processes *processes)
{
	lifetimes_free(processes->lifetimes);
	arena_release(&processes->arena);
	free(processes->told);
	*processes = (struct processes){0};
}
