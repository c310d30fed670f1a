/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/query/query.h"

#include <string.h>

bool query_parse_groups(struct query *query, const char *text, struct arena *arena,
			struct error *err)
{
	query->group_count = 0;
	while (*text) {
		size_t length = strcspn(text, ",");

		if (query->group_count == QUERY_GROUPS_MAX)
			return error_set(err, ERROR_OPTION, "at most %d labels", QUERY_GROUPS_MAX);
		if (!label_name_is_valid(text, length))
			return error_set(err, ERROR_OPTION, "'%.*s' is not a label name",
					 length < 60 ? (int)length : 60, text);
		query->groups[query->group_count] = arena_text(arena, text, length);
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

static bool thread_wanted(void *context, const char *thread)
{
	const struct query *query = context;

	return selector_matches_thread(&query->selector, thread);
}

static bool is_cancelled(void *context)
{
	const struct query *query = context;

	return query->is_cancelled(query->context);
}

static unsigned add_label(struct query *query, unsigned count, const char *name)
{
	if (!strcmp(name, "thread"))
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
	if (query->also_label)
		out->label_count = add_label(query, out->label_count, query->also_label);
	out->labels = query->labels;
}

void query_to_samples(struct query *query, struct samples_query *out)
{
	*out = (struct samples_query){
		.tenant = query->tenant,
		.from_ms = query->from_ms,
		.is_exact = query->is_exact,
		.until_ms = query->until_ms,
		.type = query->type,
		.context = query,
		.by_bucket = query->by_bucket,
		.only_nodes = true,
		.step_ms = query->step_ms,
		.limits = query->limits,
	};
	set_labels(query, out);
	/* NULL where nothing is asked: the store then need not look, and shows every host's losses
	 */
	if (selector_has_series(&query->selector))
		out->series_wanted = series_wanted;
	if (selector_has_thread(&query->selector))
		out->thread_wanted = thread_wanted;
	if (query->is_cancelled)
		out->is_cancelled = is_cancelled;
	for (unsigned i = 0; i < query->group_count; i++)
		out->by_thread |= !strcmp(query->groups[i], "thread");
}

struct samples_result *query_run(struct samples_store *store, struct query *query,
				 struct error *err)
{
	struct samples_query wanted;

	query_to_samples(query, &wanted);
	return samples_query(store, &wanted, err);
}
