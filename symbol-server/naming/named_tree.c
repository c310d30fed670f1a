/* SPDX-License-Identifier: Apache-2.0 */
/* The flame graph's tree out of the store's tree of stacks, the heaviest nodes first: of millions
 * of nodes a cut keeps few, and what is below the others is in their totals already, so that it is
 * neither named apart nor stored. */
#include <stdlib.h>
#include <string.h>

#include "symbol-server/flamegraph/sampling_error.h"
#include "symbol-server/naming/idle_waits.h"
#include "symbol-server/naming/named_nodes.h"

enum { NODE_UNRESOLVED = 16, NODE_INCOMPLETE = 32 }; /* beside NAME_* */
enum { NOT_BELOW_ROOT = UINT16_MAX };

struct run { /* stacks of one series and thread; of those that are shown */
	size_t first, end;
	uint32_t base; /* the tree's node of its groups */
};

struct branch { /* a node of the store's tree with what the runs of one base have below it */
	uint32_t node, first_callee, next_callee;
	uint32_t caller;
	uint64_t value, samples;
	double squares;
};

struct member { /* of a node of the flame graph: a branch, whose frames before that one are above */
	uint32_t branch, frame;
	uint32_t next; /* 0: none */
};

struct callee { /* of the node that is being opened */
	uint32_t frame, first_member;
	uint64_t value, samples;
	double squares;
};

struct bud { /* a node of the flame graph that is not opened yet */
	uint64_t value;
	uint32_t flame, first_member;
};

struct planting {
	struct named_stacks *stacks;
	const struct tree_pass *pass;
	struct stack_totals *totals;
	struct error *err;
	uint8_t *flags;    /* of a node and its callers */
	uint16_t *matched; /* how many frames of view->root the way to the node has */
	struct run *runs;
	size_t run_count, run_room;
	struct {
		uint32_t base, branch; /* branch: the node's, known for that base */
	} * places;
	uint32_t *path;
	struct branch *branches;
	size_t branch_count, branch_room;
	struct member *members;
	size_t member_count, member_room;
	struct callee *callees;
	size_t callee_count, callee_room;
	struct bud *buds; /* a heap, the heaviest on top */
	size_t bud_count, bud_room;
	/* Frames that are the same node below one caller have the same kind. */
	uint32_t *kind_of; /* by frame; 0: not known yet */
	uint32_t *kinds;   /* kind → its first frame */
	uint32_t kind_count;
	struct hash_table kind_index;
	struct {
		uint32_t opened, callee;
	} * met; /* by kind */
	uint32_t opened;
	/* Once there are as many nodes as the cut leaves, the least of the heaviest ones; what
	 * weighs no more is cut. */
	uint64_t *weights;
	size_t weight_count;
	uint64_t least;
	bool is_full; /* no room for more nodes: what is below those there are is cut */
};

static bool no_memory(struct planting *planting)
{
	error_set(planting->err, ERROR_MEMORY, "out of memory; try again later");
	return false;
}

static bool grow(void **array, size_t count, size_t *room, size_t size)
{
	size_t larger = *room ? *room * 2 : 1024;
	void *copy;

	if (count < *room)
		return true;
	copy = realloc(*array, larger * size);
	if (!copy)
		return false;
	*array = copy;
	*room = larger;
	return true;
}

/* --- what is shown --- */

static uint16_t match_root(const struct planting *planting, uint16_t matched,
			   const struct flame_frame *frame)
{
	const struct stack_view *view = planting->stacks->view;

	if (matched == NOT_BELOW_ROOT || matched == view->root_depth)
		return matched;
	return frame_is_called(frame, view->root[matched]) ? (uint16_t)(matched + 1)
							   : NOT_BELOW_ROOT;
}

static void look_at_names(struct planting *planting, uint32_t node,
			  const struct named_location *location)
{
	const struct location_names *names = &planting->stacks->names;
	uint16_t matched = planting->matched[node];

	for (uint32_t i = location->first; i < location->first + location->count; i++) {
		planting->flags[node] |= names->flags[i];
		if (!(names->flags[i] & NAME_HIDDEN))
			matched = match_root(planting, matched, &names->frames[i]);
	}
	planting->matched[node] = matched;
}

