/* SPDX-License-Identifier: Apache-2.0 */
/* Which stack most of the value of a tree's node or of a table's row came with. Pure. */
#ifndef SYMBOL_SERVER_FLAMEGRAPH_LEAF_STACKS_H
#define SYMBOL_SERVER_FLAMEGRAPH_LEAF_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/hash_table.h"

struct leaf_stack {
	uint64_t id, value;
	uint32_t leaf;
};

struct leaf_stacks {
	struct leaf_stack *list;
	uint32_t count;
	/* private below */
	uint32_t room, limit;
	struct hash_table index;
};

void leaf_stacks_init(struct leaf_stacks *stacks, uint32_t limit);
/* The same stack of a leaf adds up. false: the limit or memory is reached. */
bool leaf_stacks_add(struct leaf_stacks *stacks, uint32_t leaf, uint64_t id, uint64_t value);
/* Calls fn once per leaf, with its most valuable stack. Nothing can be added afterwards. */
void leaf_stacks_each(struct leaf_stacks *stacks,
		      void (*fn)(void *context, uint32_t leaf, uint64_t id), void *context);
void leaf_stacks_release(struct leaf_stacks *stacks);

#endif
