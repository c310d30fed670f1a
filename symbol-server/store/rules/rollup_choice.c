/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/rules/rollup_choice.h"

#include "symbol-server/store/rules/series_labels.h"

enum { HOUR_MS = 3600000 };

struct rollup_wants rollup_wants_of(const struct samples_query *query)
{
	struct rollup_wants wants = {.by_instance = !query->labels};
	int64_t step_ms = query->step_ms ? query->step_ms : SAMPLES_BUCKET_MS;

	for (unsigned i = 0; i < query->label_count && query->labels; i++)
		wants.by_instance |= rollup_drops_label(query->labels[i]);
	wants.sums = !query->by_thread && !query->thread_wanted &&
		     (!query->by_bucket || step_ms % ROLLUP_BUCKET_MS == 0);
	wants.hours = wants.sums && (!query->by_bucket || step_ms % HOUR_MS == 0) &&
		      query->until_ms - query->from_ms >= ROLLUP_HOURS_FROM_MS;
	return wants;
}

struct rollup_kept rollup_kept_at(const int64_t keep_ms[SAMPLES_RESOLUTIONS],
				  const struct aging *aging, int64_t now_ms)
{
	int64_t then_ms = now_ms - aging_behind_ms(aging), own_ms = 0;
	struct rollup_kept kept;

	for (unsigned i = 0; i < SAMPLES_RESOLUTIONS; i++) {
		own_ms = keep_ms[i] ? keep_ms[i] : own_ms;
		kept.from_ms[i] = own_ms && own_ms < then_ms ? then_ms - own_ms : 0;
	}
	return kept;
}

bool rollup_outlives_minutes(const int64_t keep_ms[SAMPLES_RESOLUTIONS])
{
	int64_t raw = keep_ms[SAMPLES_RAW];

	return raw && (keep_ms[SAMPLES_10M] > raw || keep_ms[SAMPLES_1H] > raw);
}

bool rollup_has_hours_only(const struct rollup_kept *kept, int64_t day_end_ms)
{
	int64_t from_ms = kept->from_ms[SAMPLES_10M];

	return day_end_ms <= from_ms && kept->from_ms[SAMPLES_1H] < from_ms;
}

bool rollup_is_taken(const struct rollup_wants *wants, const struct rollup_kept *kept,
		     const struct rollup_bucket *bucket)
{
	return bucket->start_ms >= kept->from_ms[SAMPLES_1H] &&
	       (!bucket->has_minutes || (bucket->is_whole && bucket->is_made && wants->sums));
}

int64_t rollup_first_kept_ms(int64_t from_ms, int64_t until_ms, int64_t kept_ms, int64_t unit_ms)
{
	if (from_ms < kept_ms)
		from_ms = (kept_ms + unit_ms - 1) / unit_ms * unit_ms;
	return from_ms < until_ms ? from_ms : until_ms;
}
