/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/v1/traces: the requests that took the most, or that a function took the most of. */
#include <stdlib.h>
#include <string.h>

#include "symbol-server/api/answer.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/flame_request.h"
#include "symbol-server/api/parameters.h"
#include "symbol-server/api/top_traces.h"
#include "symbol-server/api/trace_sums.h"
#include "symbol-server/formats/accounting_json.h"

struct hunt {
	struct flame_request flame;
	const char *name; /* exact; NULL: by pattern, or any */
	struct pattern *pattern;
	uint8_t *has;   /* by node: it or a caller of it is the function */
	uint8_t *is_at; /* by location */
	uint64_t has_bytes;
	uint64_t cut; /* value of stacks that did not fit: whether the function is in them is not
			 known */
	uint64_t *stacks; /* ids of stacks with the function, sorted */
	size_t stack_count;
	struct top_traces top;
	struct trace_sums sums;
	uint32_t limit;
};

static bool read_request(struct http_request *request, struct hunt *hunt, struct error *err)
{
	const struct parameters *asked = &hunt->flame.asked;
	unsigned by_pattern = 0;
	const char *name;

	if (!flame_request_read(request, ENDPOINT_traces, &hunt->flame, err) ||
	    !flame_request_group(&hunt->flame, "service,host,process,thread", err) ||
	    !parameter_number(asked, "limit", &hunt->limit, err) ||
	    !parameter_choice(asked, "function_match", &by_pattern, err))
		return false;
	name = parameter_text(asked, "function");
	if (hunt->flame.is_gauge)
		return error_set(err, ERROR_OPTION,
				 "parameter 'type': %s is a mean over time, which no request has",
				 hunt->flame.query.type);
	if (name && *name && !by_pattern)
		hunt->name = name;
	else if (name && *name && !(hunt->pattern = pattern_new(name, err)))
		return error_prefix(err, "parameter 'function'");
	return true;
}

/* --- the function --- */

static bool is_function(const struct hunt *hunt, const struct flame_frame *frame)
{
	if (frame->kind == FRAME_incomplete)
		return false;
	return hunt->name ? frame_is_called(frame, hunt->name)
			  : pattern_matches_part(hunt->pattern, frame->name);
}

static bool is_function_at(const struct hunt *hunt, uint32_t location)
{
	const struct flame_frame *frames[NAMED_CHAIN_MAX];
	unsigned count = named_stacks_location(hunt->flame.stacks, location, frames);

	for (unsigned i = 0; i < count; i++)
		if (is_function(hunt, frames[i]))
			return true;
	return false;
}

/* What stacks share is looked at once. */
static bool mark_nodes(struct hunt *hunt, struct error *err)
{
	const struct samples_result *result = hunt->flame.result;
	struct query_life *life = hunt->flame.life;
	uint64_t bytes = (uint64_t)result->node_count + result->location_count;

	if (!hunt->name && !hunt->pattern)
		return true;
	if (bytes > query_life_bytes(life))
		return query_life_no_memory(life, err);
	query_life_take(life, bytes);
	hunt->has_bytes = bytes;
	hunt->has = calloc((size_t)result->node_count + 1, 1);
	hunt->is_at = calloc((size_t)result->location_count + 1, 1);
	if (!hunt->has || !hunt->is_at)
		return error_no_memory(err);
	for (uint32_t i = 0; i < result->location_count; i++) {
		if (!query_life_goes_on(life, err))
			return false;
		hunt->is_at[i] = is_function_at(hunt, i);
	}
	for (uint32_t i = 1; i < result->node_count && query_life_goes_on(life, err); i++)
		hunt->has[i] = hunt->has[result->nodes[i].caller] |
			       hunt->is_at[result->nodes[i].location];
	return err->kind == ERROR_NONE;
}

/* A store gives a stack's locations, or the node that it ends at. */
static bool has_function(const struct hunt *hunt, const struct result_stack *stack)
{
	if (!stack->locations)
		return hunt->has[stack->node];
	for (uint32_t i = 0; i < stack->depth; i++)
		if (hunt->is_at[stack->locations[i]])
			return true;
	return false;
}

static bool is_wanted(void *context, const struct result_stack *stack)
{
	const struct hunt *hunt = context;

	return !hunt->has || has_function(hunt, stack);
}

/* --- which traces --- */

static void forget_nodes(struct hunt *hunt)
{
	if (hunt->flame.life)
		query_life_give(hunt->flame.life, hunt->has_bytes);
	hunt->has_bytes = 0;
	free(hunt->has);
	free(hunt->is_at);
	hunt->has = hunt->is_at = NULL;
}

