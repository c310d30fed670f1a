/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/flamegraph/flame_tree.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/hash_table.h"
#include "symbol-server/flamegraph/sampling_error.h"

#define KIND_TEXT(name_) #name_,
const char *const frame_kind_names[FRAME_KIND_COUNT] = {FRAME_KINDS(KIND_TEXT)};
#define LANGUAGE_TEXT(name_, text_) text_,
const char *const frame_language_names[FRAME_LANGUAGE_COUNT] = {FRAME_LANGUAGES(LANGUAGE_TEXT)};

struct flame_index {
	struct hash_table table; /* hash of a whole path from the root → its last node */
	uint64_t *hashes;        /* of the stack at hand, by depth */
	uint64_t *paths;         /* the same by node */
	size_t room;
};

uint64_t frame_name_hash(const char *name)
{
	uint64_t hash = hash_bytes(name, strlen(name), 0);

	return hash ? hash : 1;
}

uint64_t frame_names_hash(const struct flame_frame *frame)
{
	uint64_t hash = frame->name_hash ? frame->name_hash : frame_name_hash(frame->name);

	if (!frame->signature)
		return hash;
	return hash_word(hash, frame->signature_hash ? frame->signature_hash
						     : frame_name_hash(frame->signature));
}

bool frame_line_changes(uint64_t *votes, uint64_t value, bool is_same_line)
{
	bool changes = !is_same_line && *votes < value;

	*votes = is_same_line ? *votes + value : changes ? value - *votes : *votes - value;
	return changes;
}

bool frame_is_function(const struct flame_frame *frame)
{
	return frame->kind != FRAME_root && frame->kind != FRAME_group &&
	       frame->kind != FRAME_incomplete && frame->kind != FRAME_cut &&
	       frame->kind != FRAME_idle;
}

uint64_t frame_function_hash(const struct flame_frame *frame)
{
	return hash_word(frame_names_hash(frame), frame->module);
}

/* Hashes may be missing: 0. */
static bool same_text(const char *a, uint64_t a_hash, const char *b, uint64_t b_hash)
{
	if (a == b)
		return true;
	return a && b && (!a_hash || !b_hash || a_hash == b_hash) && !strcmp(a, b);
}

bool frame_same_function(const struct flame_frame *a, const struct flame_frame *b)
{
	return a->module == b->module && same_text(a->name, a->name_hash, b->name, b->name_hash) &&
	       same_text(a->signature, a->signature_hash, b->signature, b->signature_hash);
}

const char *frame_whole_name(const struct flame_frame *frame)
{
	return frame->signature ? frame->signature : frame->name;
}

bool frame_is_called(const struct flame_frame *frame, const char *text)
{
	return !strcmp(frame->name, text) || (frame->signature && !strcmp(frame->signature, text));
}

int frame_compare_names(const struct flame_frame *a, const struct flame_frame *b)
{
	int order = strcmp(a->name, b->name);

	return order ? order
		     : strcmp(a->signature ? a->signature : "", b->signature ? b->signature : "");
}

struct flame_tree *flame_tree_new(size_t limit_nodes)
{
	struct flame_tree *tree = calloc(1, sizeof(*tree));

	if (!tree)
		return NULL;
	tree->limit = limit_nodes < 1 ? 1 : limit_nodes;
	tree->capacity = tree->limit < 1024 ? tree->limit : 1024;
	tree->nodes = calloc(tree->capacity, sizeof(*tree->nodes));
	tree->index = calloc(1, sizeof(*tree->index));
	if (tree->index)
		tree->index->paths = calloc(tree->capacity, sizeof(*tree->index->paths));
	if (!tree->nodes || !tree->index || !tree->index->paths) {
		flame_tree_free(tree);
		return NULL;
	}
	hash_table_init(&tree->index->table, (uint32_t)tree->limit);
	tree->nodes[0].frame = (struct flame_frame){
		.name = "all", .file = "", .module = FRAME_NO_MODULE, .kind = FRAME_root};
	tree->count = 1;
	return tree;
}

static bool same_frame(const struct flame_frame *own, const struct flame_frame *other)
{
	return own->kind == other->kind && frame_same_function(own, other);
}

static bool grow(struct flame_tree *tree)
{
	size_t room = tree->capacity;

	return tree->count < tree->limit && ARRAY_GROW(tree->index->paths, tree->count, room) &&
	       ARRAY_GROW(tree->nodes, tree->count, tree->capacity);
}

static uint64_t hash_path(uint64_t path, const struct flame_frame *frame)
{
	return hash_word(path + frame_names_hash(frame),
			 (uint64_t)frame->module << 8 | (uint64_t)frame->kind);
}

static bool hash_paths(struct flame_index *index, const struct flame_frame *frames, size_t depth)
{
	uint64_t path = 0;

	if (!ARRAY_RESERVE(index->hashes, depth, index->room))
		return false;
	for (size_t i = 0; i < depth; i++) {
		path = hash_path(path, &frames[i]);
		index->hashes[i] = path;
	}
	return true;
}

