/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/naming/module_counts.h"

#include <stdlib.h>

enum { WORD_BITS = 64 };

/* --- along the store's tree of stacks: every caller that stacks share is looked at once --- */

struct node_count {
	struct named_stacks *stacks;
	uint64_t *samples;                    /* of the node and all it called */
	uint32_t *first_callee, *next_callee; /* of the same caller */
	uint32_t (*met)[2]; /* by module, on the way down: frames, those without a name */
};

static void sum_nodes(struct node_count *count)
{
	const struct samples_result *result = count->stacks->result;

	for (size_t i = 0; i < result->stack_count; i++)
		count->samples[result->stacks[i].node] += result->stacks[i].samples;
	for (uint32_t i = result->node_count; i-- > 1;)
		count->samples[result->nodes[i].caller] += count->samples[i];
}

static void list_callees(struct node_count *count)
{
	const struct samples_result *result = count->stacks->result;

	for (uint32_t i = result->node_count; i-- > 1;) {
		uint32_t caller = result->nodes[i].caller;

		count->next_callee[i] = count->first_callee[caller];
		count->first_callee[caller] = i;
	}
}

/* A stack counts once for each module: at the outermost of its nodes in it. step: 1 down, -1 up. */
static void count_node(struct node_count *count, uint32_t node, int step)
{
	struct named_stacks *stacks = count->stacks;
	uint32_t location = stacks->result->nodes[node].location;
	uint32_t module = stacks->result->locations[location].module;
	uint32_t *met;

	if (module >= stacks->result->module_count)
		return;
	module = stacks->names.module_of[module];
	met = count->met[module];
	if (step > 0 && !met[0])
		stacks->samples[module] += count->samples[node];
	met[0] += (uint32_t)step;
	if (!stacks->names.locations[location].is_unresolved)
		return;
	if (step > 0 && !met[1])
		stacks->unsymbolized[module] += count->samples[node];
	met[1] += (uint32_t)step;
}

static void walk_nodes(struct node_count *count)
{
	const struct result_node *nodes = count->stacks->result->nodes;
	uint32_t at = count->first_callee[0];

	while (at) {
		count_node(count, at, 1);
		if (count->first_callee[at]) {
			at = count->first_callee[at];
			continue;
		}
		count_node(count, at, -1);
		while (at && !count->next_callee[at]) {
			at = nodes[at].caller;
			if (at)
				count_node(count, at, -1);
		}
		at = count->next_callee[at];
	}
}

static bool count_by_walk(struct node_count *count)
{
	size_t nodes = (size_t)count->stacks->result->node_count + 1;
	bool ok;

	count->first_callee = calloc(nodes, sizeof(*count->first_callee));
	count->next_callee = calloc(nodes, sizeof(*count->next_callee));
	count->met = calloc((size_t)count->stacks->names.module_count + 1, sizeof(*count->met));
	ok = count->first_callee && count->next_callee && count->met;
	if (ok) {
		list_callees(count);
		walk_nodes(count);
	}
	free(count->first_callee);
	free(count->next_callee);
	free(count->met);
	return ok;
}

/* Few modules: which of them a node's way down has met fits into a word. */
struct way {
	uint64_t met, unresolved;
};

static void mark_node(struct node_count *count, struct way *way, uint32_t node)
{
	struct named_stacks *stacks = count->stacks;
	uint32_t location = stacks->result->nodes[node].location;
	uint32_t module = stacks->result->locations[location].module;
	uint64_t bit;

	if (module >= stacks->result->module_count)
		return;
	module = stacks->names.module_of[module];
	bit = UINT64_C(1) << module;
	if (!(way->met & bit))
		stacks->samples[module] += count->samples[node];
	way->met |= bit;
	if (!stacks->names.locations[location].is_unresolved)
		return;
	if (!(way->unresolved & bit))
		stacks->unsymbolized[module] += count->samples[node];
	way->unresolved |= bit;
}

static bool count_by_words(struct node_count *count)
{
	const struct samples_result *result = count->stacks->result;
	struct way *ways = calloc((size_t)result->node_count + 1, sizeof(*ways));
	bool ok;

	for (uint32_t i = 1; ways && i < result->node_count; i++) {
		ways[i] = ways[result->nodes[i].caller];
		mark_node(count, &ways[i], i);
	}
	ok = ways;
	free(ways);
	return ok;
}

