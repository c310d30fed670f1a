/* SPDX-License-Identifier: Apache-2.0 */
#include "common/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BLOCK = 4096, LARGEST_STEP = 1 << 20, ALIGNMENT = 16 };

struct arena_block {
	struct arena_block *next; /* older */
	size_t size, used;	  /* of bytes[] */
	bool is_zero;		  /* what is not used yet */
	alignas(ALIGNMENT) unsigned char bytes[];
};

void arena_init(struct arena *arena, size_t limit_bytes)
{
	*arena = (struct arena){ .limit = limit_bytes };
}

/* Blocks double up to 1 MiB; a larger request gets a block of its own size. */
static struct arena_block *add_block(struct arena *arena, size_t bytes)
{
	size_t size = arena->blocks ? arena->blocks->size * 2 : FIRST_BLOCK;
	struct arena_block *block;
	bool is_zero;

	if (size > LARGEST_STEP)
		size = LARGEST_STEP;
	if (size < bytes)
		size = bytes;
	if (size > arena->limit || arena->used > arena->limit - size)
		size = bytes; /* near the ceiling: exactly what is asked for */
	if (size > arena->limit || arena->used > arena->limit - size)
		return NULL;
	/* The system's pages are zero already. */
	is_zero = size >= LARGEST_STEP;
	block = is_zero ? calloc(1, sizeof *block + size) : malloc(sizeof *block + size);
	if (!block)
		return NULL;
	block->is_zero = is_zero;
	block->next = arena->blocks;
	block->size = size;
	block->used = 0;
	arena->blocks = block;
	arena->used += size;
	return block;
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
	struct arena_block *block = arena->blocks;
	void *at;

	if (bytes > SIZE_MAX - ALIGNMENT)
		goto refuse;
	bytes = (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	if (!bytes)
		bytes = ALIGNMENT;
	if (!block || block->size - block->used < bytes) {
		block = add_block(arena, bytes);
		if (!block)
			goto refuse;
	}
	at = block->bytes + block->used;
	block->used += bytes;
	return block->is_zero ? at : memset(at, 0, bytes);
refuse:
	arena->failed = true;
	return NULL;
}

void *arena_array(struct arena *arena, size_t count, size_t size)
{
	if (size && count > SIZE_MAX / size) {
		arena->failed = true;
		return NULL;
	}
	return arena_alloc(arena, count * size);
}

void *arena_copy(struct arena *arena, const void *bytes, size_t length)
{
	void *copy = arena_alloc(arena, length);

	if (copy && length)
		memcpy(copy, bytes, length);
	return copy;
}

char *arena_text(struct arena *arena, const char *text, size_t length)
{
	char *copy = length < SIZE_MAX ? arena_alloc(arena, length + 1) : NULL;

	if (copy && length)
		memcpy(copy, text, length);
	return copy;
}

void arena_clear(struct arena *arena)
{
	struct arena_block *block = arena->blocks;

	while (block && block->next) {
		struct arena_block *older = block->next;

		arena->used -= block->size;
		free(block);
		block = older;
	}
	if (block) {
		block->used = 0;
		block->is_zero = false;
	}
	arena->blocks = block;
	arena->failed = false;
}

void arena_release(struct arena *arena)
{
	if (!arena)
		return;
	while (arena->blocks) {
		struct arena_block *older = arena->blocks->next;

		free(arena->blocks);
		arena->blocks = older;
	}
	arena_init(arena, arena->limit);
}
