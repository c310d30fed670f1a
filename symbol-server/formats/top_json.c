/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol-server/flamegraph/sampling_error.h"
#include "symbol-server/formats/accounting_json.h"
#include "symbol-server/formats/flame_formats.h"

enum { OWN_MODULES = 1000 }; /* told apart; the rest is summed up */

void top_function_json(struct json *json, const struct flame_answer *answer,
		       const struct top_function *function)
{
	const struct flame_frame *frame = &function->frame;

	json_open(json, '{');
	flame_function_json(json, answer, frame);
	json_key_string(json, "kind", frame_kind_names[frame->kind]);
	json_key_uint(json, "self", function->self);
	json_key_uint(json, "total", function->total);
	if (answer->accounting->is_sampled) {
		json_key_uint(json, "self_error",
			      sampling_error(function->self, function->self_squares));
		json_key_uint(json, "total_error",
			      sampling_error(function->total, function->total_squares));
	}
	if (answer->with_stacks) {
		json_key(json, "stack");
		stack_id_json(json, function->stack);
	}
	json_close(json, '}');
}

void top_functions_json(struct json *json, const struct flame_answer *answer)
{
	json_open(json, '[');
	for (size_t i = 0; i < answer->top->count && i < answer->top_limit; i++)
		top_function_json(json, answer, &answer->top->functions[i]);
	json_close(json, ']');
}

struct own { /* of a module */
	uint64_t value;
	double squares;
	uint32_t module;
};

static int compare_own(const void *left, const void *right, void *context)
{
	const struct flame_module *modules = context;
	const struct own *a = left, *b = right;
	int order = strcmp(modules[a->module].name, modules[b->module].name);

	if (a->value != b->value)
		return a->value < b->value ? 1 : -1;
	return order ? order : strcmp(modules[a->module].build_id, modules[b->module].build_id);
}

/* Of all functions, also those beyond top_limit. */
static bool put_own_modules(struct json *json, const struct flame_answer *answer)
{
	struct own *own = calloc((size_t)answer->module_count + 1, sizeof(*own));
	uint64_t left_out = 0;

	if (!own)
		return false;
	for (uint32_t i = 0; i < answer->module_count; i++)
		own[i].module = i;
	for (size_t i = 0; i < answer->top->count; i++) {
		const struct top_function *function = &answer->top->functions[i];

		if (function->frame.module >= answer->module_count)
			continue;
		own[function->frame.module].value += function->self;
		own[function->frame.module].squares += function->self_squares;
	}
	qsort_r(own, answer->module_count, sizeof(*own), compare_own,
		(void *)(uintptr_t)answer->modules);
	json_key(json, "modules");
	json_open(json, '[');
	for (uint32_t i = 0; i < answer->module_count && own[i].value; i++) {
		if (i >= OWN_MODULES) {
			left_out += own[i].value;
			continue;
		}
		json_open(json, '{');
		json_key_string(json, "name", answer->modules[own[i].module].name);
		json_key_string(json, "build_id", answer->modules[own[i].module].build_id);
		json_key_uint(json, "value", own[i].value);
		if (answer->accounting->is_sampled)
			json_key_uint(json, "error", sampling_error(own[i].value, own[i].squares));
		json_close(json, '}');
	}
	json_close(json, ']');
	json_key_uint(json, "modules_left_out", left_out);
	free(own);
	return true;
}

static void put_kind_errors(struct json *json, const struct top_table *top)
{
	json_key(json, "kind_errors");
	json_open(json, '{');
	for (size_t i = 0; i < FRAME_KIND_COUNT; i++)
		if (top->self_of_kind[i])
			json_key_uint(json, frame_kind_names[i],
				      sampling_error(top->self_of_kind[i], top->squares_of_kind[i]));
	json_close(json, '}');
}

static bool put_own(struct json *json, const struct flame_answer *answer)
{
	bool ok;

	json_key(json, "own");
	json_open(json, '{');
	json_key(json, "kinds");
	json_open(json, '{');
	for (size_t i = 0; i < FRAME_KIND_COUNT; i++)
		if (answer->top->self_of_kind[i])
			json_key_uint(json, frame_kind_names[i], answer->top->self_of_kind[i]);
	json_close(json, '}');
	if (answer->accounting->is_sampled)
		put_kind_errors(json, answer->top);
	ok = put_own_modules(json, answer);
	json_close(json, '}');
	return ok;
}

static void put_found(struct json *json, const struct flame_answer *answer)
{
	json_key(json, "found");
	json_open(json, '{');
	json_key_uint(json, "value", answer->found->value);
	if (answer->accounting->is_sampled)
		json_key_uint(json, "error",
			      sampling_error(answer->found->value, answer->found->squares));
	json_key_uint(json, "samples", answer->found->samples);
	json_close(json, '}');
}

bool top_json(const struct flame_answer *answer, struct buffer *out)
{
	struct json json = json_start(out);

	json_open(&json, '{');
	json_key_string(&json, "type", answer->type);
	json_key_string(&json, "unit", answer->unit);
	json_key_int(&json, "from", answer->from_ms);
	json_key_int(&json, "until", answer->until_ms);
	json_key(&json, "functions");
	top_functions_json(&json, answer);
	if (!put_own(&json, answer))
		return false;
	if (answer->found)
		put_found(&json, answer);
	json_key(&json, "accounting");
	accounting_json(&json, answer->accounting, ACCOUNTING_WHOLE);
	json_close(&json, '}');
	buffer_append_char(out, '\n');
	return !out->failed;
}
