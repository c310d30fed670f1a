/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/v1/stacks/{id}: one stack: its frames, and who had it with how much of each type. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol-server/api/answer.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/flame_request.h"
#include "symbol-server/api/parameters.h"
#include "symbol-server/api/trace_sums.h"
#include "symbol-server/formats/accounting_json.h"
#include "symbol-server/naming/label_groups.h"

enum { ID_DIGITS = 16 };

struct look {
	struct api *api;
	struct flame_request flame;
	uint64_t id;
	uint32_t limit; /* of processes and of traces */
	const struct result_stack *found;
	struct json json;
	bool is_named; /* frames are written */
};

static bool read_id(struct http_request *request, uint64_t *id, struct error *err)
{
	const char *text = http_request_part(request);

	if (strlen(text) != ID_DIGITS || strspn(text, "0123456789abcdefABCDEF") != ID_DIGITS)
		return error_set(err, ERROR_OPTION,
				 "'%.60s' in the path is not a stack's id: 16 hexadecimal digits",
				 text);
	*id = strtoull(text, NULL, 16);
	return true;
}

static bool read_request(struct http_request *request, struct look *look, struct error *err)
{
	return read_id(request, &look->id, err) &&
	       flame_request_read(request, ENDPOINT_stack, &look->flame, err) &&
	       flame_request_group(&look->flame, "service,host,process", err) &&
	       parameter_number(&look->flame.asked, "limit", &look->limit, err);
}

static bool is_wanted(void *context, const struct result_stack *stack)
{
	const struct look *look = context;

	return stack->id == look->id;
}

/* --- frames --- */

static void put_frame(struct look *look, const struct flame_frame *frame,
		      const struct result_location *location)
{
#define KIND_TEXT(name_) #name_,
	static const char *const kinds[] = {FRAME_KINDS(KIND_TEXT)};
	struct json *json = &look->json;
	uint32_t count;
	const struct flame_module *modules = named_stacks_modules(look->flame.stacks, &count);
	bool has_module = frame->module < count;
	char address[24] = "";

	if (location_has_address(location->kind))
		snprintf(address, sizeof address, "0x%" PRIx64, location->address);
	json_open(json, '{');
	json_key_string(json, "name", frame->name);
	json_key_signature(json, frame);
	json_key_string(json, "file", frame->file ? frame->file : "");
	json_key_uint(json, "line", frame->line);
	json_key_string(json, "module", has_module ? modules[frame->module].name : "");
	json_key_string(json, "build_id", has_module ? modules[frame->module].build_id : "");
	json_key_string(json, "address", address);
	json_key_string(json, "kind", kinds[frame->kind]);
	json_key_language(json, frame);
	json_key_flag(json, "inline", frame->kind == FRAME_inline);
	json_close(json, '}');
}

static void put_frames(struct look *look, const struct result_stack *stack)
{
	const struct samples_result *result = look->flame.result;
	uint32_t node = stack->node;

	json_key(&look->json, "frames");
	json_open(&look->json, '[');
	for (uint32_t i = 0; i < stack->depth; i++) {
		const struct flame_frame *frames[NAMED_CHAIN_MAX];
		uint32_t location = stack->locations ? stack->locations[i]
						     : result->nodes[node].location;
		unsigned count = named_stacks_location(look->flame.stacks, location, frames);

		for (unsigned k = 0; k < count; k++)
			put_frame(look, frames[k], &result->locations[location]);
		node = stack->locations ? 0 : result->nodes[node].caller;
	}
	json_close(&look->json, ']');
}

/* --- who had it --- */

struct holder {
	uint64_t value, samples;
	double squares;
	uint32_t group;
};

static int compare_holders(const void *left, const void *right)
{
	const struct holder *a = left, *b = right;

	if (a->value != b->value)
		return a->value > b->value ? -1 : 1;
	return (a->group > b->group) - (a->group < b->group);
}

static void put_error(struct look *look, uint64_t value, double squares)
{
	if (flame_request_sampling(&look->flame))
		json_key_uint(&look->json, "error", sampling_error(value, squares));
}

static void put_holder(struct look *look, const struct label_groups *groups,
		       const struct holder *holder)
{
	const struct query *query = &look->flame.query;

	json_open(&look->json, '{');
	for (unsigned i = 0; i < query->group_count; i++)
		json_key_string(&look->json, query->groups[i],
				groups->list[holder->group].values[i]);
	json_key_uint(&look->json, "value", holder->value);
	put_error(look, holder->value, holder->squares);
	json_key_uint(&look->json, "samples", holder->samples);
	json_close(&look->json, '}');
}

static bool add_holders(struct look *look, struct label_groups *groups, struct holder *holders)
{
	const struct samples_result *result = look->flame.result;

	for (size_t i = 0; i < result->stack_count; i++) {
		const struct result_stack *stack = &result->stacks[i];
		uint32_t group;

		if (!is_wanted(look, stack))
			continue;
		if (!label_groups_take(groups, &look->flame.query, &result->series[stack->series],
				       "", &group))
			return false;
		holders[group].group = group;
		holders[group].value += stack->value;
		holders[group].samples += stack->samples;
		holders[group].squares += sampling_squares(stack->value, stack->samples,
							   &look->flame.sampled);
	}
	return true;
}

