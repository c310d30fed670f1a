/* SPDX-License-Identifier: Apache-2.0 */
/* Best-first expansion: of all nodes that are known and not expanded the heaviest is next, by a
 * heap: of millions of nodes a cut keeps few, and what is below the others is in their totals
 * already, so that it is neither named apart nor stored. */
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "symbol-server/naming/expansion_state.h"

static bool no_memory(struct expansion *expansion)
{
	return error_no_memory(expansion->err);
}

/* --- the subtrees of a base --- */

/* Callers come before what they call. */
static bool add_subtrees(struct expansion *expansion, const struct result_stack *stack)
{
	const struct result_node *nodes = expansion->stacks->result->nodes;
	uint32_t at = stack->node, depth = 0, caller;

	while (at && expansion->places[at].base != expansion->expanded) {
		expansion->path[depth++] = at;
		at = nodes[at].caller;
	}
	caller = at ? expansion->places[at].subtree : 0;
	while (depth--) {
		if (!ARRAY_GROW(expansion->subtrees, expansion->subtree_count,
				expansion->subtree_room))
			return no_memory(expansion);
		expansion->subtrees[expansion->subtree_count] =
			(struct subtree){.node = expansion->path[depth], .caller = caller};
		caller = (uint32_t)expansion->subtree_count++;
		expansion->places[expansion->path[depth]].base = expansion->expanded;
		expansion->places[expansion->path[depth]].subtree = caller;
	}
	expansion->subtrees[caller].value += expansion_weight(expansion, stack);
	expansion->subtrees[caller].samples += stack->samples;
	expansion->subtrees[caller].squares += expansion_squares(expansion, stack);
	return true;
}

static void sum_subtrees(struct expansion *expansion)
{
	struct subtree *subtrees = expansion->subtrees;

	for (size_t i = expansion->subtree_count; i-- > 1;) {
		struct subtree *caller = &subtrees[subtrees[i].caller];

		caller->value += subtrees[i].value;
		caller->samples += subtrees[i].samples;
		caller->squares += subtrees[i].squares;
		subtrees[i].next_callee = caller->first_callee;
		caller->first_callee = (uint32_t)i;
	}
}

static bool make_subtrees(struct expansion *expansion, const struct run *run, const struct run *end)
{
	const struct result_stack *stacks = expansion->stacks->result->stacks;

	expansion->expanded++;
	expansion->subtree_count = expansion->member_count = 1; /* 0: the base; none */
	if (!ARRAY_RESERVE(expansion->subtrees, 1, expansion->subtree_room) ||
	    !ARRAY_RESERVE(expansion->members, 1, expansion->member_room))
		return no_memory(expansion);
	expansion->subtrees[0] = (struct subtree){0};
	for (; run < end; run++)
		for (size_t i = run->first; i < run->end; i++)
			if (!expansion->pass->goes_on(expansion->pass->context) ||
			    (expansion_shows(expansion, &stacks[i]) &&
			     !(expansion->flags[stacks[i].node] & NAME_IDLE) &&
			     !add_subtrees(expansion, &stacks[i])))
				return false;
	sum_subtrees(expansion);
	return true;
}

/* --- how heavy a node must be to stay --- */

/* Twice as many as the cut leaves are looked at together. */
static void count_weight(struct expansion *expansion, uint64_t weight)
{
	size_t most = expansion->pass->limit.max_nodes;
	uint64_t nth;

	if (!most)
		return;
	expansion->weights[expansion->weight_count++] = weight;
	if (expansion->weight_count < 2 * most)
		return;
	nth = flame_tree_nth_total(expansion->weights, 2 * most, most);
	expansion->least = nth > expansion->least ? nth : expansion->least;
	expansion->weight_count = 0;
	for (size_t i = 0; i < 2 * most; i++)
		if (expansion->weights[i] > expansion->least)
			expansion->weights[expansion->weight_count++] = expansion->weights[i];
	while (expansion->weight_count < most)
		expansion->weights[expansion->weight_count++] = expansion->least;
}

static bool is_before(const struct frontier_node *a, const struct frontier_node *b)
{
	return a->value != b->value ? a->value > b->value : a->flame < b->flame;
}

