/* SPDX-License-Identifier: Apache-2.0 */
/* A program with an allocator of its own, of which it has only the half: the C library's other
 * functions end there too. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char arena[64 << 20];
static size_t used;

void *malloc(size_t size)
{
	size_t *at = (size_t *)(arena + used);

	used += (size + 31) / 16 * 16;
	*at = size;
	return at + 2;
}

void free(void *block)
{
	(void)block;
}

void *realloc(void *block, size_t size)
{
	void *at = malloc(size);

	if (block)
		memcpy(at, block, ((size_t *)block)[-2] < size ? ((size_t *)block)[-2] : size);
	return at;
}

void *calloc(size_t count, size_t size)
{
	return malloc(count * size);
}

int main(void)
{
	void *at = NULL;

	for (int i = 0; i < 100000; i++) {
		at = reallocarray(NULL, 10, 20);
		free(at);
		if ((unsigned char *)at < arena || (unsigned char *)at >= arena + sizeof arena)
			return 1;
	}
	for (int i = 0; i < 10000; i++)
		free(memalign(64, 64));
	return 0;
}
