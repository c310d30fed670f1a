/* SPDX-License-Identifier: Apache-2.0 */
/* Code whose call frame information is left out, or only in .debug_frame, called from and calling
 * code that has it (qsort of libc): what is known about such code depends on how this file is
 * built. */
#include "tests/programs/unwind/until.h"

static NOINLINE uint64_t leaf(uint64_t x)
{
	return work(x, 15);
}

static NOINLINE int compare(const void *a, const void *b)
{
	uint64_t x = leaf(*(const uint64_t *)a), y = leaf(*(const uint64_t *)b);

	return (x > y) - (x < y);
}

static NOINLINE uint64_t sorted(uint64_t x, int count)
{
	uint64_t values[64];

	for (int i = 0; i < count; i++)
		values[i] = x = work(x | 1, 2);
	qsort(values, (size_t)count, sizeof(values[0]), compare);
	return work(values[0], 10);
}

static NOINLINE uint64_t outer(uint64_t x, int count)
{
	uint64_t a = x * 7, b = sorted(x, count), c = work(x, 10);

	return a ^ b ^ c;
}

int main(int argc, char **argv)
{
	until_start(argc, argv);
	while (until_goes_on())
		sink += outer(sink, 64);
	return 0;
}