static bool look_at_nodes(struct planting *planting)
{
	const struct stack_view *view = planting->stacks->view;
	const struct samples_result *result = planting->stacks->result;
	bool names_matter = view->focus || view->ignore || view->build || view->root_depth ||
			    view->folds_idle;
	unsigned groups = view->group_count;

	planting->matched[0] = (uint16_t)(groups < view->root_depth ? groups : view->root_depth);
	for (uint32_t i = 1; i < result->node_count; i++) {
		const struct result_node *node = &result->nodes[i];
		const struct named_location *location =
			&planting->stacks->names.locations[node->location];

		if (!planting->pass->goes_on(planting->pass->context))
			return false;
		planting->flags[i] = planting->flags[node->caller] |
				     (location->is_unresolved ? NODE_UNRESOLVED : 0) |
				     (location->is_incomplete ? NODE_INCOMPLETE : 0);
		planting->matched[i] = planting->matched[node->caller];
		if (names_matter)
			look_at_names(planting, i, location);
	}
	return true;
}

/* Of an idle stack the way below its groups is one frame, whatever was on it. */
static bool is_at_root(const struct planting *planting, uint32_t node)
{
	const struct stack_view *view = planting->stacks->view;
	unsigned groups = view->group_count;

	if (!(planting->flags[node] & NAME_IDLE) || view->root_depth <= groups)
		return planting->matched[node] == view->root_depth ||
		       (planting->flags[node] & NAME_IDLE);
	return view->root_depth == groups + 1 && !strcmp(view->root[groups], IDLE_FRAME);
}

static bool is_shown(const struct planting *planting, const struct result_stack *stack)
{
	const struct stack_view *view = planting->stacks->view;
	uint8_t flags = planting->flags[stack->node];

	return (!view->focus || flags & NAME_FOCUSED) && !(view->ignore && flags & NAME_IGNORED) &&
	       (!view->build || flags & NAME_OF_BUILD) && is_at_root(planting, stack->node);
}

/* --- groups --- */

static bool is_below_root(const struct planting *planting, const struct result_stack *stack)
{
	const struct stack_view *view = planting->stacks->view;

	for (unsigned i = 0; i < view->group_count && i < view->root_depth; i++)
		if (strcmp(named_stacks_group(planting->stacks, stack, i).name, view->root[i]))
			return false;
	return true;
}

/* False: the tree is full. */
static bool find_base(const struct planting *planting, const struct result_stack *stack,
		      uint32_t *base)
{
	*base = 0;
	for (unsigned i = 0; i < planting->stacks->view->group_count; i++) {
		struct flame_frame frame = named_stacks_group(planting->stacks, stack, i);

		*base = flame_tree_child(planting->pass->tree, *base, &frame);
		if (!*base)
			return false;
	}
	return true;
}

static bool count_stack(struct planting *planting, const struct result_stack *stack)
{
	struct stack_totals *totals = planting->totals;
	uint8_t flags = planting->flags[stack->node];

	totals->value += stack->value;
	totals->samples += stack->samples;
	totals->unsymbolized += flags & NODE_UNRESOLVED ? stack->samples : 0;
	totals->idle_value += flags & NAME_IDLE ? stack->value : 0;
	totals->idle_samples += flags & NAME_IDLE ? stack->samples : 0;
	named_stacks_count_nameless(planting->stacks, stack, totals);
	if (!(flags & NODE_INCOMPLETE))
		return true;
	totals->unwind_incomplete += stack->samples;
	return named_stacks_count_incomplete(planting->stacks, stack) || no_memory(planting);
}

static uint64_t weight_of(const struct planting *planting, const struct result_stack *stack)
{
	return planting->pass->by_samples ? stack->samples : stack->value;
}

static double squares_of(const struct planting *planting, const struct result_stack *stack)
{
	return sampling_squares(weight_of(planting, stack), stack->samples,
				&planting->pass->tree->sampling);
}

struct amount {
	uint64_t value, samples;
	double squares;
};

