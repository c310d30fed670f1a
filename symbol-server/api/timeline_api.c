/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/v1/timeline: from the sums beside packed stacks; only where stacks or threads are asked
 * for, from the stacks themselves. */
#include <stdlib.h>
#include <string.h>

#include "common/hash_table.h"
#include "symbol-server/api/answer.h"
#include "symbol-server/api/answer_format.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/flame_request.h"
#include "symbol-server/api/host_cpus.h"
#include "symbol-server/api/parameters.h"
#include "symbol-server/api/reported.h"
#include "symbol-server/api/step.h"
#include "symbol-server/flamegraph/sampling_error.h"
#include "symbol-server/formats/timeline_formats.h"
#include "symbol-server/naming/label_groups.h"

enum {
	CELLS_MAX = 2000000, /* of steps × series in the answer */
};

struct group { /* one combination of the labels' values */
	struct timeline_sum sum;
	uint32_t place; /* in the answer; UINT32_MAX: in other */
};

struct point {
	uint32_t group, step;
	struct timeline_sum sum;
};

struct timing {
	struct flame_request flame;
	struct samples_timeline *timeline; /* NULL: stacks were asked for */
	int64_t step_ms, first_ms;
	bool is_step_asked, with_errors;
	uint32_t step_count, limit;
	struct hash_table point_index;
	struct label_groups labels;
	struct group *groups; /* by their numbers */
	size_t group_count, group_room;
	struct point *points;
	size_t point_count, point_room, point_limit;
	struct timeline_sum all;
	struct timeline_line *lines;
	struct timeline_sum *cells;  /* of lines, then of other */
	struct timeline_time *times; /* of the steps; NULL: not known */
	uint64_t *line_times;        /* of lines, where each is of one host; NULL: not */
};

static bool no_memory(struct error *err)
{
	return error_set(err, ERROR_MEMORY, "out of memory; try again later");
}

/* --- adding up --- */

static bool grow(void **array, size_t count, size_t *room, size_t size)
{
	size_t larger = *room ? *room * 2 : 256;
	void *copy;

	if (count < *room)
		return true;
	copy = realloc(*array, larger * size);
	if (!copy)
		return false;
	*array = copy;
	*room = larger;
	return true;
}

static uint32_t step_of(const struct timing *timing, int64_t time_ms)
{
	return time_ms > timing->first_ms
		       ? (uint32_t)((time_ms - timing->first_ms) / timing->step_ms)
		       : 0;
}

static void add_sum(struct timeline_sum *to, const struct timeline_sum *sum)
{
	to->value += sum->value;
	to->samples += sum->samples;
	to->squares += sum->squares;
}

static bool add_point(struct timing *timing, uint32_t group, int64_t time_ms, uint64_t value,
		      uint64_t samples)
{
	const struct timeline_sum sum = {value, samples,
					 sampling_squares(value, samples, &timing->flame.sampled)};
	uint32_t step = step_of(timing, time_ms);
	uint64_t hash = hash_word(step, group);
	uint32_t probe, at;

	if (step >= timing->step_count)
		return true; /* no store gives what lies outside of the range it names */
	for (at = hash_table_first(&timing->point_index, hash, &probe); at != HASH_TABLE_NONE;
	     at = hash_table_next(&timing->point_index, hash, &probe))
		if (timing->points[at].group == group && timing->points[at].step == step)
			break;
	if (at == HASH_TABLE_NONE) {
		at = (uint32_t)timing->point_count;
		if (timing->point_count >= timing->point_limit ||
		    !grow((void **)&timing->points, timing->point_count, &timing->point_room,
			  sizeof(*timing->points)) ||
		    !hash_table_add(&timing->point_index, hash, at))
			return false;
		timing->points[timing->point_count++] = (struct point){.group = group,
								       .step = step};
	}
	add_sum(&timing->points[at].sum, &sum);
	add_sum(&timing->groups[group].sum, &sum);
	add_sum(&timing->all, &sum);
	return true;
}