static bool put_holders(struct look *look)
{
	struct holder *holders = calloc((size_t)look->flame.result->series_count + 1,
					sizeof *holders);
	struct label_groups groups;
	bool ok;

	label_groups_init(&groups);
	ok = holders && add_holders(look, &groups, holders);
	if (ok && groups.count)
		qsort(holders, groups.count, sizeof *holders, compare_holders);
	json_key(&look->json, "processes");
	json_open(&look->json, '[');
	for (size_t i = 0; ok && i < groups.count && i < look->limit; i++)
		put_holder(look, &groups, &holders[i]);
	json_close(&look->json, ']');
	json_key_uint(&look->json, "processes_left_out",
		      groups.count > look->limit ? groups.count - look->limit : 0);
	label_groups_release(&groups);
	free(holders);
	return ok;
}

/* --- of one type --- */

/* Its requests, where the store keeps them. */
static bool put_traces(struct look *look, struct error *err)
{
	struct flame_request *flame = &look->flame;
	struct trace_sums sums = {0};
	uint64_t shown;
	bool ok;

	flame_request_forget(flame);
	flame->query.by_span = flame->query.by_bucket = true;
	flame->query.groups[flame->query.group_count++] = "thread";
	ok = flame_request_ask(flame, look->api, err) &&
	     trace_sums_make(&sums, flame->result, flame_request_sampling(flame), is_wanted, look,
			     flame->life, err);
	if (ok && !trace_sums_json(&sums, &look->json, look->limit, is_wanted, look, &shown))
		ok = error_no_memory(err);
	if (ok)
		json_key_uint(&look->json, "traces_left_out",
			      trace_sums_left_out(&sums, look->limit));
	trace_sums_release(&sums);
	flame->query.by_span = flame->query.by_bucket = false;
	flame->query.group_count--;
	if (!ok && err->kind == ERROR_UNSUPPORTED) {
		*err = (struct error){0};
		return true;
	}
	return ok;
}

/* Sums of it in the result; look->found one of them, or NULL. */
static bool add_up(struct look *look, struct accounting *sum, struct error *err)
{
	const struct samples_result *result = look->flame.result;

	look->flame.squares = 0;
	look->found = NULL;
	for (size_t i = 0; i < result->stack_count; i++) {
		if (!query_life_goes_on(look->flame.life, err))
			return false;
		if (!is_wanted(look, &result->stacks[i]))
			continue;
		look->found = &result->stacks[i];
		sum->value += result->stacks[i].value;
		sum->samples += result->stacks[i].samples;
		look->flame.squares += sampling_squares(
			result->stacks[i].value, result->stacks[i].samples, &look->flame.sampled);
	}
	sum->is_sampled = flame_request_sampling(&look->flame);
	sum->sampled = look->flame.sampled;
	sum->error = sampling_error(sum->value, look->flame.squares);
	return true;
}

/* What comes once, with the first type that has the stack. */
static bool put_head(struct look *look, struct error *err)
{
	char id[ID_DIGITS + 1];

	if (look->is_named)
		return true;
	if (!flame_request_name(&look->flame, look->api, err))
		return false;
	snprintf(id, sizeof id, "%016" PRIx64, look->id);
	json_open(&look->json, '{');
	json_key_string(&look->json, "id", id);
	json_key_int(&look->json, "from", look->flame.result->from_ms);
	json_key_int(&look->json, "until", look->flame.result->until_ms);
	put_frames(look, look->found);
	json_key(&look->json, "types");
	json_open(&look->json, '[');
	look->is_named = true;
	return true;
}

static bool put_type(struct look *look, unsigned type, struct error *err)
{
	struct flame_request *flame = &look->flame;
	struct accounting accounting = {.is_of_sums = true};

	flame->query.type = profile_type_name(type);
	flame->sampling = profile_type_sampling(type);
	/* A gauge's other stacks say how long there was one. */
	flame->query.stack_id = profile_type_is_gauge(type) ? NULL : &look->id;
	if (!flame_request_ask(flame, look->api, err))
		return false;
	if (!add_up(look, &accounting, err))
		return false;
	if (look->found && !put_head(look, err))
		return false;
	if (look->found) {
		json_open(&look->json, '{');
		json_key_string(&look->json, "type", flame->query.type);
		json_key_string(&look->json, "unit", profile_type_unit(type));
		json_key_uint(&look->json, "value", accounting.value);
		put_error(look, accounting.value, flame->squares);
		json_key_uint(&look->json, "samples", accounting.samples);
		accounting.cut = accounting.cut_by_memory = flame->result->cut.value;
		hosts_accounting(flame->result->hosts, flame->result->host_count, &accounting);
		if (!put_holders(look))
			return error_no_memory(err);
		json_key(&look->json, "accounting");
		accounting_json(&look->json, &accounting, ACCOUNTING_WHOLE);
		if (!profile_type_is_gauge(type) && !put_traces(look, err))
			return false;
		json_close(&look->json, '}');
	}
	flame_request_forget(flame);
	return true;
}

static bool put_types(struct look *look, struct error *err)
{
	for (unsigned type = 0; profile_type_name(type); type++)
		if (!put_type(look, type, err))
			return false;
	if (!look->is_named)
		return error_set(err, ERROR_NOT_FOUND,
				 "no stack with that id is among the samples of that time and "
				 "selection");
	json_close(&look->json, ']');
	json_close(&look->json, '}');
	buffer_append_char(look->json.out, '\n');
	return true;
}

void api_stack_get(struct http_request *request, struct http_response *response, void *context)
{
	struct look look = {.api = context, .json = json_start(&response->body)};
	struct error err = {0};

	if (!read_request(request, &look, &err) || !put_types(&look, &err)) {
		buffer_clear(&response->body);
		answer_failure(response, &err);
	}
	flame_request_release(&look.flame);
}
