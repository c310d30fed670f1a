/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/malloc/next_malloc.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>

#include "node-agent/malloc/sampled_blocks.h"

enum {
	EARLY_BYTES = 256 << 10,
	EARLY_ALIGNMENT = 16,
	GLIBC_IS_MAPPED = 2, /* in a chunk's size: it is no part of a heap */
};

enum { NOT_FOUND, IS_SOUGHT, FOUND };

/* In front of an early block what glibc's malloc_usable_size() looks at. */
struct early_head {
	size_t before;
	size_t size; /* with this head; GLIBC_IS_MAPPED */
};

struct next_malloc next_malloc;

static int state;
static uint8_t early[EARLY_BYTES] __attribute__((aligned(4096)));
static size_t early_used;

/* What a relocation makes of it tells whether we are relocated. */
static const void *volatile relocated = (const void *)&relocated;

void *next_early_alloc(size_t size, size_t alignment)
{
	size_t used = __atomic_load_n(&early_used, __ATOMIC_RELAXED), begin, end;
	struct early_head *head;

	if (alignment < EARLY_ALIGNMENT)
		alignment = EARLY_ALIGNMENT;
	if (size > EARLY_BYTES || alignment > 4096)
		return NULL;
	do {
		begin = (used + sizeof *head + alignment - 1) & ~(alignment - 1);
		end = begin + ((size + EARLY_ALIGNMENT - 1) & ~(size_t)(EARLY_ALIGNMENT - 1));
		if (end > EARLY_BYTES)
			return NULL;
	} while (!__atomic_compare_exchange_n(&early_used, &used, end, true, __ATOMIC_SEQ_CST,
					      __ATOMIC_RELAXED));
	head = (struct early_head *)(early + begin) - 1;
	head->size = (end - begin + sizeof *head) | GLIBC_IS_MAPPED;
	sampled_blocks_mark((uintptr_t)(early + begin));
	return early + begin;
}

bool next_early_has(const void *block)
{
	return (uintptr_t)block - (uintptr_t)early < EARLY_BYTES;
}

size_t next_early_size(const void *block)
{
	const struct early_head *head = (const struct early_head *)block - 1;

	return (head->size & ~(size_t)GLIBC_IS_MAPPED) - sizeof *head;
}

bool next_malloc_find(void)
{
	int expected = NOT_FOUND;
	struct next_malloc found;

	if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == FOUND)
		return true;
	if (relocated != (const void *)&relocated ||
	    !__atomic_compare_exchange_n(&state, &expected, IS_SOUGHT, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST))
		return false;
	found = (struct next_malloc){
		.malloc = dlsym(RTLD_NEXT, "malloc"),
		.free = dlsym(RTLD_NEXT, "free"),
		.calloc = dlsym(RTLD_NEXT, "calloc"),
		.realloc = dlsym(RTLD_NEXT, "realloc"),
		.memalign = dlsym(RTLD_NEXT, "memalign"),
		.posix_memalign = dlsym(RTLD_NEXT, "posix_memalign"),
		.aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc"),
		.valloc = dlsym(RTLD_NEXT, "valloc"),
		.pvalloc = dlsym(RTLD_NEXT, "pvalloc"),
	};
	if (!found.malloc || !found.free || !found.calloc || !found.realloc) {
		__atomic_store_n(&state, NOT_FOUND, __ATOMIC_SEQ_CST);
		return false;
	}
	next_malloc = found;
	__atomic_store_n(&state, FOUND, __ATOMIC_RELEASE);
	return true;
}

/* The object that has it; NULL: none. */
static const void *object_of(const void *function)
{
	Dl_info info;

	return function && dladdr(function, &info) ? info.dli_fbase : NULL;
}

bool next_malloc_is_libc(void)
{
	const void *libc = object_of(dlsym(RTLD_NEXT, "abort"));

	return libc && object_of((const void *)next_malloc.malloc) == libc &&
	       object_of((const void *)next_malloc.free) == libc;
}