static bool push_frontier(struct expansion *expansion, struct frontier_node node)
{
	size_t at = expansion->frontier_count++;

	if (!ARRAY_GROW(expansion->frontier, at, expansion->frontier_room))
		return no_memory(expansion);
	for (; at && is_before(&node, &expansion->frontier[(at - 1) / 2]); at = (at - 1) / 2)
		expansion->frontier[at] = expansion->frontier[(at - 1) / 2];
	expansion->frontier[at] = node;
	return true;
}

static struct frontier_node pop_frontier(struct expansion *expansion)
{
	struct frontier_node top = expansion->frontier[0],
			     last = expansion->frontier[--expansion->frontier_count];
	size_t at = 0, next;

	while ((next = 2 * at + 1) < expansion->frontier_count) {
		if (next + 1 < expansion->frontier_count &&
		    is_before(&expansion->frontier[next + 1], &expansion->frontier[next]))
			next++;
		if (is_before(&last, &expansion->frontier[next]))
			break;
		expansion->frontier[at] = expansion->frontier[next];
		at = next;
	}
	expansion->frontier[at] = last;
	return top;
}

/* --- opening a node --- */

static bool same_kind(const struct flame_frame *a, const struct flame_frame *b)
{
	return a->kind == b->kind && frame_same_function(a, b);
}

/* 0: no memory. */
static uint32_t kind_of(struct expansion *expansion, uint32_t number)
{
	const struct flame_frame *frames = expansion->stacks->names.frames,
				 *frame = &frames[number];
	uint32_t *known = &expansion->kind_of[number], probe, at;
	uint64_t hash;

	if (*known)
		return *known;
	hash = hash_word(frame_function_hash(frame), frame->kind);
	for (at = hash_table_first(&expansion->kind_index, hash, &probe); at != HASH_TABLE_NONE;
	     at = hash_table_next(&expansion->kind_index, hash, &probe))
		if (same_kind(&frames[expansion->kinds[at]], frame))
			return *known = at;
	if (!hash_table_add(&expansion->kind_index, hash, expansion->kind_count + 1))
		return 0;
	expansion->kinds[++expansion->kind_count] = number;
	return *known = expansion->kind_count;
}

static bool add_callee(struct expansion *expansion, uint32_t subtree, uint32_t frame)
{
	const struct flame_frame *frames = expansion->stacks->names.frames;
	uint32_t kind = kind_of(expansion, frame);
	struct callee *callee;

	if (!kind ||
	    !ARRAY_GROW(expansion->callees, expansion->callee_count, expansion->callee_room) ||
	    !ARRAY_GROW(expansion->members, expansion->member_count, expansion->member_room))
		return no_memory(expansion);
	if (expansion->met[kind].expanded != expansion->expanded) {
		expansion->met[kind].expanded = expansion->expanded;
		expansion->met[kind].callee = (uint32_t)expansion->callee_count;
		expansion->callees[expansion->callee_count++] = (struct callee){.frame = frame};
	}
	callee = &expansion->callees[expansion->met[kind].callee];
	if (frame_line_changes(&callee->line_votes, expansion->subtrees[subtree].value,
			       callee->frame == frame ||
				       frames[callee->frame].line == frames[frame].line))
		callee->frame = frame;
	callee->value += expansion->subtrees[subtree].value;
	callee->samples += expansion->subtrees[subtree].samples;
	callee->squares += expansion->subtrees[subtree].squares;
	expansion->members[expansion->member_count] = (struct member){subtree, frame + 1,
								      callee->first_member};
	callee->first_member = (uint32_t)expansion->member_count++;
	return true;
}

/* The next frame of a subtree that is shown, from that one on; UINT32_MAX: none. */
static uint32_t next_frame(const struct expansion *expansion, uint32_t subtree, uint32_t frame)
{
	const struct location_frames *names = &expansion->stacks->names;
	const struct result_node *nodes = expansion->stacks->result->nodes;
	const struct named_location *location =
		&names->locations[nodes[expansion->subtrees[subtree].node].location];

	for (; frame < location->first + location->count; frame++)
		if (!(names->flags[frame] & NAME_HIDDEN))
			return frame;
	return UINT32_MAX;
}