static bool group_of(struct timing *timing, const struct series_labels *series, const char *thread,
		     uint32_t *number)
{
	if (!label_groups_take(&timing->labels, &timing->flame.query, series, thread, number))
		return false;
	if (*number < timing->group_count)
		return true;
	if (timing->group_count >= timing->point_limit ||
	    !grow((void **)&timing->groups, timing->group_count, &timing->group_room,
		  sizeof(*timing->groups)))
		return false;
	timing->groups[timing->group_count++] = (struct group){0};
	return true;
}

static void set_range(struct timing *timing, int64_t from_ms, int64_t until_ms,
		      int64_t resolution_ms)
{
	timing->step_ms = step_known(timing->step_ms, timing->is_step_asked, resolution_ms);
	timing->first_ms = from_ms / timing->step_ms * timing->step_ms;
	timing->step_count =
		(uint32_t)((until_ms - timing->first_ms + timing->step_ms - 1) / timing->step_ms);
}

static bool find_spread(struct timing *timing, struct error *err)
{
	const struct samples_timeline *timeline = timing->timeline;
	struct flame_request *flame = &timing->flame;
	struct sampling_series *series = calloc((size_t)timeline->series_count + 1,
						sizeof(*series));

	if (!series)
		return no_memory(err);
	for (size_t i = 0; i < timeline->point_count; i++) {
		const struct timeline_point *point = &timeline->points[i];

		sampling_series_add(&series[point->series],
				    flame->by_samples ? point->samples : point->value,
				    point->samples);
	}
	/* Where windows differ so do means of steps: it is not counted twice. */
	flame->sampled.windows = hosts_windows(timeline->hosts, timeline->host_count);
	flame->sampled.spread =
		sampling_spread(series, timeline->series_count, flame_request_unknown_spread(flame),
				flame->sampled.windows > 0 ? SPREAD_OF_STACKS : SPREAD_OF_SUMS);
	free(series);
	return true;
}

static bool add_timeline(struct timing *timing, struct error *err)
{
	const struct samples_timeline *timeline = timing->timeline;
	bool by_samples = timing->flame.by_samples;
	uint32_t group;

	if (!find_spread(timing, err))
		return false;
	for (size_t i = 0; i < timeline->point_count; i++) {
		const struct timeline_point *point = &timeline->points[i];

		if (!query_life_goes_on(timing->flame.life, err) ||
		    !group_of(timing, &timeline->series[point->series], "", &group) ||
		    !add_point(timing, group, point->time_ms,
			       by_samples ? point->samples : point->value, point->samples))
			return false;
	}
	return true;
}

static bool add_stack(void *context, const struct flame_frame *frames, size_t depth, uint64_t value,
		      uint64_t samples)
{
	struct timing *timing = context;
	const struct result_stack *stack = named_stacks_current(timing->flame.stacks);
	uint32_t group;

	(void)frames, (void)depth;
	return group_of(timing, &timing->flame.result->series[stack->series], stack->thread,
			&group) &&
	       add_point(timing, group, stack->bucket_ms, value, samples);
}

/* --- asking --- */

static bool needs_stacks(const struct flame_request *flame)
{
	return query_is_by_sample(&flame->query) || flame->focus || flame->ignore || flame->hide ||
	       flame->query.is_exact;
}

static bool ask_timeline(struct timing *timing, struct api *api, struct error *err)
{
	struct flame_request *flame = &timing->flame;
	struct samples_query wanted;

	flame->life = query_life_start(flame->asked.request, &api->query_limits, &flame->query,
				       err);
	if (!flame->life)
		return false;
	query_to_samples(&flame->query, &wanted);
	wanted.step_ms = timing->step_ms;
	timing->timeline = samples_timeline(api->samples, &wanted, err);
	if (timing->timeline)
		flame->cpus = host_cpus(api->samples, timing->timeline->hosts,
					timing->timeline->host_count, timing->timeline->host_steps,
					timing->timeline->host_step_count);
	return timing->timeline && query_life_goes_on(flame->life, err) &&
	       (timing->timeline->point_count ||
		nothing_explain(api, flame->life, &flame->query, &flame->nothing, err)) &&
	       nothing_check_groups(api, flame->life, &flame->query, timing->timeline->series,
				    timing->timeline->series_count, err);
}

