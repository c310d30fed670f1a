/* SPDX-License-Identifier: Apache-2.0 */
/* samples_moments(): when single samples were taken. */
#include "symbol-server/store/clickhouse/singles.h"
#include "symbol-server/store/rules/moment_times.h"

struct moments_answer {
	struct singles singles;
	samples_moment_fn *fn;
	void *context;
};

struct samples_query scope_widen_exact(const struct samples_query *query)
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

	if (row->is_short || !singles_want(&answer->singles, thread))
		return true;
	return answer->fn(answer->context, time_ms, value);
}

void scope_exact_source(const struct scope *scope, const struct samples_query *query,
			struct buffer *sql)
{
	buffer_append_text(sql, "(SELECT series, minute, moment, stack, thread, one_value FROM "
				"(SELECT id, series, minute, times, stacks, threads, values FROM "
				"moments WHERE ");
	scope_range(scope, sql);
	if (scope->is_chosen)
		buffer_append_text(sql, " AND series IN (SELECT series FROM wanted)");
	buffer_printf(sql,
		      " LIMIT 1 BY id) ARRAY JOIN times AS moment, stacks AS stack, threads AS "
		      "thread, values AS one_value WHERE moment >= %lld AND moment < %lld)",
		      (long long)query->from_ms, (long long)query->until_ms);
}

bool clickhouse_samples_moments(struct samples_store *base, const struct samples_query *query,
				samples_moment_fn *fn, void *context, struct error *err)
{
	const struct samples_query wide = scope_widen_exact(query);
	struct moments_answer answer = {.singles = {.query = query,
						    .columns = "moment, one_value",
						    .put_source = scope_exact_source,
						    .row = give_moment,
						    .context = &answer},
					.fn = fn,
					.context = context};

	return singles_ask(&answer.singles, base, &wide, err);
}
