/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/flamegraph/flame_tree.h"

#include <stdlib.h>

#include "tests/check.h"

enum { DEPTH_MAX = 32 };

/* "a b c" → frames; a name that starts with K is a kernel frame. */
static bool add(struct flame_tree *tree, char *text, uint64_t value)
{
	struct flame_frame frames[DEPTH_MAX];
	size_t depth = 0;

	for (char *name = strtok(text, " "); name; name = strtok(NULL, " "))
		frames[depth++] = (struct flame_frame){
			.name = name,
			.file = "",
			.module = FRAME_NO_MODULE,
			.kind = *name == 'K' ? FRAME_kernel : FRAME_native,
		};
	return flame_tree_add(tree, frames, depth, value, 1);
}

static const struct flame_node *find(const struct flame_tree *tree, uint32_t parent,
				     const char *name)
{
	for (size_t i = 1; i < tree->count; i++)
		if (tree->nodes[i].parent == parent && !strcmp(tree->nodes[i].frame.name, name))
			return &tree->nodes[i];
	return NULL;
}

static uint64_t total_of(const struct flame_tree *tree, uint32_t parent, const char *name)
{
	const struct flame_node *node = find(tree, parent, name);

	return node ? node->total : UINT64_MAX;
}

/* Every total is self plus the children's totals, every parent comes first, siblings are sorted and
 * the child lists agree with the parents. */
static bool is_sound(const struct flame_tree *tree)
{
	uint64_t *sums = calloc(tree->count, sizeof(*sums));
	size_t listed = 1;
	bool ok = true;

	for (size_t i = tree->count - 1; i > 0; i--) {
		ok &= tree->nodes[i].parent < i;
		sums[tree->nodes[i].parent] += tree->nodes[i].total;
	}
	for (size_t i = 0; i < tree->count; i++) {
		const struct flame_node *before = NULL;

		ok &= tree->nodes[i].total == tree->nodes[i].self + sums[i];
		for (uint32_t at = tree->nodes[i].first_child; at;
		     at = tree->nodes[at].next_sibling) {
			ok &= tree->nodes[at].parent == i && ++listed <= tree->count;
			ok &= !before || before->total > tree->nodes[at].total ||
			      (before->total == tree->nodes[at].total &&
			       strcmp(before->frame.name, tree->nodes[at].frame.name) <= 0);
			before = &tree->nodes[at];
		}
	}
	free(sums);
	return ok && listed == tree->count;
}

static void test_merging(void)
{
	struct flame_tree *tree = flame_tree_new(100);
	char texts[][16] = {"a b c", "a b", "a b c", "a d", "", "x"};

	for (size_t i = 0; i < 6; i++)
		CHECK(add(tree, texts[i], 10 + i));
	CHECK_NUMBER(tree->nodes[0].total, 10 + 11 + 12 + 13 + 14 + 15);
	CHECK_NUMBER(tree->nodes[0].self, 14);
	CHECK_NUMBER(tree->nodes[0].total_samples, 6);
	CHECK_NUMBER(tree->count, 6);
	CHECK_NUMBER(total_of(tree, 0, "a"), 46);
	CHECK(flame_tree_cut(tree, 100));
	CHECK_NUMBER(tree->count, 6);
	CHECK_NUMBER(tree->cut, 0);
	CHECK(is_sound(tree));
	flame_tree_free(tree);
}

/* Name, module and kind make a node; file and line do not. */
static void test_identity(void)
{
	struct flame_tree *tree = flame_tree_new(100);
	char one[] = "f", two[] = "f";
	struct flame_frame frames[] = {
		{.name = one, .file = "x.c", .line = 1, .module = 1, .kind = FRAME_native},
		{.name = two, .file = "y.c", .line = 2, .module = 1, .kind = FRAME_native},
		{.name = two, .file = "x.c", .line = 1, .module = 2, .kind = FRAME_native},
		{.name = two, .file = "x.c", .line = 1, .module = 1, .kind = FRAME_inline},
	};

	for (size_t i = 0; i < 4; i++)
		CHECK(flame_tree_add(tree, &frames[i], 1, 1, 1));
	CHECK_NUMBER(tree->count, 4);
	CHECK_TEXT(tree->nodes[1].frame.file, "x.c");
	flame_tree_free(tree);
}

static void test_cut(void)
{
	struct flame_tree *tree = flame_tree_new(100);
	char texts[][16] = {"a b c", "a b d", "a e", "f", "g"};
	uint64_t values[] = {50, 20, 15, 10, 5};

	for (size_t i = 0; i < 5; i++)
		add(tree, texts[i], values[i]);
	/* of 8 nodes the two lightest, f and g, become one */
	CHECK(flame_tree_cut(tree, 7));
	CHECK_NUMBER(tree->count, 7);
	CHECK_NUMBER(tree->nodes[0].total, 100);
	CHECK_NUMBER(total_of(tree, 0, "[cut]"), 15);
	CHECK_NUMBER(total_of(tree, 0, "a"), 85);
	CHECK_NUMBER(tree->cut, 15);
	CHECK(is_sound(tree));
	flame_tree_free(tree);
}

