/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/v1/top */
#include "symbol-server/api/answer.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/flame_request.h"
#include "symbol-server/api/parameters.h"
#include "symbol-server/flamegraph/top_table.h"

enum { FUNCTIONS_MAX = 4000000, LIMIT_DEFAULT = 1000, LIMIT_MAX = 1000000 };

static bool add_stack(void *context, const struct flame_frame *frames, size_t depth, uint64_t value,
		      uint64_t samples)
{
	return top_table_add(context, frames, depth, value, samples);
}

static void put_function(struct json *json, const struct top_function *function,
			 const struct flame_module *modules, uint32_t module_count)
{
	static const struct flame_module none = {.name = "", .build_id = ""};
	const struct flame_frame *frame = &function->frame;
	const struct flame_module *module = frame->module < module_count ? &modules[frame->module]
									 : &none;

	json_open(json, '{');
	json_key_string(json, "name", frame->name);
	json_key_string(json, "file", frame->file);
	json_key_uint(json, "line", frame->line);
	json_key_string(json, "module", module->name);
	json_key_string(json, "build_id", module->build_id);
	json_key_uint(json, "self", function->self);
	json_key_uint(json, "total", function->total);
	json_close(json, '}');
}

/* value that the rows after the limit would have shown as self */
static uint64_t cut_value(const struct top_table *table, size_t limit)
{
	uint64_t cut = 0;

	for (size_t i = limit; i < table->count; i++)
		cut += table->functions[i].self;
	return cut;
}

static void write_answer(struct http_response *response, const struct flame_request *flame,
			 const struct top_table *table, size_t limit)
{
	struct json json = json_start(&response->body);
	struct accounting accounting;
	uint32_t module_count;
	const struct flame_module *modules = named_stacks_modules(flame->stacks, &module_count);

	flame_request_accounting(flame, &accounting);
	accounting.cut = cut_value(table, limit);
	json_open(&json, '{');
	json_key_string(&json, "type", flame->query.type);
	json_key_string(&json, "unit", flame_request_unit(flame));
	json_key_int(&json, "from", flame->result->from_ms);
	json_key_int(&json, "until", flame->result->until_ms);
	json_key(&json, "functions");
	json_open(&json, '[');
	for (size_t i = 0; i < table->count && i < limit; i++)
		put_function(&json, &table->functions[i], modules, module_count);
	json_close(&json, ']');
	json_key(&json, "accounting");
	accounting_json(&json, &accounting, ACCOUNTING_WHOLE);
	json_close(&json, '}');
	buffer_append_char(&response->body, '\n');
}

void api_top_get(struct http_request *request, struct http_response *response, void *context)
{
	struct flame_request flame;
	struct top_table *table = top_table_new(FUNCTIONS_MAX);
	uint32_t limit = LIMIT_DEFAULT;
	unsigned sort = 0;
	struct error err = {0};
	bool ok = false;

	if (!flame_request_read(request, FLAME_PARAMETERS " limit sort", "", &flame, &err) ||
	    !parameter_uint(request, "limit", 1, LIMIT_MAX, &limit, &err) ||
	    !parameter_choice(request, "sort", "self|total", &sort, &err) ||
	    !flame_request_run(&flame, context, &err))
		goto out;
	if (!table || !flame_request_each(&flame, add_stack, table, &err)) {
		if (err.kind == ERROR_NONE)
			error_set(&err, ERROR_MEMORY, "out of memory; try again later");
		goto out;
	}
	top_table_sort(table, sort == 1);
	write_answer(response, &flame, table, limit);
	ok = true;
out:
	if (!ok)
		answer_failure(response, &err);
	top_table_free(table);
	flame_request_release(&flame);
}
