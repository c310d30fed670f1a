/* SPDX-License-Identifier: Apache-2.0 */
/* Both sides' values of every node, beside sums over the stacks that went in. */
#include "symbol-server/flamegraph/diff_tree.h"

#include "tests/check.h"

enum { DEPTH = 4, STACKS = 500 };

static char names[10][2];
static struct stack {
	struct flame_frame frames[DEPTH];
	size_t depth;
	enum diff_side side;
	uint64_t value;
} stacks[STACKS];

static void make_stacks(uint64_t base_value)
{
	uint64_t state = 7;

	for (int i = 0; i < STACKS; i++) {
		stacks[i].depth = 1 + i % DEPTH;
		stacks[i].side = i % 3 ? DIFF_BASE : DIFF_COMPARE;
		stacks[i].value = (stacks[i].side == DIFF_BASE ? base_value : 1) * (1 + i % 17);
		for (size_t k = 0; k < stacks[i].depth; k++) {
			state = state * 6364136223846793005u + 1442695040888963407u;
			names[state >> 60 & 7][0] = (char)('a' + (state >> 60 & 7));
			stacks[i].frames[k] = (struct flame_frame){.name = names[state >> 60 & 7],
								   .file = "",
								   .kind = FRAME_native,
								   .module = FRAME_NO_MODULE};
		}
	}
}

/* The names from the root down to a node. */
static size_t path_of(const struct flame_tree *tree, size_t node, const char *path[DEPTH])
{
	size_t depth = 0;

	for (size_t at = node; at; at = tree->nodes[at].parent)
		depth++;
	for (size_t at = node, i = depth; at; at = tree->nodes[at].parent)
		path[--i] = tree->nodes[at].frame.name;
	return depth;
}

static uint64_t sum_below(const char *const *path, size_t depth, enum diff_side side, bool self)
{
	uint64_t sum = 0;

	for (int i = 0; i < STACKS; i++) {
		size_t same = 0;

		if (stacks[i].side != side || stacks[i].depth < depth ||
		    (self && stacks[i].depth != depth))
			continue;
		while (same < depth && !strcmp(stacks[i].frames[same].name, path[same]))
			same++;
		sum += same == depth ? stacks[i].value : 0;
	}
	return sum;
}

static void check_tree(size_t max_nodes, double scale, uint64_t base_value)
{
	struct diff_tree diff;
	uint64_t self[DIFF_SIDES] = {0}, cut[DIFF_SIDES] = {0};
	bool equal = true;

	make_stacks(base_value);
	CHECK(diff_tree_init(&diff, 100000));
	for (int i = 0; i < STACKS; i++)
		diff_tree_add(&diff, stacks[i].side, stacks[i].frames, stacks[i].depth,
			      stacks[i].value);
	CHECK(diff_tree_cut(&diff, max_nodes, scale));
	for (size_t i = 0; i < diff.tree->count; i++) {
		const struct flame_node *node = &diff.tree->nodes[i];
		const char *path[DEPTH + 1];
		size_t depth = path_of(diff.tree, i, path);

		self[DIFF_COMPARE] += node->self;
		self[DIFF_BASE] += node->self_samples;
		if (node->frame.kind == FRAME_cut) {
			cut[DIFF_COMPARE] += node->total;
			cut[DIFF_BASE] += node->total_samples;
			continue;
		}
		equal &= node->total == sum_below(path, depth, DIFF_COMPARE, false) &&
			 node->total_samples == sum_below(path, depth, DIFF_BASE, false) &&
			 node->self == sum_below(path, depth, DIFF_COMPARE, true) &&
			 node->self_samples == sum_below(path, depth, DIFF_BASE, true);
	}
	CHECK(equal);
	CHECK(diff.tree->count <= (max_nodes < 2 ? 2 : max_nodes));
	CHECK_NUMBER(self[DIFF_COMPARE], diff.tree->nodes[0].total);
	CHECK_NUMBER(self[DIFF_BASE], diff.tree->nodes[0].total_samples);
	CHECK_NUMBER(cut[DIFF_COMPARE], diff.cut[DIFF_COMPARE]);
	CHECK_NUMBER(cut[DIFF_BASE], diff.cut[DIFF_BASE]);
	diff_tree_release(&diff);
}

/* A node of the shorter side alone stays when its side is scaled up, and goes when it is not. */
static void test_weight(void)
{
	for (int scaled = 0; scaled < 2; scaled++) {
		struct flame_frame large = {.name = "large", .file = ""};
		struct flame_frame middle = {.name = "middle", .file = ""};
		struct flame_frame new = {.name = "new", .file = ""};
		struct diff_tree diff;
		bool has_new = false;

		CHECK(diff_tree_init(&diff, 100));
		CHECK(diff_tree_add(&diff, DIFF_BASE, &large, 1, 900000));
		CHECK(diff_tree_add(&diff, DIFF_BASE, &middle, 1, 5000));
		CHECK(diff_tree_add(&diff, DIFF_COMPARE, &new, 1, 1000));
		CHECK(diff_tree_cut(&diff, 3, scaled ? 0.001 : 1)); /* root, one, [cut] */
		for (size_t i = 0; i < diff.tree->count; i++)
			has_new |= !strcmp(diff.tree->nodes[i].frame.name, "new");
		CHECK(has_new == (scaled == 1));
		CHECK_NUMBER(diff.tree->nodes[0].total, 1000);
		CHECK_NUMBER(diff.tree->nodes[0].total_samples, 905000);
		diff_tree_release(&diff);
	}
}

int main(void)
{
	check_tree(100000, 1, 1);
	check_tree(40, 1, 1);
	check_tree(40, 24, 1);
	check_tree(40, 1.0 / 1440, 1440);
	check_tree(40, 1e300, 1);
	check_tree(1, 0, 1);
	check_tree(7, 3.3, (uint64_t)1 << 50);
	test_weight();
	diff_tree_release(&(struct diff_tree){0});
	return checks_done();
}
