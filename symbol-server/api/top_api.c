/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/v1/top */
#include "symbol-server/api/answer.h"
#include "symbol-server/api/answer_format.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/flame_request.h"
#include "symbol-server/api/parameters.h"
#include "symbol-server/flamegraph/top_table.h"
#include "symbol-server/formats/flame_formats.h"

enum { FUNCTIONS_MAX = 4000000, LIMIT_DEFAULT = 1000, LIMIT_MAX = 1000000 };

static const struct answer_format formats[] = {
	{"json", "application/json", NULL, top_json, .needs_top = true},
	{"csv", "text/csv; charset=utf-8; header=present", "csv", top_csv, .needs_top = true,
	 .is_download = true},
	{"md", "text/markdown; charset=utf-8", "md", flame_markdown, .needs_top = true},
	{0},
};

static bool add_stack(void *context, const struct flame_frame *frames, size_t depth, uint64_t value,
		      uint64_t samples)
{
	return top_table_add(context, frames, depth, value, samples);
}

/* value that the rows after the limit would have shown as self */
static uint64_t cut_value(const struct top_table *table, size_t limit)
{
	uint64_t cut = 0;

	for (size_t i = limit; i < table->count; i++)
		cut += table->functions[i].self;
	return cut;
}

static bool write_answer(struct http_request *request, struct http_response *response,
			 const struct flame_request *flame, const struct answer_format *format,
			 const struct top_table *table, size_t limit, struct error *err)
{
	struct accounting accounting;
	struct flame_answer answer = {
		.type = flame->query.type,
		.unit = flame_request_unit(flame),
		.match = http_request_query(request, "match"),
		.from_ms = flame->result->from_ms,
		.until_ms = flame->result->until_ms,
		.top = table,
		.top_limit = limit,
		.unsymbolized = named_stacks_unsymbolized(flame->stacks),
		.accounting = &accounting,
		.memory = query_life_bytes(flame->life),
	};

	answer.modules = named_stacks_modules(flame->stacks, &answer.module_count);
	flame_request_accounting(flame, &accounting);
	accounting.cut = cut_value(table, limit);
	return answer_format_write(flame->life, response, format, &answer, err);
}

void api_top_get(struct http_request *request, struct http_response *response, void *context)
{
	const struct answer_format *format = formats;
	struct flame_request flame;
	struct top_table *table = NULL;
	uint32_t limit = LIMIT_DEFAULT;
	unsigned sort = 0;
	struct error err = {0};
	bool ok = false;

	if (!flame_request_read(request, FLAME_PARAMETERS " limit sort format", "", &flame, &err) ||
	    !parameter_uint(request, "limit", 1, LIMIT_MAX, &limit, &err) ||
	    !parameter_choice(request, "sort", "self|total", &sort, &err) ||
	    !answer_format_read(request, formats, &format, &err) ||
	    !flame_request_run(&flame, context, &err))
		goto out;
	table = top_table_new(
		query_life_room(flame.life, 2 * sizeof(struct top_function), FUNCTIONS_MAX));
	ok = table && flame_request_each(&flame, add_stack, table, &err);
	if (!ok && err.kind == ERROR_NONE)
		query_life_no_memory(flame.life, &err);
	if (!ok)
		goto out;
	query_life_take(flame.life, table->count * sizeof(struct top_function));
	top_table_sort(table, sort == 1);
	ok = write_answer(request, response, &flame, format, table, limit, &err);
out:
	if (!ok)
		answer_failure(response, &err);
	top_table_free(table);
	flame_request_release(&flame);
}
