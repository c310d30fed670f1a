/* SPDX-License-Identifier: Apache-2.0 */
/* What tree_expansion.c and expansion_runs.c share. Of this folder only. */
#ifndef SYMBOL_SERVER_NAMING_EXPANSION_STATE_H
#define SYMBOL_SERVER_NAMING_EXPANSION_STATE_H

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
	uint32_t frame, first_member; /* frame: of the line that most of it is at */
	uint64_t value, samples, line_votes;
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

/* What each node of the store's tree says of the stacks that end there. False: it was cancelled. */
bool expansion_look(struct expansion *expansion);
bool expansion_shows(const struct expansion *expansion, const struct result_stack *stack);
/* Samples or values, as the pass has it. */
uint64_t expansion_weight(const struct expansion *expansion, const struct result_stack *stack);
/* What a stack adds to the square of the sampling error (sampling_error.h). */
double expansion_squares(const struct expansion *expansion, const struct result_stack *stack);
/* Counts what is shown, makes the tree's nodes of groups, and lists the runs below them, the
 * heaviest base first. False: cancelled, or no room. */
bool expansion_find_runs(struct expansion *expansion);

#endif