static void amount_add(const struct planting *planting, const struct result_stack *stack,
		       struct amount *amount)
{
	amount->value += weight_of(planting, stack);
	amount->samples += stack->samples;
	amount->squares += squares_of(planting, stack);
}

static void add_self(struct flame_node *node, const struct amount *amount)
{
	node->self += amount->value;
	node->self_samples += amount->samples;
	node->self_squares += amount->squares;
}

static bool add_idle(struct planting *planting, uint32_t base, const struct amount *idle)
{
	struct flame_tree *tree = planting->pass->tree;
	uint32_t at = flame_tree_child(tree, base, &named_stacks_idle);

	if (at)
		add_self(&tree->nodes[at], idle);
	return at;
}

/* The base gets what its stacks have; bases are few, whole runs of stacks share one. */
static bool count_run(struct planting *planting, size_t first, size_t end)
{
	const struct result_stack *stacks = planting->stacks->result->stacks;
	struct run run = {first, end, 0};
	struct amount awake = {0}, idle = {0};
	bool is_met = false;

	if (!is_below_root(planting, &stacks[first]))
		return true;
	for (size_t i = first; i < end; i++) {
		if (!planting->pass->goes_on(planting->pass->context))
			return false;
		if (!is_shown(planting, &stacks[i]))
			continue;
		is_met = true;
		amount_add(planting, &stacks[i],
			   planting->flags[stacks[i].node] & NAME_IDLE ? &idle : &awake);
		if (!count_stack(planting, &stacks[i]))
			return false;
	}
	if (!is_met)
		return true;
	if (!find_base(planting, &stacks[first], &run.base))
		return false;
	if (idle.samples && !add_idle(planting, run.base, &idle))
		return false;
	add_self(&planting->pass->tree->nodes[run.base], &awake);
	if (!grow((void **)&planting->runs, planting->run_count, &planting->run_room, sizeof(run)))
		return no_memory(planting);
	planting->runs[planting->run_count++] = run;
	return true;
}

/* The heaviest base first, so that little of the lighter ones is opened in vain. */
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

static bool find_runs(struct planting *planting)
{
	const struct samples_result *result = planting->stacks->result;
	const struct result_stack *stacks = result->stacks;

	for (size_t end, first = 0; first < result->stack_count; first = end) {
		for (end = first + 1; end < result->stack_count &&
				      stacks[end].series == stacks[first].series &&
				      stacks[end].thread == stacks[first].thread;)
			end++;
		if (!count_run(planting, first, end))
			return false;
	}
	flame_tree_sum(planting->pass->tree);
	if (planting->run_count)
		qsort_r(planting->runs, planting->run_count, sizeof(*planting->runs), compare_runs,
			planting->pass->tree->nodes);
	return true;
}

/* --- the branches of a base --- */

/* Callers come before what they call. */
static bool add_branches(struct planting *planting, const struct result_stack *stack)
{
	const struct result_node *nodes = planting->stacks->result->nodes;
	uint32_t at = stack->node, depth = 0, caller;

	while (at && planting->places[at].base != planting->opened) {
		planting->path[depth++] = at;
		at = nodes[at].caller;
	}
	caller = at ? planting->places[at].branch : 0;
	while (depth--) {
		if (!grow((void **)&planting->branches, planting->branch_count,
			  &planting->branch_room, sizeof(*planting->branches)))
			return no_memory(planting);
		planting->branches[planting->branch_count] =
			(struct branch){.node = planting->path[depth], .caller = caller};
		caller = (uint32_t)planting->branch_count++;
		planting->places[planting->path[depth]].base = planting->opened;
		planting->places[planting->path[depth]].branch = caller;
	}
	planting->branches[caller].value += weight_of(planting, stack);
	planting->branches[caller].samples += stack->samples;
	planting->branches[caller].squares += squares_of(planting, stack);
	return true;
}

static void sum_branches(struct planting *planting)
{
	struct branch *branches = planting->branches;

	for (size_t i = planting->branch_count; i-- > 1;) {
		struct branch *caller = &branches[branches[i].caller];

		caller->value += branches[i].value;
		caller->samples += branches[i].samples;
		caller->squares += branches[i].squares;
		branches[i].next_callee = caller->first_callee;
		caller->first_callee = (uint32_t)i;
	}
}

