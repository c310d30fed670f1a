/* SPDX-License-Identifier: Apache-2.0 */
/* A growing array whose elements never move: one writer appends, readers look at what they were
 * told exists, without a lock. */
#ifndef SYMBOL_SERVER_STORE_BLOCKS_H
#define SYMBOL_SERVER_STORE_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

enum { BLOCK_ITEMS = 1024, BLOCKS_MAX = 4096 }; /* 4 Mi items */

struct blocks {
	void *block[BLOCKS_MAX];
	uint32_t count;
	uint32_t item_size;
};

void blocks_init(struct blocks *blocks, size_t item_size);
/* The new element, zeroed; NULL: full or out of memory. */
void *blocks_add(struct blocks *blocks);
static inline void *blocks_at(const struct blocks *blocks, uint32_t index)
{
	return (char *)blocks->block[index / BLOCK_ITEMS] +
	       (size_t)(index % BLOCK_ITEMS) * blocks->item_size;
}
size_t blocks_bytes(const struct blocks *blocks);
void blocks_release(struct blocks *blocks);

#endif