/* Of 100: 15 and more stay with a share of 0.15, whatever max_nodes would leave. */
static void test_fold(void)
{
	struct flame_tree *tree = flame_tree_new(100);
	char texts[][16] = {"a b c", "a b d", "a e", "f", "g"};
	uint64_t values[] = {50, 20, 15, 10, 5};

	CHECK_NUMBER(flame_limit_least((struct flame_limit){.min_share = 0.001}, 100), 1);
	for (size_t i = 0; i < 5; i++)
		add(tree, texts[i], values[i]);
	CHECK(flame_tree_fold(tree, (struct flame_limit){.max_nodes = 100, .min_share = 0.15}));
	CHECK_NUMBER(tree->count, 7);
	CHECK_NUMBER(total_of(tree, 0, "[cut]"), 15);
	CHECK_NUMBER(total_of(tree, 0, "a"), 85);
	CHECK(is_sound(tree));
	CHECK(flame_tree_fold(tree, (struct flame_limit){.max_nodes = 100, .min_share = 1}));
	CHECK_NUMBER(tree->count, 2);
	CHECK_NUMBER(tree->nodes[0].total, 100);
	flame_tree_free(tree);
}

/* Whatever the size: at most max_nodes, totals kept, cut equal to what the [cut] nodes hold, and no
 * kept node lighter than one that was folded away beside it. */
static void test_random_cuts(void)
{
	unsigned seed = 7;
	bool ok = true;

	for (int round = 0; round < 200; round++) {
		struct flame_tree *tree = flame_tree_new(10000);
		static char texts[60][64];
		size_t max_nodes = 2 + (size_t)rand_r(&seed) % 150;
		uint64_t cut = 0, total;

		for (int i = 0; i < 60; i++) {
			int depth = rand_r(&seed) % 8;

			*texts[i] = 0;
			for (int j = 0; j < depth; j++)
				snprintf(texts[i] + strlen(texts[i]), 8, "%c ",
					 'a' + rand_r(&seed) % 4);
			ok &= add(tree, texts[i], (uint64_t)rand_r(&seed) % 1000);
		}
		total = tree->nodes[0].total;
		ok &= flame_tree_cut(tree, max_nodes);
		ok &= tree->count <= max_nodes && tree->nodes[0].total == total && is_sound(tree);
		for (size_t i = 0; i < tree->count; i++)
			if (tree->nodes[i].frame.kind == FRAME_cut)
				cut += tree->nodes[i].self;
		ok &= cut == tree->cut;
		flame_tree_free(tree);
	}
	CHECK(ok);
}

/* Many weigh the same: which of them stay does not depend on who came first. */
static void test_cut_of_equals(void)
{
	enum { STACKS = 64 };
	static char texts[2][STACKS][32];
	struct flame_tree *trees[2];
	bool ok = true;

	for (size_t max_nodes = 2; max_nodes < 90; max_nodes++) {
		for (size_t t = 0; t < 2; t++) {
			trees[t] = flame_tree_new(1000);
			for (int i = 0; i < STACKS; i++) {
				int at = t ? (i * 37 + 11) % STACKS : i;

				snprintf(texts[t][i], sizeof(texts[t][i]), "g%d f%d %c", at % 8,
					 at / 8, 'a' + at % 3);
				ok &= add(trees[t], texts[t][i], 1 + (at % 8) / 4);
			}
			ok &= flame_tree_cut(trees[t], max_nodes) && is_sound(trees[t]);
		}
		ok &= trees[0]->count == trees[1]->count;
		for (size_t i = 0; ok && i < trees[0]->count; i++)
			ok = !strcmp(trees[0]->nodes[i].frame.name,
				     trees[1]->nodes[i].frame.name) &&
			     trees[0]->nodes[i].total == trees[1]->nodes[i].total &&
			     trees[0]->nodes[i].parent == trees[1]->nodes[i].parent;
		flame_tree_free(trees[0]);
		flame_tree_free(trees[1]);
	}
	CHECK(ok);
}

static bool add_lines(struct flame_tree *tree, uint32_t outer, uint32_t inner, uint64_t value)
{
	struct flame_frame frames[] = {
		{.name = "a", .file = "a.c", .line = outer, .kind = FRAME_native},
		{.name = "b", .file = "b.c", .line = inner, .kind = FRAME_native}};

	return flame_tree_add(tree, frames, 2, value, 1);
}

/* Whatever came by first or last. */
static void test_lines(void)
{
	struct flame_tree *tree = flame_tree_new(100);

	CHECK(add_lines(tree, 1, 7, 10) && add_lines(tree, 2, 7, 60) && add_lines(tree, 3, 8, 60) &&
	      add_lines(tree, 2, 8, 80) && add_lines(tree, 1, 8, 9));
	CHECK_NUMBER(tree->count, 3);
	CHECK_NUMBER(tree->nodes[1].frame.line, 2); /* 140 of 219 */
	CHECK_NUMBER(tree->nodes[2].frame.line, 8);
	flame_tree_free(tree);
}

static void test_limits(void)
{
	struct flame_tree *tree = flame_tree_new(3);
	char one[] = "a b", two[] = "a c", again[] = "a b";

	CHECK(add(tree, one, 1));
	CHECK(add(tree, again, 1));
	CHECK(!add(tree, two, 1));
	flame_tree_free(tree);
	tree = flame_tree_new(100);
	CHECK(flame_tree_cut(tree, 1)); /* nothing in it */
	CHECK_NUMBER(tree->count, 1);
	flame_tree_free(tree);
	tree = flame_tree_new(100);
	add(tree, one, 1);
	CHECK(flame_tree_cut(tree, 1));
	CHECK_NUMBER(tree->count, 2); /* all and [cut] */
	flame_tree_free(tree);
	flame_tree_free(NULL);
}

int main(void)
{
	test_merging();
	test_identity();
	test_cut();
	test_fold();
	test_random_cuts();
	test_cut_of_equals();
	test_lines();
	test_limits();
	return checks_done();
}
