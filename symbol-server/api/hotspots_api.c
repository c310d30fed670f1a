/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/v1/hotspots: what each process did step by step, and when that changed. */
#include <stdlib.h>
#include <string.h>

#include "symbol-server/api/answer.h"
#include "symbol-server/api/answer_format.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/flame_request.h"
#include "symbol-server/api/parameters.h"
#include "symbol-server/api/step.h"
#include "symbol-server/flamegraph/hot_spots.h"
#include "symbol-server/formats/hotspots_json.h"
#include "symbol-server/naming/label_groups.h"

struct hunt {
	struct flame_request flame;
	struct label_groups labels;
	int64_t step_ms, first_ms;
	uint32_t step_count, limit, processes, top;
	bool is_step_asked, by_total;
	double least;
	struct hot_spots *spots;
	uint32_t *order; /* processes, the largest first */
	struct error *err;
};

/* --- reading --- */

/* Where time goes is said by leaves; where waits and memory come from, by their callers: the leaf
 * is the scheduler or the allocator every time. */
static bool is_told_by_leaves(const char *type)
{
	return !strcmp(type, "on-cpu") || !strcmp(type, "on-gpu");
}

static bool read_request(struct http_request *request, struct hunt *hunt, struct error *err)
{
	const struct parameters *asked = &hunt->flame.asked;
	const struct query *query = &hunt->flame.query;
	unsigned sort;

	if (!flame_request_read(request, ENDPOINT_hotspots, &hunt->flame, err))
		return false;
	sort = !is_told_by_leaves(query->type);
	if (!parameter_step(asked, "step", query->until_ms - query->from_ms, &hunt->step_ms,
			    &hunt->is_step_asked, err) ||
	    !parameter_share(asked, "min_change", &hunt->least, err) ||
	    !parameter_choice(asked, "sort", &sort, err) ||
	    !parameter_number(asked, "limit", &hunt->limit, err) ||
	    !parameter_number(asked, "processes", &hunt->processes, err) ||
	    !parameter_number(asked, "top", &hunt->top, err))
		return false;
	hunt->by_total = sort == 1;
	return true;
}

/* --- adding up --- */

static bool add_stack(void *context, const struct flame_frame *frames, size_t depth, uint64_t value,
		      uint64_t samples)
{
	struct hunt *hunt = context;
	const struct result_stack *stack = named_stacks_current(hunt->flame.stacks);
	int64_t since_ms = stack->bucket_ms - hunt->first_ms;
	uint32_t process;

	return label_groups_take(&hunt->labels, &hunt->flame.query,
				 &hunt->flame.result->series[stack->series], stack->thread,
				 &process) &&
	       hot_spots_add(hunt->spots, process,
			     since_ms > 0 ? (uint32_t)(since_ms / hunt->step_ms) : 0, frames, depth,
			     value, samples);
}

static bool goes_on(void *context)
{
	const struct hunt *hunt = context;

	return query_life_is_wanted(hunt->flame.life, hunt->err);
}

static void set_range(struct hunt *hunt)
{
	const struct samples_result *result = hunt->flame.result;

	if (!hunt->is_step_asked && hunt->step_ms < result->resolution_ms)
		hunt->step_ms = result->resolution_ms; /* nothing lies between */
	hunt->first_ms = result->from_ms / hunt->step_ms * hunt->step_ms;
	hunt->step_count =
		(uint32_t)((result->until_ms - hunt->first_ms + hunt->step_ms - 1) / hunt->step_ms);
}

static bool too_much(struct error *err)
{
	return err->kind == ERROR_NONE
		       ? error_set(err, ERROR_LIMIT,
				   "the answer has more processes, steps and functions than fit: "
				   "ask for a longer step or a shorter time, group by fewer labels "
				   "or narrow the selection")
		       : false;
}

static bool look(struct hunt *hunt, struct api *api, struct error *err)
{
	struct flame_request *flame = &hunt->flame;
	size_t room;

	flame->query.by_bucket = true;
	flame->query.step_ms = hunt->step_ms;
	flame->query.whole_minutes = true;
	if (!flame_request_run(flame, api, err))
		return false;
	set_range(hunt);
	room = query_life_room(flame->life, 2 * sizeof(struct hot_cell), UINT32_MAX >> 1);
	hunt->spots = hot_spots_new(hunt->step_count, hunt->by_total, room);
	if (!hunt->spots || !flame_request_each(flame, add_stack, hunt, err))
		return too_much(err);
	query_life_take(flame->life, hunt->spots->cell_count * sizeof(struct hot_cell));
	hunt->err = err;
	room = query_life_room(flame->life, 1, SIZE_MAX);
	return hot_spots_find(hunt->spots, hunt->least, hunt->limit, room, goes_on, hunt) ||
	       too_much(err);
}

