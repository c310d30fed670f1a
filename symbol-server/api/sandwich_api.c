/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/v1/sandwich: one function, who calls it and what it calls. */
#include <string.h>

#include "symbol-server/api/answer.h"
#include "symbol-server/api/answer_format.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/flame_request.h"
#include "symbol-server/api/name_search.h"
#include "symbol-server/api/parameters.h"
#include "symbol-server/flamegraph/sampling_error.h"
#include "symbol-server/flamegraph/sandwich.h"
#include "symbol-server/formats/accounting_json.h"
#include "symbol-server/formats/flame_formats.h"
#include "symbol-server/formats/json_writer.h"

enum {
	TREE_NODES_MAX = 4000000,
	FUNCTIONS_SHOWN = 1000,
};

struct wanted {
	const char *name; /* exact; NULL: by pattern */
	struct pattern *pattern;
	const char *module, *file; /* name or build-id, file as answers have them; NULL: any */
	const struct flame_module *modules;
	uint32_t module_count;
	struct name_search search; /* of pattern */
};

struct sandwich_question {
	struct flame_request flame;
	struct wanted wanted;
	struct sandwich sandwich;
	struct flame_limit limit;
	bool with_errors;
};

/* --- which function --- */

static bool read_function(const struct parameters *asked, struct wanted *wanted, struct error *err)
{
	const char *name = parameter_given(asked, "function");
	unsigned by_pattern = 0;

	wanted->module = parameter_given(asked, "module");
	wanted->file = parameter_given(asked, "file");
	if (!parameter_choice(asked, "function_match", &by_pattern, err))
		return false;
	if (by_pattern) {
		wanted->search.pattern = wanted->pattern = pattern_new(name, err);
		return wanted->pattern || error_prefix(err, "parameter 'function'");
	}
	wanted->name = name;
	return true;
}

static bool has_name(struct wanted *wanted, const struct flame_frame *frame)
{
	return wanted->name ? frame_is_called(frame, wanted->name)
			    : name_search_has(&wanted->search, frame);
}

static bool is_in_module(const struct wanted *wanted, const struct flame_frame *frame)
{
	const struct flame_module *module;

	if (!wanted->module || !*wanted->module)
		return true;
	if (frame->module >= wanted->module_count)
		return false;
	module = &wanted->modules[frame->module];
	return !strcmp(module->name, wanted->module) || !strcmp(module->build_id, wanted->module);
}

static bool is_wanted(void *context, const struct flame_frame *frame)
{
	struct wanted *wanted = context;

	return has_name(wanted, frame) && is_in_module(wanted, frame) &&
	       (!wanted->file || !*wanted->file || !strcmp(frame->file, wanted->file));
}

/* --- adding up --- */

static bool add_stack(void *context, const struct flame_frame *frames, size_t depth, uint64_t value,
		      uint64_t samples)
{
	return sandwich_add(context, frames, depth, value, samples);
}

static bool build(struct sandwich_question *at, struct error *err)
{
	struct sandwich *sandwich = &at->sandwich;

	at->wanted.modules = named_stacks_modules(at->flame.stacks, &at->wanted.module_count);
	if (!sandwich_init(
		    sandwich,
		    query_life_room(at->flame.life, 4 * sizeof(struct flame_node), TREE_NODES_MAX),
		    is_wanted, &at->wanted))
		return error_no_memory(err);
	sandwich->callers->folds = sandwich->callees->folds = true;
	sandwich->callers->sampling = sandwich->callees->sampling = at->flame.sampled;
	sandwich->functions->sampling = at->flame.sampled;
	flame_request_sort(&at->flame, sandwich->callees->limit);
	if (!flame_request_each(&at->flame, add_stack, sandwich, err)) {
		if (err->kind == ERROR_NONE)
			error_set(err, ERROR_LIMIT,
				  "callers and callees have more nodes than fit; narrow time or "
				  "match");
		return false;
	}
	if (!flame_tree_fold(sandwich->callers, at->limit) ||
	    !flame_tree_fold(sandwich->callees, at->limit))
		return error_no_memory(err);
	top_table_sort(sandwich->functions, true);
	return true;
}

