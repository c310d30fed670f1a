/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/v1/flamegraph */
#include <string.h>

#include "symbol-server/api/answer.h"
#include "symbol-server/api/answer_format.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/flame_pprof.h"
#include "symbol-server/api/flame_request.h"
#include "symbol-server/api/parameters.h"
#include "symbol-server/flamegraph/flame_tree.h"
#include "symbol-server/flamegraph/leaf_stacks.h"
#include "symbol-server/flamegraph/top_table.h"
#include "symbol-server/formats/flame_formats.h"

enum {
	TREE_NODES_MAX = 4000000,
	FUNCTIONS_MAX = 4000000,
	FUNCTIONS_SHOWN = 1000, /* in a page */
	LEAVES_MAX = 8000000,
	LEAF_BYTES = 2 * sizeof(struct leaf_stack) + 24, /* and its place in the index */
};

static const struct answer_format formats[] = {
	{"json", "application/json", NULL, flame_json, .needs_tree = true},
	{"columns", "application/vnd.farflame.columns", NULL, flame_columns, .needs_tree = true},
	{"folded", "text/plain; charset=utf-8", "folded", flame_folded, .needs_tree = true},
	/* write is NULL: it is made of stacks, not of a tree */
	{"pprof", "application/octet-stream", "pb.gz", NULL, .is_download = true},
	{"speedscope", "application/json", "speedscope.json", flame_speedscope, .needs_tree = true,
	 .is_download = true},
	{"svg", "image/svg+xml", "svg", flame_svg, .needs_tree = true, .is_page = true},
	{"html", "text/html; charset=utf-8", "html", flame_html, .needs_tree = true,
	 .needs_top = true, .is_page = true},
	{"csv", "text/csv; charset=utf-8; header=present", "csv", flame_csv, .needs_tree = true,
	 .is_download = true},
	{"md", "text/markdown; charset=utf-8", "md", flame_markdown, .needs_tree = true,
	 .needs_top = true},
	{0},
};

struct parts { /* what an answer is made of; NULL what its format does not need */
	struct flame_tree *tree;
	struct top_table *top;
	struct leaf_stacks *leaves; /* NULL: no ids are asked for */
	struct flame_request *flame;
	bool with_errors;
};

static bool add_stack(void *context, const struct flame_frame *frames, size_t depth, uint64_t value,
		      uint64_t samples)
{
	const struct parts *parts = context;
	const struct flame_frame *taken =
		parts->top ? flame_request_as_taken(parts->flame, frames, depth) : frames;

	return taken &&
	       (!parts->tree || flame_tree_add(parts->tree, frames, depth, value, samples)) &&
	       (!parts->leaves ||
		leaf_stacks_add(parts->leaves, parts->tree->last,
				named_stacks_current(parts->flame->stacks)->id, value)) &&
	       (!parts->top || top_table_add(parts->top, taken, depth, value, samples));
}

static void put_leaf(void *context, uint32_t leaf, uint64_t id)
{
	struct flame_tree *tree = context;

	if (tree->nodes[leaf].self)
		tree->nodes[leaf].stack = id;
}

static bool build_parts(struct flame_request *flame, const struct answer_format *format,
			struct flame_limit limit, struct parts *parts, struct error *err)
{
	size_t room = query_life_room(flame->life, 2 * sizeof(struct flame_node), TREE_NODES_MAX);

	parts->tree = format->needs_tree ? flame_tree_new(room) : NULL;
	parts->top = format->needs_top
			     ? top_table_new(query_life_room(
				       flame->life, 2 * sizeof(struct top_function), FUNCTIONS_MAX))
			     : NULL;
	if ((format->needs_tree && !parts->tree) || (format->needs_top && !parts->top))
		return error_no_memory(err);
	if (parts->tree) {
		parts->tree->folds = true;
		parts->tree->sampling = flame->sampled;
	}
	if (parts->top) {
		parts->top->folds = true;
		parts->top->sampling = flame->sampled;
	}
	if (parts->top || parts->leaves || !parts->tree)
		flame_request_sort(flame, room);
	if (!(parts->top || parts->leaves || !parts->tree
		      ? flame_request_each(flame, add_stack, parts, err)
		      : flame_request_tree(flame, parts->tree, limit, err))) {
		if (err->kind == ERROR_NONE)
			error_set(err, ERROR_LIMIT,
				  "the flame graph has more than %zu nodes; narrow time or match",
				  room);
		return false;
	}
	if (parts->leaves) {
		leaf_stacks_each(parts->leaves, put_leaf, parts->tree);
		leaf_stacks_release(parts->leaves);
	}
	if (parts->tree)
		query_life_take(flame->life, parts->tree->count * sizeof(struct flame_node));
	if (parts->top) {
		top_table_sort(parts->top, false);
		query_life_take(flame->life, parts->top->count * sizeof(struct top_function));
	}
	return !parts->tree || flame_tree_fold(parts->tree, limit) || error_no_memory(err);
}

