/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/v1/top */
#include <string.h>

#include "symbol-server/api/answer.h"
#include "symbol-server/api/answer_format.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/flame_request.h"
#include "symbol-server/api/name_search.h"
#include "symbol-server/api/parameters.h"
#include "symbol-server/flamegraph/leaf_stacks.h"
#include "symbol-server/flamegraph/sampling_error.h"
#include "symbol-server/flamegraph/top_table.h"
#include "symbol-server/formats/flame_formats.h"

enum {
	FUNCTIONS_MAX = 4000000,
	LEAVES_MAX = 8000000,
	LEAF_BYTES = 2 * sizeof(struct leaf_stack) + 24, /* and its place in the index */
};

struct parts {
	struct flame_request flame;
	struct top_table *table;
	struct leaf_stacks leaves;
	bool with_stacks;
	struct pattern *pattern; /* searched; NULL: nothing */
	struct name_search search;
	struct flame_found found;
};

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
	struct parts *parts = context;
	struct top_table *table = parts->table;

	frames = flame_request_as_taken(&parts->flame, frames, depth);
	if (!frames)
		return false;
	if (parts->pattern && name_search_any(&parts->search, frames, depth)) {
		parts->found.value += value;
		parts->found.samples += samples;
		parts->found.squares += sampling_squares(value, samples, &table->sampling);
	}
	return top_table_add(table, frames, depth, value, samples) &&
	       (!parts->with_stacks || table->last_self == UINT32_MAX ||
		leaf_stacks_add(&parts->leaves, table->last_self,
				named_stacks_current(parts->flame.stacks)->id, value));
}

static void put_leaf(void *context, uint32_t leaf, uint64_t id)
{
	struct top_table *table = context;

	if (table->functions[leaf].self)
		table->functions[leaf].stack = id;
}

/* value that the rows after the limit would have shown as self */
static uint64_t cut_value(const struct top_table *table, size_t limit)
{
	uint64_t cut = 0;

	for (size_t i = limit; i < table->count; i++)
		cut += table->functions[i].self;
	return cut;
}

static bool write_answer(struct http_response *response, const struct parts *parts,
			 const struct answer_format *format, size_t limit, struct error *err)
{
	const struct flame_request *flame = &parts->flame;
	const struct top_table *table = parts->table;
	struct accounting accounting;
	struct flame_answer answer = flame_request_answer(flame, &accounting);

	answer.top = table;
	answer.top_limit = limit;
	answer.found = parts->pattern ? &parts->found : NULL;
	answer.with_stacks = parts->with_stacks;
	accounting.cut_by_memory += table->cut;
	accounting.cut += table->cut + cut_value(table, limit);
	return answer_format_write(flame->life, response, format, &answer, err);
}

static bool add_up(struct parts *parts, bool by_total, struct error *err)
{
	struct query_life *life = parts->flame.life;
	bool ok;

	leaf_stacks_init(&parts->leaves, (uint32_t)query_life_room(life, LEAF_BYTES, LEAVES_MAX));
	parts->table = top_table_new(
		query_life_room(life, 2 * sizeof(struct top_function), FUNCTIONS_MAX));
	if (parts->table) {
		parts->table->folds = true;
		parts->table->sampling = parts->flame.sampled;
		flame_request_sort(&parts->flame, parts->table->limit);
	}
	ok = parts->table && flame_request_each(&parts->flame, add_stack, parts, err);
	if (!ok)
		return err->kind == ERROR_NONE ? query_life_no_memory(life, err) : false;
	query_life_take(life, parts->table->count * sizeof(struct top_function));
	leaf_stacks_each(&parts->leaves, put_leaf, parts->table);
	leaf_stacks_release(&parts->leaves);
	top_table_sort(parts->table, by_total);
	return true;
}

static bool read_request(struct http_request *request, struct parts *parts, uint32_t *limit,
			 unsigned *sort, const struct answer_format **format, struct error *err)
{
	const struct parameters *asked = &parts->flame.asked;

	if (!flame_request_read(request, ENDPOINT_top, &parts->flame, err) ||
	    !parameter_number(asked, "limit", limit, err) ||
	    !parameter_choice(asked, "sort", sort, err) ||
	    !parameter_pattern(asked, "search", &parts->pattern, err) ||
	    !parameter_flag(asked, "stack_ids", &parts->with_stacks, err) ||
	    !answer_format_read(asked, formats, format, err))
		return false;
	parts->search.pattern = parts->pattern;
	return !parts->with_stacks || stack_ids_fit(*format, err);
}

void api_top_get(struct http_request *request, struct http_response *response, void *context)
{
	struct parts *parts = arena_alloc(http_request_arena(request), sizeof(*parts));
	const struct answer_format *format = formats;
	uint32_t limit = 0;
	unsigned sort = 0;
	struct error err = {0};

	if (!parts) {
		answer_error(response, 503, "out of memory; try again later");
		return;
	}
	memset(parts, 0, sizeof(*parts));
	if (!read_request(request, parts, &limit, &sort, &format, &err) ||
	    !flame_request_run(&parts->flame, context, &err) || !add_up(parts, sort == 1, &err) ||
	    !write_answer(response, parts, format, limit, &err))
		answer_failure(response, &err);
	leaf_stacks_release(&parts->leaves);
	top_table_free(parts->table);
	pattern_free(parts->pattern);
	flame_request_release(&parts->flame);
}
