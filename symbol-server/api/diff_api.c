/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/v1/diff: base.* against the rest. */
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/hash_table.h"
#include "symbol-server/api/answer.h"
#include "symbol-server/api/answer_format.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/diff_hosts.h"
#include "symbol-server/api/flame_request.h"
#include "symbol-server/api/parameters.h"
#include "symbol-server/api/reported.h"
#include "symbol-server/api/step.h"
#include "symbol-server/flamegraph/diff_table.h"
#include "symbol-server/flamegraph/diff_tree.h"
#include "symbol-server/formats/diff_formats.h"
#include "symbol-server/naming/idle_waits.h"

enum {
	NODES_DEFAULT = 20000,
	NODES_MAX = 1000000,
	TREE_NODES_MAX = 4000000,
	FUNCTIONS_MAX = 4000000,
	PARTS = 30, /* of a side's time, at most */
};

struct side {
	struct comparison *comparison;
	enum diff_side number;
	struct flame_request flame;
	struct accounting accounting;
	uint32_t *module_of; /* the side's module → that of both */
	int64_t part;        /* at hand */
	bool in_part;
};

struct comparison {
	struct side sides[DIFF_SIDES];
	enum diff_norm norm;
	struct diff_hosts hosts[DIFF_SIDES];
	bool by_part; /* minutes, or more of them, are told apart */
	bool by_host; /* hosts of one side only are told apart */
	bool is_base_moved;
	bool by_total;
	uint32_t limit, max_nodes;
	struct diff_table *table;
	struct diff_tree tree;
	struct flame_module *modules; /* of both */
	uint32_t module_count;
	struct flame_frame *frames; /* of the stack at hand, with those modules */
	size_t frame_room;
};

static bool diff_json_of(const struct flame_answer *answer, struct buffer *out)
{
	return diff_json((const struct diff_answer *)answer, out);
}

static bool diff_csv_of(const struct flame_answer *answer, struct buffer *out)
{
	return diff_csv((const struct diff_answer *)answer, out);
}

static bool diff_markdown_of(const struct flame_answer *answer, struct buffer *out)
{
	return diff_markdown((const struct diff_answer *)answer, out);
}

/* A diff_answer starts with the flame_answer that these are given. */
static const struct answer_format formats[] = {
	{"json", "application/json", NULL, diff_json_of},
	{"folded", "text/plain; charset=utf-8", NULL, flame_folded},
	{"svg", "image/svg+xml", "svg", flame_svg, .is_page = true},
	{"csv", "text/csv; charset=utf-8; header=present", "csv", diff_csv_of, .is_download = true},
	{"md", "text/markdown; charset=utf-8", "md", diff_markdown_of},
	{0},
};

/* --- reading --- */

static bool read_sides(struct http_request *request, struct comparison *comparison,
		       struct error *err)
{
	struct flame_request *flame = &comparison->sides[DIFF_COMPARE].flame;
	struct flame_request *base = &comparison->sides[DIFF_BASE].flame;
	int type, base_type;

	if (!flame_request_read(request, ENDPOINT_diff, flame, err) ||
	    !parameters_base_query(&flame->asked, &flame->query, &base->query, err))
		return false;
	base->asked = flame->asked;
	base->view = flame->view; /* its patterns stay the other's */
	base->view.folds_idle &= idle_waits_has_type(base->query.type);
	if (parameter_given(&base->asked, "base.build_id") &&
	    !flame_request_read_build(base, "base.build_id", err))
		return false;
	base->by_samples = flame->by_samples;
	memcpy(base->query.groups, flame->query.groups, sizeof(base->query.groups));
	base->query.group_count = flame->query.group_count;
	type = profile_type_find(flame->query.type, strlen(flame->query.type));
	base_type = profile_type_find(base->query.type, strlen(base->query.type));
	if (!flame->by_samples &&
	    strcmp(profile_type_unit((unsigned)type), profile_type_unit((unsigned)base_type)))
		return error_set(err, ERROR_OPTION,
				 "parameter 'base.type': %s is counted in %s, %s in %s; compare "
				 "them with value=samples",
				 base->query.type, profile_type_unit((unsigned)base_type),
				 flame->query.type, profile_type_unit((unsigned)type));
	return true;
}

