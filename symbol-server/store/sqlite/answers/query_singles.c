/* SPDX-License-Identifier: Apache-2.0 */
/* samples_moments() and samples_spans(): single samples, as they are stored. */
#include "symbol-server/store/rules/answerable.h"
#include "symbol-server/store/sqlite/days/moment_rows.h"
#include "symbol-server/store/sqlite/days/span_rows.h"

struct single_query {
	const struct samples_query *query;
	unsigned type;
	struct view view;
	struct view_day *day;
	uint8_t *threads;           /* of the day: 0 not asked, 1 wanted, 2 not */
	samples_moment_fn *moments; /* one of the two */
	samples_span_fn *spans;
	void *context;
	bool is_stopped;
};

static bool is_thread_wanted(struct single_query *singles, uint32_t thread)
{
	const struct samples_query *query = singles->query;
	uint8_t *known = &singles->threads[thread];
	char joined[CONTEXT_BYTES_MAX];
	const char *text;

	if (!query->thread_wanted)
		return true;
	if (!*known) {
		text = view_context(singles->day, query, thread, joined);
		*known = text && query->thread_wanted(query->context, text) ? 1 : 2;
	}
	return *known == 1;
}

static bool pass_moment(void *context, int64_t time_ms, const struct moment *moment)
{
	struct single_query *singles = context;

	if (is_thread_wanted(singles, moment->thread))
		singles->is_stopped = !singles->moments(singles->context, time_ms, moment->value);
	return !singles->is_stopped;
}

static bool pass_span(void *context, const struct span_sample *span)
{
	struct single_query *singles = context;
	uint64_t stack_id;

	if (!span->stack || !is_thread_wanted(singles, span->thread))
		return true;
	stack_id = catalog_stack(singles->day->catalog, span->stack)->hash[0];
	if (singles->query->stack_id && stack_id != *singles->query->stack_id)
		return true;
	singles->is_stopped = !singles->spans(singles->context, span->ids, stack_id, span->samples,
					      span->value);
	return !singles->is_stopped;
}

static bool query_day(struct single_query *singles, struct view_day *day, struct error *err)
{
	const struct samples_query *query = singles->query;
	struct view *view = &singles->view;

	singles->day = day;
	if (!view_choose_series(view, day, query, err))
		return false;
	singles->threads = arena_array(&view->arena, day->mark.count[CATALOG_STRINGS] + 1, 1);
	if (!singles->threads)
		return error_set(err, ERROR_MEMORY, "no memory for an answer");
	if (!day->wanted)
		return true;
	return singles->moments
		       ? moment_view_each(view, day, query, singles->type, pass_moment, singles,
					  err)
		       : span_view_each(view, day, query, singles->type, pass_span, singles, err);
}

static bool query_singles(struct sqlite_samples *store, struct single_query *singles,
			  struct error *err)
{
	struct view *view = &singles->view;
	bool ok = true;
	int type;

	if (!answerable_type(singles->query, &type, err))
		return false;
	singles->type = (unsigned)type;
	if (!(singles->moments ? moment_view_open : span_view_open)(view, store, singles->query,
								    singles->type, err))
		return false;
	for (unsigned i = 0; ok && !singles->is_stopped && i < view->day_count; i++)
		ok = query_day(singles, &view->days[i], err);
	if (ok && !singles->is_stopped)
		ok = limit_watch_allows(&view->watch, view->arena.used, err);
	view_close(view);
	return ok;
}

bool sqlite_samples_moments(struct samples_store *base, const struct samples_query *query,
			    samples_moment_fn *fn, void *context, struct error *err)
{
	struct single_query singles = {.query = query, .moments = fn, .context = context};

	return query_singles(sqlite_samples_of(base), &singles, err);
}

bool sqlite_samples_spans(struct samples_store *base, const struct samples_query *query,
			  samples_span_fn *fn, void *context, struct error *err)
{
	struct single_query singles = {.query = query, .spans = fn, .context = context};

	return query_singles(sqlite_samples_of(base), &singles, err);
}
