/* SPDX-License-Identifier: Apache-2.0 */
/* Which series take part, each value of a label asked for once. */
#include <stdlib.h>
#include <string.h>

#include "common/keyed_hash.h"
#include "symbol-server/store/clickhouse/asking.h"

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
	if (!asking_grow((void **)&verdicts->list, verdicts->count, &verdicts->room,
			 sizeof *verdicts->list) ||
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

static bool ask_chooser(struct asking *asking, unsigned chooser, struct error *err)
{
	const struct samples_query *query = asking->query;
	struct verdicts verdicts = {0};
	bool ok = true;

	hash_table_init(&verdicts.index, UINT32_MAX >> 1);
	for (size_t i = 0; ok && i < asking->series_count; i++) {
		struct series_sum *sum = &asking->series[i];
		const struct series_labels *labels = &asking_series(asking, sum)->labels;

		ok = limit_watch_goes_on(&asking->watch, err);
		if (ok && sum->is_wanted &&
		    !ask_value(query, chooser, &verdicts,
			       value_of(labels, query->choosers[chooser]), &sum->is_wanted))
			ok = error_set(err, ERROR_MEMORY, "no memory for an answer");
	}
	hash_table_release(&verdicts.index);
	free(verdicts.list);
	return ok;
}

static bool ask_all(struct asking *asking, struct error *err)
{
	const struct samples_query *query = asking->query;
	bool by_series = query->series_wanted && !query->chooser_count;

	for (size_t i = 0; i < asking->series_count; i++) {
		struct series_sum *sum = &asking->series[i];

		if (!limit_watch_goes_on(&asking->watch, err))
			return false;
		sum->is_wanted = !by_series ||
				 query->series_wanted(query->context,
						      &asking_series(asking, sum)->labels);
	}
	for (unsigned i = 0; i < query->chooser_count; i++)
		if (!ask_chooser(asking, i, err))
			return false;
	return true;
}

bool asking_choose(struct asking *asking, struct error *err)
{
	if (!ask_all(asking, err))
		return false;
	for (size_t i = 0; i < asking->series_count; i++) {
		struct series_sum *sum = &asking->series[i];

		asking->is_chosen |= !sum->is_wanted;
		sum->is_wanted = sum->is_wanted && (sum->samples || sum->value);
		asking->wanted_count += sum->is_wanted;
	}
	return true;
}
