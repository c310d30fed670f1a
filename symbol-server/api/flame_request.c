/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/api/flame_request.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "symbol-server/api/host_cpus.h"
#include "symbol-server/api/reported.h"
#include "symbol-server/flamegraph/sampling_error.h"
#include "symbol-server/naming/idle_waits.h"

bool root_path_parse(const char *text, struct arena *arena, const char *const **names,
		     unsigned *count, struct error *err)
{
	size_t length = strlen(text);
	const char **out;
	char *copy, *to;

	*names = NULL;
	*count = 0;
	if (!length)
		return true;
	out = arena_array(arena, ROOT_FRAMES_MAX, sizeof(*out));
	copy = to = arena_alloc(arena, length + 1);
	if (!out || !copy)
		return error_no_memory(err);
	out[(*count)++] = to;
	for (const char *at = text; *at; at++) {
		if (*at == '\\' && (at[1] == ';' || at[1] == '\\')) {
			*to++ = *++at;
		} else if (*at != ';') {
			*to++ = *at;
		} else if (*count == ROOT_FRAMES_MAX) {
			return error_set(err, ERROR_OPTION,
					 "parameter 'root' has more than %d frames",
					 ROOT_FRAMES_MAX);
		} else {
			*to++ = 0;
			out[(*count)++] = to;
		}
	}
	*to = 0;
	*names = out;
	return true;
}

/* "kernel,inline" → bits of enum frame_kind. */
static bool read_kinds(const struct parameters *asked, uint32_t *kinds, struct error *err)
{
	static const struct {
		const char *name;
		enum frame_kind kind;
	} known[] = {
		{"native", FRAME_native},
		{"inline", FRAME_inline},
		{"kernel", FRAME_kernel},
		{"jit", FRAME_jit},
		{"gpu", FRAME_gpu},
		{"unresolved", FRAME_unresolved},
		{"interpreter", FRAME_interpreter},
		{"runtime", FRAME_runtime},
	};
	enum { KNOWN = sizeof known / sizeof *known };
	const char *at = parameter_given(asked, "hide_kind");

	while (at && *at) {
		size_t length = strcspn(at, ","), i = 0;

		while (i < KNOWN &&
		       (strlen(known[i].name) != length || memcmp(known[i].name, at, length)))
			i++;
		if (i == KNOWN)
			return error_set(
				err, ERROR_OPTION,
				"parameter 'hide_kind' has '%.*s'; possible are native, "
				"inline, kernel, interpreter, jit, gpu, runtime and unresolved, "
				"separated by commas",
				length > 40 ? 40 : (int)length, at);
		*kinds |= UINT32_C(1) << known[i].kind;
		at += length;
		at += *at == ',';
	}
	return true;
}

bool flame_request_read_build(struct flame_request *flame, const char *name, struct error *err)
{
	bool has_one;

	if (!parameter_build_id(&flame->asked, name, &flame->build, &has_one, err))
		return false;
	flame->view.build = has_one ? &flame->build : NULL;
	return true;
}

bool flame_request_group(struct flame_request *flame, const char *groups, struct error *err)
{
	if (!query_parse_groups(&flame->query, groups, http_request_arena(flame->asked.request),
				err))
		return error_prefix(err, "parameter 'group_by'");
	flame->view.groups = flame->query.groups;
	flame->view.group_count = flame->query.group_count;
	return true;
}

static bool read_stacks(struct flame_request *out, struct error *err)
{
	const struct parameters *asked = &out->asked;
	struct stack_view *view = &out->view;
	const char *groups = parameter_text(asked, "group_by");

	if ((groups && !flame_request_group(out, groups, err)) ||
	    !parameter_pattern(asked, "focus", &out->focus, err) ||
	    !parameter_pattern(asked, "ignore", &out->ignore, err) ||
	    !parameter_pattern(asked, "hide", &out->hide, err) ||
	    !parameter_pattern(asked, "hide_module", &out->hide_module, err) ||
	    !parameter_pattern(asked, "only_module", &out->only_module, err) ||
	    !read_kinds(asked, &view->hide_kinds, err) ||
	    !parameter_flag(asked, "hide_runtime", &view->hides_runtime, err) ||
	    !flame_request_read_build(out, "build_id", err))
		return false;
	view->focus = out->focus;
	view->ignore = out->ignore;
	view->hide = out->hide;
	view->hide_module = out->hide_module;
	view->only_module = out->only_module;
	return true;
}

