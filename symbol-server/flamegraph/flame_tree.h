/* SPDX-License-Identifier: Apache-2.0 */
/* Counted stacks of names → tree. Pure. */
#ifndef SYMBOL_SERVER_FLAMEGRAPH_FLAME_TREE_H
#define SYMBOL_SERVER_FLAMEGRAPH_FLAME_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol-server/flamegraph/sampling_error.h"

/* FRAME_KIND(name): in this order on the API ("kinds"). */
#define FRAME_KINDS(KIND) \
	KIND(root)        \
	KIND(group)       \
	KIND(native)      \
	KIND(inline)      \
	KIND(kernel)      \
	KIND(interpreter) \
	KIND(jit)         \
	KIND(gpu)         \
	KIND(unresolved)  \
	KIND(incomplete)  \
	KIND(cut)         \
	KIND(idle)        \
	KIND(runtime)
#define FRAME_KIND_ENUM(name_) FRAME_##name_,
enum frame_kind { FRAME_KINDS(FRAME_KIND_ENUM) FRAME_KIND_COUNT };

extern const char *const frame_kind_names[FRAME_KIND_COUNT];

/* FRAME_LANGUAGE(name, as the API has it): of frames that senders named. */
#define FRAME_LANGUAGES(LANGUAGE)          \
	LANGUAGE(none, "")                 \
	LANGUAGE(dotnet, ".NET")           \
	LANGUAGE(erlang, "Erlang")         \
	LANGUAGE(go, "Go")                 \
	LANGUAGE(java, "Java")             \
	LANGUAGE(javascript, "JavaScript") \
	LANGUAGE(lua, "Lua")               \
	LANGUAGE(perl, "Perl")             \
	LANGUAGE(php, "PHP")               \
	LANGUAGE(python, "Python")         \
	LANGUAGE(ruby, "Ruby")             \
	LANGUAGE(rust, "Rust")
#define FRAME_LANGUAGE_ENUM(name_, text_) LANGUAGE_##name_,
enum frame_language { FRAME_LANGUAGES(FRAME_LANGUAGE_ENUM) FRAME_LANGUAGE_COUNT };

extern const char *const frame_language_names[FRAME_LANGUAGE_COUNT];

#define FRAME_NO_MODULE UINT32_MAX

struct flame_module {
	const char *name, *build_id; /* hexadecimal, "" none */
};

struct flame_frame { /* what makes two frames the same node: name, signature, module and kind */
	const char *name;        /* borrowed for the life of the tree; compared by text */
	const char *signature;   /* likewise: what tells overloads apart; NULL: the name does */
	const char *file;        /* with its line: frame_line_changes(); "" unknown */
	uint64_t name_hash;      /* frame_name_hash(name); 0: made here, which costs its length */
	uint64_t signature_hash; /* likewise */
	uint32_t line;
	uint32_t module; /* caller's number; FRAME_NO_MODULE none */
	enum frame_kind kind;
	bool is_kernel;  /* runs in the kernel whatever its kind: unresolved, inlined */
	bool is_runtime; /* an interpreter's own code, likewise */
	uint8_t language; /* enum frame_language */
};

/* Never 0. */
uint64_t frame_name_hash(const char *name);

/* Of the name where there is no signature; made anew where the frame does not bring it. */
uint64_t frame_names_hash(const struct flame_frame *frame);

/* Of a frame that many samples have, each with its own line: whether it is from now on that of the
 * sample at hand. A vote (Boyer and Moore's): it ends as the line with more than half the value,
 * where one has that. votes: 0 before the first. */
bool frame_line_changes(uint64_t *votes, uint64_t value, bool is_same_line);

/* Not the root, a group, or what stands for stacks that are incomplete, cut or idle. */
bool frame_is_function(const struct flame_frame *frame);
/* Name, signature and module make a function, inlined or not. */
uint64_t frame_function_hash(const struct flame_frame *frame);
bool frame_same_function(const struct flame_frame *a, const struct flame_frame *b);
/* The signature, or the name where that says it all. */
const char *frame_whole_name(const struct flame_frame *frame);
/* Whether that is its name or its signature. */
bool frame_is_called(const struct flame_frame *frame, const char *text);
/* By name, then by signature. */
int frame_compare_names(const struct flame_frame *a, const struct flame_frame *b);

struct flame_node {
	struct flame_frame frame;
	uint32_t parent;                    /* index; 0 for the root itself */
	uint32_t first_child, next_sibling; /* 0: none */
	bool has_more;                      /* callees that are in total only */
	uint64_t self, total;
	uint64_t self_samples, total_samples;
	double self_squares, total_squares; /* for sampling_error() */
	uint64_t line_votes;                /* of flame_tree_add() */
	uint64_t stack; /* for the caller: the stack that most of self came with; 0: none */
};

struct flame_tree {
	struct flame_node *nodes; /* node 0 the root; parent before child */
	size_t count;
	uint64_t cut;  /* value that flame_tree_cut() folded away */
	struct sampling sampling; /* of the samples that are added as one */
	uint32_t last; /* the node that flame_tree_add() added to last */
	bool folds;    /* beyond the limit what a node has below it is in its total only */
	/* private below */
	size_t capacity, limit;
	struct flame_index *index;
};

/* NULL: no memory. The root's frame is named "all". limit_nodes < UINT32_MAX - 1. */
struct flame_tree *flame_tree_new(size_t limit_nodes);
/* Root first. false: the limit or memory is reached (the tree is then unusable; but see folds). */
bool flame_tree_add(struct flame_tree *tree, const struct flame_frame *frames, size_t depth,
		    uint64_t value, uint64_t samples);
/* Frame by frame instead: the child of that frame, made when new; 0: the limit or memory is
 * reached. Whoever adds to self and self_samples of nodes so calls flame_tree_sum() at the end. */
uint32_t flame_tree_child(struct flame_tree *tree, uint32_t parent,
			  const struct flame_frame *frame);
/* A new child in any case, with its totals; for whoever knows them and looks for nothing. */
uint32_t flame_tree_put(struct flame_tree *tree, uint32_t parent, const struct flame_frame *frame,
			uint64_t total, uint64_t total_samples, double total_squares);
void flame_tree_sum(struct flame_tree *tree); /* all totals anew, from what nodes have themselves */
/* Keeps the heaviest nodes (by total, ancestors always); what is folded away becomes one child
 * "[cut]" of its nearest kept ancestor, and tree->cut counts its value. At most max_nodes are left,
 * "[cut]" ones among them, but never less than the root and its "[cut]". Siblings end sorted by
 * total, then name; nodes are renumbered breadth first. Of nodes that
 * weigh the same the same ones stay, in whatever order the stacks were added. Nothing can be added afterwards. */
bool flame_tree_cut(struct flame_tree *tree, size_t max_nodes);

struct flame_limit {
	size_t max_nodes;
	double min_share; /* 0…1: what has a smaller part of the root's total is folded away too */
};

bool flame_tree_fold(struct flame_tree *tree, struct flame_limit limit); /* the same */
/* The least total that min_share leaves in a tree of that root. */
uint64_t flame_limit_least(struct flame_limit limit, uint64_t root_total);
/* The wanted-th largest of the totals. wanted: 1 … count. */
uint64_t flame_tree_nth_total(const uint64_t *totals, size_t count, size_t wanted);
void flame_tree_free(struct flame_tree *tree); /* NULL is fine */

#endif
