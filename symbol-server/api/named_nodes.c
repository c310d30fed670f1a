/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/api/named_nodes.h"

#include <stdlib.h>
#include <string.h>

/* --- samples by module --- */

struct counting {
	struct named_stacks *stacks;
	uint64_t *samples;                    /* of the node and all it called */
	uint32_t *first_callee, *next_callee; /* of the same caller */
	uint32_t (*met)[2]; /* by module, on the way down: frames, those without a name */
};

static void sum_nodes(struct counting *counting)
{
	const struct samples_result *result = counting->stacks->result;

	for (size_t i = 0; i < result->stack_count; i++)
		counting->samples[result->stacks[i].node] += result->stacks[i].samples;
	for (uint32_t i = result->node_count; i-- > 1;) {
		uint32_t caller = result->nodes[i].caller;

		counting->samples[caller] += counting->samples[i];
		counting->next_callee[i] = counting->first_callee[caller];
		counting->first_callee[caller] = i;
	}
}

/* A stack counts once for each module: at the outermost of its nodes in it. step: 1 down, -1 up. */
static void count_node(struct counting *counting, uint32_t node, int step)
{
	struct named_stacks *stacks = counting->stacks;
	uint32_t location = stacks->result->nodes[node].location;
	uint32_t module = stacks->result->locations[location].module;
	uint32_t *met;

	if (module >= stacks->result->module_count)
		return;
	module = stacks->names.module_of[module];
	met = counting->met[module];
	if (step > 0 && !met[0])
		stacks->samples[module] += counting->samples[node];
	met[0] += (uint32_t)step;
	if (!stacks->names.locations[location].is_unresolved)
		return;
	if (step > 0 && !met[1])
		stacks->unsymbolized[module] += counting->samples[node];
	met[1] += (uint32_t)step;
}

static void walk_nodes(struct counting *counting)
{
	const struct result_node *nodes = counting->stacks->result->nodes;
	uint32_t at = counting->first_callee[0];

	while (at) {
		count_node(counting, at, 1);
		if (counting->first_callee[at]) {
			at = counting->first_callee[at];
			continue;
		}
		count_node(counting, at, -1);
		while (at && !counting->next_callee[at]) {
			at = nodes[at].caller;
			if (at)
				count_node(counting, at, -1);
		}
		at = counting->next_callee[at];
	}
}

bool named_nodes_count(struct named_stacks *stacks)
{
	size_t count = stacks->result->node_count;
	struct counting counting = {.stacks = stacks};
	bool ok;

	counting.samples = calloc(count + 1, sizeof(*counting.samples));
	counting.first_callee = calloc(count + 1, sizeof(*counting.first_callee));
	counting.next_callee = calloc(count + 1, sizeof(*counting.next_callee));
	counting.met = calloc((size_t)stacks->names.module_count + 1, sizeof(*counting.met));
	ok = counting.samples && counting.first_callee && counting.next_callee && counting.met;
	if (ok) {
		sum_nodes(&counting);
		walk_nodes(&counting);
	}
	free(counting.samples);
	free(counting.first_callee);
	free(counting.next_callee);
	free(counting.met);
	return ok;
}

/* --- the flame graph's tree --- */

enum { NODE_UNRESOLVED = 8, NODE_INCOMPLETE = 16 }; /* beside NAME_* */
enum { NOT_BELOW_ROOT = UINT16_MAX };
#define NOT_PLANTED UINT32_MAX

struct planting {
	struct named_stacks *stacks;
	const struct tree_pass *pass;
	uint8_t *flags;    /* of a node and its callers */
	uint16_t *matched; /* how many frames of view->root the way to the node has */
	struct {
		uint32_t run, flame; /* flame: the tree's node, known in that run */
	} * places;
	uint32_t *path;
	size_t path_room;
	uint32_t run;  /* stacks of one series and thread */
	uint32_t base; /* the tree's node of the run's groups; NOT_PLANTED: none of it is shown yet
			*/
	bool is_outside; /* the run's groups are not view->root's */
};

static uint16_t match_root(const struct planting *planting, uint16_t matched, const char *name)
{
	const struct stack_view *view = planting->stacks->view;

	if (matched == NOT_BELOW_ROOT || matched == view->root_depth)
		return matched;
	return strcmp(name, view->root[matched]) ? NOT_BELOW_ROOT : (uint16_t)(matched + 1);
}

static void look_at_node(struct planting *planting, uint32_t node)
{
	const struct location_names *names = &planting->stacks->names;
	const struct result_node *at = &planting->stacks->result->nodes[node];
	const struct named_location *location = &names->locations[at->location];
	uint16_t matched = planting->matched[at->caller];
	uint8_t flags = planting->flags[at->caller];

	flags |= location->is_unresolved ? NODE_UNRESOLVED : 0;
	flags |= location->is_incomplete ? NODE_INCOMPLETE : 0;
	for (uint32_t i = location->first; i < location->first + location->count; i++) {
		flags |= names->flags[i];
		if (!(names->flags[i] & NAME_HIDDEN))
			matched = match_root(planting, matched, names->frames[i].name);
	}
	planting->flags[node] = flags;
	planting->matched[node] = matched;
}

