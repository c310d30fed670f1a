/* SPDX-License-Identifier: Apache-2.0 */
/* A library whose IFUNC resolver allocates: it runs while objects are being relocated, before any
 * constructor and perhaps before the allocator itself is relocated. */
#include <stdlib.h>
#include <string.h>

static int seven(void)
{
	return 7;
}

static int (*choose(void))(void)
{
	char *at = malloc(100), *other = calloc(10, 10), *moved;

	if (!at || !other)
		return NULL;
	memset(at, 1, 100);
	moved = realloc(at, 200);
	if (!moved || moved[99] != 1 || other[99])
		return NULL;
	free(other);
	free(moved);
	return seven;
}

int early_seven(void) __attribute__((ifunc("choose")));
