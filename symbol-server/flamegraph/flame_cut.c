/* SPDX-License-Identifier: Apache-2.0 */
/* The cut: how many of the heaviest nodes fit, and the tree written anew without the others. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash_table.h"
#include "symbol-server/flamegraph/flame_tree.h"

struct cut {
	const struct flame_node *old;
	size_t old_count;
	uint32_t *by_weight; /* old indices, heaviest first, parent before child */
	uint64_t *places;    /* by old index: who is taken first of those that weigh the same */
	uint8_t *is_kept;    /* by old index */
	struct flame_node *nodes;
	size_t count;
	uint32_t *scratch; /* children of one node, being sorted */
	uint64_t cut;
};

static int compare_weight(const void *left, const void *right, void *context)
{
	const struct cut *cut = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	if (cut->old[a].total != cut->old[b].total)
		return cut->old[a].total < cut->old[b].total ? 1 : -1;
	if (cut->places[a] != cut->places[b])
		return cut->places[a] < cut->places[b] ? 1 : -1;
	return a < b ? -1 : a > b;
}

static int compare_sibling(const void *left, const void *right, void *context)
{
	const struct flame_node *nodes = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	int order;

	if (nodes[a].total != nodes[b].total)
		return nodes[a].total < nodes[b].total ? 1 : -1;
	order = frame_compare_names(&nodes[a].frame, &nodes[b].frame);
	return order ? order : a < b ? -1 : a > b;
}

/* A byte of it a round, highest first. */
uint64_t flame_tree_nth_total(const uint64_t *totals, size_t count, size_t wanted)
{
	uint64_t found = 0, known = 0; /* known: the bits of found that are */

	for (int shift = 56; shift >= 0; shift -= 8) {
		size_t counts[256] = {0};
		unsigned digit = 255;

		for (size_t i = 0; i < count; i++)
			counts[totals[i] >> shift & 0xff] += (totals[i] & known) == found;
		for (; counts[digit] < wanted; digit--)
			wanted -= counts[digit];
		found |= (uint64_t)digit << shift;
		known |= (uint64_t)0xff << shift;
	}
	return found;
}

/* By depth, then by the names that lead there: not by the order in which the stacks came, which
 * is another one in each store. */
static bool place_nodes(struct cut *cut)
{
	enum { DEEPEST = 0xffff };
	uint64_t *paths = calloc(cut->old_count, sizeof(*paths));
	uint16_t *depths = calloc(cut->old_count, sizeof(*depths));
	bool ok = paths && depths;

	for (size_t i = 1; ok && i < cut->old_count; i++) {
		const struct flame_node *node = &cut->old[i];
		uint16_t above = depths[node->parent];

		depths[i] = above < DEEPEST ? above + 1 : DEEPEST;
		paths[i] = hash_word(paths[node->parent],
				     hash_word(frame_names_hash(&node->frame), node->frame.kind));
		cut->places[i] = (uint64_t)(DEEPEST - depths[i]) << 48 |
				 (depths[i] < DEEPEST ? paths[i] >> 16 : 0);
	}
	cut->places[0] = UINT64_MAX;
	free(paths);
	free(depths);
	return ok;
}

/* The heaviest nodes, sorted, into by_weight; how many: wanted. Of a million nodes few are wanted,
 * and most weigh the same: no more are sorted than are taken. */
static bool sort_heaviest(struct cut *cut, size_t wanted)
{
	uint64_t *keys = calloc(cut->old_count, sizeof(*keys)), last, place;
	size_t count = 0, equal = 0;

	if (!keys || !place_nodes(cut)) {
		free(keys);
		return false;
	}
	for (size_t i = 0; i < cut->old_count; i++)
		keys[i] = cut->old[i].total;
	last = flame_tree_nth_total(keys, cut->old_count, wanted);
	for (uint32_t i = 0; i < cut->old_count; i++)
		if (cut->old[i].total > last)
			cut->by_weight[count++] = i;
		else if (cut->old[i].total == last)
			keys[equal++] = cut->places[i];
	place = flame_tree_nth_total(keys, equal, wanted - count);
	for (uint32_t i = 0; i < cut->old_count; i++)
		if (cut->old[i].total == last && cut->places[i] > place)
			cut->by_weight[count++] = i;
	for (uint32_t i = 0; count < wanted; i++)
		if (cut->old[i].total == last && cut->places[i] == place)
			cut->by_weight[count++] = i;
	qsort_r(cut->by_weight, count, sizeof(*cut->by_weight), compare_weight, cut);
	free(keys);
	return true;
}

/* A parent's total is never below its child's and its index always is: taken in order of weight,
 * ancestors come first. Each node taken may add a "[cut]" of its own and complete its parent. */
static bool choose_kept(struct cut *cut, struct flame_limit limit)
{
	uint32_t *missing = calloc(cut->old_count, sizeof(*missing)); /* children not yet taken */
	size_t cuts = 0, best = 1;
	size_t most = limit.max_nodes < cut->old_count ? limit.max_nodes : cut->old_count;
	uint64_t least = flame_limit_least(limit, cut->old->total);

	most = most ? most : 1;
	if (!missing || !sort_heaviest(cut, most)) {
		free(missing);
		return false;
	}
	for (size_t i = 1; i < cut->old_count; i++)
		missing[cut->old[i].parent]++;
	for (size_t i = 0; i < cut->old_count; i++)
		missing[i] += cut->old[i].has_more;
	for (size_t i = 0; i < most && cut->old[cut->by_weight[i]].total >= least; i++) {
		uint32_t node = cut->by_weight[i];

		cuts += missing[node] > 0;
		if (node && --missing[cut->old[node].parent] == 0)
			cuts--;
		if (i + 1 + cuts <= limit.max_nodes)
			best = i + 1;
	}
	for (size_t i = 0; i < best; i++)
		cut->is_kept[cut->by_weight[i]] = 1;
	free(missing);
	return true;
}