static void look_at_nodes(struct planting *planting)
{
	const struct stack_view *view = planting->stacks->view;
	unsigned groups = view->group_count;

	planting->matched[0] = (uint16_t)(groups < view->root_depth ? groups : view->root_depth);
	for (uint32_t i = 1; i < planting->stacks->result->node_count; i++)
		look_at_node(planting, i);
}

static void start_run(struct planting *planting, const struct result_stack *stack)
{
	const struct stack_view *view = planting->stacks->view;

	planting->run++;
	planting->base = NOT_PLANTED;
	planting->is_outside = false;
	for (unsigned i = 0; i < view->group_count && i < view->root_depth; i++)
		planting->is_outside |= strcmp(named_stacks_group(planting->stacks, stack, i).name,
					       view->root[i]) != 0;
}

static bool plant_base(struct planting *planting, const struct result_stack *stack)
{
	uint32_t at = 0;

	if (planting->base != NOT_PLANTED)
		return true;
	for (unsigned i = 0; i < planting->stacks->view->group_count; i++) {
		struct flame_frame frame = named_stacks_group(planting->stacks, stack, i);

		at = flame_tree_child(planting->pass->tree, at, &frame);
		if (!at)
			return false;
	}
	planting->base = at;
	return true;
}

static bool is_shown(const struct planting *planting, const struct result_stack *stack)
{
	const struct stack_view *view = planting->stacks->view;
	uint8_t flags = planting->flags[stack->node];

	return !planting->is_outside && (!view->focus || flags & NAME_FOCUSED) &&
	       !(view->ignore && flags & NAME_IGNORED) &&
	       planting->matched[stack->node] == view->root_depth;
}

/* The tree's node of a stack, made with what is missing of its callers. NOT_PLANTED: no room. */
static uint32_t plant(struct planting *planting, const struct result_stack *stack)
{
	const struct location_names *names = &planting->stacks->names;
	const struct result_node *nodes = planting->stacks->result->nodes;
	uint32_t at = stack->node, flame, depth = 0;

	while (at && planting->places[at].run != planting->run) {
		planting->path[depth++] = at;
		at = nodes[at].caller;
	}
	flame = at ? planting->places[at].flame : planting->base;
	while (depth--) {
		uint32_t node = planting->path[depth];
		const struct named_location *location = &names->locations[nodes[node].location];

		for (uint32_t i = location->first; i < location->first + location->count; i++) {
			if (names->flags[i] & NAME_HIDDEN)
				continue;
			flame = flame_tree_child(planting->pass->tree, flame, &names->frames[i]);
			if (!flame)
				return NOT_PLANTED;
		}
		planting->places[node].run = planting->run;
		planting->places[node].flame = flame;
	}
	return flame;
}

static bool plant_stack(struct planting *planting, const struct result_stack *stack,
			struct stack_totals *totals, struct error *err)
{
	uint8_t flags = planting->flags[stack->node];
	struct flame_node *node;
	uint32_t at = plant_base(planting, stack) ? plant(planting, stack) : NOT_PLANTED;

	if (at == NOT_PLANTED)
		return false;
	node = &planting->pass->tree->nodes[at];
	node->self += planting->pass->by_samples ? stack->samples : stack->value;
	node->self_samples += stack->samples;
	totals->value += stack->value;
	totals->samples += stack->samples;
	totals->unsymbolized += flags & NODE_UNRESOLVED ? stack->samples : 0;
	if (!(flags & NODE_INCOMPLETE))
		return true;
	totals->unwind_incomplete += stack->samples;
	return named_stacks_count_incomplete(planting->stacks, stack) ||
	       error_set(err, ERROR_MEMORY, "out of memory; try again later");
}

static bool plant_all(struct planting *planting, struct stack_totals *totals, struct error *err)
{
	const struct samples_result *result = planting->stacks->result;
	const struct result_stack *last = NULL;

	for (size_t i = 0; i < result->stack_count; i++) {
		const struct result_stack *stack = &result->stacks[i];

		if (!planting->pass->goes_on(planting->pass->context))
			return false;
		if (!last || last->series != stack->series || last->thread != stack->thread)
			start_run(planting, stack);
		last = stack;
		if (is_shown(planting, stack) && !plant_stack(planting, stack, totals, err))
			return false;
	}
	flame_tree_sum(planting->pass->tree);
	return true;
}

static uint32_t deepest(const struct samples_result *result)
{
	uint32_t depth = 0;

	for (size_t i = 0; i < result->stack_count; i++)
		if (result->stacks[i].depth > depth)
			depth = result->stacks[i].depth;
	return depth;
}

bool named_nodes_tree(struct named_stacks *stacks, const struct tree_pass *pass,
		      struct stack_totals *totals, struct error *err)
{
	size_t count = (size_t)stacks->result->node_count + 1;
	struct planting planting = {.stacks = stacks, .pass = pass};
	bool ok = false;

	planting.flags = calloc(count, 1);
	planting.matched = calloc(count, sizeof(*planting.matched));
	planting.places = calloc(count, sizeof(*planting.places));
	planting.path = calloc((size_t)deepest(stacks->result) + 1, sizeof(*planting.path));
	if (!planting.flags || !planting.matched || !planting.places || !planting.path) {
		error_set(err, ERROR_MEMORY, "out of memory; try again later");
	} else {
		look_at_nodes(&planting);
		ok = plant_all(&planting, totals, err);
	}
	free(planting.flags);
	free(planting.matched);
	free(planting.places);
	free(planting.path);
	return ok;
}
