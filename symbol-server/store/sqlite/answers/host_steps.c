/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/answers/host_steps.h"

#include <stdlib.h>

#include "common/array.h"

enum { STEPS_OF_A_RANGE = 1440 };

void host_steps_init(struct host_steps *steps, const struct samples_query *query)
{
	const int64_t bucket = SAMPLES_BUCKET_MS;
	int64_t range_ms = query->until_ms - query->from_ms;

	*steps = (struct host_steps){.step_ms = query->by_bucket && query->step_ms
							? query->step_ms
							: range_ms / STEPS_OF_A_RANGE / bucket *
								  bucket};
	if (!steps->step_ms)
		steps->step_ms = bucket;
	hash_table_init(&steps->index, HOST_STEPS_MAX);
}

void host_steps_add(struct host_steps *steps, uint32_t host, int64_t time_ms, uint64_t reported_ms,
		    uint64_t lost)
{
	const int64_t begin_ms = time_ms / steps->step_ms * steps->step_ms;
	const uint64_t hash = hash_word((uint64_t)begin_ms, host);

	HASH_TABLE_EACH(i, &steps->index, hash)
		if (steps->at[i].host == host && steps->at[i].time_ms == begin_ms) {
			steps->at[i].reported_ms += reported_ms;
			steps->at[i].lost += lost;
			return;
		}
	steps->is_full |= !ARRAY_GROW(steps->at, steps->count, steps->room) ||
			  !hash_table_add(&steps->index, hash, (uint32_t)steps->count);
	if (!steps->is_full)
		steps->at[steps->count++] = (struct host_step){host, begin_ms, reported_ms, lost};
}

static int compare_steps(const void *left, const void *right)
{
	const struct host_step *a = left, *b = right;

	if (a->time_ms != b->time_ms)
		return a->time_ms < b->time_ms ? -1 : 1;
	return (a->host > b->host) - (a->host < b->host);
}

struct host_step *host_steps_settle(struct host_steps *steps, struct arena *arena,
				    const uint32_t *places, uint32_t *count)
{
	*count = steps->is_full ? 0 : (uint32_t)steps->count;
	for (uint32_t i = 0; i < *count; i++)
		steps->at[i].host = places[steps->at[i].host];
	if (*count)
		qsort(steps->at, *count, sizeof *steps->at, compare_steps);
	return arena_copy(arena, steps->at, *count * sizeof *steps->at);
}

void host_steps_release(struct host_steps *steps)
{
	hash_table_release(&steps->index);
	free(steps->at);
}
