/* SPDX-License-Identifier: Apache-2.0 */
/* Which series take part, each value of a label asked for once. */
#include <stdlib.h>
#include <string.h>

#include "common/keyed_hash.h"
#include "symbol-server/store/clickhouse/scope.h"

struct verdict {
	const char *value; /* borrowed from the definitions */
	bool is_wanted;
};

struct verdicts { /* of one chooser */
	struct hash_table index;
	struct verdict *list;
	size_t count, room;
};

/* False: no memory. */
static bool ask_value(const struct samples_query *query, unsigned chooser,
		      struct verdicts *verdicts, const char *value, bool *is_wanted)
{
	uint64_t hash = keyed_hash(value, strlen(value), 0);
	uint32_t probe = 0;

	for (uint32_t i = hash_table_first(&verdicts->index, hash, &probe); i != HASH_TABLE_NONE;
	     i = hash_table_next(&verdicts->index, hash, &probe))
		if (!strcmp(verdicts->list[i].value, value)) {
			*is_wanted = verdicts->list[i].is_wanted;
			return true;
		}
	*is_wanted = query->value_wanted(query->context, chooser, value);
	if (!SCOPE_GROW(verdicts->list, verdicts->count, verdicts->room) ||
	    !hash_table_add(&verdicts->index, hash, (uint32_t)verdicts->count))
		return false;
	verdicts->list[verdicts->count++] = (struct verdict){value, *is_wanted};
	return true;
}

static const char *value_of(const struct series_labels *labels, const char *label)
{
	for (uint32_t i = 0; i < labels->count; i++)
		if (!strcmp(labels->names[i], label))
			return labels->values[i];
	return "";
}

static bool ask_chooser(struct scope *scope, unsigned chooser, struct error *err)
{
	const struct samples_query *query = scope->query;
	struct verdicts verdicts = {0};
	bool ok = true;

	hash_table_init(&verdicts.index, UINT32_MAX >> 1);
	for (size_t i = 0; ok && i < scope->series_count; i++) {
		struct series_sum *sum = &scope->series[i];
		const struct series_labels *labels = &scope_series(scope, sum)->labels;

		ok = limit_watch_goes_on(&scope->watch, err);
		if (ok && sum->is_wanted &&
		    !ask_value(query, chooser, &verdicts,
			       value_of(labels, query->choosers[chooser]), &sum->is_wanted))
			ok = error_set(err, ERROR_MEMORY, "no memory for an answer");
	}
	hash_table_release(&verdicts.index);
	free(verdicts.list);
	return ok;
}

static bool ask_all(struct scope *scope, struct error *err)
{
	const struct samples_query *query = scope->query;
	bool by_series = query->series_wanted && !query->chooser_count;

	for (size_t i = 0; i < scope->series_count; i++) {
		struct series_sum *sum = &scope->series[i];

		if (!limit_watch_goes_on(&scope->watch, err))
			return false;
		sum->is_wanted = !by_series ||
				 query->series_wanted(query->context,
						      &scope_series(scope, sum)->labels);
	}
	for (unsigned i = 0; i < query->chooser_count; i++)
		if (!ask_chooser(scope, i, err))
			return false;
	return true;
}

bool scope_choose(struct scope *scope, struct error *err)
{
	if (!ask_all(scope, err))
		return false;
	for (size_t i = 0; i < scope->series_count; i++) {
		struct series_sum *sum = &scope->series[i];

		scope->is_chosen |= !sum->is_wanted;
		sum->is_wanted = sum->is_wanted && (sum->samples || sum->value);
		scope->wanted_count += sum->is_wanted;
	}
	return true;
}