static bool read_choices(const struct parameters *asked, struct comparison *comparison,
			 const struct answer_format **format, struct error *err)
{
	unsigned norm = DIFF_PER_SECOND, sort = 0;

	if (!answer_format_read(asked, formats, format, err))
		return false;
	/* what is taken along is whole, unless less is asked for */
	comparison->max_nodes = strcmp((*format)->name, "json") ? NODES_MAX : NODES_DEFAULT;
	if (!parameter_choice(asked, "norm", &norm, err) ||
	    !parameter_choice(asked, "sort", &sort, err) ||
	    !parameter_number(asked, "limit", &comparison->limit, err) ||
	    !parameter_number(asked, "max_nodes", &comparison->max_nodes, err))
		return false;
	comparison->norm = (enum diff_norm)norm;
	if (comparison->sides[DIFF_COMPARE].flame.is_gauge && norm == DIFF_PER_SECOND)
		comparison->norm = DIFF_RAW; /* a mean over time grows with no time */
	comparison->by_part = true;
	comparison->by_total = sort == 1;
	return true;
}

/* --- asking --- */

static int compare_buckets(const void *left, const void *right)
{
	const struct result_stack *a = left, *b = right;

	return (a->bucket_ms > b->bucket_ms) - (a->bucket_ms < b->bucket_ms);
}

static bool ask_side(struct side *side, struct api *api, struct error *err)
{
	struct flame_request *flame = &side->flame;

	flame->query.by_bucket = side->comparison->by_part;
	flame->query.is_part_of_mean = true;
	flame->query.whole_minutes =
		true; /* of both sides, or one would have a part of the other's */
	flame->is_whole = flame->query.by_bucket;
	flame->query.step_ms = flame->query.by_bucket
				       ? step_choose(flame->query.until_ms - flame->query.from_ms,
						     PARTS)
				       : 0;
	flame->query.also_labels[0] = "process";
	flame->query.also_labels[1] = side->comparison->by_host ? "host" : NULL;
	if (!flame_request_ask(flame, api, err))
		return false;
	if (flame->query.by_bucket && flame->result->resolution_ms > flame->query.step_ms)
		flame->query.step_ms = flame->result->resolution_ms; /* nothing lies between */
	/* parts one after the other, so that whoever adds them up needs room for one */
	if (flame->query.by_bucket && flame->result->stack_count)
		qsort(flame->result->stacks, flame->result->stack_count,
		      sizeof(*flame->result->stacks), compare_buckets);
	return flame_request_name(flame, api, err);
}

static bool is_same_text(const char *a, const char *b)
{
	return !strcmp(a ? a : "", b ? b : "");
}

static bool is_same_build(const struct stack_view *a, const struct stack_view *b)
{
	return a->build && b->build ? build_id_equal(a->build, b->build) : a->build == b->build;
}

/* Whether the base asks for the same samples, but for their time. */
static bool is_same_selection(const struct comparison *comparison)
{
	const struct flame_request *compare = &comparison->sides[DIFF_COMPARE].flame;
	const struct flame_request *base = &comparison->sides[DIFF_BASE].flame;
	const char *match = parameter_given(&compare->asked, "base.match");

	return (!match || is_same_text(match, parameter_given(&compare->asked, "match"))) &&
	       is_same_build(&base->view, &compare->view) &&
	       !strcmp(base->query.type, compare->query.type);
}

/* The same samples on both sides would make changes look smaller: the base ends where the other
 * range begins, widened as that is by the store. The same question twice is meant so. */
static void move_base(struct comparison *comparison)
{
	const struct flame_request *compare = &comparison->sides[DIFF_COMPARE].flame;
	const struct query *other = &compare->query;
	struct query *base = &comparison->sides[DIFF_BASE].flame.query;
	int64_t length = base->until_ms - base->from_ms;

	if (base->until_ms <= compare->result->from_ms ||
	    base->from_ms >= compare->result->until_ms ||
	    (base->from_ms == other->from_ms && base->until_ms == other->until_ms) ||
	    !is_same_selection(comparison))
		return;
	if (base->from_ms >= other->until_ms && base->until_ms > compare->result->until_ms) {
		base->from_ms = compare->result->until_ms; /* just after it */
		return;
	}
	comparison->is_base_moved |= base->from_ms < other->until_ms &&
				     base->until_ms > other->from_ms;
	base->until_ms = compare->result->from_ms;
	base->from_ms = base->until_ms > length ? base->until_ms - length : 0;
}

