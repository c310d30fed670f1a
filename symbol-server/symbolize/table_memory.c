/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/table_memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAPPED_FROM = 64 << 10, HUGE_PAGE = 2 << 20 };

static void *map(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* Addresses are asked for all over a table: with pages of 2 MiB, where the kernel grants them, a
 * lookup in a big one finds its addresses translated. What does not fill such a page gets small
 * ones, or a table would take more than it is counted with. */
static void *map_huge(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), before;
	uint8_t *whole, *at;

	size = (size + page - 1) / page * page;
	whole = map(size + HUGE_PAGE);
	if (!whole)
		return NULL;
	before = (HUGE_PAGE - (uintptr_t)whole % HUGE_PAGE) % HUGE_PAGE;
	at = whole + before;
	if (before)
		munmap(whole, before);
	if (before < HUGE_PAGE)
		munmap(at + size, HUGE_PAGE - before);
	madvise(at, size / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
	return at;
}

void *table_memory_take(size_t size)
{
	if (size < MAPPED_FROM)
		return malloc(size);
	return size < HUGE_PAGE ? map(size) : map_huge(size);
}

void table_memory_give(void *memory, size_t size)
{
	if (!memory)
		return;
	if (size < MAPPED_FROM)
		free(memory);
	else
		munmap(memory, size);
}
