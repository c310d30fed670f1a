/* SPDX-License-Identifier: Apache-2.0 */
/* The store's stacks and the symbolizer's names, joined: each distinct location is looked up once,
 * each distinct name demangled and matched once; then stacks of frames, root first: below their
 * groups, incomplete ones below a frame that says why, inlined calls as frames of their own. */
#ifndef SYMBOL_SERVER_NAMING_NAMED_STACKS_H
#define SYMBOL_SERVER_NAMING_NAMED_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"
#include "symbol-server/flamegraph/accounting.h"
#include "symbol-server/flamegraph/flame_tree.h"
#include "symbol-server/query/pattern.h"
#include "symbol-server/store/samples_query.h"
#include "symbol-server/symbolize/symbol_table.h"
#include "symbol-server/symbolize/symbolizer.h"

enum demangle_mode { DEMANGLE_FULL, DEMANGLE_SIMPLE, DEMANGLE_NONE };

/* A function that is called by itself (ALL: also through others) is one frame, where it was first;
 * what it calls then is called there. */
enum recursion_mode { RECURSION_KEPT, RECURSION_DIRECT, RECURSION_ALL };

struct stack_view {                /* what of the stacks is shown, and how */
	const char *const *groups; /* label names, outermost first */
	unsigned group_count;
	const struct pattern *focus;       /* only stacks with a matching frame; NULL: all */
	const struct pattern *ignore;      /* no stacks with a matching frame */
	const struct build_id *build;      /* only stacks with a frame of this build; NULL: all */
	const struct pattern *hide;        /* matching frames are left out */
	const struct pattern *hide_module; /* and those of matching modules */
	const struct pattern *only_module; /* and those of all others and of none */
	uint32_t hide_kinds;               /* and those of these kinds: bits of enum frame_kind */
	const char *const *root;           /* only stacks that start with frames of these names */
	unsigned root_depth;
	bool hides_runtime;            /* and those that are an interpreter's own code */
	bool invert;                   /* leaf first, below the groups */
	enum recursion_mode recursion; /* after that */
	enum demangle_mode demangle;
	bool folds_idle;  /* stacks through idle_waits.h's functions are one frame each */
	bool joins_names; /* functions of one name and module are one, whatever their signature */
	/* Asked at every step of naming, and for each stack of named_stacks_each(), shown or not:
	 * false ends it, and an err is set. NULL: not. */
	bool (*goes_on)(void *context);
	void *context;
};

struct stack_totals { /* of the stacks that were shown */
	uint64_t value, samples;
	uint64_t unwind_incomplete, unsymbolized; /* samples */
	/* Of stacks that end in a frame without a name, and in how many modules they do. */
	uint64_t nameless_value, nameless_samples;
	uint32_t nameless_modules;
	uint64_t idle_value, idle_samples; /* folded */
};

struct named_stacks;

/* Borrows result, symbolizer and view until freed. Asks the symbolizer for what has no names yet.
 * ERROR_MEMORY, ERROR_LIMIT. */
struct named_stacks *named_stacks_new(const struct samples_result *result,
				      struct symbolizer *symbolizer, const struct stack_view *view,
				      struct error *err);

/* Root first; frames are borrowed for the call, their texts for the life of the named stacks. */
typedef bool named_stack_fn(void *context, const struct flame_frame *frames, size_t depth,
			    uint64_t value, uint64_t samples);

/* False: each() or the view's goes_on() returned false, or (err is set) memory is short. */
bool named_stacks_each(struct named_stacks *stacks, named_stack_fn *each, void *context,
		       struct stack_totals *totals, struct error *err);

/* The same stacks straight into a tree, which is summed up then: what stacks share is walked once.
 * limit: of the flame_tree_fold() that follows, so that what that would take need not be made;
 * max_nodes 0: all is made. goes_on is asked for each stack. False: goes_on() said so, the tree is
 * full, or (err is set) memory is short. */
bool named_stacks_tree(struct named_stacks *stacks, struct flame_tree *tree, bool by_samples,
		       struct flame_limit limit, bool (*goes_on)(void *context), void *context,
		       struct stack_totals *totals, struct error *err);

/* During each(): the store's stack that the frames at hand were made of. */
const struct result_stack *named_stacks_current(const struct named_stacks *stacks);
/* The frames of one of the result's locations, innermost first, those that are hidden left out:
 * borrowed, into frames[]; returns how many. */
enum { NAMED_CHAIN_MAX = SYMBOL_CHAIN_MAX };
unsigned named_stacks_location(const struct named_stacks *stacks, uint32_t location,
			       const struct flame_frame *frames[NAMED_CHAIN_MAX]);

/* By flame_frame.module. */
const struct flame_module *named_stacks_modules(const struct named_stacks *stacks, uint32_t *count);

/* Samples that have at least one frame without a name in that module (same numbers), all stacks. */
const uint64_t *named_stacks_unsymbolized(const struct named_stacks *stacks);
/* Value of the stacks that end in that module, in a frame without a name. */
const uint64_t *named_stacks_nameless(const struct named_stacks *stacks);
/* Samples that have at least one frame in that module, named or not. */
const uint64_t *named_stacks_samples(const struct named_stacks *stacks);

/* Adds why the stacks that the last named_stacks_each() showed are incomplete, and in which modules
 * their walks stopped; texts live as long as the named stacks. */
void named_stacks_incomplete(const struct named_stacks *stacks, struct accounting *accounting);

void named_stacks_free(struct named_stacks *stacks); /* NULL is fine */

#endif
