/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator that would be the program's without us: the next one after us in the order of
 * symbols. Until it can be looked up, and while it is, which itself may allocate, memory comes from
 * a small arena of ours. */
#ifndef NODE_AGENT_MALLOC_NEXT_MALLOC_H
#define NODE_AGENT_MALLOC_NEXT_MALLOC_H

#include <stdbool.h>
#include <stddef.h>

struct next_malloc { /* NULL: not known yet */
	void *(*malloc)(size_t size);
	void (*free)(void *block);
	void *(*calloc)(size_t count, size_t size);
	void *(*realloc)(void *block, size_t size);
	void *(*memalign)(size_t alignment, size_t size);
	int (*posix_memalign)(void **block, size_t alignment, size_t size);
	void *(*aligned_alloc)(size_t alignment, size_t size);
	void *(*valloc)(size_t size);
	void *(*pvalloc)(size_t size);
};

extern struct next_malloc next_malloc;

/* False: not yet, and what is asked for comes from next_early_alloc(). May be called before we are
 * relocated: another object's IFUNC resolver may allocate. */
bool next_malloc_find(void);

/* All zero; NULL: too much. alignment: a power of two. Nothing is given back. */
void *next_early_alloc(size_t size, size_t alignment);
bool next_early_has(const void *block);
/* At least the bytes of such a block that are its own. */
size_t next_early_size(const void *block);

/* Whether that is the C library's own. Another one's operator new does not come by malloc(). */
bool next_malloc_is_libc(void);

#endif
