/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/v1/timeline: from the sums beside packed stacks; only where stacks or threads are asked
 * for, from the stacks themselves. */
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
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

struct timeline_question {
	struct flame_request flame;
	struct samples_timeline *sums; /* NULL: stacks were asked for */
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

/* --- adding up --- */

static uint32_t step_of(const struct timeline_question *question, int64_t time_ms)
{
	return time_ms > question->first_ms
		       ? (uint32_t)((time_ms - question->first_ms) / question->step_ms)
		       : 0;
}

static void add_sum(struct timeline_sum *to, const struct timeline_sum *sum)
{
	to->value += sum->value;
	to->samples += sum->samples;
	to->squares += sum->squares;
}

static bool add_point(struct timeline_question *question, uint32_t group, int64_t time_ms,
		      uint64_t value, uint64_t samples)
{
	const struct timeline_sum sum = {
		value, samples, sampling_squares(value, samples, &question->flame.sampled)};
	uint32_t step = step_of(question, time_ms);
	uint64_t hash = hash_word(step, group);
	uint32_t probe, at;

	if (step >= question->step_count)
		return true; /* no store gives what lies outside of the range it names */
	for (at = hash_table_first(&question->point_index, hash, &probe); at != HASH_TABLE_NONE;
	     at = hash_table_next(&question->point_index, hash, &probe))
		if (question->points[at].group == group && question->points[at].step == step)
			break;
	if (at == HASH_TABLE_NONE) {
		at = (uint32_t)question->point_count;
		if (question->point_count >= question->point_limit ||
		    !ARRAY_GROW(question->points, question->point_count, question->point_room) ||
		    !hash_table_add(&question->point_index, hash, at))
			return false;
		question->points[question->point_count++] = (struct point){.group = group,
									   .step = step};
	}
	add_sum(&question->points[at].sum, &sum);
	add_sum(&question->groups[group].sum, &sum);
	add_sum(&question->all, &sum);
	return true;
}

static bool group_of(struct timeline_question *question, const struct series_labels *series,
		     const char *thread, uint32_t *number)
{
	if (!label_groups_take(&question->labels, &question->flame.query, series, thread, number))
		return false;
	if (*number < question->group_count)
		return true;
	if (question->group_count >= question->point_limit ||
	    !ARRAY_GROW(question->groups, question->group_count, question->group_room))
		return false;
	question->groups[question->group_count++] = (struct group){0};
	return true;
}

static void set_range(struct timeline_question *question, int64_t from_ms, int64_t until_ms,
		      int64_t resolution_ms)
{
	question->step_ms = step_known(question->step_ms, question->is_step_asked, resolution_ms);
	question->first_ms = from_ms / question->step_ms * question->step_ms;
	question->step_count = (uint32_t)((until_ms - question->first_ms + question->step_ms - 1) /
					  question->step_ms);
}

static bool find_spread(struct timeline_question *question, struct error *err)
{
	const struct samples_timeline *timeline = question->sums;
	struct flame_request *flame = &question->flame;
	struct sampling_series *series = calloc((size_t)timeline->series_count + 1,
						sizeof(*series));

	if (!series)
		return error_no_memory(err);
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

static bool add_timeline(struct timeline_question *question, struct error *err)
{
	const struct samples_timeline *timeline = question->sums;
	bool by_samples = question->flame.by_samples;
	uint32_t group;

	if (!find_spread(question, err))
		return false;
	for (size_t i = 0; i < timeline->point_count; i++) {
		const struct timeline_point *point = &timeline->points[i];

		if (!query_life_goes_on(question->flame.life, err) ||
		    !group_of(question, &timeline->series[point->series], "", &group) ||
		    !add_point(question, group, point->time_ms,
			       by_samples ? point->samples : point->value, point->samples))
			return false;
	}
	return true;
}

static bool add_stack(void *context, const struct flame_frame *frames, size_t depth, uint64_t value,
		      uint64_t samples)
{
	struct timeline_question *question = context;
	const struct result_stack *stack = named_stacks_current(question->flame.stacks);
	uint32_t group;

	(void)frames, (void)depth;
	return group_of(question, &question->flame.result->series[stack->series], stack->thread,
			&group) &&
	       add_point(question, group, stack->bucket_ms, value, samples);
}

/* --- asking --- */

static bool needs_stacks(const struct flame_request *flame)
{
	return query_is_by_sample(&flame->query) || flame->focus || flame->ignore || flame->hide ||
	       flame->query.is_exact;
}

static bool ask_timeline(struct timeline_question *question, struct api *api, struct error *err)
{
	struct flame_request *flame = &question->flame;
	struct samples_query wanted;

	flame->life = query_life_start(flame->asked.request, &api->query_limits, &flame->query,
				       err);
	if (!flame->life)
		return false;
	query_to_samples(&flame->query, &wanted);
	wanted.step_ms = question->step_ms;
	question->sums = samples_timeline(api->samples, &wanted, err);
	if (question->sums)
		flame->cpus = host_cpus(api->samples, question->sums->hosts,
					question->sums->host_count, question->sums->host_steps,
					question->sums->host_step_count);
	return question->sums && query_life_goes_on(flame->life, err) &&
	       (question->sums->point_count ||
		nothing_explain(api, flame->life, &flame->query, &flame->nothing, err)) &&
	       nothing_check_groups(api, flame->life, &flame->query, question->sums->series,
				    question->sums->series_count, err);
}

static bool ask(struct timeline_question *question, struct api *api, struct error *err)
{
	struct flame_request *flame = &question->flame;
	bool by_stacks = needs_stacks(flame), ok;

	flame->query.by_bucket = by_stacks;
	flame->query.step_ms = by_stacks ? question->step_ms : 0;
	if (!(by_stacks ? flame_request_run(flame, api, err) : ask_timeline(question, api, err)))
		return false;
	question->point_limit = query_life_room(flame->life, 4 * sizeof(struct point),
						UINT32_MAX >> 2);
	if (by_stacks)
		set_range(question, flame->result->from_ms, flame->result->until_ms,
			  flame->result->resolution_ms);
	else
		set_range(question, question->sums->from_ms, question->sums->until_ms,
			  question->sums->resolution_ms);
	ok = by_stacks ? flame_request_each(flame, add_stack, question, err)
		       : add_timeline(question, err);
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
	const struct timeline_question *question = context;
	uint32_t first = *(const uint32_t *)left, second = *(const uint32_t *)right;
	const struct group *a = &question->groups[first], *b = &question->groups[second];
	const char *const *of_a = question->labels.list[first].values;
	const char *const *of_b = question->labels.list[second].values;
	int order = 0;

	if (a->sum.value != b->sum.value)
		return a->sum.value > b->sum.value ? -1 : 1;
	for (unsigned i = 0; i < question->flame.query.group_count && !order; i++)
		order = strcmp(of_a[i], of_b[i]);
	return order;
}

static bool choose(struct timeline_question *question, struct timeline_answer *answer,
		   struct error *err)
{
	size_t shown = question->group_count < question->limit ? question->group_count
							       : question->limit;
	uint32_t *order = calloc(question->group_count + 1, sizeof(*order));
	uint32_t steps = question->step_count;

	while (shown > 1 && shown * steps > CELLS_MAX)
		shown--;
	question->lines = calloc(shown + 1, sizeof(*question->lines));
	question->cells = calloc((shown + 1) * steps + 1, sizeof(*question->cells));
	if (!order || !question->lines || !question->cells) {
		free(order);
		return error_no_memory(err);
	}
	for (uint32_t i = 0; i < question->group_count; i++)
		order[i] = i;
	qsort_r(order, question->group_count, sizeof(*order), compare_groups, question);
	answer->other.steps = question->cells + shown * steps;
	answer->other_count = question->group_count - shown;
	for (uint32_t i = 0; i < question->group_count; i++) {
		struct group *group = &question->groups[order[i]];

		group->place = i < shown ? i : (uint32_t)shown;
		if (i < shown) {
			question->lines[i] =
				(struct timeline_line){question->labels.list[order[i]].values,
						       group->sum, question->cells + i * steps};
		} else {
			add_sum(&answer->other.sum, &group->sum);
		}
	}
	for (size_t i = 0; i < question->point_count; i++) {
		const struct point *point = &question->points[i];

		struct timeline_sum *cell = &question->cells[point->step];

		cell += question->groups[point->group].place * (size_t)steps;
		add_sum(cell, &point->sum);
	}
	answer->lines = question->lines;
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
static uint32_t steps_with_points(const struct timeline_question *question)
{
	uint32_t first = UINT32_MAX, last = 0, count = 0;
	bool *has = calloc(question->step_count + 1, sizeof(*has));

	for (size_t i = 0; has && i < question->point_count; i++) {
		uint32_t step = question->points[i].step;

		count += !has[step];
		has[step] = true;
		first = step < first ? step : first;
		last = step > last ? step : last;
	}
	free(has);
	return !count || question->step_ms < SAMPLES_BUCKET_MS ? count : last - first + 1;
}

/* Of a gauge, whose steps are means: the mean of steps instead of their sum. */
static void take_means(struct timeline_question *question)
{
	uint32_t steps = steps_with_points(question);

	if (!steps)
		return;
	divide(&question->all, steps);
	for (size_t i = 0; i < question->group_count; i++)
		divide(&question->groups[i].sum, steps);
}

/* --- the time in which hosts reported --- */

struct host_steps_of {
	const struct host_step *at;
	uint32_t count;
	const struct host_accounting *hosts;
	uint32_t host_count;
};

static struct host_steps_of host_steps_of(const struct timeline_question *question)
{
	const struct samples_timeline *timeline = question->sums;
	const struct samples_result *result = question->flame.result;

	return timeline ? (struct host_steps_of){timeline->host_steps, timeline->host_step_count,
						 timeline->hosts, timeline->host_count}
			: (struct host_steps_of){result->host_steps, result->host_step_count,
						 result->hosts, result->host_count};
}

static void add_time(void *context, int64_t time_ms, uint64_t reported_ms, uint64_t lost)
{
	struct timeline_question *question = context;
	uint32_t step = step_of(question, time_ms);

	if (step >= question->step_count)
		return;
	question->times[step].reported_ms += reported_ms;
	question->times[step].lost += lost;
}

/* The host of a line is one of its labels: its own time. */
static bool put_line_times(struct timeline_question *question, struct timeline_answer *answer)
{
	const struct host_steps_of steps = host_steps_of(question);
	unsigned label = 0;

	while (label < answer->label_count && strcmp(answer->labels[label], "host"))
		label++;
	if (label == answer->label_count)
		return true;
	question->line_times = calloc(answer->line_count * question->step_count + 1,
				      sizeof(*question->line_times));
	for (size_t i = 0; question->line_times && i < answer->line_count; i++) {
		struct timeline_line *line = &question->lines[i];
		uint64_t *times = question->line_times + i * question->step_count;
		bool is_known = false;
		uint32_t host = 0;

		while (host < steps.host_count &&
		       strcmp(steps.hosts[host].host, line->values[label]))
			host++;
		for (uint32_t k = 0; k < steps.count; k++) {
			uint32_t step = step_of(question, steps.at[k].time_ms);

			if (steps.at[k].host != host || step >= question->step_count)
				continue;
			times[step] += steps.at[k].reported_ms;
			is_known |= steps.at[k].reported_ms > 0;
		}
		line->reported_ms = is_known ? times : NULL;
	}
	return question->line_times;
}

static bool put_times(struct timeline_question *question, struct timeline_answer *answer,
		      struct error *err)
{
	const struct host_steps_of steps = host_steps_of(question);

	if (!reported_sum(steps.at, steps.count))
		return true;
	question->times = calloc(question->step_count + 1, sizeof(*question->times));
	if (!question->times || !put_line_times(question, answer))
		return error_no_memory(err);
	reported_each(steps.at, steps.count, add_time, question);
	answer->times = question->times;
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

static void account(const struct timeline_question *question, struct accounting *accounting)
{
	const struct samples_timeline *timeline = question->sums;

	if (!timeline) {
		flame_request_accounting(&question->flame, accounting);
		accounting->value = question->all.value + accounting->cut_by_memory;
		accounting->samples = question->all.samples + question->flame.result->cut.samples;
		if (question->flame.is_gauge)
			accounting->error = sampling_error(accounting->value,
							   question->all.squares);
		return;
	}
	*accounting = (struct accounting){
		.value = question->all.value, .samples = question->all.samples, .is_of_sums = true};
	accounting->is_sampled = question->flame.sampling != SAMPLING_WHOLE;
	accounting->sampled = question->flame.sampled;
	accounting->error = sampling_error(accounting->value, question->all.squares);
	accounting->resolution_ms = timeline->resolution_ms;
	accounting->nothing = question->flame.nothing.sentence;
	accounting->data_from_ms = question->flame.nothing.from_ms;
	accounting->data_until_ms = question->flame.nothing.until_ms;
	hosts_accounting(timeline->hosts, timeline->host_count, accounting);
	accounting->reported_ms = reported_sum(timeline->host_steps, timeline->host_step_count);
	accounting->cpus = question->flame.cpus;
}

static bool write_answer(struct http_response *response, struct timeline_question *question,
			 const struct answer_format *format, struct error *err)
{
	const struct flame_request *flame = &question->flame;
	const struct samples_timeline *timeline = question->sums;
	struct accounting accounting;
	struct timeline_answer answer = {
		.flame = {.type = flame->query.type,
			  .unit = flame_request_unit(flame),
			  .from_ms = timeline ? timeline->from_ms : flame->result->from_ms,
			  .until_ms = timeline ? timeline->until_ms : flame->result->until_ms,
			  .accounting = &accounting},
		.labels = flame->query.groups,
		.label_count = flame->query.group_count,
		.step_ms = question->step_ms,
		.first_ms = question->first_ms,
		.resolution_ms = timeline ? timeline->resolution_ms : flame->result->resolution_ms,
		.step_count = question->step_count,
		.with_errors = question->with_errors,
	};

	if (question->flame.is_gauge)
		take_means(question);
	if (!choose(question, &answer, err) || !put_times(question, &answer, err))
		return false;
	account(question, &accounting);
	accounting.cut += answer.other.sum.value;
	return answer_format_write(question->flame.life, response, format, &answer.flame, err);
}

static void release(struct timeline_question *question)
{
	flame_request_release(&question->flame);
	samples_timeline_free(question->sums);
	label_groups_release(&question->labels);
	hash_table_release(&question->point_index);
	free(question->groups);
	free(question->points);
	free(question->lines);
	free(question->cells);
	free(question->times);
	free(question->line_times);
}

static bool read_request(struct http_request *request, struct timeline_question *question,
			 const struct answer_format **format, struct error *err)
{
	const struct parameters *asked = &question->flame.asked;
	const struct query *query = &question->flame.query;

	return flame_request_read(request, ENDPOINT_timeline, &question->flame, err) &&
	       parameter_step(asked, "step", query->until_ms - query->from_ms, &question->step_ms,
			      &question->is_step_asked, err) &&
	       parameter_number(asked, "limit", &question->limit, err) &&
	       parameter_flag(asked, "errors", &question->with_errors, err) &&
	       answer_format_read(asked, formats, format, err);
}

void api_timeline_get(struct http_request *request, struct http_response *response, void *context)
{
	const struct answer_format *format = formats;
	struct timeline_question question = {0};
	struct error err = {0};
	bool ok;

	label_groups_init(&question.labels);
	hash_table_init(&question.point_index, UINT32_MAX >> 1);
	ok = read_request(request, &question, &format, &err) && ask(&question, context, &err) &&
	     write_answer(response, &question, format, &err);
	if (!ok)
		answer_failure(response, &err);
	release(&question);
}
