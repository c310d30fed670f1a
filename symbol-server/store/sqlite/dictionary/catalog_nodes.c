/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/dictionary/catalog_nodes.h"

#include <stdlib.h>

/* The index holds numbers alone and compares nodes: 4 bytes a slot. A new stack's own part is a run
 * of nodes, each the caller of the next, which is found by looking there: the index has where
 * stacks part. */
enum { INDEX_FIRST = 1024 };

static struct catalog_node *node_at(const struct catalog_nodes *nodes, uint32_t n)
{
	return &nodes->block[n / CATALOG_NODE_BLOCK][n % CATALOG_NODE_BLOCK];
}

static uint32_t slot_of(const struct catalog_nodes *nodes, uint32_t caller, uint32_t location)
{
	return (uint32_t)hash_word(0, (uint64_t)caller << 32 | location) & (nodes->index_size - 1);
}

/* The slot that has the node, or the free one where it belongs. */
static uint32_t *find_slot(const struct catalog_nodes *nodes, uint32_t caller, uint32_t location)
{
	uint32_t slot = slot_of(nodes, caller, location);

	while (nodes->index[slot]) {
		const struct catalog_node *node = node_at(nodes, nodes->index[slot]);

		if (node->caller == caller && node->location == location)
			break;
		slot = (slot + 1) & (nodes->index_size - 1);
	}
	return &nodes->index[slot];
}

/* The caller's first, made right after it. */
static bool is_next(const struct catalog_node *node, uint32_t n)
{
	return node->caller == n - 1;
}

static bool make_index(struct catalog_nodes *nodes, uint32_t size)
{
	uint32_t *index = calloc(size, sizeof *index);

	if (!index)
		return false;
	free(nodes->index);
	nodes->index = index;
	nodes->index_size = size;
	for (uint32_t n = 1; n < nodes->count; n++) {
		const struct catalog_node *node = node_at(nodes, n);

		if (!is_next(node, n))
			*find_slot(nodes, node->caller, node->location) = n;
	}
	return true;
}

static void count_indexed(struct catalog_nodes *nodes)
{
	nodes->indexed = 0;
	for (uint32_t n = 1; n < nodes->count; n++)
		nodes->indexed += !is_next(node_at(nodes, n), n);
}

/* At most three of four slots are taken. */
bool catalog_nodes_index(struct catalog_nodes *nodes)
{
	uint32_t size = nodes->index ? nodes->index_size : INDEX_FIRST;

	if (!nodes->index)
		count_indexed(nodes);
	while (nodes->indexed / 3 * 4 + 4 > size)
		size *= 2;
	return (nodes->index && size == nodes->index_size) || make_index(nodes, size);
}

/* Numbers begin with 1: the first element of the first block is nobody's. */
static bool ensure_room(struct catalog_nodes *nodes)
{
	struct catalog_node **block;

	if (!nodes->count)
		nodes->count = 1;
	if (nodes->count / CATALOG_NODE_BLOCK >= CATALOG_NODE_BLOCKS)
		return false;
	block = &nodes->block[nodes->count / CATALOG_NODE_BLOCK];
	if (!*block)
		*block = calloc(CATALOG_NODE_BLOCK, sizeof **block);
	return *block;
}

uint32_t catalog_node_take(struct catalog_nodes *nodes, uint32_t caller, uint32_t location)
{
	uint32_t next = caller + 1, *slot;

	if (next < nodes->count && is_next(node_at(nodes, next), next) &&
	    node_at(nodes, next)->location == location)
		return next;
	if (!ensure_room(nodes) || !catalog_nodes_index(nodes))
		return 0;
	slot = next < nodes->count ? find_slot(nodes, caller, location) : NULL;
	if (slot && *slot)
		return *slot;
	*node_at(nodes, nodes->count) = (struct catalog_node){caller, location};
	if (slot) {
		*slot = nodes->count;
		nodes->indexed++;
	}
	return nodes->count++;
}

size_t catalog_nodes_bytes(const struct catalog_nodes *nodes)
{
	size_t blocks = (nodes->count + (size_t)CATALOG_NODE_BLOCK - 1) / CATALOG_NODE_BLOCK;

	return blocks * CATALOG_NODE_BLOCK * sizeof(struct catalog_node) +
	       nodes->index_size * sizeof *nodes->index;
}

void catalog_nodes_drop_index(struct catalog_nodes *nodes)
{
	free(nodes->index);
	nodes->index = NULL;
	nodes->index_size = 0;
}

void catalog_nodes_release(struct catalog_nodes *nodes)
{
	for (unsigned i = 0; i < CATALOG_NODE_BLOCKS && nodes->block[i]; i++)
		free(nodes->block[i]);
	catalog_nodes_drop_index(nodes);
	nodes->count = 0;
}
