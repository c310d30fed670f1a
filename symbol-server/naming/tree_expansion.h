/* SPDX-License-Identifier: Apache-2.0 */
/* The flame graph's tree out of the store's tree of stacks. Of this folder only. */
#ifndef SYMBOL_SERVER_NAMING_TREE_EXPANSION_H
#define SYMBOL_SERVER_NAMING_TREE_EXPANSION_H

#include "symbol-server/naming/named_stacks_state.h"

struct tree_pass {
	struct flame_tree *tree;
	bool by_samples;
	struct flame_limit limit; /* of the cut that follows; max_nodes 0: none does */
	bool (*goes_on)(void *context);
	void *context;
};

/* named_stacks_tree() for a result with nodes, not inverted. */
bool tree_expand(struct named_stacks *stacks, const struct tree_pass *pass,
		 struct stack_totals *totals, struct error *err);

#endif