/* --- answering --- */

static int compare_processes(const void *left, const void *right, void *context)
{
	const struct hunt *hunt = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	const struct hot_process *processes = hunt->spots->processes;
	int order = 0;

	if (processes[a].value != processes[b].value)
		return processes[a].value > processes[b].value ? -1 : 1;
	for (unsigned i = 0; i < hunt->flame.query.group_count && !order; i++)
		order = strcmp(hunt->labels.list[a].values[i], hunt->labels.list[b].values[i]);
	return order;
}

static bool sort_processes(struct hunt *hunt)
{
	uint32_t count = hunt->spots->process_count;

	hunt->order = calloc((size_t)count + 1, sizeof(*hunt->order));
	for (uint32_t i = 0; hunt->order && i < count; i++)
		hunt->order[i] = i;
	if (hunt->order && count)
		qsort_r(hunt->order, count, sizeof(*hunt->order), compare_processes, hunt);
	return hunt->order;
}

static const char *const *values_of(const void *context, uint32_t process)
{
	const struct hunt *hunt = context;

	return hunt->labels.list[process].values;
}

static bool hotspots_json_of(const struct flame_answer *answer, struct buffer *out)
{
	return hotspots_json((const struct hotspots_answer *)answer, out);
}

/* A hotspots_answer starts with the flame_answer that this is given. */
static const struct answer_format formats[] = {
	{"json", "application/json", NULL, hotspots_json_of},
	{0},
};

static void account(const struct hunt *hunt, struct accounting *accounting)
{
	uint32_t steps = 1;

	flame_request_accounting(&hunt->flame, accounting);
	for (uint32_t i = 0; i < hunt->spots->process_count; i++)
		if (hunt->spots->processes[i].steps > steps)
			steps = hunt->spots->processes[i].steps;
	if (!hunt->flame.is_gauge)
		return;
	accounting->value /= steps;
	accounting->samples /= steps;
}

static bool write_answer(struct http_response *response, struct hunt *hunt,
			 const struct answer_format *format, struct error *err)
{
	const struct flame_request *flame = &hunt->flame;
	struct accounting accounting;
	struct hotspots_answer answer = {
		.flame = {.type = flame->query.type,
			  .unit = flame_request_unit(flame),
			  .match = parameter_given(&flame->asked, "match"),
			  .from_ms = flame->result->from_ms,
			  .until_ms = flame->result->until_ms,
			  .accounting = &accounting},
		.spots = hunt->spots,
		.labels = flame->query.groups,
		.label_count = flame->query.group_count,
		.values_of = values_of,
		.context = hunt,
		.step_ms = hunt->step_ms,
		.first_ms = hunt->first_ms,
		.resolution_ms = flame->result->resolution_ms,
		.step_count = hunt->step_count,
		.process_limit = hunt->processes,
		.top_limit = hunt->top,
		.by_total = hunt->by_total,
		.by_samples = flame->by_samples,
		.is_gauge = flame->is_gauge,
		.least = hunt->least,
		.focus = parameter_given(&flame->asked, "focus"),
		.ignore = parameter_given(&flame->asked, "ignore"),
		.hide = parameter_given(&flame->asked, "hide"),
		.demangle = parameter_given(&flame->asked, "demangle"),
		.collapse = parameter_given(&flame->asked, "collapse"),
	};

	if (!sort_processes(hunt))
		return error_no_memory(err);
	answer.order = hunt->order;
	answer.flame.modules = named_stacks_modules(flame->stacks, &answer.flame.module_count);
	account(hunt, &accounting);
	return answer_format_write(flame->life, response, format, &answer.flame, err);
}

void api_hotspots_get(struct http_request *request, struct http_response *response, void *context)
{
	const struct answer_format *format = formats;
	struct hunt hunt = {.limit = 0};
	struct error err = {0};

	label_groups_init(&hunt.labels);
	if (!read_request(request, &hunt, &err) ||
	    !answer_format_read(&hunt.flame.asked, formats, &format, &err) ||
	    !look(&hunt, context, &err) || !write_answer(response, &hunt, format, &err))
		answer_failure(response, &err);
	hot_spots_free(hunt.spots);
	label_groups_release(&hunt.labels);
	free(hunt.order);
	flame_request_release(&hunt.flame);
}