static uint32_t first_frame(const struct expansion *expansion, uint32_t subtree)
{
	const struct result_node *nodes = expansion->stacks->result->nodes;

	return next_frame(expansion, subtree,
			  expansion->stacks->names
				  .locations[nodes[expansion->subtrees[subtree].node].location]
				  .first);
}

/* What a subtree calls; what has no frame that is shown is passed through, however deep. */
static bool add_callees(struct expansion *expansion, uint32_t top)
{
	const struct subtree *subtrees = expansion->subtrees;
	uint32_t at = subtrees[top].first_callee;

	while (at) {
		uint32_t frame = first_frame(expansion, at);

		if (frame != UINT32_MAX && !add_callee(expansion, at, frame))
			return false;
		if (frame == UINT32_MAX && subtrees[at].first_callee) {
			at = subtrees[at].first_callee;
			continue;
		}
		while (!subtrees[at].next_callee && subtrees[at].caller != top)
			at = subtrees[at].caller;
		at = subtrees[at].next_callee;
	}
	return true;
}

static bool add_member(struct expansion *expansion, const struct member *member)
{
	uint32_t frame = member->subtree ? next_frame(expansion, member->subtree, member->frame)
					 : UINT32_MAX;

	return frame == UINT32_MAX ? add_callees(expansion, member->subtree)
				   : add_callee(expansion, member->subtree, frame);
}

static bool put_callee(struct expansion *expansion, uint32_t flame, const struct callee *callee)
{
	const struct flame_frame *frame = &expansion->stacks->names.frames[callee->frame];
	uint32_t at;

	if (expansion->is_full || (expansion->pass->limit.max_nodes &&
				   callee->value <= expansion->least && expansion->least))
		return expansion->pass->tree->nodes[flame].has_more = true; /* the cut takes it */
	at = flame_tree_put(expansion->pass->tree, flame, frame, callee->value, callee->samples,
			    callee->squares);
	if (!at) {
		expansion->is_full = true;
		return expansion->pass->tree->nodes[flame].has_more = true;
	}
	count_weight(expansion, callee->value);
	return push_frontier(expansion,
			     (struct frontier_node){callee->value, at, callee->first_member});
}

/* Which callees the cut takes does not depend on the order in which the stacks came. */
static int compare_callees(const void *left, const void *right, void *context)
{
	const struct callee *a = left, *b = right;
	const struct flame_frame *frames = context;
	uint64_t a_hash, b_hash;

	if (a->value != b->value)
		return a->value < b->value ? 1 : -1;
	a_hash = frame_names_hash(&frames[a->frame]);
	b_hash = frame_names_hash(&frames[b->frame]);
	if (a_hash != b_hash)
		return a_hash < b_hash ? -1 : 1;
	return a->frame < b->frame ? -1 : a->frame > b->frame;
}

static bool expand_node(struct expansion *expansion, const struct frontier_node *top)
{
	uint32_t idle = expansion->pass->tree->nodes[top->flame].first_child;
	uint64_t value = 0, samples = 0;
	double squares = 0;
	struct flame_node *node;

	expansion->expanded++;
	expansion->callee_count = 0;
	if (!expansion->pass->goes_on(expansion->pass->context))
		return false;
	if (!top->first_member && !add_callees(expansion, 0))
		return false;
	for (uint32_t i = top->first_member; i; i = expansion->members[i].next) {
		const struct member member = expansion->members[i];

		if (!add_member(expansion, &member))
			return false;
	}
	if (expansion->pass->limit.max_nodes)
		qsort_r(expansion->callees, expansion->callee_count, sizeof(*expansion->callees),
			compare_callees, expansion->stacks->names.frames);
	for (size_t i = 0; i < expansion->callee_count; i++) {
		value += expansion->callees[i].value;
		samples += expansion->callees[i].samples;
		squares += expansion->callees[i].squares;
		if (!put_callee(expansion, top->flame, &expansion->callees[i]))
			return false;
	}
	node = &expansion->pass->tree->nodes[top->flame];
	if (idle) { /* a base's, which was there before */
		value += expansion->pass->tree->nodes[idle].total;
		samples += expansion->pass->tree->nodes[idle].total_samples;
		squares += expansion->pass->tree->nodes[idle].total_squares;
	}
	node->self = node->total - value;
	node->self_samples = node->total_samples - samples;
	node->self_squares = node->self ? node->total_squares - squares : 0;
	return true;
}

