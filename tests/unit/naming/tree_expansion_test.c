/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks that the store gives as a tree: the same flame graph as from lists of them, and one that is
 * cut has what the whole has. */
#include "symbol-server/naming/named_stacks.h"

#include <math.h>
#include <stdlib.h>

#include "tests/check.h"
#include "tests/unit/naming/made_up_symbols.h"

static bool goes_on(void *context)
{
	(void)context;
	return true;
}

enum { RANDOM_STACKS = 300, RANDOM_NODES = RANDOM_STACKS * 8, RANDOM_DEPTH = 12 };

struct random_stacks {
	struct result_stack listed[RANDOM_STACKS], planted[RANDOM_STACKS];
	uint32_t lists[RANDOM_STACKS][RANDOM_DEPTH];
	struct result_node nodes[RANDOM_NODES];
	uint32_t node_count;
};

static uint32_t random_state;

static uint32_t draw(uint32_t below)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % below;
}

static uint32_t node_of(struct random_stacks *random, uint32_t caller, uint32_t location)
{
	for (uint32_t i = 1; i < random->node_count; i++)
		if (random->nodes[i].caller == caller && random->nodes[i].location == location)
			return i;
	random->nodes[random->node_count] = (struct result_node){caller, location};
	return random->node_count++;
}

/* Leaf first; few locations, so that callers are shared; an incomplete stack says so at its root.
 */
static void make_random(struct random_stacks *random, uint32_t of_series)
{
	random->node_count = 1;
	for (uint32_t i = 0; i < RANDOM_STACKS; i++) {
		uint32_t depth = draw(8), node = 0;

		for (uint32_t k = 0; k < depth; k++) {
			uint32_t location = draw(LOCATIONS);

			if (location == INCOMPLETE && k + 1 < depth)
				location = MAIN;
			random->lists[i][k] = location;
		}
		for (uint32_t k = depth; k--;)
			node = node_of(random, node, random->lists[i][k]);
		random->listed[i] = (struct result_stack){.series = i * of_series / RANDOM_STACKS,
							  .thread = "",
							  .locations = random->lists[i],
							  .depth = depth,
							  .samples = 1 + draw(9),
							  .value = draw(1000)};
		random->planted[i] = random->listed[i];
		random->planted[i].locations = NULL;
		random->planted[i].node = node;
	}
}

struct outcome {
	struct named_stacks *stacks;
	struct flame_tree *tree;
	struct stack_totals totals;
	struct accounting accounting;
};

static void plant(const struct samples_result *from, const struct stack_view *view, bool by_samples,
		  size_t max_nodes, struct outcome *out)
{
	struct error err = {0};

	*out = (struct outcome){.tree = flame_tree_new(100000)};
	out->stacks = named_stacks_new(from, &symbolizer, view, &err);
	CHECK(out->stacks && named_stacks_tree(out->stacks, out->tree, by_samples,
					       (struct flame_limit){.max_nodes = max_nodes},
					       goes_on, NULL, &out->totals, &err));
	named_stacks_incomplete(out->stacks, &out->accounting);
}

/* Sums of squares are added in another order. */
static bool near(double a, double b, double whole)
{
	return fabs(a - b) <= 1e-9 * whole;
}

static void check_same_trees(const struct flame_tree *a, const struct flame_tree *b)
{
	unsigned different = 0;

	CHECK_NUMBER(a->count, b->count);
	for (size_t i = 0; i < a->count && i < b->count; i++)
		different += strcmp(a->nodes[i].frame.name, b->nodes[i].frame.name) ||
			     a->nodes[i].frame.kind != b->nodes[i].frame.kind ||
			     a->nodes[i].frame.module != b->nodes[i].frame.module ||
			     a->nodes[i].frame.line != b->nodes[i].frame.line ||
			     a->nodes[i].parent != b->nodes[i].parent ||
			     a->nodes[i].self != b->nodes[i].self ||
			     a->nodes[i].total != b->nodes[i].total ||
			     a->nodes[i].self_samples != b->nodes[i].self_samples ||
			     a->nodes[i].total_samples != b->nodes[i].total_samples ||
			     !near(a->nodes[i].self_squares, b->nodes[i].self_squares,
				   a->nodes[0].total_squares) ||
			     !near(a->nodes[i].total_squares, b->nodes[i].total_squares,
				   a->nodes[0].total_squares);
	CHECK_NUMBER(different, 0);
}