static bool ask_sides(struct comparison *comparison, struct api *api, struct error *err)
{
	struct flame_request *compare = &comparison->sides[DIFF_COMPARE].flame;
	struct flame_request *base = &comparison->sides[DIFF_BASE].flame;

	if (!ask_side(&comparison->sides[DIFF_COMPARE], api, err))
		return false;
	move_base(comparison);
	base->life = compare->life;
	return ask_side(&comparison->sides[DIFF_BASE], api, err) &&
	       (diff_hosts_match(comparison->hosts,
				 (const struct samples_result *const[DIFF_SIDES]){
					 base->result, compare->result}) ||
		error_no_memory(err));
}

static void forget_sides(struct comparison *comparison)
{
	for (enum diff_side i = DIFF_BASE; i < DIFF_SIDES; i++)
		flame_request_forget(&comparison->sides[i].flame);
}

/* Hosts are told apart where some are on one side only. Parts may need more room than there is:
 * then the ranges are taken whole, and nothing is known of how minutes vary. */
static bool ask(struct comparison *comparison, struct api *api, struct error *err)
{
	for (;;) {
		*err = (struct error){0};
		if (ask_sides(comparison, api, err)) {
			if (comparison->by_host || !diff_hosts_differ(comparison->hosts))
				return true;
			comparison->by_host = true;
		} else if (err->kind == ERROR_LIMIT && comparison->by_part &&
			   query_life_goes_on(comparison->sides[DIFF_COMPARE].flame.life, err)) {
			comparison->by_part = false;
		} else {
			return false;
		}
		forget_sides(comparison);
	}
}

/* --- modules of both sides --- */

/* Modules are the same when their build-ids are, or both have none and one name. */
static bool take_module(struct comparison *comparison, struct hash_table *index,
			const struct flame_module *module, uint32_t *number)
{
	const char *text = *module->build_id ? module->build_id : module->name;
	uint64_t hash = frame_name_hash(text);

	HASH_TABLE_EACH(at, index, hash)
		if (!strcmp(comparison->modules[at].build_id, module->build_id) &&
		    (*module->build_id || !strcmp(comparison->modules[at].name, module->name))) {
			*number = at;
			return true;
		}
	*number = comparison->module_count++;
	comparison->modules[*number] = *module;
	return hash_table_add(index, hash, *number);
}

static bool take_modules(struct side *side, struct hash_table *index)
{
	uint32_t count;
	const struct flame_module *modules = named_stacks_modules(side->flame.stacks, &count);
	bool ok = true;

	side->module_of = calloc((size_t)count + 1, sizeof(*side->module_of));
	for (uint32_t i = 0; side->module_of && ok && i < count; i++)
		ok = take_module(side->comparison, index, &modules[i], &side->module_of[i]);
	return side->module_of && ok;
}

static bool join_modules(struct comparison *comparison, struct error *err)
{
	uint32_t count[DIFF_SIDES];
	struct hash_table index;
	bool ok;

	for (enum diff_side i = DIFF_BASE; i < DIFF_SIDES; i++)
		named_stacks_modules(comparison->sides[i].flame.stacks, &count[i]);
	comparison->modules = calloc((size_t)count[DIFF_BASE] + count[DIFF_COMPARE] + 1,
				     sizeof(*comparison->modules));
	hash_table_init(&index, UINT32_MAX >> 1);
	ok = comparison->modules && take_modules(&comparison->sides[DIFF_BASE], &index) &&
	     take_modules(&comparison->sides[DIFF_COMPARE], &index);
	hash_table_release(&index);
	return ok || error_no_memory(err);
}

/* --- adding up --- */

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Seconds of a step in which hosts reported; where they do not say, that lie in the side's range
 * and in the past. */
