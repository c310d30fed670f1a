/* SPDX-License-Identifier: Apache-2.0 */
/* samples_moments(): when single samples were taken. */
#include <stdio.h>
#include <string.h>

#include "symbol-server/store/rules/answerable.h"
#include "symbol-server/store/clickhouse/processes.h"
#include "symbol-server/store/rules/moment_times.h"
#include "symbol-server/store/sample_context.h"

struct moments_answer {
	struct asking asking;
	struct processes processes;
	samples_moment_fn *fn;
	void *context;
};

struct samples_query asking_widen_exact(const struct samples_query *query)
{
	struct samples_query wide = *query;

	wide.from_ms -= MOMENT_SPAN_MS - MOMENT_BEFORE_MS;
	wide.until_ms += MOMENT_BEFORE_MS;
	return wide;
}

static bool give_moment(void *context, struct row_reader *row)
{
	struct moments_answer *answer = context;
	struct text thread = row_text(row);
	int64_t time_ms = (int64_t)row_number(row, 8);
	uint64_t value = row_number(row, 8);
	const struct samples_query *query = answer->asking.query;
	char name[CONTEXT_BYTES_MAX], joined[CONTEXT_BYTES_MAX];

	if (row->is_short)
		return true;
	snprintf(name, sizeof name, "%.*s", (int)thread.length, thread.at);
	if (query->thread_wanted &&
	    !query->thread_wanted(query->context, processes_join(&answer->processes, name, joined)))
		return true;
	return answer->fn(answer->context, time_ms, value);
}

void asking_exact_source(const struct asking *asking, const struct samples_query *query,
			 struct buffer *sql)
{
	buffer_append_text(sql, "(SELECT series, minute, moment, stack, thread, one_value FROM "
				"(SELECT id, series, minute, times, stacks, threads, values FROM "
				"moments WHERE ");
	asking_range(asking, sql);
	if (asking->is_chosen)
		buffer_append_text(sql, " AND series IN (SELECT series FROM wanted)");
	buffer_printf(sql,
		      " LIMIT 1 BY id) ARRAY JOIN times AS moment, stacks AS stack, threads AS "
		      "thread, values AS one_value WHERE moment >= %lld AND moment < %lld)",
		      (long long)query->from_ms, (long long)query->until_ms);
}

bool clickhouse_samples_moments(struct samples_store *base, const struct samples_query *query,
				samples_moment_fn *fn, void *context, struct error *err)
{
	const struct samples_query wide = asking_widen_exact(query);
	const struct rollup_wants wants = {.sums = false};
	struct moments_answer answer = {.fn = fn, .context = context};
	struct buffer sql;
	bool ok = true;
	int type;

	if (!answerable_type(query, &type, err))
		return false;
	if (!asking_open(&answer.asking, clickhouse_samples_of(base), &wide, type, &wants, err))
		return false;
	ok = processes_read(&answer.processes, &answer.asking, err);
	if (ok && answer.asking.wanted_count) {
		buffer_init(&sql, 8192);
		buffer_append_text(&sql, "SELECT ");
		asking_context(query, &sql);
		buffer_append_text(&sql, "moment, one_value FROM ");
		asking_exact_source(&answer.asking, query, &sql);
		ok = asking_ask(&answer.asking, &sql, false, give_moment, &answer, err);
		buffer_release(&sql);
	}
	processes_release(&answer.processes);
	asking_close(&answer.asking);
	return ok;
}
