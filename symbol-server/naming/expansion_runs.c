/* SPDX-License-Identifier: Apache-2.0 */
/* Which stacks are shown, and the nodes of groups that they are below. */
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "symbol-server/flamegraph/sampling_error.h"
#include "symbol-server/naming/expansion_state.h"
#include "symbol-server/naming/idle_waits.h"
#include "symbol-server/naming/module_counts.h"

/* --- what is shown --- */

static uint16_t match_root(const struct expansion *expansion, uint16_t matched,
			   const struct flame_frame *frame)
{
	const struct stack_view *view = expansion->stacks->view;

	if (matched == NOT_BELOW_ROOT || matched == view->root_depth)
		return matched;
	return frame_is_called(frame, view->root[matched]) ? (uint16_t)(matched + 1)
							   : NOT_BELOW_ROOT;
}

static void look_at_names(struct expansion *expansion, uint32_t node,
			  const struct named_location *location)
{
	const struct location_frames *names = &expansion->stacks->names;
	uint16_t matched = expansion->matched[node];

	for (uint32_t i = location->first; i < location->first + location->count; i++) {
		expansion->flags[node] |= names->flags[i];
		if (!(names->flags[i] & NAME_HIDDEN))
			matched = match_root(expansion, matched, &names->frames[i]);
	}
	expansion->matched[node] = matched;
}

bool expansion_look(struct expansion *expansion)
{
	const struct stack_view *view = expansion->stacks->view;
	const struct samples_result *result = expansion->stacks->result;
	bool names_matter = view->focus || view->ignore || view->build || view->root_depth ||
			    view->folds_idle;
	unsigned groups = view->group_count;

	expansion->matched[0] = (uint16_t)(groups < view->root_depth ? groups : view->root_depth);
	for (uint32_t i = 1; i < result->node_count; i++) {
		const struct result_node *node = &result->nodes[i];
		const struct named_location *location =
			&expansion->stacks->names.locations[node->location];

		if (!expansion->pass->goes_on(expansion->pass->context))
			return false;
		expansion->flags[i] =
			expansion->flags[node->caller] |
			(location->is_unresolved && !location->is_behind ? NODE_UNRESOLVED : 0) |
			(location->is_incomplete ? NODE_INCOMPLETE : 0);
		expansion->matched[i] = expansion->matched[node->caller];
		if (names_matter)
			look_at_names(expansion, i, location);
	}
	return true;
}

/* Of an idle stack the way below its groups is one frame, whatever was on it. */
static bool is_at_root(const struct expansion *expansion, uint32_t node)
{
	const struct stack_view *view = expansion->stacks->view;
	unsigned groups = view->group_count;

	if (!(expansion->flags[node] & NAME_IDLE) || view->root_depth <= groups)
		return expansion->matched[node] == view->root_depth ||
		       (expansion->flags[node] & NAME_IDLE);
	return view->root_depth == groups + 1 && !strcmp(view->root[groups], IDLE_FRAME);
}

bool expansion_shows(const struct expansion *expansion, const struct result_stack *stack)
{
	const struct stack_view *view = expansion->stacks->view;
	uint8_t flags = expansion->flags[stack->node];

	return (!view->focus || flags & NAME_FOCUSED) && !(view->ignore && flags & NAME_IGNORED) &&
	       (!view->build || flags & NAME_OF_BUILD) && is_at_root(expansion, stack->node);
}

/* --- groups --- */

static bool is_below_root(const struct expansion *expansion, const struct result_stack *stack)
{
	const struct stack_view *view = expansion->stacks->view;

	for (unsigned i = 0; i < view->group_count && i < view->root_depth; i++)
		if (strcmp(named_stacks_group(expansion->stacks, stack, i).name, view->root[i]))
			return false;
	return true;
}

/* False: the tree is full. */
static bool find_base(const struct expansion *expansion, const struct result_stack *stack,
		      uint32_t *base)
{
	*base = 0;
	for (unsigned i = 0; i < expansion->stacks->view->group_count; i++) {
		struct flame_frame frame = named_stacks_group(expansion->stacks, stack, i);

		*base = flame_tree_child(expansion->pass->tree, *base, &frame);
		if (!*base)
			return false;
	}
	return true;
}

