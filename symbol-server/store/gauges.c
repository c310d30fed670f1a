/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/gauges.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash_table.h"
#include "common/keyed_hash.h"
#include "symbol-server/store/rules/answerable.h"

enum { UNKNOWN_DURATION_MS = 10000, SPAN_STEPS = 2880 };

/* The function of the one location of the stack whose value is a report's length. */
static const char covered[] = "farflame.covered_ms";

/* --- in --- */

struct gauge_batch {
	struct batch_location *locations;
	uint32_t *location_indices;
	struct batch_stack *stacks;
	struct batch_sample *samples;
	struct batch_profile *profiles;
	struct hash_table covered; /* profiles with their report's length */
};

static bool is_gauge(const char *type)
{
	int number = profile_type_find(type, strlen(type));

	return number >= 0 && profile_type_is_gauge((unsigned)number);
}

bool gauges_have(const struct sample_batch *batch)
{
	for (uint32_t i = 0; i < batch->profile_count; i++)
		if (is_gauge(batch->profiles[i].type))
			return true;
	return false;
}

static uint64_t times_seconds(uint64_t value, int64_t duration_ms)
{
	unsigned __int128 product = (unsigned __int128)value * (uint64_t)duration_ms;

	product = (product + 500) / 1000;
	if (product >= UINT64_MAX >> 1)
		return UINT64_MAX >> 1;
	return product || !value ? (uint64_t)product : 1;
}

static bool is_same_text(struct text a, struct text b)
{
	return a.length == b.length && !memcmp(a.at, b.at, a.length);
}

static bool is_same_series(const struct sample_batch *batch, uint32_t left, uint32_t right)
{
	const struct batch_series *a = &batch->series[left], *b = &batch->series[right];

	if (left == right)
		return true;
	if (a->label_count != b->label_count)
		return false;
	for (uint32_t i = 0; i < a->label_count; i++)
		if (!is_same_text(a->labels[i].value, b->labels[i].value) ||
		    !is_same_text(a->labels[i].name, b->labels[i].name))
			return false;
	return true;
}

static uint64_t hash_of(const struct sample_batch *batch, const struct batch_profile *profile)
{
	const struct batch_series *series = &batch->series[profile->series];
	uint64_t hash = keyed_hash(profile->type, strlen(profile->type),
				   (uint64_t)profile->time_ms);

	for (uint32_t i = 0; i < series->label_count; i++) {
		const struct batch_label *label = &series->labels[i];

		hash = keyed_hash(label->name.at, label->name.length, hash);
		hash = keyed_hash(label->value.at, label->value.length, hash);
	}
	return hash;
}

/* Processes of the same labels share a series: their report's length counts once. Without memory it
 * may count more often, and a mean is of a longer time. */
static bool is_covered(struct gauge_batch *gauges, const struct sample_batch *batch,
		       uint32_t number)
{
	const struct batch_profile *profile = &gauges->profiles[number];
	uint64_t hash = hash_of(batch, profile);

	HASH_TABLE_EACH(i, &gauges->covered, hash) {
		const struct batch_profile *other = &gauges->profiles[i];

		if (other->time_ms == profile->time_ms && !strcmp(other->type, profile->type) &&
		    is_same_series(batch, other->series, profile->series))
			return true;
	}
	hash_table_add(&gauges->covered, hash, number);
	return false;
}

static void put_profile(struct gauge_batch *gauges, const struct sample_batch *batch,
			struct sample_batch *additive, uint32_t number)
{
	struct batch_profile *profile = &gauges->profiles[number];
	const struct batch_sample *from = &batch->samples[profile->first_sample];
	int64_t duration_ms = profile->duration_ms > 0 ? profile->duration_ms : UNKNOWN_DURATION_MS;
	struct batch_sample *to = &gauges->samples[additive->sample_count];

	profile->first_sample = additive->sample_count;
	memcpy(to, from, profile->sample_count * sizeof(*to));
	if (is_gauge(profile->type)) {
		for (uint32_t i = 0; i < profile->sample_count; i++) {
			to[i].value = times_seconds(to[i].value, duration_ms);
			to[i].samples = times_seconds(to[i].samples, duration_ms);
		}
		if (!is_covered(gauges, batch, number))
			to[profile->sample_count++] =
				(struct batch_sample){.stack = batch->stack_count,
						      .thread = {"", 0},
						      .value = (uint64_t)duration_ms};
	}
	additive->sample_count += profile->sample_count;
}