static void check_same(const struct outcome *a, const struct outcome *b)
{
	uint32_t count, other;

	check_same_trees(a->tree, b->tree);
	CHECK(!memcmp(&a->totals, &b->totals, sizeof(a->totals)));
	named_stacks_modules(a->stacks, &count);
	named_stacks_modules(b->stacks, &other);
	CHECK_NUMBER(count, other);
	CHECK(!memcmp(named_stacks_samples(a->stacks), named_stacks_samples(b->stacks),
		      count * sizeof(uint64_t)));
	CHECK(!memcmp(named_stacks_unsymbolized(a->stacks), named_stacks_unsymbolized(b->stacks),
		      count * sizeof(uint64_t)));
	CHECK(!memcmp(named_stacks_nameless(a->stacks), named_stacks_nameless(b->stacks),
		      count * sizeof(uint64_t)));
	CHECK_NUMBER(a->accounting.incomplete_count, b->accounting.incomplete_count);
}

static void release(struct outcome *outcome)
{
	flame_tree_free(outcome->tree);
	named_stacks_free(outcome->stacks);
}

static bool is_same_way(const struct flame_tree *a, uint32_t x, const struct flame_tree *b,
			uint32_t y)
{
	for (; x && y; x = a->nodes[x].parent, y = b->nodes[y].parent)
		if (strcmp(a->nodes[x].frame.name, b->nodes[y].frame.name) ||
		    a->nodes[x].frame.kind != b->nodes[y].frame.kind ||
		    a->nodes[x].frame.module != b->nodes[y].frame.module)
			return false;
	return !x && !y;
}

/* Every node left is one of the whole tree as it is there; nothing heavier is missing, and what a
 * node has lost is in its "[cut]". */
static void check_nodes(const struct flame_tree *cut, const struct flame_tree *all)
{
	uint64_t least = UINT64_MAX, *below = calloc(cut->count, sizeof(*below)), sum = 0;
	size_t kept = 0, heavier = 0, wrong = 0;

	CHECK(below);
	for (uint32_t i = 0; i < cut->count; i++) {
		const struct flame_node *node = &cut->nodes[i];
		uint32_t at = 0;

		below[node->parent] += i ? node->total : 0;
		if (node->frame.kind == FRAME_cut) {
			sum += node->total;
			continue;
		}
		while (at < all->count && !is_same_way(cut, i, all, at))
			at++;
		wrong += at == all->count || all->nodes[at].total != node->total ||
			 all->nodes[at].self != node->self ||
			 all->nodes[at].self_samples != node->self_samples ||
			 all->nodes[at].total_samples != node->total_samples ||
			 !near(all->nodes[at].self_squares, node->self_squares,
			       all->nodes[0].total_squares);
		least = node->total < least ? node->total : least;
		kept++;
	}
	for (uint32_t i = 0; i < cut->count; i++)
		wrong += cut->nodes[i].total !=
			 cut->nodes[i].self + (cut->nodes[i].first_child ? below[i] : 0);
	for (size_t i = 0; i < all->count; i++)
		heavier += all->nodes[i].total > least;
	CHECK_NUMBER(wrong, 0);
	CHECK(heavier < kept || (kept == 1 && heavier == 0));
	CHECK_NUMBER(cut->cut, sum);
	free(below);
}

/* The cut of a tree of which no more was made than is left is that of the whole tree. */
static void check_cut(const struct samples_result *from, const struct stack_view *view,
		      bool by_samples, size_t most, const struct outcome *whole)
{
	struct outcome part, all;

	plant(from, view, by_samples, most, &part);
	plant(from, view, by_samples, 0, &all);
	CHECK(flame_tree_cut(part.tree, most) && flame_tree_cut(all.tree, most));
	CHECK_NUMBER(part.tree->count, all.tree->count);
	CHECK_NUMBER(part.tree->cut, all.tree->cut);
	CHECK(!memcmp(&part.totals, &all.totals, sizeof(part.totals)));
	check_nodes(part.tree, whole->tree);
	release(&part);
	release(&all);
}