/* --- answering --- */

static bool put_tree(struct json *json, const char *key, const struct flame_answer *answer,
		     const struct flame_tree *tree)
{
	struct flame_answer side = *answer;
	bool ok;

	side.tree = tree;
	json_key(json, key);
	json_open(json, '{');
	ok = flame_graph_json(json, &side);
	json_key_uint(json, "cut", tree->cut);
	json_close(json, '}');
	return ok;
}

struct sandwich_answer { /* starts with the flame_answer that formats are given */
	struct flame_answer flame;
	const struct sandwich *sandwich;
	const char *function;
};

static bool sandwich_json(const struct flame_answer *answer, struct buffer *out)
{
	const struct sandwich_answer *whole = (const struct sandwich_answer *)answer;
	const struct sandwich *sandwich = whole->sandwich;
	struct json writer = json_start(out), *json = &writer;

	json_open(json, '{');
	flame_range_json(json, answer);
	json_key_string(json, "function", whole->function);
	json_key_uint(json, "total", sandwich->callees->nodes[0].total);
	if (answer->accounting->is_sampled)
		json_key_uint(json, "error",
			      sampling_error(sandwich->callees->nodes[0].total,
					     sandwich->callees->nodes[0].total_squares));
	json_key_uint(json, "total_samples", sandwich->callees->nodes[0].total_samples);
	json_key(json, "functions");
	top_functions_json(json, answer);
	return put_tree(json, "callers", answer, sandwich->callers) &&
	       put_tree(json, "callees", answer, sandwich->callees) &&
	       flame_end_json(json, answer);
}

static const struct answer_format formats[] = {
	{"json", "application/json", NULL, sandwich_json},
	{0},
};

static bool write_answer(struct http_response *response, const struct sandwich_question *at,
			 const struct answer_format *format, struct error *err)
{
	const struct flame_request *flame = &at->flame;
	struct accounting accounting;
	struct sandwich_answer answer = {
		.flame = flame_request_answer(flame, &accounting),
		.sandwich = &at->sandwich,
		.function = parameter_given(&flame->asked, "function"),
	};

	answer.flame.top = at->sandwich.functions;
	answer.flame.top_limit = FUNCTIONS_SHOWN;
	answer.flame.with_errors = at->with_errors;
	accounting.cut += at->sandwich.callers->cut > at->sandwich.callees->cut
				  ? at->sandwich.callers->cut
				  : at->sandwich.callees->cut;
	return answer_format_write(flame->life, response, format, &answer.flame, err);
}

void api_sandwich_get(struct http_request *request, struct http_response *response, void *context)
{
	struct sandwich_question *at = arena_alloc(http_request_arena(request), sizeof(*at));
	const struct answer_format *format = formats;
	struct error err = {0};
	bool ok;

	if (!at) {
		answer_error(response, 503, "out of memory; try again later");
		return;
	}
	memset(at, 0, sizeof(*at));
	ok = flame_request_read(request, ENDPOINT_sandwich, &at->flame, &err) &&
	     read_function(&at->flame.asked, &at->wanted, &err) &&
	     flame_request_limit(&at->flame, &at->limit, &err) &&
	     parameter_flag(&at->flame.asked, "errors", &at->with_errors, &err) &&
	     answer_format_read(&at->flame.asked, formats, &format, &err) &&
	     flame_request_run(&at->flame, context, &err) && build(at, &err) &&
	     write_answer(response, at, format, &err);
	if (!ok)
		answer_failure(response, &err);
	sandwich_release(&at->sandwich);
	pattern_free(at->wanted.pattern);
	flame_request_release(&at->flame);
}