static bool make_branches(struct planting *planting, const struct run *run, const struct run *end)
{
	const struct result_stack *stacks = planting->stacks->result->stacks;

	planting->opened++;
	planting->branch_count = planting->member_count = 1; /* 0: the base; none */
	if (!grow((void **)&planting->branches, 0, &planting->branch_room,
		  sizeof(*planting->branches)) ||
	    !grow((void **)&planting->members, 0, &planting->member_room,
		  sizeof(*planting->members)))
		return no_memory(planting);
	planting->branches[0] = (struct branch){0};
	for (; run < end; run++)
		for (size_t i = run->first; i < run->end; i++)
			if (!planting->pass->goes_on(planting->pass->context) ||
			    (is_shown(planting, &stacks[i]) &&
			     !(planting->flags[stacks[i].node] & NAME_IDLE) &&
			     !add_branches(planting, &stacks[i])))
				return false;
	sum_branches(planting);
	return true;
}

/* --- how heavy a node must be to stay --- */

/* Twice as many as the cut leaves are looked at together. */
static void count_weight(struct planting *planting, uint64_t weight)
{
	size_t most = planting->pass->limit.max_nodes;
	uint64_t nth;

	if (!most)
		return;
	planting->weights[planting->weight_count++] = weight;
	if (planting->weight_count < 2 * most)
		return;
	nth = flame_tree_nth_total(planting->weights, 2 * most, most);
	planting->least = nth > planting->least ? nth : planting->least;
	planting->weight_count = 0;
	for (size_t i = 0; i < 2 * most; i++)
		if (planting->weights[i] > planting->least)
			planting->weights[planting->weight_count++] = planting->weights[i];
	while (planting->weight_count < most)
		planting->weights[planting->weight_count++] = planting->least;
}

static bool is_before(const struct bud *a, const struct bud *b)
{
	return a->value != b->value ? a->value > b->value : a->flame < b->flame;
}

static bool push_bud(struct planting *planting, struct bud bud)
{
	size_t at = planting->bud_count++;

	if (!grow((void **)&planting->buds, at, &planting->bud_room, sizeof(bud)))
		return no_memory(planting);
	for (; at && is_before(&bud, &planting->buds[(at - 1) / 2]); at = (at - 1) / 2)
		planting->buds[at] = planting->buds[(at - 1) / 2];
	planting->buds[at] = bud;
	return true;
}

static struct bud pop_bud(struct planting *planting)
{
	struct bud top = planting->buds[0], last = planting->buds[--planting->bud_count];
	size_t at = 0, next;

	while ((next = 2 * at + 1) < planting->bud_count) {
		if (next + 1 < planting->bud_count &&
		    is_before(&planting->buds[next + 1], &planting->buds[next]))
			next++;
		if (is_before(&last, &planting->buds[next]))
			break;
		planting->buds[at] = planting->buds[next];
		at = next;
	}
	planting->buds[at] = last;
	return top;
}

/* --- opening a node --- */

static bool same_kind(const struct flame_frame *a, const struct flame_frame *b)
{
	return a->kind == b->kind && frame_same_function(a, b);
}

/* 0: no memory. */
static uint32_t kind_of(struct planting *planting, uint32_t number)
{
	const struct flame_frame *frames = planting->stacks->names.frames, *frame = &frames[number];
	uint32_t *known = &planting->kind_of[number], probe, at;
	uint64_t hash;

	if (*known)
		return *known;
	hash = hash_word(frame_function_hash(frame), frame->kind);
	for (at = hash_table_first(&planting->kind_index, hash, &probe); at != HASH_TABLE_NONE;
	     at = hash_table_next(&planting->kind_index, hash, &probe))
		if (same_kind(&frames[planting->kinds[at]], frame))
			return *known = at;
	if (!hash_table_add(&planting->kind_index, hash, planting->kind_count + 1))
		return 0;
	planting->kinds[++planting->kind_count] = number;
	return *known = planting->kind_count;
}

