/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/naming/named_nodes.h"

#include <stdlib.h>

enum { WORD_BITS = 64 };

/* Samples by module. */
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
	for (uint32_t i = result->node_count; i-- > 1;)
		counting->samples[result->nodes[i].caller] += counting->samples[i];
}

static void list_callees(struct counting *counting)
{
	const struct samples_result *result = counting->stacks->result;

	for (uint32_t i = result->node_count; i-- > 1;) {
		uint32_t caller = result->nodes[i].caller;

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

static bool count_by_walk(struct counting *counting)
{
	size_t count = (size_t)counting->stacks->result->node_count + 1;
	bool ok;

	counting->first_callee = calloc(count, sizeof(*counting->first_callee));
	counting->next_callee = calloc(count, sizeof(*counting->next_callee));
	counting->met = calloc((size_t)counting->stacks->names.module_count + 1,
			       sizeof(*counting->met));
	ok = counting->first_callee && counting->next_callee && counting->met;
	if (ok) {
		list_callees(counting);
		walk_nodes(counting);
	}
	free(counting->first_callee);
	free(counting->next_callee);
	free(counting->met);
	return ok;
}

/* Few modules: which of them a node's way down has met fits into a word. */
struct way {
	uint64_t met, unresolved;
};

static void mark_node(struct counting *counting, struct way *way, uint32_t node)
{
	struct named_stacks *stacks = counting->stacks;
	uint32_t location = stacks->result->nodes[node].location;
	uint32_t module = stacks->result->locations[location].module;
	uint64_t bit;

	if (module >= stacks->result->module_count)
		return;
	module = stacks->names.module_of[module];
	bit = UINT64_C(1) << module;
	if (!(way->met & bit))
		stacks->samples[module] += counting->samples[node];
	way->met |= bit;
	if (!stacks->names.locations[location].is_unresolved)
		return;
	if (!(way->unresolved & bit))
		stacks->unsymbolized[module] += counting->samples[node];
	way->unresolved |= bit;
}

static bool count_by_words(struct counting *counting)
{
	const struct samples_result *result = counting->stacks->result;
	struct way *ways = calloc((size_t)result->node_count + 1, sizeof(*ways));
	bool ok;

	for (uint32_t i = 1; ways && i < result->node_count; i++) {
		ways[i] = ways[result->nodes[i].caller];
		mark_node(counting, &ways[i], i);
	}
	ok = ways;
	free(ways);
	return ok;
}

bool named_nodes_count(struct named_stacks *stacks)
{
	struct counting counting = {.stacks = stacks};
	bool ok = false;

	counting.samples = calloc((size_t)stacks->result->node_count + 1,
				  sizeof(*counting.samples));
	if (counting.samples) {
		sum_nodes(&counting);
		ok = stacks->names.module_count <= WORD_BITS ? count_by_words(&counting)
							     : count_by_walk(&counting);
	}
	free(counting.samples);
	return ok;
}
