/* SPDX-License-Identifier: Apache-2.0 */
/* Many small things that are freed at once; with a ceiling. */
#ifndef COMMON_ARENA_H
#define COMMON_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct arena_block;

struct arena {
	struct arena_block *blocks;
	size_t used;  /* bytes taken from the system, what the ceiling counts */
	size_t limit;
	bool failed;  /* an allocation was refused; sticky */
};

void arena_init(struct arena *arena, size_t limit_bytes);
/* 16-byte aligned, zeroed; NULL when the ceiling or memory is reached. Zero bytes give a valid pointer. */
void *arena_alloc(struct arena *arena, size_t bytes);
/* count × size with overflow checked. */
void *arena_array(struct arena *arena, size_t count, size_t size);
void *arena_copy(struct arena *arena, const void *bytes, size_t length);
/* NUL-terminated copy of length bytes. */
char *arena_text(struct arena *arena, const char *text, size_t length);
/* Everything allocated is gone; the first block is kept for reuse. */
void arena_clear(struct arena *arena);
void arena_release(struct arena *arena);

#endif