static bool expand_base(struct expansion *expansion, const struct run *run, const struct run *end)
{
	uint32_t base = run->base;

	if (!make_subtrees(expansion, run, end))
		return false;
	expansion->frontier_count = 0;
	if (!push_frontier(expansion,
			   (struct frontier_node){expansion->pass->tree->nodes[base].total, base,
						  0})) /* idle too */
		return false;
	while (expansion->frontier_count) {
		struct frontier_node node = pop_frontier(expansion);

		if (node.value < expansion->least)
			break;
		if (!expand_node(expansion, &node))
			return false;
	}
	return true;
}

static bool expand_all(struct expansion *expansion)
{
	struct flame_tree *tree = expansion->pass->tree;
	const struct run *runs, *end;
	uint64_t least;

	if (!expansion_look(expansion) || !expansion_find_runs(expansion))
		return false;
	least = flame_limit_least(expansion->pass->limit, tree->nodes[0].total);
	expansion->least = least ? least - 1 : 0; /* which is cut itself */
	for (size_t i = 0; i < tree->count; i++)
		count_weight(expansion, tree->nodes[i].total);
	for (runs = expansion->runs; runs < expansion->runs + expansion->run_count; runs = end) {
		for (end = runs + 1;
		     end < expansion->runs + expansion->run_count && end->base == runs->base;)
			end++;
		if (!expand_base(expansion, runs, end))
			return false;
	}
	return true;
}

/* --- memory --- */

static uint32_t deepest(const struct samples_result *result)
{
	uint32_t depth = 0;

	for (size_t i = 0; i < result->stack_count; i++)
		if (result->stacks[i].depth > depth)
			depth = result->stacks[i].depth;
	return depth;
}

static bool make_room(struct expansion *expansion)
{
	const struct samples_result *result = expansion->stacks->result;
	size_t nodes = (size_t)result->node_count + 1;
	size_t frames = expansion->stacks->names.count + 2;

	hash_table_init(&expansion->kind_index, UINT32_MAX >> 1);
	expansion->flags = calloc(nodes, 1);
	expansion->matched = calloc(nodes, sizeof(*expansion->matched));
	expansion->places = calloc(nodes, sizeof(*expansion->places));
	expansion->path = calloc((size_t)deepest(result) + 1, sizeof(*expansion->path));
	expansion->kind_of = calloc(frames, sizeof(*expansion->kind_of));
	expansion->kinds = calloc(frames, sizeof(*expansion->kinds));
	expansion->met = calloc(frames, sizeof(*expansion->met));
	expansion->weights = calloc(2 * expansion->pass->limit.max_nodes + 1,
				    sizeof(*expansion->weights));
	return (expansion->flags && expansion->matched && expansion->places && expansion->path &&
		expansion->kind_of && expansion->kinds && expansion->met && expansion->weights) ||
	       no_memory(expansion);
}

static void release(struct expansion *expansion)
{
	hash_table_release(&expansion->kind_index);
	free(expansion->flags);
	free(expansion->matched);
	free(expansion->places);
	free(expansion->path);
	free(expansion->kind_of);
	free(expansion->kinds);
	free(expansion->met);
	free(expansion->weights);
	free(expansion->runs);
	free(expansion->subtrees);
	free(expansion->members);
	free(expansion->callees);
	free(expansion->frontier);
}

bool tree_expand(struct named_stacks *stacks, const struct tree_pass *pass,
		 struct stack_totals *totals, struct error *err)
{
	struct expansion expansion = {.stacks = stacks, .pass = pass, .totals = totals, .err = err};
	bool ok = make_room(&expansion) && expand_all(&expansion);

	release(&expansion);
	return ok;
}
