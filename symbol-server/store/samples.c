/* SPDX-License-Identifier: Apache-2.0 */
/* samples.h, handed to the engine that the options name. */
#include "symbol-server/store/samples_engine.h"

#include <stdlib.h>
#include <string.h>

#include "symbol-server/store/gauges.h"

struct samples_store *samples_open(const struct samples_store_options *options, struct error *err)
{
	return options->clickhouse_url ? clickhouse_samples_open(options, err)
				       : sqlite_samples_open(options, err);
}

bool samples_add(struct samples_store *store, const struct sample_batch *batch,
		 samples_done_fn *done, void *context, unsigned *duplicates, struct error *err)
{
	struct sample_batch additive;
	struct gauge_batch *gauges;
	bool ok;

	if (!gauges_have(batch))
		return store->engine->add(store, batch, done, context, duplicates, err);
	gauges = gauge_batch_new(batch, &additive);
	if (!gauges)
		return error_set(err, ERROR_MEMORY, "no memory for a report");
	ok = store->engine->add(store, &additive, done, context, duplicates, err);
	gauge_batch_free(gauges);
	return ok;
}

static bool allows_ids(const struct samples_query *query, struct error *err)
{
	return (!query->trace_id && !query->span_id) ||
	       error_set(err, ERROR_OPTION, "trace_id and span_id select stacks only");
}

struct samples_result *samples_query(struct samples_store *store, const struct samples_query *query,
				     struct error *err)
{
	return gauge_query_is(query) ? gauge_query(store, query, err)
				     : store->engine->query(store, query, err);
}

struct samples_timeline *samples_timeline(struct samples_store *store,
					  const struct samples_query *query, struct error *err)
{
	return gauge_query_is(query) ? gauge_timeline(store, query, err)
				     : store->engine->timeline(store, query, err);
}

bool samples_types(struct samples_store *store, const struct samples_query *query,
		   struct arena *arena, struct type_count **rows, size_t *count, struct error *err)
{
	return allows_ids(query, err) &&
	       store->engine->types(store, query, arena, rows, count, err) &&
	       gauge_types(store, query, *rows, *count, err);
}

bool samples_labels(struct samples_store *store, const struct samples_query *query,
		    struct arena *arena, struct label_count **rows, size_t *count,
		    struct error *err)
{
	return allows_ids(query, err) &&
	       store->engine->labels(store, query, arena, rows, count, err);
}

bool samples_label_values(struct samples_store *store, const struct samples_query *query,
			  const char *label, struct arena *arena, struct value_count **rows,
			  size_t *count, struct error *err)
{
	return allows_ids(query, err) &&
	       store->engine->label_values(store, query, label, arena, rows, count, err);
}

bool samples_spans(struct samples_store *store, const struct samples_query *query,
		   samples_span_fn *fn, void *context, struct error *err)
{
	return store->engine->spans(store, query, fn, context, err);
}

bool samples_moments(struct samples_store *store, const struct samples_query *query,
		     samples_moment_fn *fn, void *context, struct error *err)
{
	return allows_ids(query, err) && store->engine->moments(store, query, fn, context, err);
}

bool samples_delete(struct samples_store *store, const struct samples_query *query,
		    struct samples_deleted *deleted, struct error *err)
{
	const int64_t step = SAMPLES_BUCKET_MS;

	*deleted = (struct samples_deleted){.from_ms = query->from_ms / step * step,
					    .until_ms = (query->until_ms + step - 1) / step * step};
	return allows_ids(query, err) && store->engine->remove(store, query, deleted, err);
}

bool samples_agents(struct samples_store *store, uint32_t tenant, struct arena *arena,
		    struct agent_state **rows, size_t *count, struct error *err)
{
	return store->engine->agents(store, tenant, arena, rows, count, err);
}

uint64_t samples_cpus(struct samples_store *store, uint32_t tenant, const char *const *names,
		      uint32_t count)
{
	return store->engine->cpus ? store->engine->cpus(store, tenant, names, count) : 0;
}

void samples_counters(struct samples_store *store, struct samples_counters *out)
{
	store->engine->counters(store, out);
}

bool samples_fold(struct samples_store *store, struct error *err)
{
	return store->engine->fold(store, err);
}

void samples_close(struct samples_store *store)
{
	if (store)
		store->engine->close(store);
}

void samples_result_free(struct samples_result *result)
{
	if (!result)
		return;
	free(result->stacks);
	free(result->spans);
	free(result->hosts);
	arena_release(&result->arena);
	free(result);
}

void samples_timeline_free(struct samples_timeline *timeline)
{
	struct arena arena;

	if (!timeline)
		return;
	arena = timeline->arena;
	free(timeline);
	arena_release(&arena);
}