static bool add_callee(struct planting *planting, uint32_t branch, uint32_t frame)
{
	uint32_t kind = kind_of(planting, frame);
	struct callee *callee;

	if (!kind ||
	    !grow((void **)&planting->callees, planting->callee_count, &planting->callee_room,
		  sizeof(*callee)) ||
	    !grow((void **)&planting->members, planting->member_count, &planting->member_room,
		  sizeof(*planting->members)))
		return no_memory(planting);
	if (planting->met[kind].opened != planting->opened) {
		planting->met[kind].opened = planting->opened;
		planting->met[kind].callee = (uint32_t)planting->callee_count;
		planting->callees[planting->callee_count++] = (struct callee){.frame = frame};
	}
	callee = &planting->callees[planting->met[kind].callee];
	callee->value += planting->branches[branch].value;
	callee->samples += planting->branches[branch].samples;
	callee->squares += planting->branches[branch].squares;
	planting->members[planting->member_count] = (struct member){branch, frame + 1,
								    callee->first_member};
	callee->first_member = (uint32_t)planting->member_count++;
	return true;
}

/* The next frame of a branch that is shown, from that one on; UINT32_MAX: none. */
static uint32_t next_frame(const struct planting *planting, uint32_t branch, uint32_t frame)
{
	const struct location_names *names = &planting->stacks->names;
	const struct result_node *nodes = planting->stacks->result->nodes;
	const struct named_location *location =
		&names->locations[nodes[planting->branches[branch].node].location];

	for (; frame < location->first + location->count; frame++)
		if (!(names->flags[frame] & NAME_HIDDEN))
			return frame;
	return UINT32_MAX;
}

static uint32_t first_frame(const struct planting *planting, uint32_t branch)
{
	const struct result_node *nodes = planting->stacks->result->nodes;

	return next_frame(
		planting, branch,
		planting->stacks->names.locations[nodes[planting->branches[branch].node].location]
			.first);
}

/* What a branch calls; what has no frame that is shown is passed through, however deep. */
static bool add_callees(struct planting *planting, uint32_t top)
{
	const struct branch *branches = planting->branches;
	uint32_t at = branches[top].first_callee;

	while (at) {
		uint32_t frame = first_frame(planting, at);

		if (frame != UINT32_MAX && !add_callee(planting, at, frame))
			return false;
		if (frame == UINT32_MAX && branches[at].first_callee) {
			at = branches[at].first_callee;
			continue;
		}
		while (!branches[at].next_callee && branches[at].caller != top)
			at = branches[at].caller;
		at = branches[at].next_callee;
	}
	return true;
}

static bool add_member(struct planting *planting, const struct member *member)
{
	uint32_t frame = member->branch ? next_frame(planting, member->branch, member->frame)
					: UINT32_MAX;

	return frame == UINT32_MAX ? add_callees(planting, member->branch)
				   : add_callee(planting, member->branch, frame);
}