static bool count_nodes(struct named_stacks *stacks)
{
	struct node_count count = {.stacks = stacks};
	bool ok = false;

	count.samples = calloc((size_t)stacks->result->node_count + 1, sizeof(*count.samples));
	if (count.samples) {
		sum_nodes(&count);
		ok = stacks->names.module_count <= WORD_BITS ? count_by_words(&count)
							     : count_by_walk(&count);
	}
	free(count.samples);
	return ok;
}

/* --- stack by stack --- */

/* Counts stack number i once for each module it is in, and for each it has no name in. */
static void count_stack(struct named_stacks *stacks, size_t i, size_t (*last)[2])
{
	const struct samples_result *result = stacks->result;
	const struct result_stack *stack = &result->stacks[i];

	for (uint32_t j = 0; j < stack->depth; j++) {
		uint32_t location = stack->locations[j];
		uint32_t module = result->locations[location].module;

		if (module >= result->module_count)
			continue;
		module = stacks->names.module_of[module];
		if (last[module][0] != i + 1)
			stacks->samples[module] += stack->samples;
		last[module][0] = i + 1;
		if (!stacks->names.locations[location].is_unresolved || last[module][1] == i + 1)
			continue;
		last[module][1] = i + 1;
		stacks->unsymbolized[module] += stack->samples;
	}
}

/* False: no memory, or goes_on() said so and err is set. */
static bool count_stacks(struct named_stacks *stacks)
{
	const struct stack_view *view = stacks->view;
	size_t(*last)[2] = calloc((size_t)stacks->names.module_count + 1, sizeof(*last));
	bool ok = last;

	for (size_t i = 0; ok && i < stacks->result->stack_count; i++) {
		count_stack(stacks, i, last);
		ok = !view->goes_on || view->goes_on(view->context);
	}
	free(last);
	return ok;
}

/* --- what ends in a frame without a name --- */

/* Whether it ends in a frame without a name; *module UINT32_MAX: in none. */
static bool ends_nameless(const struct named_stacks *stacks, const struct result_stack *stack,
			  uint32_t *module)
{
	const struct samples_result *result = stacks->result;
	uint32_t location;

	if (!stack->depth)
		return false;
	location = stack->locations ? stack->locations[0] : result->nodes[stack->node].location;
	if (!stacks->names.locations[location].is_unresolved ||
	    stacks->names.locations[location].is_behind)
		return false;
	*module = result->locations[location].module;
	*module = *module < result->module_count ? stacks->names.module_of[*module] : UINT32_MAX;
	return true;
}

static bool count_nameless(struct named_stacks *stacks)
{
	const struct samples_result *result = stacks->result;
	uint32_t module;

	stacks->nameless = calloc((size_t)stacks->names.module_count + 1,
				  sizeof(*stacks->nameless));
	stacks->nameless_met = calloc((size_t)stacks->names.module_count + 1,
				      sizeof(*stacks->nameless_met));
	if (!stacks->nameless || !stacks->nameless_met)
		return false;
	for (size_t i = 0; i < result->stack_count; i++)
		if (ends_nameless(stacks, &result->stacks[i], &module) && module != UINT32_MAX)
			stacks->nameless[module] += result->stacks[i].value;
	return true;
}

void module_counts_nameless(struct named_stacks *stacks, const struct result_stack *stack,
			    struct stack_totals *totals)
{
	uint32_t module;

	if (!ends_nameless(stacks, stack, &module))
		return;
	totals->nameless_value += stack->value;
	totals->nameless_samples += stack->samples;
	if (module == UINT32_MAX || stacks->nameless_met[module])
		return;
	stacks->nameless_met[module] = true;
	totals->nameless_modules++;
}

bool module_counts_fill(struct named_stacks *stacks, struct error *err)
{
	size_t count = (size_t)stacks->names.module_count + 1;

	stacks->unsymbolized = calloc(count, sizeof(*stacks->unsymbolized));
	stacks->samples = calloc(count, sizeof(*stacks->samples));
	if (stacks->unsymbolized && stacks->samples &&
	    (stacks->result->nodes ? count_nodes(stacks) : count_stacks(stacks)) &&
	    count_nameless(stacks))
		return true;
	if (err && err->kind != ERROR_NONE)
		return false; /* goes_on() said why */
	return error_no_memory(err);
}
