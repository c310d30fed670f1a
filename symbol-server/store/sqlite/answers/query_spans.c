/* SPDX-License-Identifier: Apache-2.0 */
/* samples_spans(): what came with spans, as it is stored. */
#include <string.h>

#include "symbol-server/store/rules/answerable.h"
#include "symbol-server/store/sqlite/days/span_rows.h"

struct span_query {
	const struct samples_query *query;
	struct view_day *day;
	uint8_t *threads; /* 0 not asked, 1 wanted, 2 not */
	samples_span_fn *fn;
	void *context;
	struct error *err;
	bool is_stopped;
};

static bool is_thread_wanted(struct span_query *spans, uint32_t thread)
{
	uint8_t *known = &spans->threads[thread];
	char joined[CONTEXT_BYTES_MAX];
	const char *text;

	if (*known)
		return *known == 1;
	text = view_context(spans->day, spans->query, thread, joined);
	*known = text && spans->query->thread_wanted(spans->query->context, text) ? 1 : 2;
	return *known == 1;
}

static bool pass(void *context, const struct span_sample *span)
{
	struct span_query *spans = context;
	uint64_t stack_id;

	if (!span->stack || (spans->query->thread_wanted && !is_thread_wanted(spans, span->thread)))
		return true;
	stack_id = catalog_stack(spans->day->catalog, span->stack)->hash[0];
	if (spans->query->stack_id && stack_id != *spans->query->stack_id)
		return true;
	spans->is_stopped = !spans->fn(spans->context, span->ids, stack_id, span->samples,
				       span->value);
	return !spans->is_stopped;
}

static bool query_day(struct view *view, struct view_day *day, unsigned type,
		      struct span_query *spans)
{
	spans->day = day;
	if (!view_choose_series(view, day, spans->query, spans->err))
		return false;
	spans->threads = arena_array(&view->arena, day->mark.count[CATALOG_STRINGS] + 1, 1);
	if (!spans->threads)
		return error_set(spans->err, ERROR_MEMORY, "no memory for an answer");
	return !day->wanted ||
	       span_view_each(view, day, spans->query, type, pass, spans, spans->err);
}

bool sqlite_samples_spans(struct samples_store *base, const struct samples_query *query,
			  samples_span_fn *fn, void *context, struct error *err)
{
	struct span_query spans = {.query = query, .fn = fn, .context = context, .err = err};
	struct view view;
	bool ok = true;
	int type;

	if (!answerable_type(query, &type, err))
		return false;
	if (!span_view_open(&view, sqlite_samples_of(base), query, (unsigned)type, err))
		return false;
	for (unsigned i = 0; ok && !spans.is_stopped && i < view.day_count; i++)
		ok = query_day(&view, &view.days[i], (unsigned)type, &spans);
	if (ok && !spans.is_stopped)
		ok = limit_watch_allows(&view.watch, view.arena.used, err);
	view_close(&view);
	return ok;
}
