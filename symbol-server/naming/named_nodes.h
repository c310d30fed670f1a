/* SPDX-License-Identifier: Apache-2.0 */
/* Named stacks along the store's tree of stacks: every caller that stacks share is looked at once.
 * And what named stacks are, for those who work on them. Of this folder only. */
#ifndef SYMBOL_SERVER_NAMING_NAMED_NODES_H
#define SYMBOL_SERVER_NAMING_NAMED_NODES_H

#include "symbol-server/naming/incomplete_counts.h"
#include "symbol-server/naming/location_names.h"
#include "symbol-server/naming/named_stacks.h"

struct named_stacks {
	const struct samples_result *result;
	const struct stack_view *view;
	struct location_names names;
	struct flame_frame *group_frames; /* group_count for each series */
	uint64_t *unsymbolized, *samples; /* by module */
	uint64_t *nameless;               /* value by module */
	bool *nameless_met;               /* modules, of the stacks that are being shown */
	struct incomplete_counts incomplete;
	const struct result_stack *current;
	struct flame_frame *frames; /* the stack at hand */
	size_t frame_room;
	struct result_stack listed; /* the stack at hand, where nodes say its locations */
	uint32_t *locations;
	uint32_t location_room;
};

struct tree_pass {
	struct flame_tree *tree;
	bool by_samples;
	struct flame_limit limit; /* of the cut that follows; max_nodes 0: none does */
	bool (*goes_on)(void *context);
	void *context;
};

/* Fills samples and unsymbolized. False: no memory. */
bool named_nodes_count(struct named_stacks *stacks);

/* named_stacks_tree() for a result with nodes, not inverted (named_tree.c). */
bool named_nodes_tree(struct named_stacks *stacks, const struct tree_pass *pass,
		      struct stack_totals *totals, struct error *err);

/* What stands for an idle stack. */
extern const struct flame_frame named_stacks_idle;
/* Adds the stack, which is shown, to what ends in a frame without a name. */
void named_stacks_count_nameless(struct named_stacks *stacks, const struct result_stack *stack,
				 struct stack_totals *totals);

/* The frame of a group level, root first. */
struct flame_frame named_stacks_group(const struct named_stacks *stacks,
				      const struct result_stack *stack, unsigned level);
/* False: no memory. */
bool named_stacks_count_incomplete(struct named_stacks *stacks, const struct result_stack *stack);

#endif