static double step_seconds(const struct side *side, int64_t step)
{
	const struct samples_result *result = side->flame.result;
	int64_t step_ms = side->flame.query.step_ms;
	const struct host_step *first = result->host_steps;
	const struct host_step *end = first + result->host_step_count, *last;

	if (reported_sum(first, result->host_step_count)) {
		while (first < end && first->time_ms < step * step_ms)
			first++;
		for (last = first; last < end && last->time_ms < (step + 1) * step_ms;)
			last++;
		return (double)reported_sum(first, (uint32_t)(last - first)) / 1000;
	}
	int64_t until_ms = smaller(result->until_ms, larger(unix_time_ms(), result->from_ms + 1));
	int64_t length = smaller((step + 1) * step_ms, until_ms) -
			 larger(step * step_ms, result->from_ms);

	return length > 0 ? (double)length / 1000 : 0;
}

static double range_seconds(const struct side *side)
{
	const struct samples_result *result = side->flame.result;
	int64_t until_ms = smaller(result->until_ms, larger(unix_time_ms(), result->from_ms + 1));
	uint64_t reported_ms = reported_sum(result->host_steps, result->host_step_count);

	return (double)(reported_ms ? (int64_t)reported_ms : until_ms - result->from_ms) / 1000;
}

/* Begins the part; those between it and the last one, in which nothing was, as well. */
static bool go_to_part(struct side *side, int64_t part)
{
	struct diff_table *table = side->comparison->table;
	int64_t first = side->in_part ? side->part + 1
				      : side->flame.result->from_ms / side->flame.query.step_ms;

	if (side->in_part && side->part == part)
		return true;
	for (int64_t i = first; i <= part; i++)
		if ((step_seconds(side, i) > 0 || i == part) &&
		    !diff_table_part(table, side->number, step_seconds(side, i)))
			return false;
	side->part = part;
	side->in_part = true;
	return true;
}

static bool begin_part(struct side *side, int64_t bucket_ms)
{
	if (side->comparison->by_part)
		return go_to_part(side, bucket_ms / side->flame.query.step_ms);
	if (side->in_part)
		return true;
	side->in_part = true;
	return diff_table_part(side->comparison->table, side->number, range_seconds(side));
}

static const struct flame_frame *with_modules(struct comparison *comparison,
					      const struct side *side,
					      const struct flame_frame *frames, size_t depth)
{
	if (!ARRAY_RESERVE(comparison->frames, depth, comparison->frame_room))
		return NULL;
	for (size_t i = 0; i < depth; i++) {
		comparison->frames[i] = frames[i];
		if (frames[i].module != FRAME_NO_MODULE)
			comparison->frames[i].module = side->module_of[frames[i].module];
	}
	return comparison->frames;
}

static bool add_stack(void *context, const struct flame_frame *frames, size_t depth, uint64_t value,
		      uint64_t samples)
{
	struct side *side = context;
	struct comparison *comparison = side->comparison;
	const struct result_stack *at = named_stacks_current(side->flame.stacks);
	struct diff_host *host =
		comparison->by_host ? diff_hosts_of(&comparison->hosts[side->number], at->series)
				    : NULL;
	struct diff_stack stack = {
		.frames = with_modules(comparison, side, frames, depth),
		.depth = depth,
		.process = series_label(&side->flame.result->series[at->series], "process"),
		.is_common = !host || host->is_common,
		.value = value,
		.samples = samples,
	};

	if (host)
		host->value += value;
	if (!stack.frames || !begin_part(side, at->bucket_ms) ||
	    !diff_tree_add(&comparison->tree, side->number, stack.frames, depth, value))
		return false;
	stack.frames = flame_request_as_taken(&side->flame, stack.frames, depth);
	return stack.frames && diff_table_add(comparison->table, &stack);
}

static bool add_side(struct side *side, struct error *err)
{
	if (!flame_request_each(&side->flame, add_stack, side, err) ||
	    !begin_part(side, side->flame.result->until_ms - 1)) {
		if (err->kind == ERROR_NONE)
			error_set(err, ERROR_LIMIT,
				  "the comparison has more nodes or functions than fit; narrow "
				  "time or match");
		return false;
	}
	flame_request_accounting(&side->flame, &side->accounting);
	return true;
}

