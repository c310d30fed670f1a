/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "symbol-server/formats/diff_formats.h"

/* null for what cannot be said */
static void put_number(struct json *json, const char *key, double number)
{
	json_key(json, key);
	if (isfinite(number))
		buffer_printf(json->out, "%.9g", number);
	else
		buffer_append_text(json->out, "null");
	json->needs_comma = true;
}

static void put_flag(struct json *json, const char *key, bool flag)
{
	json_key(json, key);
	buffer_append_text(json->out, flag ? "true" : "false");
	json->needs_comma = true;
}

static void put_function(struct json *json, const struct diff_answer *answer,
			 const struct diff_function *function)
{
	static const struct flame_module none = {.name = "", .build_id = ""};
	const struct flame_frame *frame = &function->frame;
	const struct flame_module *module = frame->module < answer->flame.module_count
						    ? &answer->flame.modules[frame->module]
						    : &none;
	const struct diff_sum *measure = answer->by_total ? function->total : function->self;

	json_open(json, '{');
	json_key_string(json, "name", frame->name);
	json_key_string(json, "file", frame->file);
	json_key_uint(json, "line", frame->line);
	json_key_string(json, "module", module->name);
	json_key_string(json, "build_id", module->build_id);
	json_key_uint(json, "self", function->self[DIFF_COMPARE].value);
	json_key_uint(json, "total", function->total[DIFF_COMPARE].value);
	json_key_uint(json, "base_self", function->self[DIFF_BASE].value);
	json_key_uint(json, "base_total", function->total[DIFF_BASE].value);
	json_key_uint(json, "samples", measure[DIFF_COMPARE].samples);
	json_key_uint(json, "base_samples", measure[DIFF_BASE].samples);
	put_number(json, "before", function->before);
	put_number(json, "after", function->after);
	put_number(json, "change", function->change);
	put_number(json, "ci_low", function->change_low);
	put_number(json, "ci_high", function->change_high);
	put_number(json, "p", function->p);
	put_number(json, "q", function->q);
	put_flag(json, "significant", function->is_significant);
	json_close(json, '}');
}

static void put_functions(struct json *json, const struct diff_answer *answer)
{
	const struct diff_table *table = answer->functions;
	size_t count = table->count < answer->functions_limit ? table->count
							      : answer->functions_limit;

	json_key(json, "functions");
	json_open(json, '[');
	for (size_t i = 0; i < count; i++)
		put_function(json, answer, &table->functions[i]);
	json_close(json, ']');
	json_key_uint(json, "functions_left_out", table->count - count);
}

static void put_noise(struct json *json, const struct diff_answer *answer)
{
	const struct diff_table *table = answer->functions;

	json_key(json, "noise");
	json_open(json, '{');
	json_key_string(json, "from", answer->noise_from);
	json_key_uint(json, "clusters", table->whole[DIFF_COMPARE].clusters);
	json_key_uint(json, "base_clusters", table->whole[DIFF_BASE].clusters);
	put_number(json, "dispersion", table->dispersion);
	json_key_uint(json, "tested", table->tested);
	json_key_uint(json, "significant", table->significant);
	put_number(json, "false_share", DIFF_FALSE_SHARE);
	json_close(json, '}');
}

static void put_warnings(struct json *json, const struct diff_answer *answer)
{
	char text[DIFF_WARNING];

	json_key(json, "warnings");
	json_open(json, '[');
	if (diff_warning(answer, text))
		json_string(json, text);
	json_close(json, ']');
}

static void put_base(struct json *json, const struct diff_answer *answer)
{
	json_key(json, "base");
	json_open(json, '{');
	json_key_string(json, "type", answer->base.type);
	json_key_int(json, "from", answer->base.from_ms);
	json_key_int(json, "until", answer->base.until_ms);
	json_key(json, "accounting");
	accounting_json(json, answer->base.accounting, ACCOUNTING_WHOLE);
	json_close(json, '}');
}

bool diff_json(const struct diff_answer *answer, struct buffer *out)
{
	struct json writer = json_start(out), *json = &writer;

	json_open(json, '{');
	json_key_string(json, "type", answer->flame.type);
	json_key_string(json, "unit", answer->flame.unit);
	json_key_int(json, "from", answer->flame.from_ms);
	json_key_int(json, "until", answer->flame.until_ms);
	json_key_string(json, "norm", answer->norm);
	put_number(json, "scale", answer->functions->scale);
	json_key_string(json, "sort", answer->by_total ? "total" : "self");
	put_base(json, answer);
	put_noise(json, answer);
	put_warnings(json, answer);
	if (!flame_graph_json(json, &answer->flame))
		return false;
	put_functions(json, answer);
	json_key(json, "accounting");
	accounting_json(json, answer->flame.accounting, ACCOUNTING_WHOLE);
	json_close(json, '}');
	buffer_append_char(out, '\n');
	return !out->failed;
}