static bool make_room(struct gauge_batch *gauges, const struct sample_batch *batch)
{
	size_t samples = 0;

	for (uint32_t i = 0; i < batch->profile_count; i++)
		samples += batch->profiles[i].sample_count + 1;
	gauges->locations = calloc((size_t)batch->location_count + 1, sizeof(*gauges->locations));
	gauges->location_indices = calloc((size_t)batch->location_index_count + 1,
					  sizeof(*gauges->location_indices));
	gauges->stacks = calloc((size_t)batch->stack_count + 1, sizeof(*gauges->stacks));
	gauges->samples = calloc(samples, sizeof(*gauges->samples));
	gauges->profiles = calloc(batch->profile_count, sizeof(*gauges->profiles));
	return samples < UINT32_MAX && gauges->locations && gauges->location_indices &&
	       gauges->stacks && gauges->samples && gauges->profiles;
}

static void copy(void *to, const void *from, size_t count, size_t size)
{
	if (count)
		memcpy(to, from, count * size);
}

struct gauge_batch *gauge_batch_new(const struct sample_batch *batch, struct sample_batch *additive)
{
	struct gauge_batch *gauges = calloc(1, sizeof(*gauges));

	if (!gauges || !make_room(gauges, batch)) {
		gauge_batch_free(gauges);
		return NULL;
	}
	*additive = *batch;
	hash_table_init(&gauges->covered, UINT32_MAX >> 1);
	copy(gauges->locations, batch->locations, batch->location_count, sizeof(*batch->locations));
	copy(gauges->location_indices, batch->location_indices, batch->location_index_count,
	     sizeof(*batch->location_indices));
	copy(gauges->stacks, batch->stacks, batch->stack_count, sizeof(*batch->stacks));
	copy(gauges->profiles, batch->profiles, batch->profile_count, sizeof(*batch->profiles));
	gauges->locations[additive->location_count++] = (struct batch_location){
		.kind = LOCATION_INCOMPLETE,
		.module = UINT32_MAX,
		.function = {covered, sizeof(covered) - 1},
		.file = {"", 0},
		.type = {"", 0},
	};
	gauges->location_indices[additive->location_index_count++] = batch->location_count;
	gauges->stacks[additive->stack_count++] = (struct batch_stack){
		.first_index = batch->location_index_count,
		.depth = 1,
		.hash = {hash_bytes(covered, sizeof(covered), 1),
			 hash_bytes(covered, sizeof(covered), 2)},
	};
	additive->sample_count = 0;
	additive->locations = gauges->locations;
	additive->location_indices = gauges->location_indices;
	additive->stacks = gauges->stacks;
	additive->samples = gauges->samples;
	additive->profiles = gauges->profiles;
	for (uint32_t i = 0; i < batch->profile_count; i++)
		put_profile(gauges, batch, additive, i);
	return gauges;
}

void gauge_batch_free(struct gauge_batch *gauges)
{
	if (!gauges)
		return;
	hash_table_release(&gauges->covered);
	free(gauges->locations);
	free(gauges->location_indices);
	free(gauges->stacks);
	free(gauges->samples);
	free(gauges->profiles);
	free(gauges);
}

/* --- the time that something was there --- */

struct span { /* whole steps, unix */
	int64_t from_ms, until_ms, step_ms;
};

struct coverage { /* of one series, or of all in one bucket */
	int64_t bucket_ms;
	uint32_t series;
	uint64_t ms;
};

bool gauge_query_is(const struct samples_query *query)
{
	return query->type && is_gauge(query->type);
}

static int64_t span_step(const struct samples_query *query)
{
	static const int64_t steps[] = {SAMPLES_BUCKET_MS, 600000, 3600000};
	unsigned i = 0;

	while (i < 2 && (query->until_ms - query->from_ms) / steps[i] > SPAN_STEPS)
		i++;
	return steps[i];
}

static bool find_span(struct samples_store *store, const struct samples_query *query,
		      struct span *span, struct error *err)
{
	struct samples_query of_sums = *query;
	struct samples_timeline *timeline;

	of_sums.thread_wanted = NULL;
	of_sums.trace_id = of_sums.span_id = NULL;
	of_sums.span_wanted = NULL;
	of_sums.only_spans = false;
	of_sums.by_thread = false;
	of_sums.is_exact = false;
	of_sums.step_ms = span_step(query);
	timeline = store->engine->timeline(store, &of_sums, err);
	if (!timeline)
		return false;
	*span = (struct span){INT64_MAX, 0, of_sums.step_ms};
	if (timeline->resolution_ms > span->step_ms)
		span->step_ms = timeline->resolution_ms;
	for (size_t i = 0; i < timeline->point_count; i++) {
		int64_t at = timeline->points[i].time_ms;

		span->from_ms = at < span->from_ms ? at : span->from_ms;
		span->until_ms = at + span->step_ms > span->until_ms ? at + span->step_ms
								     : span->until_ms;
	}
	if (!timeline->point_count) /* nothing yet: what comes meanwhile is of one step */
		*span = (struct span){0, span->step_ms, span->step_ms};
	samples_timeline_free(timeline);
	return true;
}