static bool compare(struct comparison *comparison, struct error *err)
{
	const struct query_life *life = comparison->sides[DIFF_COMPARE].flame.life;

	comparison->table =
		diff_table_new(comparison->norm, comparison->by_total,
			       query_life_room(life, 4 * sizeof(struct diff_row), FUNCTIONS_MAX));
	if (!comparison->table ||
	    !diff_tree_init(&comparison->tree,
			    query_life_room(life, 2 * sizeof(struct flame_node), TREE_NODES_MAX)))
		return error_no_memory(err);
	if (!join_modules(comparison, err) || !add_side(&comparison->sides[DIFF_BASE], err) ||
	    !add_side(&comparison->sides[DIFF_COMPARE], err))
		return false;
	if (!diff_table_test(comparison->table, comparison->limit) ||
	    !diff_tree_cut(&comparison->tree, comparison->max_nodes, comparison->table->scale))
		return error_no_memory(err);
	for (enum diff_side i = DIFF_BASE; i < DIFF_SIDES; i++)
		comparison->sides[i].accounting.cut += comparison->tree.cut[i];
	return true;
}

/* --- answering --- */

static struct flame_answer side_answer(const struct side *side, const char *match)
{
	return (struct flame_answer){
		.type = side->flame.query.type,
		.unit = flame_request_unit(&side->flame),
		.match = match,
		.from_ms = side->flame.result->from_ms,
		.until_ms = side->flame.result->until_ms,
		.accounting = &side->accounting,
	};
}

static bool write_answer(struct http_response *response, struct comparison *comparison,
			 const struct answer_format *format, struct error *err)
{
	static const char *const norms[] = {"per_second", "share", "raw"};
	const struct side *sides = comparison->sides;
	const struct parameters *asked = &sides[DIFF_COMPARE].flame.asked;
	const char *match = parameter_given(asked, "match");
	const char *base_match = parameter_given(asked, "base.match");
	struct diff_answer answer = {
		.flame = side_answer(&sides[DIFF_COMPARE], match),
		.base = side_answer(&sides[DIFF_BASE], base_match ? base_match : match),
		.functions = comparison->table,
		.functions_limit = comparison->limit,
		.by_total = comparison->by_total,
		.norm = norms[comparison->norm],
		.hosts_common = comparison->hosts[DIFF_BASE].common,
		.is_base_moved = comparison->is_base_moved,
	};

	for (enum diff_side i = DIFF_BASE; comparison->by_host && i < DIFF_SIDES; i++) {
		diff_hosts_sort(&comparison->hosts[i]);
		answer.hosts[i] = comparison->hosts[i].list;
		answer.hosts_alone[i] = comparison->hosts[i].count - comparison->hosts[i].common;
	}
	answer.flame.tree = comparison->tree.tree;
	answer.flame.base_scale = comparison->table->scale;
	answer.flame.modules = comparison->modules;
	answer.flame.module_count = comparison->module_count;
	answer.flame.memory = query_life_bytes(sides[DIFF_COMPARE].flame.life);
	return answer_format_write(sides[DIFF_COMPARE].flame.life, response, format, &answer.flame,
				   err);
}

static void release(struct comparison *comparison)
{
	for (enum diff_side i = DIFF_BASE; i < DIFF_SIDES; i++) {
		flame_request_release(&comparison->sides[i].flame);
		free(comparison->sides[i].module_of);
		diff_hosts_release(&comparison->hosts[i]);
	}
	diff_table_free(comparison->table);
	diff_tree_release(&comparison->tree);
	free(comparison->modules);
	free(comparison->frames);
}

void api_diff_get(struct http_request *request, struct http_response *response, void *context)
{
	const struct answer_format *format = formats;
	struct comparison comparison = {0};
	struct error err = {0};
	bool ok;

	for (enum diff_side i = DIFF_BASE; i < DIFF_SIDES; i++)
		comparison.sides[i] = (struct side){.comparison = &comparison, .number = i};
	ok = read_sides(request, &comparison, &err) &&
	     read_choices(&comparison.sides[DIFF_COMPARE].flame.asked, &comparison, &format,
			  &err) &&
	     ask(&comparison, context, &err) && compare(&comparison, &err) &&
	     write_answer(response, &comparison, format, &err);
	if (!ok)
		answer_failure(response, &err);
	release(&comparison);
}