static int compare_numbers(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static bool has_stack(void *context, uint64_t stack_id)
{
	const struct hunt *hunt = context;

	return hunt->stack_count && bsearch(&stack_id, hunt->stacks, hunt->stack_count,
					    sizeof stack_id, compare_numbers);
}

/* The stacks with the function, of all that came with a trace. */
static bool find_stacks(struct hunt *hunt, struct api *api, struct error *err)
{
	struct flame_request *flame = &hunt->flame;
	unsigned groups = flame->query.group_count;
	uint64_t bytes;

	if (!hunt->name && !hunt->pattern)
		return true;
	flame->query.only_spans = true;
	flame->query.group_count = flame->view.group_count = 0;
	if (!flame_request_run(flame, api, err) || !mark_nodes(hunt, err))
		return false;
	bytes = flame->result->stack_count * sizeof *hunt->stacks;
	if (bytes > query_life_bytes(flame->life))
		return query_life_no_memory(flame->life, err);
	hunt->stacks = malloc(bytes + 1);
	if (!hunt->stacks)
		return error_no_memory(err);
	for (size_t i = 0; i < flame->result->stack_count; i++)
		if (has_function(hunt, &flame->result->stacks[i]))
			hunt->stacks[hunt->stack_count++] = flame->result->stacks[i].id;
	if (hunt->stack_count)
		qsort(hunt->stacks, hunt->stack_count, sizeof *hunt->stacks, compare_numbers);
	hunt->cut = flame->result->cut.value;
	query_life_take(flame->life, bytes);
	forget_nodes(hunt);
	flame_request_forget(flame);
	flame->query.only_spans = false;
	flame->query.group_count = flame->view.group_count = groups;
	return true;
}

static bool is_best(void *context, const uint8_t *ids)
{
	return top_traces_have(context, ids);
}

static bool find_traces(struct hunt *hunt, struct api *api, struct error *err)
{
	struct flame_request *flame = &hunt->flame;
	bool by_function = hunt->name || hunt->pattern;
	struct samples_query wanted;
	size_t room;

	if (!flame->life)
		flame->life = query_life_start(flame->asked.request, &api->query_limits,
					       &flame->query, err);
	if (!flame->life)
		return false;
	query_life_lend(flame->life, &flame->query);
	query_to_samples(&flame->query, &wanted);
	room = query_life_room(flame->life, 1, SIZE_MAX) / 2;
	return top_traces_find(&hunt->top, api->samples, &wanted, by_function ? has_stack : NULL,
			       hunt, hunt->limit, room, flame->life, err);
}

/* What there is to say of them. */
static bool look_at_traces(struct hunt *hunt, struct api *api, struct error *err)
{
	struct query *query = &hunt->flame.query;

	query->by_span = true;
	query->by_bucket = true;
	query->step_ms = SAMPLES_BUCKET_MS;
	query->span_wanted = is_best;
	query->span_context = &hunt->top;
	return flame_request_run(&hunt->flame, api, err) && mark_nodes(hunt, err) &&
	       trace_sums_make(&hunt->sums, hunt->flame.result,
			       flame_request_sampling(&hunt->flame), is_wanted, hunt,
			       hunt->flame.life, err);
}

/* --- answering --- */

static bool write_answer(struct http_response *response, struct hunt *hunt, struct error *err)
{
	const struct flame_request *flame = &hunt->flame;
	struct accounting accounting = {
		.value = hunt->top.value, .samples = hunt->top.samples, .is_of_sums = true};
	uint64_t left_out = hunt->top.count > hunt->top.best_count
				    ? hunt->top.count - hunt->top.best_count
				    : 0;
	struct json json = json_start(&response->body);
	uint64_t shown;

	json_open(&json, '{');
	json_key_string(&json, "type", flame->query.type);
	json_key_string(&json, "unit", flame_request_unit(flame));
	json_key_int(&json, "from", flame->result->from_ms);
	json_key_int(&json, "until", flame->result->until_ms);
	if (!trace_sums_json(&hunt->sums, &json, hunt->limit, is_wanted, hunt, &shown))
		return error_no_memory(err);
	json_key_uint(&json, "traces_left_out", left_out);
	accounting.cut = accounting.value > shown ? accounting.value - shown : 0;
	accounting.cut_by_memory = hunt->cut;
	accounting.cut += hunt->cut;
	accounting.value += hunt->cut;
	accounting.is_sampled = flame_request_sampling(flame);
	accounting.sampled = flame->sampled;
	accounting.error = sampling_error(
		accounting.value,
		sampling_squares(accounting.value, accounting.samples, &flame->sampled));
	json_key(&json, "accounting");
	accounting_json(&json, &accounting, ACCOUNTING_WHOLE);
	json_close(&json, '}');
	buffer_append_char(&response->body, '\n');
	return true;
}

void api_traces_get(struct http_request *request, struct http_response *response, void *context)
{
	struct hunt hunt = {.limit = 0};
	struct error err = {0};

	if (!read_request(request, &hunt, &err) || !find_stacks(&hunt, context, &err) ||
	    !find_traces(&hunt, context, &err) || !look_at_traces(&hunt, context, &err) ||
	    !write_answer(response, &hunt, &err))
		answer_failure(response, &err);
	trace_sums_release(&hunt.sums);
	pattern_free(hunt.pattern);
	top_traces_release(&hunt.top);
	free(hunt.stacks);
	forget_nodes(&hunt);
	flame_request_release(&hunt.flame);
}