static bool count_stack(struct expansion *expansion, const struct result_stack *stack)
{
	struct stack_totals *totals = expansion->totals;
	uint8_t flags = expansion->flags[stack->node];

	totals->value += stack->value;
	totals->samples += stack->samples;
	totals->unsymbolized += flags & NODE_UNRESOLVED ? stack->samples : 0;
	totals->idle_value += flags & NAME_IDLE ? stack->value : 0;
	totals->idle_samples += flags & NAME_IDLE ? stack->samples : 0;
	module_counts_nameless(expansion->stacks, stack, totals);
	if (!(flags & NODE_INCOMPLETE))
		return true;
	totals->unwind_incomplete += stack->samples;
	return named_stacks_count_incomplete(expansion->stacks, stack) ||
	       error_no_memory(expansion->err);
}

uint64_t expansion_weight(const struct expansion *expansion, const struct result_stack *stack)
{
	return expansion->pass->by_samples ? stack->samples : stack->value;
}

double expansion_squares(const struct expansion *expansion, const struct result_stack *stack)
{
	return sampling_squares(expansion_weight(expansion, stack), stack->samples,
				&expansion->pass->tree->sampling);
}

struct amount {
	uint64_t value, samples;
	double squares;
};

static void amount_add(const struct expansion *expansion, const struct result_stack *stack,
		       struct amount *amount)
{
	amount->value += expansion_weight(expansion, stack);
	amount->samples += stack->samples;
	amount->squares += expansion_squares(expansion, stack);
}

static void add_self(struct flame_node *node, const struct amount *amount)
{
	node->self += amount->value;
	node->self_samples += amount->samples;
	node->self_squares += amount->squares;
}

static bool add_idle(struct expansion *expansion, uint32_t base, const struct amount *idle)
{
	struct flame_tree *tree = expansion->pass->tree;
	uint32_t at = flame_tree_child(tree, base, &named_stacks_idle);

	if (at)
		add_self(&tree->nodes[at], idle);
	return at;
}

/* The base gets what its stacks have; bases are few, whole runs of stacks share one. */
static bool count_run(struct expansion *expansion, size_t first, size_t end)
{
	const struct result_stack *stacks = expansion->stacks->result->stacks;
	struct run run = {first, end, 0};
	struct amount awake = {0}, idle = {0};
	bool is_met = false;

	if (!is_below_root(expansion, &stacks[first]))
		return true;
	for (size_t i = first; i < end; i++) {
		if (!expansion->pass->goes_on(expansion->pass->context))
			return false;
		if (!expansion_shows(expansion, &stacks[i]))
			continue;
		is_met = true;
		amount_add(expansion, &stacks[i],
			   expansion->flags[stacks[i].node] & NAME_IDLE ? &idle : &awake);
		if (!count_stack(expansion, &stacks[i]))
			return false;
	}
	if (!is_met)
		return true;
	if (!find_base(expansion, &stacks[first], &run.base))
		return false;
	if (idle.samples && !add_idle(expansion, run.base, &idle))
		return false;
	add_self(&expansion->pass->tree->nodes[run.base], &awake);
	if (!ARRAY_GROW(expansion->runs, expansion->run_count, expansion->run_room))
		return error_no_memory(expansion->err);
	expansion->runs[expansion->run_count++] = run;
	return true;
}

/* The heaviest base first, so that little of the lighter ones is expanded in vain. */
static int compare_runs(const void *a, const void *b, void *context)
{
	const struct flame_node *nodes = context;
	const struct run *x = a, *y = b;

	if (x->base != y->base && nodes[x->base].total != nodes[y->base].total)
		return nodes[x->base].total < nodes[y->base].total ? 1 : -1;
	if (x->base != y->base)
		return x->base < y->base ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

bool expansion_find_runs(struct expansion *expansion)
{
	const struct samples_result *result = expansion->stacks->result;
	const struct result_stack *stacks = result->stacks;

	for (size_t end, first = 0; first < result->stack_count; first = end) {
		for (end = first + 1; end < result->stack_count &&
				      stacks[end].series == stacks[first].series &&
				      stacks[end].thread == stacks[first].thread;)
			end++;
		if (!count_run(expansion, first, end))
			return false;
	}
	flame_tree_sum(expansion->pass->tree);
	if (expansion->run_count)
		qsort_r(expansion->runs, expansion->run_count, sizeof(*expansion->runs),
			compare_runs, expansion->pass->tree->nodes);
	return true;
}