static bool ask(struct timing *timing, struct api *api, struct error *err)
{
	struct flame_request *flame = &timing->flame;
	bool by_stacks = needs_stacks(flame), ok;

	flame->query.by_bucket = by_stacks;
	flame->query.step_ms = by_stacks ? timing->step_ms : 0;
	if (!(by_stacks ? flame_request_run(flame, api, err) : ask_timeline(timing, api, err)))
		return false;
	timing->point_limit = query_life_room(flame->life, 4 * sizeof(struct point),
					      UINT32_MAX >> 2);
	if (by_stacks)
		set_range(timing, flame->result->from_ms, flame->result->until_ms,
			  flame->result->resolution_ms);
	else
		set_range(timing, timing->timeline->from_ms, timing->timeline->until_ms,
			  timing->timeline->resolution_ms);
	ok = by_stacks ? flame_request_each(flame, add_stack, timing, err)
		       : add_timeline(timing, err);
	return ok ||
	       (err->kind == ERROR_NONE &&
		error_set(
			err, ERROR_LIMIT,
			"the time line has more series and steps than fit: group by fewer labels, "
			"ask for a longer step or narrow the selection"));
}

/* --- choosing what is shown --- */

static int compare_groups(const void *left, const void *right, void *context)
{
	const struct timing *timing = context;
	uint32_t first = *(const uint32_t *)left, second = *(const uint32_t *)right;
	const struct group *a = &timing->groups[first], *b = &timing->groups[second];
	const char *const *of_a = timing->labels.list[first].values;
	const char *const *of_b = timing->labels.list[second].values;
	int order = 0;

	if (a->sum.value != b->sum.value)
		return a->sum.value > b->sum.value ? -1 : 1;
	for (unsigned i = 0; i < timing->flame.query.group_count && !order; i++)
		order = strcmp(of_a[i], of_b[i]);
	return order;
}

static bool choose(struct timing *timing, struct timeline_answer *answer, struct error *err)
{
	size_t shown = timing->group_count < timing->limit ? timing->group_count : timing->limit;
	uint32_t *order = calloc(timing->group_count + 1, sizeof(*order));
	uint32_t steps = timing->step_count;

	while (shown > 1 && shown * steps > CELLS_MAX)
		shown--;
	timing->lines = calloc(shown + 1, sizeof(*timing->lines));
	timing->cells = calloc((shown + 1) * steps + 1, sizeof(*timing->cells));
	if (!order || !timing->lines || !timing->cells) {
		free(order);
		return no_memory(err);
	}
	for (uint32_t i = 0; i < timing->group_count; i++)
		order[i] = i;
	qsort_r(order, timing->group_count, sizeof(*order), compare_groups, timing);
	answer->other.steps = timing->cells + shown * steps;
	answer->other_count = timing->group_count - shown;
	for (uint32_t i = 0; i < timing->group_count; i++) {
		struct group *group = &timing->groups[order[i]];

		group->place = i < shown ? i : (uint32_t)shown;
		if (i < shown) {
			timing->lines[i] =
				(struct timeline_line){timing->labels.list[order[i]].values,
						       group->sum, timing->cells + i * steps};
		} else {
			add_sum(&answer->other.sum, &group->sum);
		}
	}
	for (size_t i = 0; i < timing->point_count; i++) {
		const struct point *point = &timing->points[i];

		struct timeline_sum *cell = &timing->cells[point->step];

		cell += timing->groups[point->group].place * (size_t)steps;
		add_sum(cell, &point->sum);
	}
	answer->lines = timing->lines;
	answer->line_count = shown;
	free(order);
	return true;
}

/* Steps have largely the same samples: their mean is as far off as one of them. */
static void divide(struct timeline_sum *sum, uint32_t steps)
{
	sum->value /= steps;
	sum->samples /= steps;
	sum->squares /= steps;
}

/* From the first to the last step with points; of seconds, those in which reports began. 0: there
 * is none, or no memory. */
