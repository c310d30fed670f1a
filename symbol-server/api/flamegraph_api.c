/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/v1/flamegraph */
#include <string.h>

#include "symbol-server/api/answer.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/flame_request.h"
#include "symbol-server/api/parameters.h"
#include "symbol-server/flamegraph/flame_tree.h"
#include "symbol-server/formats/flame_formats.h"

enum { NODES_DEFAULT = 20000, NODES_MAX = 1000000, TREE_NODES_MAX = 4000000 };
enum { ACCOUNTING_HEADER_MAX = 6 << 10 };
#define ANSWER_BYTES ((size_t)1 << 30)

enum format { FORMAT_JSON, FORMAT_FOLDED };

static bool add_stack(void *context, const struct flame_frame *frames, size_t depth, uint64_t value,
		      uint64_t samples)
{
	return flame_tree_add(context, frames, depth, value, samples);
}

/* Names the formats of the design as well, so that a client learns what is missing, not what is
 * wrong. */
static bool read_format(struct http_request *request, enum format *format, struct error *err)
{
	static const char *const later[] = {"pprof", "speedscope", "svg", "html", "csv", "md"};
	const char *text = http_request_query(request, "format");
	unsigned choice = FORMAT_JSON;

	for (size_t i = 0; text && i < sizeof(later) / sizeof(*later); i++)
		if (!strcmp(text, later[i]))
			return error_set(err, ERROR_OPTION,
					 "parameter 'format': this version serves json and folded, "
					 "not yet %s",
					 text);
	if (!parameter_choice(request, "format", "json|folded", &choice, err))
		return false;
	*format = (enum format)choice;
	return true;
}

static bool build_tree(struct flame_request *flame, uint32_t max_nodes, struct flame_tree **tree,
		       struct error *err)
{
	*tree = flame_tree_new(TREE_NODES_MAX);
	if (!*tree)
		return error_set(err, ERROR_MEMORY, "out of memory; try again later");
	if (!flame_request_each(flame, add_stack, *tree, err)) {
		if (err->kind == ERROR_NONE)
			error_set(err, ERROR_LIMIT,
				  "the flame graph has more than %d nodes; narrow time or match",
				  TREE_NODES_MAX);
		return false;
	}
	return flame_tree_cut(*tree, max_nodes) ||
	       error_set(err, ERROR_MEMORY, "out of memory; try again later");
}

/* The same object that JSON holds, for formats without room for it. Proxies commonly take 8 KiB of
 * headers: what would be longer is told in less detail. */
static bool add_accounting(struct http_request *request, struct http_response *response,
			   const struct accounting *accounting)
{
	struct buffer text;
	struct json json;
	const char *copy = NULL;

	buffer_init(&text, 64 << 10);
	for (int detail = ACCOUNTING_WHOLE; detail <= ACCOUNTING_WITHOUT_REASONS; detail++) {
		buffer_clear(&text);
		json = json_start(&text);
		json.is_ascii = true;
		accounting_json(&json, accounting, (enum accounting_detail)detail);
		if (!text.failed && text.length <= ACCOUNTING_HEADER_MAX)
			break;
	}
	if (!text.failed)
		copy = arena_text(http_request_arena(request), (const char *)text.bytes,
				  text.length);
	buffer_release(&text);
	if (copy)
		answer_header(response, "Farflame-Accounting", copy);
	return copy != NULL;
}

static bool write_answer(struct http_request *request, struct http_response *response,
			 const struct flame_request *flame, const struct flame_tree *tree,
			 enum format format)
{
	struct accounting accounting;
	struct flame_answer answer = {
		.type = flame->query.type,
		.unit = flame_request_unit(flame),
		.from_ms = flame->result->from_ms,
		.until_ms = flame->result->until_ms,
		.tree = tree,
		.accounting = &accounting,
	};

	flame_request_accounting(flame, &accounting);
	accounting.cut = tree->cut;
	answer.modules = named_stacks_modules(flame->stacks, &answer.module_count);
	response->body.limit = ANSWER_BYTES;
	if (format == FORMAT_JSON)
		return flame_json(&answer, &response->body);
	response->content_type = "text/plain; charset=utf-8";
	return add_accounting(request, response, &accounting) &&
	       flame_folded(&answer, &response->body);
}

void api_flamegraph_get(struct http_request *request, struct http_response *response, void *context)
{
	struct flame_request flame;
	struct flame_tree *tree = NULL;
	enum format format = FORMAT_JSON;
	uint32_t max_nodes = NODES_DEFAULT;
	struct error err = {0};
	bool ok = false;

	if (!flame_request_read(request, FLAME_PARAMETERS " max_nodes format", "process", &flame,
				&err) ||
	    !parameter_uint(request, "max_nodes", 1, NODES_MAX, &max_nodes, &err) ||
	    !read_format(request, &format, &err) || !flame_request_run(&flame, context, &err) ||
	    !build_tree(&flame, max_nodes, &tree, &err))
		goto out;
	ok = write_answer(request, response, &flame, tree, format);
	if (!ok)
		error_set(&err, ERROR_MEMORY, "out of memory; try again later");
out:
	if (!ok)
		answer_failure(response, &err);
	flame_tree_free(tree);
	flame_request_release(&flame);
}
