/* SPDX-License-Identifier: Apache-2.0 */
/* A flame tree holds two numbers a node: while it grows, the sum of both sides and the base side;
 * while it is cut, their weight and the base side. The compared side follows from them exactly. */
#include "symbol-server/flamegraph/diff_tree.h"

enum { FACTOR_MAX = 100000 };

bool diff_tree_init(struct diff_tree *tree, size_t limit_nodes)
{
	*tree = (struct diff_tree){.tree = flame_tree_new(limit_nodes)};
	return tree->tree;
}

bool diff_tree_add(struct diff_tree *tree, enum diff_side side, const struct flame_frame *frames,
		   size_t depth, uint64_t value)
{
	return flame_tree_add(tree->tree, frames, depth, value, side == DIFF_BASE ? value : 0);
}

/* Whole numbers of about that ratio, such that what the root weighs stays a number. */
static void choose_factors(const struct flame_node *root, double scale, uint64_t factor[DIFF_SIDES])
{
	double ratio = scale >= 1 ? scale : scale > 0 ? 1 / scale : 1;
	double most = root->total ? 9e18 / (double)root->total : 1;

	ratio = ratio < FACTOR_MAX ? ratio : FACTOR_MAX;
	ratio = ratio < most ? ratio : most;
	factor[DIFF_BASE] = factor[DIFF_COMPARE] = 1;
	factor[scale >= 1 ? DIFF_BASE : DIFF_COMPARE] = ratio > 1 ? (uint64_t)(ratio + 0.5) : 1;
}

static void weigh(uint64_t *sum, uint64_t base, const uint64_t factor[DIFF_SIDES])
{
	*sum = (*sum - base) * factor[DIFF_COMPARE] + base * factor[DIFF_BASE];
}

static void unweigh(uint64_t *weight, uint64_t base, const uint64_t factor[DIFF_SIDES])
{
	*weight = (*weight - base * factor[DIFF_BASE]) / factor[DIFF_COMPARE];
}

bool diff_tree_cut(struct diff_tree *diff, size_t max_nodes, double scale)
{
	struct flame_tree *tree = diff->tree;
	uint64_t factor[DIFF_SIDES];

	choose_factors(&tree->nodes[0], scale, factor);
	for (size_t i = 0; i < tree->count; i++) {
		weigh(&tree->nodes[i].self, tree->nodes[i].self_samples, factor);
		weigh(&tree->nodes[i].total, tree->nodes[i].total_samples, factor);
	}
	if (!flame_tree_cut(tree, max_nodes))
		return false;
	for (size_t i = 0; i < tree->count; i++) {
		struct flame_node *node = &tree->nodes[i];

		unweigh(&node->self, node->self_samples, factor);
		unweigh(&node->total, node->total_samples, factor);
		if (node->frame.kind != FRAME_cut)
			continue;
		diff->cut[DIFF_COMPARE] += node->total;
		diff->cut[DIFF_BASE] += node->total_samples;
	}
	tree->cut = diff->cut[DIFF_COMPARE];
	return true;
}

void diff_tree_release(struct diff_tree *tree)
{
	flame_tree_free(tree->tree);
	tree->tree = NULL;
}