static uint32_t steps_with_points(const struct timing *timing)
{
	uint32_t first = UINT32_MAX, last = 0, count = 0;
	bool *has = calloc(timing->step_count + 1, sizeof(*has));

	for (size_t i = 0; has && i < timing->point_count; i++) {
		uint32_t step = timing->points[i].step;

		count += !has[step];
		has[step] = true;
		first = step < first ? step : first;
		last = step > last ? step : last;
	}
	free(has);
	return !count || timing->step_ms < SAMPLES_BUCKET_MS ? count : last - first + 1;
}

/* Of a gauge, whose steps are means: the mean of steps instead of their sum. */
static void take_means(struct timing *timing)
{
	uint32_t steps = steps_with_points(timing);

	if (!steps)
		return;
	divide(&timing->all, steps);
	for (size_t i = 0; i < timing->group_count; i++)
		divide(&timing->groups[i].sum, steps);
}

/* --- the time in which hosts reported --- */

struct host_steps_of {
	const struct host_step *at;
	uint32_t count;
	const struct host_accounting *hosts;
	uint32_t host_count;
};

static struct host_steps_of host_steps_of(const struct timing *timing)
{
	const struct samples_timeline *timeline = timing->timeline;
	const struct samples_result *result = timing->flame.result;

	return timeline ? (struct host_steps_of){timeline->host_steps, timeline->host_step_count,
						 timeline->hosts, timeline->host_count}
			: (struct host_steps_of){result->host_steps, result->host_step_count,
						 result->hosts, result->host_count};
}

static void add_time(void *context, int64_t time_ms, uint64_t reported_ms, uint64_t lost)
{
	struct timing *timing = context;
	uint32_t step = step_of(timing, time_ms);

	if (step >= timing->step_count)
		return;
	timing->times[step].reported_ms += reported_ms;
	timing->times[step].lost += lost;
}

/* The host of a line is one of its labels: its own time. */
static bool put_line_times(struct timing *timing, struct timeline_answer *answer)
{
	const struct host_steps_of steps = host_steps_of(timing);
	unsigned label = 0;

	while (label < answer->label_count && strcmp(answer->labels[label], "host"))
		label++;
	if (label == answer->label_count)
		return true;
	timing->line_times = calloc(answer->line_count * timing->step_count + 1,
				    sizeof(*timing->line_times));
	for (size_t i = 0; timing->line_times && i < answer->line_count; i++) {
		struct timeline_line *line = &timing->lines[i];
		uint64_t *times = timing->line_times + i * timing->step_count;
		bool is_known = false;
		uint32_t host = 0;

		while (host < steps.host_count &&
		       strcmp(steps.hosts[host].host, line->values[label]))
			host++;
		for (uint32_t k = 0; k < steps.count; k++) {
			uint32_t step = step_of(timing, steps.at[k].time_ms);

			if (steps.at[k].host != host || step >= timing->step_count)
				continue;
			times[step] += steps.at[k].reported_ms;
			is_known |= steps.at[k].reported_ms > 0;
		}
		line->reported_ms = is_known ? times : NULL;
	}
	return timing->line_times;
}

static bool put_times(struct timing *timing, struct timeline_answer *answer, struct error *err)
{
	const struct host_steps_of steps = host_steps_of(timing);

	if (!reported_sum(steps.at, steps.count))
		return true;
	timing->times = calloc(timing->step_count + 1, sizeof(*timing->times));
	if (!timing->times || !put_line_times(timing, answer))
		return no_memory(err);
	reported_each(steps.at, steps.count, add_time, timing);
	answer->times = timing->times;
	return true;
}

/* --- answering --- */

static bool timeline_json_of(const struct flame_answer *answer, struct buffer *out)
{
	return timeline_json((const struct timeline_answer *)answer, out);
}

static bool timeline_csv_of(const struct flame_answer *answer, struct buffer *out)
{
	return timeline_csv((const struct timeline_answer *)answer, out);
}

/* A timeline_answer starts with the flame_answer that these are given. */
static const struct answer_format formats[] = {
	{"json", "application/json", NULL, timeline_json_of},
	{"csv", "text/csv; charset=utf-8; header=present", "csv", timeline_csv_of,
	 .is_download = true},
	{0},
};