static bool put_callee(struct planting *planting, uint32_t flame, const struct callee *callee)
{
	const struct flame_frame *frame = &planting->stacks->names.frames[callee->frame];
	uint32_t at;

	if (planting->is_full || (planting->pass->limit.max_nodes &&
				  callee->value <= planting->least && planting->least))
		return planting->pass->tree->nodes[flame].has_more = true; /* the cut takes it */
	at = flame_tree_put(planting->pass->tree, flame, frame, callee->value, callee->samples,
			    callee->squares);
	if (!at) {
		planting->is_full = true;
		return planting->pass->tree->nodes[flame].has_more = true;
	}
	count_weight(planting, callee->value);
	return push_bud(planting, (struct bud){callee->value, at, callee->first_member});
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

static bool open_bud(struct planting *planting, const struct bud *bud)
{
	uint32_t idle = planting->pass->tree->nodes[bud->flame].first_child;
	uint64_t value = 0, samples = 0;
	double squares = 0;
	struct flame_node *node;

	planting->opened++;
	planting->callee_count = 0;
	if (!planting->pass->goes_on(planting->pass->context))
		return false;
	if (!bud->first_member && !add_callees(planting, 0))
		return false;
	for (uint32_t i = bud->first_member; i; i = planting->members[i].next) {
		const struct member member = planting->members[i];

		if (!add_member(planting, &member))
			return false;
	}
	if (planting->pass->limit.max_nodes)
		qsort_r(planting->callees, planting->callee_count, sizeof(*planting->callees),
			compare_callees, planting->stacks->names.frames);
	for (size_t i = 0; i < planting->callee_count; i++) {
		value += planting->callees[i].value;
		samples += planting->callees[i].samples;
		squares += planting->callees[i].squares;
		if (!put_callee(planting, bud->flame, &planting->callees[i]))
			return false;
	}
	node = &planting->pass->tree->nodes[bud->flame];
	if (idle) { /* a base's, which was there before */
		value += planting->pass->tree->nodes[idle].total;
		samples += planting->pass->tree->nodes[idle].total_samples;
		squares += planting->pass->tree->nodes[idle].total_squares;
	}
	node->self = node->total - value;
	node->self_samples = node->total_samples - samples;
	node->self_squares = node->self ? node->total_squares - squares : 0;
	return true;
}

static bool plant_base(struct planting *planting, const struct run *run, const struct run *end)
{
	uint32_t base = run->base;

	if (!make_branches(planting, run, end))
		return false;
	planting->bud_count = 0;
	if (!push_bud(planting, (struct bud){planting->pass->tree->nodes[base].total, base,
					     0})) /* idle too */
		return false;
	while (planting->bud_count) {
		struct bud bud = pop_bud(planting);

		if (bud.value < planting->least)
			break;
		if (!open_bud(planting, &bud))
			return false;
	}
	return true;
}

static bool plant_all(struct planting *planting)
{
	struct flame_tree *tree = planting->pass->tree;
	const struct run *runs, *end;
	uint64_t least;

	if (!look_at_nodes(planting) || !find_runs(planting))
		return false;
	least = flame_limit_least(planting->pass->limit, tree->nodes[0].total);
	planting->least = least ? least - 1 : 0; /* which is cut itself */
	for (size_t i = 0; i < tree->count; i++)
		count_weight(planting, tree->nodes[i].total);
	for (runs = planting->runs; runs < planting->runs + planting->run_count; runs = end) {
		for (end = runs + 1;
		     end < planting->runs + planting->run_count && end->base == runs->base;)
			end++;
		if (!plant_base(planting, runs, end))
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

static bool make_room(struct planting *planting)
{
	const struct samples_result *result = planting->stacks->result;
	size_t nodes = (size_t)result->node_count + 1;
	size_t frames = planting->stacks->names.count + 2;

	hash_table_init(&planting->kind_index, UINT32_MAX >> 1);
	planting->flags = calloc(nodes, 1);
	planting->matched = calloc(nodes, sizeof(*planting->matched));
	planting->places = calloc(nodes, sizeof(*planting->places));
	planting->path = calloc((size_t)deepest(result) + 1, sizeof(*planting->path));
	planting->kind_of = calloc(frames, sizeof(*planting->kind_of));
	planting->kinds = calloc(frames, sizeof(*planting->kinds));
	planting->met = calloc(frames, sizeof(*planting->met));
	planting->weights = calloc(2 * planting->pass->limit.max_nodes + 1,
				   sizeof(*planting->weights));
	return (planting->flags && planting->matched && planting->places && planting->path &&
		planting->kind_of && planting->kinds && planting->met && planting->weights) ||
	       no_memory(planting);
}

static void release(struct planting *planting)
{
	hash_table_release(&planting->kind_index);
	free(planting->flags);
	free(planting->matched);
	free(planting->places);
	free(planting->path);
	free(planting->kind_of);
	free(planting->kinds);
	free(planting->met);
	free(planting->weights);
	free(planting->runs);
	free(planting->branches);
	free(planting->members);
	free(planting->callees);
	free(planting->buds);
}

bool named_nodes_tree(struct named_stacks *stacks, const struct tree_pass *pass,
		      struct stack_totals *totals, struct error *err)
{
	struct planting planting = {.stacks = stacks, .pass = pass, .totals = totals, .err = err};
	bool ok = make_room(&planting) && plant_all(&planting);

	release(&planting);
	return ok;
}
