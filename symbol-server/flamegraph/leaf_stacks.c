/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/flamegraph/leaf_stacks.h"

#include <stdlib.h>

#include "common/array.h"

void leaf_stacks_init(struct leaf_stacks *stacks, uint32_t limit)
{
	*stacks = (struct leaf_stacks){.limit = limit};
	hash_table_init(&stacks->index, limit);
}

bool leaf_stacks_add(struct leaf_stacks *stacks, uint32_t leaf, uint64_t id, uint64_t value)
{
	uint64_t hash = hash_word(id, leaf);

	HASH_TABLE_EACH(i, &stacks->index, hash)
		if (stacks->list[i].leaf == leaf && stacks->list[i].id == id) {
			stacks->list[i].value += value;
			return true;
		}
	if (stacks->count >= stacks->limit ||
	    !ARRAY_GROW(stacks->list, stacks->count, stacks->room) ||
	    !hash_table_add(&stacks->index, hash, stacks->count))
		return false;
	stacks->list[stacks->count++] = (struct leaf_stack){id, value, leaf};
	return true;
}

static int compare(const void *left, const void *right)
{
	const struct leaf_stack *a = left, *b = right;

	if (a->leaf != b->leaf)
		return a->leaf < b->leaf ? -1 : 1;
	if (a->value != b->value)
		return a->value > b->value ? -1 : 1;
	return (a->id > b->id) - (a->id < b->id);
}

void leaf_stacks_each(struct leaf_stacks *stacks,
		      void (*fn)(void *context, uint32_t leaf, uint64_t id), void *context)
{
	if (stacks->count)
		qsort(stacks->list, stacks->count, sizeof(*stacks->list), compare);
	for (uint32_t i = 0; i < stacks->count; i++)
		if (!i || stacks->list[i].leaf != stacks->list[i - 1].leaf)
			fn(context, stacks->list[i].leaf, stacks->list[i].id);
}

void leaf_stacks_release(struct leaf_stacks *stacks)
{
	free(stacks->list);
	hash_table_release(&stacks->index);
	*stacks = (struct leaf_stacks){0};
}