static bool read_shape(struct flame_request *out, struct error *err)
{
	const struct parameters *asked = &out->asked;
	struct arena *arena = http_request_arena(asked->request);
	unsigned demangle_choice = DEMANGLE_FULL, collapse = 0, idle = 0, value = 0;
	unsigned recursion = RECURSION_KEPT;
	const char *root = parameter_given(asked, "root");

	if (!parameter_flag(asked, "invert", &out->view.invert, err) ||
	    !parameter_choice(asked, "recursion", &recursion, err) ||
	    !parameter_choice(asked, "demangle", &demangle_choice, err) ||
	    !parameter_choice(asked, "collapse", &collapse, err) ||
	    !parameter_choice(asked, "idle", &idle, err) ||
	    !parameter_choice(asked, "value", &value, err) ||
	    !root_path_parse(root ? root : "", arena, &out->view.root, &out->view.root_depth, err))
		return false;
	out->view.demangle = (enum demangle_mode)demangle_choice;
	out->view.recursion = (enum recursion_mode)recursion;
	out->view.joins_names = collapse == 1;
	out->view.folds_idle = idle == 1 && idle_waits_has_type(out->query.type);
	out->by_samples = value == 1;
	return true;
}

bool flame_request_read(struct http_request *request, enum endpoint endpoint,
			struct flame_request *out, struct error *err)
{
	int type;

	memset(out, 0, sizeof(*out));
	if (!parameters_open(&out->asked, request, endpoint, err) ||
	    !parameters_query(&out->asked, &out->query, err) ||
	    !parameter_flag(&out->asked, "exact", &out->query.is_exact, err) ||
	    !read_stacks(out, err) || !read_shape(out, err))
		return false;
	type = profile_type_find(out->query.type, strlen(out->query.type));
	out->is_gauge = type >= 0 && profile_type_is_gauge((unsigned)type);
	out->sampling = profile_type_sampling((unsigned)type);
	return true;
}

static bool look_for_nothing(struct flame_request *flame, struct api *api, struct error *err)
{
	const struct samples_result *result = flame->result;

	if (!result->stack_count && !result->cut.samples &&
	    !nothing_explain(api, flame->life, &flame->query, &flame->nothing, err))
		return false;
	return nothing_check_groups(api, flame->life, &flame->query, result->series,
				    result->series_count, err);
}

double flame_request_unknown_spread(const struct flame_request *flame)
{
	return flame->by_samples || flame->sampling == SAMPLING_EVEN ? 0 : 1;
}

const struct sampling *flame_request_sampling(const struct flame_request *flame)
{
	return flame->sampling == SAMPLING_WHOLE ? NULL : &flame->sampled;
}

double hosts_windows(const struct host_accounting *hosts, uint32_t count)
{
	double windows = 0, within = 0, between = 0;

	for (uint32_t i = 0; i < count; i++) {
		windows += (double)hosts[i].tallies[TALLY_WINDOWS];
		within += (double)hosts[i].tallies[TALLY_WITHIN];
		between += (double)hosts[i].tallies[TALLY_BETWEEN];
	}
	return sampling_windows(within, between, windows);
}

static uint64_t value_of(const struct flame_request *flame, uint64_t value, uint64_t samples)
{
	return flame->by_samples ? samples : value;
}

static bool find_spread(struct flame_request *flame, struct error *err)
{
	const struct samples_result *result = flame->result;
	struct sampling_series *series = calloc((size_t)result->series_count + 1, sizeof(*series));

	if (!series)
		return query_life_no_memory(flame->life, err);
	for (size_t i = 0; i < result->stack_count; i++) {
		const struct result_stack *stack = &result->stacks[i];

		sampling_series_add(&series[stack->series],
				    value_of(flame, stack->value, stack->samples), stack->samples);
	}
	flame->sampled.spread = sampling_spread(series, result->series_count,
						flame_request_unknown_spread(flame),
						SPREAD_OF_STACKS);
	flame->sampled.windows = hosts_windows(result->hosts, result->host_count);
	free(series);
	return true;
}