static void account(const struct timing *timing, struct accounting *accounting)
{
	const struct samples_timeline *timeline = timing->timeline;

	if (!timeline) {
		flame_request_accounting(&timing->flame, accounting);
		accounting->value = timing->all.value + accounting->cut_by_memory;
		accounting->samples = timing->all.samples + timing->flame.result->cut.samples;
		if (timing->flame.is_gauge)
			accounting->error = sampling_error(accounting->value, timing->all.squares);
		return;
	}
	*accounting = (struct accounting){
		.value = timing->all.value, .samples = timing->all.samples, .is_of_sums = true};
	accounting->is_sampled = timing->flame.sampling != SAMPLING_WHOLE;
	accounting->sampled = timing->flame.sampled;
	accounting->error = sampling_error(accounting->value, timing->all.squares);
	accounting->resolution_ms = timeline->resolution_ms;
	accounting->nothing = timing->flame.nothing.sentence;
	accounting->data_from_ms = timing->flame.nothing.from_ms;
	accounting->data_until_ms = timing->flame.nothing.until_ms;
	hosts_accounting(timeline->hosts, timeline->host_count, accounting);
	accounting->reported_ms = reported_sum(timeline->host_steps, timeline->host_step_count);
	accounting->cpus = timing->flame.cpus;
}

static bool write_answer(struct http_response *response, struct timing *timing,
			 const struct answer_format *format, struct error *err)
{
	const struct flame_request *flame = &timing->flame;
	const struct samples_timeline *timeline = timing->timeline;
	struct accounting accounting;
	struct timeline_answer answer = {
		.flame = {.type = flame->query.type,
			  .unit = flame_request_unit(flame),
			  .from_ms = timeline ? timeline->from_ms : flame->result->from_ms,
			  .until_ms = timeline ? timeline->until_ms : flame->result->until_ms,
			  .accounting = &accounting},
		.labels = flame->query.groups,
		.label_count = flame->query.group_count,
		.step_ms = timing->step_ms,
		.first_ms = timing->first_ms,
		.resolution_ms = timeline ? timeline->resolution_ms : flame->result->resolution_ms,
		.step_count = timing->step_count,
		.with_errors = timing->with_errors,
	};

	if (timing->flame.is_gauge)
		take_means(timing);
	if (!choose(timing, &answer, err) || !put_times(timing, &answer, err))
		return false;
	account(timing, &accounting);
	accounting.cut += answer.other.sum.value;
	return answer_format_write(timing->flame.life, response, format, &answer.flame, err);
}

static void release(struct timing *timing)
{
	flame_request_release(&timing->flame);
	samples_timeline_free(timing->timeline);
	label_groups_release(&timing->labels);
	hash_table_release(&timing->point_index);
	free(timing->groups);
	free(timing->points);
	free(timing->lines);
	free(timing->cells);
	free(timing->times);
	free(timing->line_times);
}

static bool read_request(struct http_request *request, struct timing *timing,
			 const struct answer_format **format, struct error *err)
{
	const struct parameters *asked = &timing->flame.asked;
	const struct query *query = &timing->flame.query;

	return flame_request_read(request, ENDPOINT_timeline, &timing->flame, err) &&
	       parameter_step(asked, "step", query->until_ms - query->from_ms, &timing->step_ms,
			      &timing->is_step_asked, err) &&
	       parameter_number(asked, "limit", &timing->limit, err) &&
	       parameter_flag(asked, "errors", &timing->with_errors, err) &&
	       answer_format_read(asked, formats, format, err);
}

void api_timeline_get(struct http_request *request, struct http_response *response, void *context)
{
	const struct answer_format *format = formats;
	struct timing timing = {0};
	struct error err = {0};
	bool ok;

	label_groups_init(&timing.labels);
	hash_table_init(&timing.point_index, UINT32_MAX >> 1);
	ok = read_request(request, &timing, &format, &err) && ask(&timing, context, &err) &&
	     write_answer(response, &timing, format, &err);
	if (!ok)
		answer_failure(response, &err);
	release(&timing);
}