static bool is_path(const struct flame_tree *tree, uint32_t node, const struct flame_frame *frames,
		    size_t depth)
{
	while (node && depth && same_frame(&tree->nodes[node].frame, &frames[depth - 1])) {
		node = tree->nodes[node].parent;
		depth--;
	}
	return !node && !depth;
}

/* The deepest node there is for the beginning of a stack; *depth: how many frames that is. Most
 * stacks share all but their last frames with another one, so the search begins at the leaf: a few
 * look-ups instead of one for each frame. */
static uint32_t find_deepest(const struct flame_tree *tree, const struct flame_frame *frames,
			     size_t *depth)
{
	const struct hash_table *table = &tree->index->table;

	for (; *depth; --*depth) {
		uint64_t hash = tree->index->hashes[*depth - 1];

		HASH_TABLE_EACH(at, table, hash)
			if (is_path(tree, at, frames, *depth))
				return at;
	}
	return 0;
}

/* 0: it did not fit. */
static uint32_t add_child(struct flame_tree *tree, uint32_t parent, const struct flame_frame *frame,
			  uint64_t hash)
{
	uint32_t at = (uint32_t)tree->count;

	if (!grow(tree) || !hash_table_add(&tree->index->table, hash, at))
		return 0;
	tree->nodes[at] = (struct flame_node){
		.frame = *frame, .parent = parent, .next_sibling = tree->nodes[parent].first_child};
	if (!frame->name_hash)
		tree->nodes[at].frame.name_hash = frame_name_hash(frame->name);
	tree->index->paths[at] = hash;
	tree->nodes[parent].first_child = at;
	tree->count++;
	return at;
}

static void vote_line(struct flame_node *node, const struct flame_frame *frame, uint64_t value)
{
	if (!frame_line_changes(&node->line_votes, value, node->frame.line == frame->line))
		return;
	node->frame.line = frame->line;
	node->frame.file = frame->file;
}

bool flame_tree_add(struct flame_tree *tree, const struct flame_frame *frames, size_t depth,
		    uint64_t value, uint64_t samples)
{
	double squares = sampling_squares(value, samples, &tree->sampling);
	size_t known = depth;
	uint32_t at;

	if (!hash_paths(tree->index, frames, depth))
		return false;
	at = find_deepest(tree, frames, &known);
	for (; known < depth; known++) {
		uint32_t child = add_child(tree, at, &frames[known], tree->index->hashes[known]);

		if (!child && (!tree->folds || tree->count < tree->limit))
			return false;
		if (!child)
			break;
		at = child;
	}
	tree->last = at;
	if (known < depth) {
		tree->nodes[at].has_more = true;
	} else {
		tree->nodes[at].self += value;
		tree->nodes[at].self_samples += samples;
		tree->nodes[at].self_squares += squares;
	}
	for (; at; at = tree->nodes[at].parent) {
		vote_line(&tree->nodes[at], &frames[--known], value);
		tree->nodes[at].total += value;
		tree->nodes[at].total_samples += samples;
		tree->nodes[at].total_squares += squares;
	}
	tree->nodes[0].total += value;
	tree->nodes[0].total_samples += samples;
	tree->nodes[0].total_squares += squares;
	return true;
}

uint32_t flame_tree_child(struct flame_tree *tree, uint32_t parent, const struct flame_frame *frame)
{
	uint64_t hash = hash_path(tree->index->paths[parent], frame);

	HASH_TABLE_EACH(at, &tree->index->table, hash)
		if (tree->nodes[at].parent == parent && same_frame(&tree->nodes[at].frame, frame))
			return at;
	return add_child(tree, parent, frame, hash);
}

uint32_t flame_tree_put(struct flame_tree *tree, uint32_t parent, const struct flame_frame *frame,
			uint64_t total, uint64_t total_samples, double total_squares)
{
	uint32_t at = (uint32_t)tree->count;

	if (!grow(tree))
		return 0;
	tree->nodes[at] = (struct flame_node){.frame = *frame,
					      .parent = parent,
					      .next_sibling = tree->nodes[parent].first_child,
					      .total = total,
					      .total_samples = total_samples,
					      .total_squares = total_squares};
	tree->nodes[parent].first_child = at;
	tree->count++;
	return at;
}

void flame_tree_sum(struct flame_tree *tree)
{
	for (size_t i = 0; i < tree->count; i++) {
		tree->nodes[i].total = tree->nodes[i].self;
		tree->nodes[i].total_samples = tree->nodes[i].self_samples;
		tree->nodes[i].total_squares = tree->nodes[i].self_squares;
	}
	for (size_t i = tree->count; --i;) {
		struct flame_node *parent = &tree->nodes[tree->nodes[i].parent];

		parent->total += tree->nodes[i].total;
		parent->total_samples += tree->nodes[i].total_samples;
		parent->total_squares += tree->nodes[i].total_squares;
	}
}

void flame_tree_free(struct flame_tree *tree)
{
	if (!tree)
		return;
	if (tree->index) {
		hash_table_release(&tree->index->table);
		free(tree->index->hashes);
		free(tree->index->paths);
	}
	free(tree->index);
	free(tree->nodes);
	free(tree);
}