bool flame_request_ask(struct flame_request *flame, struct api *api, struct error *err)
{
	if (flame->life)
		query_life_lend(flame->life, &flame->query);
	else
		flame->life = query_life_start(flame->asked.request, &api->query_limits,
					       &flame->query, err);
	if (!flame->life)
		return false;
	flame->query.limits.bytes -= flame->query.limits.bytes / 4; /* the rest names it */
	if (flame->is_whole)
		flame->query.limits.is_cut = NULL;
	flame->result = query_run(api->samples, &flame->query, err);
	if (!flame->result)
		return false;
	flame->held = flame->result->arena.used +
		      flame->result->stack_count * sizeof(*flame->result->stacks);
	query_life_take(flame->life, flame->held);
	flame->cpus = host_cpus(api->samples, flame->result->hosts, flame->result->host_count,
				flame->result->host_steps, flame->result->host_step_count);
	return query_life_goes_on(flame->life, err) && find_spread(flame, err) &&
	       look_for_nothing(flame, api, err);
}

struct pass {
	struct flame_request *flame;
	named_stack_fn *each;
	void *context;
	struct error *err;
};

static bool pass_on(void *context, const struct flame_frame *frames, size_t depth, uint64_t value,
		    uint64_t samples)
{
	const struct pass *pass = context;

	value = value_of(pass->flame, value, samples);
	pass->flame->squares += sampling_squares(value, samples, &pass->flame->sampled);
	return pass->each(pass->context, frames, depth, value, samples);
}

static bool goes_on(void *context)
{
	const struct pass *pass = context;

	return query_life_goes_on(pass->flame->life, pass->err);
}

bool flame_request_name(struct flame_request *flame, struct api *api, struct error *err)
{
	struct pass pass = {flame, NULL, NULL, err};

	flame->view.goes_on = goes_on;
	flame->view.context = &pass;
	flame->stacks = named_stacks_new(flame->result, api->symbolizer, &flame->view, err);
	flame->view.goes_on = NULL;
	return flame->stacks != NULL;
}

bool flame_request_run(struct flame_request *flame, struct api *api, struct error *err)
{
	return flame_request_ask(flame, api, err) && flame_request_name(flame, api, err);
}

bool flame_request_each(struct flame_request *flame, named_stack_fn *each, void *context,
			struct error *err)
{
	struct pass pass = {flame, each, context, err};
	bool ok;

	flame->view.goes_on = goes_on;
	flame->view.context = &pass;
	flame->squares = 0;
	ok = named_stacks_each(flame->stacks, pass_on, &pass, &flame->totals, err);
	flame->view.goes_on = NULL;
	return ok;
}

const struct flame_frame *flame_request_as_taken(struct flame_request *flame,
						 const struct flame_frame *frames, size_t depth)
{
	size_t groups = flame->view.group_count;

	if (!flame->view.invert)
		return frames;
	if (!ARRAY_RESERVE(flame->turned, depth + 1, flame->turned_room))
		return NULL;
	for (size_t i = 0; i < depth; i++)
		flame->turned[i] = frames[i < groups ? i : depth - 1 - (i - groups)];
	return flame->turned;
}

static int compare_stacks(const void *left, const void *right)
{
	const struct result_stack *a = left, *b = right;

	return (a->value < b->value) - (a->value > b->value);
}

void flame_request_sort(struct flame_request *flame, size_t room)
{
	struct samples_result *result = flame->result;

	if (result->stack_count &&
	    (result->node_count ? result->node_count : result->location_count) > room / 2)
		qsort(result->stacks, result->stack_count, sizeof(*result->stacks), compare_stacks);
}

bool flame_request_limit(const struct flame_request *flame, struct flame_limit *out,
			 struct error *err)
{
	uint32_t max_nodes = 0;

	*out = (struct flame_limit){0};
	if (!parameter_number(&flame->asked, "max_nodes", &max_nodes, err) ||
	    !parameter_share(&flame->asked, "min_share", &out->min_share, err))
		return false;
	out->max_nodes = max_nodes;
	return true;
}

bool flame_request_tree(struct flame_request *flame, struct flame_tree *tree,
			struct flame_limit limit, struct error *err)
{
	struct pass pass = {flame, NULL, NULL, err};
	bool ok;

	tree->sampling = flame->sampled;
	ok = named_stacks_tree(flame->stacks, tree, flame->by_samples, limit, goes_on, &pass,
			       &flame->totals, err);
	flame->squares = tree->nodes[0].total_squares;
	return ok;
}

bool stack_ids_fit(const struct answer_format *format, struct error *err)
{
	return !strcmp(format->name, "json") ||
	       error_set(err, ERROR_OPTION, "parameter 'stack_ids' goes with format=json alone");
}

