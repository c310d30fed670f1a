/* SPDX-License-Identifier: Apache-2.0 */
/* Best-first expansion: of all nodes that are known and not expanded the heaviest is next, by a
 * heap: of millions of nodes a cut keeps few, and what is below the others is in their totals
 * already, so that it is neither named apart nor stored. */
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "symbol-server/flamegraph/sampling_error.h"
#include "symbol-server/naming/idle_waits.h"
#include "symbol-server/naming/module_counts.h"
#include "symbol-server/naming/tree_expansion.h"

enum { NODE_UNRESOLVED = 16, NODE_INCOMPLETE = 32 }; /* beside NAME_* */
enum { NOT_BELOW_ROOT = UINT16_MAX };

struct run { /* stacks of one series and thread; of those that are shown */
	size_t first, end;
	uint32_t base; /* the tree's node of its groups */
};

struct subtree { /* a node of the store's tree with what the runs of one base have below it */
	uint32_t node, first_callee, next_callee;
	uint32_t caller;
	uint64_t value, samples;
	double squares;
};

struct member { /* of a node of the flame graph: a subtree, whose frames before that one are above
		 */
	uint32_t subtree, frame;
	uint32_t next; /* 0: none */
};

struct callee { /* of the node that is being expanded */
	uint32_t frame, first_member;
	uint64_t value, samples;
	double squares;
};

struct frontier_node { /* a node of the flame graph that is not expanded yet */
	uint64_t value;
	uint32_t flame, first_member;
};

struct expansion {
	struct named_stacks *stacks;
	const struct tree_pass *pass;
	struct stack_totals *totals;
	struct error *err;
	uint8_t *flags;    /* of a node and its callers */
	uint16_t *matched; /* how many frames of view->root the way to the node has */
	struct run *runs;
	size_t run_count, run_room;
	struct {
		uint32_t base, subtree; /* subtree: the node's, known for that base */
	} * places;
	uint32_t *path;
	struct subtree *subtrees;
	size_t subtree_count, subtree_room;
	struct member *members;
	size_t member_count, member_room;
	struct callee *callees;
	size_t callee_count, callee_room;
	struct frontier_node *frontier; /* a heap, the heaviest on top */
	size_t frontier_count, frontier_room;
	/* Frames that are the same node below one caller have the same kind. */
	uint32_t *kind_of; /* by frame; 0: not known yet */
	uint32_t *kinds;   /* kind → its first frame */
	uint32_t kind_count;
	struct hash_table kind_index;
	struct {
		uint32_t expanded, callee;
	} * met; /* by kind */
	uint32_t expanded;
	/* Once there are as many nodes as the cut leaves, the least of the heaviest ones; what
	 * weighs no more is cut. */
	uint64_t *weights;
	size_t weight_count;
	uint64_t least;
	bool is_full; /* no room for more nodes: what is below those there are is cut */
};

static bool no_memory(struct expansion *expansion)
{
	return error_no_memory(expansion->err);
}

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

static bool look_at_nodes(struct expansion *expansion)
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
		expansion->flags[i] = expansion->flags[node->caller] |
				      (location->is_unresolved ? NODE_UNRESOLVED : 0) |
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

static bool is_shown(const struct expansion *expansion, const struct result_stack *stack)
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
	return named_stacks_count_incomplete(expansion->stacks, stack) || no_memory(expansion);
}

static uint64_t weight_of(const struct expansion *expansion, const struct result_stack *stack)
{
	return expansion->pass->by_samples ? stack->samples : stack->value;
}

static double squares_of(const struct expansion *expansion, const struct result_stack *stack)
{
	return sampling_squares(weight_of(expansion, stack), stack->samples,
				&expansion->pass->tree->sampling);
}

struct amount {
	uint64_t value, samples;
	double squares;
};

static void amount_add(const struct expansion *expansion, const struct result_stack *stack,
		       struct amount *amount)
{
	amount->value += weight_of(expansion, stack);
	amount->samples += stack->samples;
	amount->squares += squares_of(expansion, stack);
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
		if (!is_shown(expansion, &stacks[i]))
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
		return no_memory(expansion);
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

static bool find_runs(struct expansion *expansion)
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
	expansion->subtrees[caller].value += weight_of(expansion, stack);
	expansion->subtrees[caller].samples += stack->samples;
	expansion->subtrees[caller].squares += squares_of(expansion, stack);
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
			    (is_shown(expansion, &stacks[i]) &&
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

	if (!look_at_nodes(expansion) || !find_runs(expansion))
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
