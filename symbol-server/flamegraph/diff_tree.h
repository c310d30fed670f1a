/* SPDX-License-Identifier: Apache-2.0 */
/* Counted stacks of two sides → one tree. Pure. */
#ifndef SYMBOL_SERVER_FLAMEGRAPH_DIFF_TREE_H
#define SYMBOL_SERVER_FLAMEGRAPH_DIFF_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol-server/flamegraph/diff_table.h"
#include "symbol-server/flamegraph/flame_tree.h"

struct diff_tree {
	/* After diff_tree_cut(): self and total are the compared side's values, self_samples and
	 * total_samples the base side's values. */
	struct flame_tree *tree;
	uint64_t cut[DIFF_SIDES]; /* value that was folded away */
};

bool diff_tree_init(struct diff_tree *tree, size_t limit_nodes); /* false: no memory */

/* Root first. false: the limit or memory is reached (the tree is then unusable). */
bool diff_tree_add(struct diff_tree *tree, enum diff_side side, const struct flame_frame *frames,
		   size_t depth, uint64_t value);

/* As flame_tree_cut(); a node weighs what it has on both sides, base values times about scale. */
bool diff_tree_cut(struct diff_tree *tree, size_t max_nodes, double scale);

void diff_tree_release(struct diff_tree *tree);

#endif
