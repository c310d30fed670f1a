/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/query/query.h"

#include <stdio.h>
#include <string.h>

#include "symbol-server/store/attribute_labels.h"
#include "symbol-server/store/sample_context.h"

bool query_parse_groups(struct query *query, const char *text, struct arena *arena,
			struct error *err)
{
	char written[LABEL_NAME_BYTES], label[LABEL_NAME_BYTES];

	query->group_count = 0;
	while (*text) {
		size_t length = strcspn(text, ",");

		if (query->group_count == QUERY_GROUPS_MAX)
			return error_set(err, ERROR_OPTION, "at most %d labels", QUERY_GROUPS_MAX);
		if (!label_name_is_valid(text, length))
			return error_set(err, ERROR_OPTION, "'%.*s' is not a label name",
					 length < 60 ? (int)length : 60, text);
		snprintf(written, sizeof written, "%.*s", (int)length, text);
		label_name_resolve(written, label);
		query->groups[query->group_count] = arena_text(arena, label, strlen(label));
		if (!query->groups[query->group_count])
			return error_set(err, ERROR_MEMORY, "out of memory");
		query->group_count++;
		text += length;
		if (*text && !*++text)
			return error_set(err, ERROR_OPTION, "a label name is missing at the end");
	}
	return true;
}

static bool series_wanted(void *context, const struct series_labels *labels)
{
	const struct query *query = context;

	return selector_matches_series(&query->selector, labels);
}

static bool value_wanted(void *context, unsigned chooser, const char *value)
{
	const struct query *query = context;

	return selector_matches_value(query->matchers[chooser], value);
}

static void set_choosers(struct query *query, struct samples_query *out)
{
	for (unsigned i = 0; i < query->selector.count; i++) {
		const struct selector_matcher *matcher = &query->selector.matchers[i];

		if (!selector_is_of_series(matcher))
			continue;
		query->matchers[out->chooser_count] = matcher;
		query->choosers[out->chooser_count++] = matcher->name;
	}
	out->choosers = query->choosers;
	out->value_wanted = value_wanted;
	out->series_wanted = series_wanted;
}

static bool thread_wanted(void *context, const char *thread)
{
	const struct query *query = context;

	return selector_matches_thread(&query->selector, thread);
}

static bool span_wanted(void *context, const uint8_t *ids)
{
	const struct query *query = context;

	return query->span_wanted(query->span_context, ids);
}

static bool is_cancelled(void *context)
{
	const struct query *query = context;

	return query->is_cancelled(query->context);
}

static unsigned add_label(struct query *query, unsigned count, const char *name)
{
	if (sample_context_has_name(name) || !strcmp(name, "trace_id") || !strcmp(name, "span_id"))
		return count;
	for (unsigned i = 0; i < count; i++)
		if (!strcmp(query->labels[i], name))
			return count;
	query->labels[count] = name;
	return count + 1;
}

static void set_labels(struct query *query, struct samples_query *out)
{
	if (query->all_labels)
		return;
	for (unsigned i = 0; i < query->selector.count; i++)
		out->label_count = add_label(query, out->label_count,
					     query->selector.matchers[i].name);
	for (unsigned i = 0; i < query->group_count; i++)
		out->label_count = add_label(query, out->label_count, query->groups[i]);
	for (unsigned i = 0; i < 2; i++)
		if (query->also_labels[i])
			out->label_count = add_label(query, out->label_count,
						     query->also_labels[i]);
	out->labels = query->labels;
}

bool query_is_by_sample(const struct query *query)
{
	for (unsigned i = 0; i < query->group_count; i++)
		if (sample_context_has_name(query->groups[i]))
			return true;
	return selector_has_thread(&query->selector) || query->selector.has_trace ||
	       query->selector.has_span;
}

static void set_process(struct samples_query *out, const char *name)
{
	if (!sample_context_is_of_process(name))
		return;
	out->wants_process = true;
	out->counts_untold |= strcmp(name, "pid") != 0; /* which nobody has to tell */
}

static void set_processes(const struct query *query, struct samples_query *out)
{
	for (unsigned i = 0; i < query->group_count; i++)
		set_process(out, query->groups[i]);
	for (unsigned i = 0; i < query->selector.count; i++)
		set_process(out, query->selector.matchers[i].name);
}

void query_to_samples(struct query *query, struct samples_query *out)
{
	*out = (struct samples_query){
		.tenant = query->tenant,
		.from_ms = query->from_ms,
		.by_second = !query->whole_minutes,
		.is_exact = query->is_exact,
		.until_ms = query->until_ms,
		.type = query->type,
		.context = query,
		.by_bucket = query->by_bucket,
		.only_nodes = true,
		.step_ms = query->step_ms,
		.is_part_of_mean = query->is_part_of_mean,
		.by_span = query->by_span,
		.only_spans = query->only_spans,
		.span_wanted = query->span_wanted ? span_wanted : NULL,
		.stack_id = query->stack_id,
		.limits = query->limits,
	};
	set_labels(query, out);
	/* NULL where nothing is asked: the store then need not look, and shows every host's losses
	 */
	if (selector_has_series(&query->selector))
		set_choosers(query, out);
	if (selector_has_thread(&query->selector))
		out->thread_wanted = thread_wanted;
	out->wants_context = selector_has_context(&query->selector);
	if (query->selector.has_trace)
		out->trace_id = query->selector.trace_id;
	if (query->selector.has_span)
		out->span_id = query->selector.span_id;
	if (query->is_cancelled)
		out->is_cancelled = is_cancelled;
	for (unsigned i = 0; i < query->group_count; i++)
		if (sample_context_has_name(query->groups[i]))
			query->thread_names[out->thread_name_count++] = query->groups[i];
	set_processes(query, out);
	out->by_thread = out->thread_name_count;
	out->thread_names = query->thread_names;
}

struct samples_result *query_run(struct samples_store *store, struct query *query,
				 struct error *err)
{
	struct samples_query wanted;

	query_to_samples(query, &wanted);
	return samples_query(store, &wanted, err);
}