const char *flame_request_unit(const struct flame_request *flame)
{
	int type = profile_type_find(flame->query.type, strlen(flame->query.type));

	if (flame->by_samples)
		return "samples";
	return flame->result && flame->result->unit && *flame->result->unit
		       ? flame->result->unit
		       : profile_type_unit((unsigned)type);
}

void hosts_accounting(const struct host_accounting *hosts, uint32_t count, struct accounting *out)
{
	out->hosts = count;
	for (uint32_t i = 0; i < count; i++) {
		const struct host_accounting *host = &hosts[i];

		out->taken += host->taken;
		out->lost += host->lost;
		out->has_exact |= host->has_exact;
		out->exact += host->tallies[TALLY_EXACT];
		out->covered += host->tallies[TALLY_COVERED];
		out->windows += host->tallies[TALLY_WINDOWS];
		out->folded_series += host->folded_series;
		out->folded_stacks += host->folded_stacks;
		out->unexplained += (int64_t)(host->taken - host->samples - host->lost);
		for (unsigned j = 0; j < host->lost_count; j++)
			accounting_add_lost(out, host->lost_by[j].reason, host->lost_by[j].count);
	}
}

void flame_request_accounting(const struct flame_request *flame, struct accounting *out)
{
	*out = (struct accounting){
		.value = flame->totals.value,
		.samples = flame->totals.samples,
		.unwind_incomplete = flame->totals.unwind_incomplete,
		.unsymbolized = flame->totals.unsymbolized,
		.nameless_value = flame->by_samples ? flame->totals.nameless_samples
						    : flame->totals.nameless_value,
		.nameless_modules = flame->totals.nameless_modules,
		.folds_idle = flame->view.folds_idle,
		.idle_value = flame->by_samples ? flame->totals.idle_samples
						: flame->totals.idle_value,
	};
	if (flame->by_samples)
		out->value = out->samples;
	out->nothing = flame->nothing.sentence;
	out->data_from_ms = flame->nothing.from_ms;
	out->data_until_ms = flame->nothing.until_ms;
	out->resolution_ms = flame->result->resolution_ms;
	out->threads_from_ms = flame->result->threads_from_ms;
	out->processes_untold = flame->result->untold.samples;
	out->processes_of = flame->result->untold.of;
	out->cut_by_memory = flame->by_samples ? flame->result->cut.samples
					       : flame->result->cut.value;
	out->cut = out->cut_by_memory;
	out->value += out->cut_by_memory;
	out->samples += flame->result->cut.samples;
	out->is_sampled = flame->sampling != SAMPLING_WHOLE;
	out->sampled = flame->sampled;
	out->squares = flame->squares + sampling_squares(out->cut_by_memory,
							 flame->result->cut.samples,
							 &flame->sampled);
	out->error = sampling_error(out->value, out->squares);
	hosts_accounting(flame->result->hosts, flame->result->host_count, out);
	out->reported_ms = reported_sum(flame->result->host_steps, flame->result->host_step_count);
	out->cpus = flame->cpus;
	named_stacks_incomplete(flame->stacks, out);
}

struct flame_answer flame_request_answer(const struct flame_request *flame,
					 struct accounting *accounting)
{
	struct flame_answer answer = {
		.type = flame->query.type,
		.unit = flame_request_unit(flame),
		.match = parameter_given(&flame->asked, "match"),
		.from_ms = flame->result->from_ms,
		.until_ms = flame->result->until_ms,
		.unsymbolized = named_stacks_unsymbolized(flame->stacks),
		.accounting = accounting,
		.memory = query_life_bytes(flame->life),
	};

	flame_request_accounting(flame, accounting);
	answer.modules = named_stacks_modules(flame->stacks, &answer.module_count);
	return answer;
}

void flame_request_forget(struct flame_request *flame)
{
	named_stacks_free(flame->stacks);
	samples_result_free(flame->result);
	if (flame->life)
		query_life_give(flame->life, flame->held);
	flame->held = 0;
	flame->stacks = NULL;
	flame->result = NULL;
}

void flame_request_release(struct flame_request *flame)
{
	flame_request_forget(flame);
	free(flame->turned);
	selector_release(&flame->query.selector);
	pattern_free(flame->focus);
	pattern_free(flame->ignore);
	pattern_free(flame->hide);
	pattern_free(flame->hide_module);
	pattern_free(flame->only_module);
}