/* Each view of random stacks, as lists and as a tree. */
static void test_nodes(void)
{
	static struct random_stacks random;
	static const char *const groups[] = {"process"};
	static const char *const roots[][2] = {{"api", "main"}, {"main", "leaf"}};
	struct series_labels two[] = {
		{(const char *const[]){"process"}, (const char *const[]){"api"}, 1},
		{(const char *const[]){"process"}, (const char *const[]){"db"}, 1}};
	struct samples_result listed = {.modules = modules,
					.module_count = sizeof(modules) / sizeof(*modules),
					.locations = locations,
					.location_count = LOCATIONS,
					.stack_count = RANDOM_STACKS,
					.series = two,
					.series_count = 2};
	struct result_module many[100] = {0};
	struct error err = {0};
	struct pattern *pattern = pattern_new("leaf|handler", &err);

	for (unsigned i = 0; i < 100; i++) {
		static char names[100][8];

		snprintf(names[i], sizeof(names[i]), "m%u", i);
		many[i] = i < listed.module_count ? modules[i]
						  : (struct result_module){.name = names[i]};
	}

	locations[ANON] = (struct result_location){LOCATION_NAMED, UINT32_MAX, 0, "ep_poll", "",
						   "kernel",       0};
	for (unsigned round = 0; round < 24; round++) {
		struct samples_result planted;
		struct stack_view view = {.groups = groups,
					  .group_count = round & 1,
					  .focus = round % 6 == 2 ? pattern : NULL,
					  .ignore = round % 6 == 3 ? pattern : NULL,
					  .folds_idle = round % 4 >= 2,
					  .hides_runtime = round % 5 < 2,
					  .hide = round % 6 >= 4 ? pattern : NULL,
					  .root = roots[round & 1 ? 0 : 1],
					  .root_depth = round > 11 ? 1 + round % 2 : 0};
		struct outcome lists, nodes;

		random_state = round;
		make_random(&random, 2);
		if (round == 12) { /* more modules than a word has bits */
			listed.modules = many;
			listed.module_count = 100;
		}
		planted = listed;
		listed.stacks = random.listed;
		planted.stacks = random.planted;
		planted.nodes = random.nodes;
		planted.node_count = random.node_count;
		plant(&listed, &view, round % 3 == 0, 0, &lists);
		plant(&planted, &view, round % 3 == 0, 0, &nodes);
		CHECK(flame_tree_cut(lists.tree, 100000) && flame_tree_cut(nodes.tree, 100000));
		check_same(&lists, &nodes);
		CHECK(view.root_depth || view.focus || view.ignore || view.folds_idle ||
		      nodes.tree->count > 100);
		CHECK(!view.folds_idle || view.root_depth > view.group_count ||
		      nodes.totals.idle_value > 0);
		for (size_t most = 1; most < 400; most += 1 + most / 2)
			check_cut(&planted, &view, round % 3 == 0, most, &nodes);
		release(&lists);
		release(&nodes);
	}
	pattern_free(pattern);
}

/* The stacks of one function at three lines, the one with most samples neither first nor last. */
static void test_lines(void)
{
	static struct result_location calls[] = {
		{LOCATION_NAMED, UINT32_MAX, 0, "outer", "a.py", "cpython", 1},
		{LOCATION_NAMED, UINT32_MAX, 0, "outer", "a.py", "cpython", 2},
		{LOCATION_NAMED, UINT32_MAX, 0, "outer", "a.py", "cpython", 3},
		{LOCATION_NAMED, UINT32_MAX, 0, "inner", "a.py", "cpython", 9},
	};
	static struct result_node nodes[] = {{0}, {0, 0}, {1, 3}, {0, 1}, {3, 3}, {0, 2}, {5, 3}};
	static uint32_t lists[][2] = {{3, 0}, {3, 1}, {3, 2}};
	static const uint32_t samples[] = {2, 7, 1};
	struct series_labels series = {(const char *const[]){"process"},
				       (const char *const[]){"api"}, 1};
	struct result_stack stacks[3];
	struct samples_result result = {.locations = calls,
					.location_count = 4,
					.stacks = stacks,
					.stack_count = 3,
					.series = &series,
					.series_count = 1};
	struct stack_view view = {0};

	for (unsigned as_tree = 0; as_tree < 2; as_tree++) {
		struct outcome out;

		result.nodes = as_tree ? nodes : NULL;
		result.node_count = as_tree ? 7 : 0;
		for (unsigned i = 0; i < 3; i++)
			stacks[i] = (struct result_stack){.thread = "",
							  .locations = as_tree ? NULL : lists[i],
							  .node = as_tree ? 2 * i + 2 : 0,
							  .depth = 2,
							  .samples = samples[i],
							  .value = samples[i]};
		plant(&result, &view, true, 0, &out);
		CHECK_NUMBER(out.tree->count, 3);
		CHECK_NUMBER(out.tree->nodes[1].frame.line, 2);
		CHECK_NUMBER(out.tree->nodes[2].frame.line, 9);
		release(&out);
	}
}

int main(void)
{
	test_nodes();
	test_lines();
	return checks_done();
}
