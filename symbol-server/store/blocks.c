/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/blocks.h"

#include <stdlib.h>
#include <string.h>

void blocks_init(struct blocks *blocks, size_t item_size)
{
	memset(blocks, 0, sizeof *blocks);
	blocks->item_size = (uint32_t)item_size;
}

void *blocks_add(struct blocks *blocks)
{
	uint32_t at = blocks->count / BLOCK_ITEMS;

	if (at >= BLOCKS_MAX)
		return NULL;
	if (!blocks->block[at]) {
		blocks->block[at] = calloc(BLOCK_ITEMS, blocks->item_size);
		if (!blocks->block[at])
			return NULL;
	}
	return blocks_at(blocks, blocks->count++);
}

size_t blocks_bytes(const struct blocks *blocks)
{
	size_t used = (blocks->count + (size_t)BLOCK_ITEMS - 1) / BLOCK_ITEMS;

	return used * BLOCK_ITEMS * blocks->item_size;
}

void blocks_release(struct blocks *blocks)
{
	for (unsigned i = 0; i < BLOCKS_MAX && blocks->block[i]; i++)
		free(blocks->block[i]);
	blocks_init(blocks, blocks->item_size);
}