static struct flame_answer answer_of(const struct flame_request *flame, const struct parts *parts,
				     struct accounting *accounting)
{
	struct flame_answer answer = flame_request_answer(flame, accounting);

	answer.tree = parts->tree;
	answer.top = parts->top;
	answer.top_limit = FUNCTIONS_SHOWN;
	answer.with_errors = parts->with_errors;
	answer.with_stacks = parts->leaves;
	return answer;
}

/* Stacks as they were taken: a profile's readers turn and cut them themselves. */
static bool answer_pprof(struct http_response *response, struct flame_request *flame,
			 const struct answer_format *format, struct error *err)
{
	const struct parts none = {0};
	struct accounting accounting;
	struct flame_answer answer = answer_of(flame, &none, &accounting);
	struct pprof *pprof;
	bool ok;

	response->is_packed = true;
	response->body.limit = answer.memory; /* until the headers are known */
	pprof = flame_pprof(flame, &answer, &accounting, &response->body, err);
	ok = pprof && answer_format_headers(flame->life, response, format, &answer, err) &&
	     (pprof_finish(pprof) || answer_format_failed(flame->life, err));
	pprof_free(pprof);
	return ok;
}

struct asked { /* of a tree */
	struct flame_limit limit;
	bool with_stacks, with_errors;
};

static bool answer_tree(struct http_response *response, struct flame_request *flame,
			const struct answer_format *format, const struct asked *asked,
			struct error *err)
{
	struct leaf_stacks leaves;
	struct parts parts = {.flame = flame,
			      .leaves = asked->with_stacks ? &leaves : NULL,
			      .with_errors = asked->with_errors};
	struct accounting accounting;
	struct flame_answer answer;
	bool ok = false;

	leaf_stacks_init(&leaves, (uint32_t)query_life_room(flame->life, LEAF_BYTES, LEAVES_MAX));
	if (!build_parts(flame, format, asked->limit, &parts, err))
		goto out;
	answer = answer_of(flame, &parts, &accounting);
	accounting.cut += parts.tree->cut;
	ok = answer_format_write(flame->life, response, format, &answer, err);
out:
	leaf_stacks_release(&leaves);
	flame_tree_free(parts.tree);
	top_table_free(parts.top);
	return ok;
}

void api_flamegraph_get(struct http_request *request, struct http_response *response, void *context)
{
	const struct answer_format *format = formats;
	struct flame_request flame;
	struct asked asked = {0};
	struct error err = {0};
	bool ok = false;

	if (!flame_request_read(request, ENDPOINT_flamegraph, &flame, &err) ||
	    !flame_request_limit(&flame, &asked.limit, &err) ||
	    !parameter_flag(&flame.asked, "stack_ids", &asked.with_stacks, &err) ||
	    !parameter_flag(&flame.asked, "errors", &asked.with_errors, &err) ||
	    !answer_format_read(&flame.asked, formats, &format, &err) ||
	    (asked.with_stacks && !stack_ids_fit(format, &err)))
		goto out;
	if (!format->write && flame.view.invert) {
		error_set(&err, ERROR_OPTION,
			  "parameter 'invert' does not go with format=pprof: its readers turn the "
			  "stacks themselves");
		goto out;
	}
	if (!format->write && flame.view.recursion != RECURSION_KEPT) {
		error_set(&err, ERROR_OPTION,
			  "parameter 'recursion' does not go with format=pprof, whose stacks are "
			  "whole");
		goto out;
	}
	if (!flame_request_run(&flame, context, &err))
		goto out;
	ok = format->write ? answer_tree(response, &flame, format, &asked, &err)
			   : answer_pprof(response, &flame, format, &err);
out:
	if (!ok)
		answer_failure(response, &err);
	flame_request_release(&flame);
}