/* Seconds to divide by, of those whole steps in which one series was there for covered_ms. */
static double mean_seconds(const struct span *span, uint64_t covered_ms)
{
	double whole = (double)(span->until_ms - span->from_ms);
	double step = (double)span->step_ms, ms = (double)covered_ms;

	return (ms > 0 && ms >= whole - 2 * step && ms <= whole + step ? ms : whole) / 1000;
}

/* The same of one bucket: inside, reports that begin in it may be one more or less. */
static double bucket_seconds(const struct span *span, int64_t bucket_ms, int64_t step_ms,
			     uint64_t covered_ms)
{
	int64_t from_ms = bucket_ms > span->from_ms ? bucket_ms : span->from_ms;
	int64_t until_ms = bucket_ms + step_ms < span->until_ms ? bucket_ms + step_ms
								: span->until_ms;
	double whole = until_ms > from_ms ? (double)(until_ms - from_ms) : (double)step_ms;
	double ms = (double)covered_ms;
	bool is_edge = from_ms == span->from_ms || until_ms == span->until_ms;
	double least = is_edge ? whole - 2 * (double)span->step_ms : 0.75 * whole;

	/* Of seconds: the reports that begin in one are longer. */
	if (step_ms % SAMPLES_BUCKET_MS && ms > 0)
		return ms / 1000;
	return (ms > 0 && ms >= least && ms <= 1.25 * whole ? ms : whole) / 1000;
}

static bool is_coverage(const struct samples_result *result, const struct result_stack *stack)
{
	const struct result_location *location;
	uint32_t number;

	if (stack->depth != 1)
		return false;
	number = stack->locations ? stack->locations[0] : result->nodes[stack->node].location;
	location = &result->locations[number];
	return location->kind == LOCATION_INCOMPLETE && !strcmp(location->function, covered);
}

static int compare_coverages(const void *left, const void *right)
{
	const struct coverage *a = left, *b = right;

	if (a->bucket_ms != b->bucket_ms)
		return a->bucket_ms < b->bucket_ms ? -1 : 1;
	return (a->series > b->series) - (a->series < b->series);
}

/* Takes the reports' lengths out of the result: the longest series' of each bucket, sorted. */
static struct coverage *take_coverages(struct samples_result *result, size_t *count)
{
	struct coverage *found = calloc(result->stack_count + 1, sizeof(*found));
	size_t kept = 0, coverages = 0, series = 0;

	*count = 0;
	if (!found)
		return NULL;
	for (size_t i = 0; i < result->stack_count; i++) {
		const struct result_stack *stack = &result->stacks[i];

		if (is_coverage(result, stack))
			found[coverages++] = (struct coverage){stack->bucket_ms, stack->series,
							       stack->value};
		else
			result->stacks[kept++] = *stack;
	}
	result->stack_count = kept;
	qsort(found, coverages, sizeof(*found), compare_coverages);
	for (size_t i = 0; i < coverages; i++) { /* a series' threads, should it have any */
		if (series && !compare_coverages(&found[series - 1], &found[i]))
			found[series - 1].ms += found[i].ms;
		else
			found[series++] = found[i];
	}
	for (size_t i = 0; i < series; i++) {
		struct coverage *last = *count ? &found[*count - 1] : NULL;

		if (!last || last->bucket_ms != found[i].bucket_ms)
			found[(*count)++] = found[i];
		else if (found[i].ms > last->ms)
			last->ms = found[i].ms;
	}
	return found;
}

static uint64_t covered_at(const struct coverage *coverages, size_t count, int64_t bucket_ms)
{
	struct coverage key = {.bucket_ms = bucket_ms};
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (coverages[middle].bucket_ms < key.bucket_ms)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && coverages[low].bucket_ms == bucket_ms ? coverages[low].ms : 0;
}