/* Writes one node; returns its new index. */
static uint32_t put_node(struct cut *cut, uint32_t old, uint32_t parent)
{
	uint32_t at = (uint32_t)cut->count++;

	cut->nodes[at] = cut->old[old];
	cut->nodes[at].parent = parent;
	cut->nodes[at].first_child = cut->nodes[at].next_sibling = 0;
	cut->nodes[at].has_more = false;
	return at;
}

static void put_cut(struct cut *cut, uint32_t parent, uint64_t value, uint64_t samples,
		    double squares)
{
	cut->nodes[cut->count++] = (struct flame_node){
		.frame = {.name = "[cut]",
			  .file = "",
			  .name_hash = frame_name_hash("[cut]"),
			  .module = FRAME_NO_MODULE,
			  .kind = FRAME_cut},
		.parent = parent,
		.self = value,
		.total = value,
		.self_samples = samples,
		.total_samples = samples,
		.self_squares = squares,
		.total_squares = squares,
	};
	cut->cut += value;
}

/* New nodes for the kept children of one node, and for what is cut below it. The old index of each
 * new node is left in origin. */
static void put_children(struct cut *cut, uint32_t old, uint32_t parent, uint32_t *origin)
{
	const struct flame_node *node = &cut->old[old];
	uint64_t value = node->total - node->self;
	uint64_t samples = node->total_samples - node->self_samples;
	double squares = node->total_squares - node->self_squares;
	bool is_cut = node->has_more;
	size_t kept = 0;

	for (uint32_t child = node->first_child; child; child = cut->old[child].next_sibling) {
		if (!cut->is_kept[child]) {
			is_cut = true;
			continue;
		}
		cut->scratch[kept++] = child;
		value -= cut->old[child].total;
		samples -= cut->old[child].total_samples;
		squares -= cut->old[child].total_squares;
	}
	qsort_r(cut->scratch, kept, sizeof(*cut->scratch), compare_sibling,
		(void *)(uintptr_t)cut->old);
	for (size_t i = 0; i < kept; i++) {
		const struct flame_node *next = &cut->old[cut->scratch[i]];

		if (is_cut && (next->total < value ||
			       (next->total == value && strcmp("[cut]", next->frame.name) < 0))) {
			put_cut(cut, parent, value, samples, squares);
			origin[cut->count - 1] = 0;
			is_cut = false;
		}
		origin[put_node(cut, cut->scratch[i], parent)] = cut->scratch[i];
	}
	if (is_cut) {
		put_cut(cut, parent, value, samples, squares);
		origin[cut->count - 1] = 0;
	}
}

/* Breadth first, so that the children of a node lie together and a parent comes before them. */
static void write_nodes(struct cut *cut, uint32_t *origin)
{
	origin[put_node(cut, 0, 0)] = 0;
	for (uint32_t at = 0; at < cut->count; at++) {
		uint32_t first = (uint32_t)cut->count;

		if (at && !origin[at])
			continue; /* "[cut]" */
		put_children(cut, origin[at], at, origin);
		if (first == cut->count)
			continue;
		cut->nodes[at].first_child = first;
		for (uint32_t child = first; child + 1 < cut->count; child++)
			cut->nodes[child].next_sibling = child + 1;
	}
}

uint64_t flame_limit_least(struct flame_limit limit, uint64_t root_total)
{
	return (uint64_t)ceil(limit.min_share * (double)root_total);
}

bool flame_tree_fold(struct flame_tree *tree, struct flame_limit limit)
{
	struct cut cut = {.old = tree->nodes, .old_count = tree->count};
	/* at most one "[cut]" for each kept node */
	size_t room = 2 * tree->count;
	uint32_t *origin = calloc(room, sizeof(*origin));
	bool ok = false;

	cut.by_weight = calloc(tree->count, sizeof(*cut.by_weight));
	cut.places = calloc(tree->count, sizeof(*cut.places));
	cut.is_kept = calloc(tree->count, 1);
	cut.scratch = calloc(tree->count, sizeof(*cut.scratch));
	cut.nodes = calloc(room, sizeof(*cut.nodes));
	if (!origin || !cut.by_weight || !cut.places || !cut.is_kept || !cut.scratch ||
	    !cut.nodes || !choose_kept(&cut, limit))
		goto out;
	write_nodes(&cut, origin);
	free(tree->nodes);
	tree->nodes = cut.nodes;
	tree->count = tree->capacity = tree->limit = cut.count;
	tree->cut += cut.cut;
	cut.nodes = NULL;
	ok = true;
out:
	free(origin);
	free(cut.by_weight);
	free(cut.places);
	free(cut.is_kept);
	free(cut.scratch);
	free(cut.nodes);
	return ok;
}

bool flame_tree_cut(struct flame_tree *tree, size_t max_nodes)
{
	return flame_tree_fold(tree, (struct flame_limit){.max_nodes = max_nodes});
}
