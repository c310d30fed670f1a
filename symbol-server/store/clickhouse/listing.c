/* SPDX-License-Identifier: Apache-2.0 */
/* What there is: types, label names, values of one label. */
#include <stdlib.h>
#include <string.h>

#include "symbol-server/store/rules/answerable.h"
#include "symbol-server/store/clickhouse/processes.h"
#include "symbol-server/store/rules/series_labels.h"
#include "symbol-server/store/sample_context.h"

struct listing {
	struct scope scope;
	struct label_sums sums;
	struct samples_query query; /* of contexts as they are */
	struct processes processes;
	bool with_threads;
	uint64_t of_context; /* samples of the one being added */
};

static bool open_listing(struct listing *listing, struct samples_store *base,
			 const struct samples_query *query, bool with_threads, struct error *err)
{
	struct rollup_wants wants = rollup_wants_of(query);
	int type;

	if (!answerable_any_type(query, &type, err))
		return false;
	*listing = (struct listing){.query = *query, .with_threads = with_threads};
	listing->query.wants_context |= with_threads;
	listing->query.wants_process |= with_threads;
	if (with_threads)
		wants.sums = wants.hours = false;
	if (!scope_open(&listing->scope, clickhouse_samples_of(base), &listing->query, type, &wants,
			err))
		return false;
	label_sums_init(&listing->sums, &query->limits);
	return true;
}

static void close_listing(struct listing *listing)
{
	processes_release(&listing->processes);
	scope_close(&listing->scope);
	label_sums_release(&listing->sums);
}

static bool add_labels(struct listing *listing)
{
	for (size_t i = 0; i < listing->scope.series_count; i++) {
		const struct series_sum *sum = &listing->scope.series[i];
		const struct series_labels *labels = &scope_series(&listing->scope, sum)->labels;

		for (uint32_t k = 0; sum->is_wanted && sum->samples && k < labels->count; k++)
			if (!label_sums_add(&listing->sums, labels->names[k], labels->values[k],
					    sum->samples, false))
				return false;
	}
	return true;
}

/* --- threads --- */

static int compare_sums(const void *a, const void *b)
{
	const struct series_sum *x = a, *y = b;

	if (x->type != y->type)
		return x->type < y->type ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

static bool add_context(void *to, const char *name, const char *value)
{
	struct listing *listing = to;

	return label_sums_add(&listing->sums, name, value, listing->of_context, true);
}

/* A context of a series: to what it has, and to the series' sums as far as it is wanted. */
static bool add_thread(void *context, struct row_reader *row)
{
	struct listing *listing = context;
	struct scope *scope = &listing->scope;
	const struct samples_query *query = scope->query;
	struct series_sum key = {.type = (uint8_t)row_number(row, 1)}, *sum;
	uint64_t samples, value;
	const char *context_text;
	char *name, joined[CONTEXT_BYTES_MAX];
	struct text thread;

	key.id = row_number(row, 8);
	thread = row_text(row);
	samples = row_number(row, 8);
	value = row_number(row, 8);
	if (row->is_short)
		return true;
	name = strndup(thread.at, thread.length);
	context_text = name ? processes_join(&listing->processes, name, joined) : NULL;
	sum = bsearch(&key, scope->series, scope->series_count, sizeof key, compare_sums);
	scope->is_full |= !name;
	if (sum && name &&
	    (!query->thread_wanted || query->thread_wanted(query->context, context_text))) {
		sum->samples += samples;
		sum->value += value;
		listing->of_context = samples;
		scope->is_full |= listing->with_threads &&
				  !sample_context_each(context_text, add_context, listing);
	}
	free(name);
	return !scope->is_full && limit_watch_goes_on(&scope->watch, NULL);
}

/* The sums of series are then those of the threads that are wanted. */
static bool add_threads(struct listing *listing, struct error *err)
{
	static const struct source_columns columns = {
		.names = "type, series, threads, stack_samples, stack_values",
		.rolled = "type, series, arrayMap(one -> '', stacks) AS threads, stack_samples, "
			  "stack_values",
	};
	struct scope *scope = &listing->scope;
	struct buffer sql;
	bool ok;

	if (!scope->wanted_count)
		return true;
	for (size_t i = 0; i < scope->series_count; i++)
		scope->series[i].samples = scope->series[i].value = 0;
	buffer_init(&sql, 8192);
	buffer_append_text(&sql, "SELECT type, series, ");
	scope_context(scope->query, &sql);
	buffer_append_text(&sql, "sum(stack_sample), sum(stack_value) FROM ");
	scope_source(scope, &sql, &columns);
	buffer_append_text(&sql, " ARRAY JOIN threads AS thread, stack_samples AS stack_sample, "
				 "stack_values AS stack_value GROUP BY type, series, context");
	ok = processes_read(&listing->processes, scope, err) &&
	     scope_ask(scope, &sql, false, add_thread, listing, err);
	buffer_release(&sql);
	return ok;
}

static bool list_values(struct listing *listing, struct error *err)
{
	if ((listing->with_threads || listing->query.thread_wanted) && !add_threads(listing, err))
		return false;
	return add_labels(listing) || label_sums_failed(&listing->sums, err);
}

bool clickhouse_samples_types(struct samples_store *base, const struct samples_query *query,
			      struct arena *arena, struct type_count **rows, size_t *count,
			      struct error *err)
{
	struct listing listing;

	*count = 0;
	*rows = arena_array(arena, 32, sizeof **rows);
	if (!*rows)
		return error_set(err, ERROR_MEMORY, "no memory for a listing");
	if (!open_listing(&listing, base, query, false, err))
		return false;
	if (query->thread_wanted && !add_threads(&listing, err)) {
		close_listing(&listing);
		return false;
	}
	for (unsigned type = 0; profile_type_name(type); type++) {
		struct type_count row = {profile_type_name(type), profile_type_unit(type), 0, 0};

		for (size_t i = 0; i < listing.scope.series_count; i++) {
			const struct series_sum *sum = &listing.scope.series[i];

			if (sum->type != type || !sum->is_wanted)
				continue;
			row.samples += sum->samples;
			row.value += sum->value;
		}
		if (row.samples)
			(*rows)[(*count)++] = row;
	}
	close_listing(&listing);
	return true;
}

bool clickhouse_samples_labels(struct samples_store *base, const struct samples_query *query,
			       struct arena *arena, struct label_count **rows, size_t *count,
			       struct error *err)
{
	struct listing listing;
	bool ok;

	if (!open_listing(&listing, base, query, true, err))
		return false;
	ok = list_values(&listing, err) &&
	     label_sums_labels(&listing.sums, arena, rows, count, err);
	close_listing(&listing);
	return ok;
}

bool clickhouse_samples_label_values(struct samples_store *base, const struct samples_query *query,
				     const char *label, struct arena *arena,
				     struct value_count **rows, size_t *count, struct error *err)
{
	struct listing listing;
	bool ok;

	if (!open_listing(&listing, base, query, sample_context_has_name(label), err))
		return false;
	ok = list_values(&listing, err) &&
	     label_sums_values(&listing.sums, label, arena, rows, count, err);
	close_listing(&listing);
	return ok;
}
