/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "symbol-server/formats/flame_formats.h"

void stack_id_json(struct json *json, uint64_t id)
{
	char text[17] = "";

	if (id)
		snprintf(text, sizeof(text), "%016" PRIx64, id);
	json_string(json, text);
}

static void put_function(struct json *json, const struct flame_answer *answer,
			 const struct top_function *function)
{
	static const struct flame_module none = {.name = "", .build_id = ""};
	const struct flame_frame *frame = &function->frame;
	const struct flame_module *module = frame->module < answer->module_count
						    ? &answer->modules[frame->module]
						    : &none;

	json_open(json, '{');
	json_key_string(json, "name", frame->name);
	json_key_string(json, "file", frame->file);
	json_key_uint(json, "line", frame->line);
	json_key_string(json, "module", module->name);
	json_key_string(json, "build_id", module->build_id);
	json_key_uint(json, "self", function->self);
	json_key_uint(json, "total", function->total);
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
		put_function(json, answer, &answer->top->functions[i]);
	json_close(json, ']');
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
	json_key(&json, "accounting");
	accounting_json(&json, answer->accounting, ACCOUNTING_WHOLE);
	json_close(&json, '}');
	buffer_append_char(out, '\n');
	return !out->failed;
}