static void divide(struct samples_result *result, const struct samples_query *query,
		   const struct span *span, const struct coverage *coverages, size_t count)
{
	int64_t step_ms = query->step_ms ? query->step_ms : SAMPLES_BUCKET_MS;
	bool by_step = query->by_bucket && !query->is_part_of_mean;
	uint64_t all_ms = 0;
	size_t kept = 0;

	if (result->resolution_ms > step_ms)
		step_ms = result->resolution_ms;
	for (size_t i = 0; i < count; i++)
		all_ms += coverages[i].ms;
	for (size_t i = 0; i < result->stack_count; i++) {
		struct result_stack *stack = &result->stacks[i];
		uint64_t ms = by_step ? covered_at(coverages, count, stack->bucket_ms) : all_ms;
		double seconds = by_step ? bucket_seconds(span, stack->bucket_ms, step_ms, ms)
					 : mean_seconds(span, ms);

		stack->value = (uint64_t)llround((double)stack->value / seconds);
		stack->samples = (uint64_t)llround((double)stack->samples / seconds);
		if (stack->value || stack->samples)
			result->stacks[kept++] = *stack;
	}
	result->stack_count = kept;
	result->cut.value =
		(uint64_t)llround((double)result->cut.value / mean_seconds(span, all_ms));
	result->cut.samples =
		(uint64_t)llround((double)result->cut.samples / mean_seconds(span, all_ms));
}

/* --- out --- */

struct samples_result *gauge_query(struct samples_store *store, const struct samples_query *query,
				   struct error *err)
{
	uint64_t lengths = hash_bytes(covered, sizeof(covered), 1);
	struct samples_query apart = *query;
	struct samples_result *result;
	struct coverage *coverages;
	struct span span;
	size_t count;

	apart.kept_stack_id = &lengths;
	apart.labels = NULL; /* series stay apart: each says how long it was there */
	apart.label_count = 0;
	if (!find_span(store, query, &span, err))
		return NULL;
	result = store->engine->query(store, &apart, err);
	if (!result)
		return NULL;
	coverages = take_coverages(result, &count);
	if (!coverages) {
		samples_result_free(result);
		error_set(err, ERROR_MEMORY, "no memory for an answer");
		return NULL;
	}
	divide(result, query, &span, coverages, count);
	result->untold.samples = result->untold.of = 0; /* reports' lengths are among them */
	free(coverages);
	return result;
}

static void put_points(const struct samples_result *result, struct samples_timeline *timeline)
{
	struct timeline_point *points = timeline->points;

	for (size_t i = 0; i < result->stack_count; i++) {
		const struct result_stack *stack = &result->stacks[i];

		points[i] = (struct timeline_point){stack->series, stack->bucket_ms, stack->samples,
						    stack->value};
	}
	timeline->point_count = time_line_merge_points(points, result->stack_count);
}

/* From stacks: the sums beside them have the reports' lengths in them. */
struct samples_timeline *gauge_timeline(struct samples_store *store,
					const struct samples_query *query, struct error *err)
{
	struct samples_query by_step = *query;
	struct samples_timeline *timeline;
	struct samples_result *result;

	by_step.by_bucket = true;
	by_step.limits.is_cut = NULL; /* a time line is whole */
	result = gauge_query(store, &by_step, err);
	if (!result)
		return NULL;
	timeline = calloc(1, sizeof(*timeline));
	if (timeline) {
		timeline->arena = result->arena; /* and with it labels and texts */
		timeline->points = arena_array(&timeline->arena, result->stack_count + 1,
					       sizeof(*timeline->points));
		timeline->hosts = arena_copy(&timeline->arena, result->hosts,
					     result->host_count * sizeof(*result->hosts));
	}
	if (!timeline || !timeline->points || (result->host_count && !timeline->hosts)) {
		if (timeline)
			result->arena = timeline->arena;
		free(timeline);
		samples_result_free(result);
		error_set(err, ERROR_LIMIT,
			  "the time line has too many series or steps: group by fewer labels, ask "
			  "for a longer step or narrow the selection");
		return NULL;
	}
	timeline->from_ms = result->from_ms;
	timeline->until_ms = result->until_ms;
	timeline->step_ms = query->step_ms ? query->step_ms : SAMPLES_BUCKET_MS;
	timeline->resolution_ms = result->resolution_ms;
	timeline->series = result->series;
	timeline->series_count = result->series_count;
	timeline->host_count = result->host_count;
	put_points(result, timeline);
	free(result->stacks);
	free(result->hosts);
	free(result);
	return timeline;
}

bool gauge_types(struct samples_store *store, const struct samples_query *query,
		 struct type_count *rows, size_t count, struct error *err)
{
	for (size_t i = 0; i < count; i++) {
		struct samples_query of_type = *query;
		struct samples_result *result;

		if (!is_gauge(rows[i].type))
			continue;
		of_type.type = rows[i].type;
		result = gauge_query(store, &of_type, err);
		if (!result)
			return false;
		rows[i].value = result->cut.value;
		rows[i].samples = result->cut.samples;
		for (size_t k = 0; k < result->stack_count; k++) {
			rows[i].value += result->stacks[k].value;
			rows[i].samples += result->stacks[k].samples;
		}
		samples_result_free(result);
	}
	return true;
}
