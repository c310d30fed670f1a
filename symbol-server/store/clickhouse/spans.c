/* SPDX-License-Identifier: Apache-2.0 */
/* samples_spans(), and where questions about traces and spans read: samples that came with them. */
#include "symbol-server/store/clickhouse/singles.h"

struct spans_answer {
	struct singles singles;
	samples_span_fn *fn;
	void *context;
};

bool scope_is_traced(const struct samples_query *query)
{
	return query->trace_id || query->span_id || query->by_span || query->only_spans ||
	       query->span_wanted;
}

struct samples_query scope_kept_spans(const struct clickhouse_samples *store,
				      const struct samples_query *query)
{
	struct samples_query kept = *query;
	int64_t from_ms = clickhouse_now_ms() - store->trace_keep_ms;

	kept.is_exact = false;
	if (kept.from_ms < from_ms)
		kept.from_ms = from_ms;
	if (kept.until_ms < kept.from_ms)
		kept.until_ms = kept.from_ms;
	return kept;
}

static void put_id(struct buffer *sql, unsigned first, const uint8_t *id, unsigned length)
{
	if (!id)
		return;
	buffer_printf(sql, " AND substring(link, %u, %u) = unhex('", first, length);
	for (unsigned i = 0; i < length; i++)
		buffer_printf(sql, "%02x", id[i]);
	buffer_append_text(sql, "')");
}

void scope_span_source(const struct scope *scope, const struct samples_query *query,
		       struct buffer *sql)
{
	buffer_append_text(sql, "(SELECT series, minute, link, stack, thread, one_count, one_value "
				"FROM (SELECT id, series, minute, links, stacks, threads, "
				"link_samples, link_values FROM spans WHERE ");
	scope_range(scope, sql);
	if (scope->is_chosen)
		buffer_append_text(sql, " AND series IN (SELECT series FROM wanted)");
	buffer_append_text(sql, " LIMIT 1 BY id) ARRAY JOIN links AS link, stacks AS stack, "
				"threads AS thread, link_samples AS one_count, link_values AS "
				"one_value WHERE 1");
	put_id(sql, 1, query->trace_id, TRACE_ID_BYTES);
	put_id(sql, 1 + TRACE_ID_BYTES, query->span_id, SPAN_ID_BYTES);
	if (query->stack_id)
		buffer_printf(sql, " AND stack = %llu", (unsigned long long)*query->stack_id);
	buffer_append_char(sql, ')');
}

static bool give_span(void *context, struct row_reader *row)
{
	struct spans_answer *answer = context;
	struct text thread = row_text(row), ids = row_fixed(row, SPAN_IDS_BYTES);
	uint64_t stack = row_number(row, 8), samples = row_number(row, 8);
	uint64_t value = row_number(row, 8);

	if (row->is_short || !singles_want(&answer->singles, thread))
		return true;
	return answer->fn(answer->context, (const uint8_t *)ids.at, stack, samples, value);
}

bool clickhouse_samples_spans(struct samples_store *base, const struct samples_query *query,
			      samples_span_fn *fn, void *context, struct error *err)
{
	const struct samples_query kept = scope_kept_spans(clickhouse_samples_of(base), query);
	struct spans_answer answer = {.singles = {.query = query,
						  .columns = "link, stack, one_count, one_value",
						  .put_source = scope_span_source,
						  .row = give_span,
						  .context = &answer},
				      .fn = fn,
				      .context = context};

	return singles_ask(&answer.singles, base, &kept, err);
}
