/* SPDX-License-Identifier: Apache-2.0 */
/* One function in the middle: counted stacks → the tree of its callers, the tree of its callees,
 * and its rows of the top table. Pure.
 *
 * A stack counts once, where the function is first met from the root; a call of the function
 * by itself is one of its callees. */
#ifndef SYMBOL_SERVER_FLAMEGRAPH_SANDWICH_H
#define SYMBOL_SERVER_FLAMEGRAPH_SANDWICH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol-server/flamegraph/flame_tree.h"
#include "symbol-server/flamegraph/top_table.h"

struct sandwich {
	/* The root's children are the functions found; below them, in callers who called them, up
	 * to the start of the stack, in callees what they called. Totals of both are the same. */
	struct flame_tree *callers, *callees;
	struct top_table *functions; /* those found, as /top has them */
	/* private below */
	bool (*is_wanted)(void *context, const struct flame_frame *frame);
	void *context;
	struct flame_frame *path;
	size_t path_room;
};

/* is_wanted: asked for frames that are functions. false: no memory. Release it in either case. */
bool sandwich_init(struct sandwich *sandwich, size_t limit_nodes,
		   bool (*is_wanted)(void *context, const struct flame_frame *frame),
		   void *context);
/* Root first. false: the limit or memory is reached (the trees are then unusable). */
bool sandwich_add(struct sandwich *sandwich, const struct flame_frame *frames, size_t depth,
		  uint64_t value, uint64_t samples);
void sandwich_release(struct sandwich *sandwich);

#endif
