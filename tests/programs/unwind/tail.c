/* SPDX-License-Identifier: Apache-2.0 */
/* Calls turned into jumps: direct, by pointer, between functions with and without a frame. */
#include "tests/programs/unwind/until.h"

typedef uint64_t (*step)(uint64_t x, int left);

static step steps[4];

static NOINLINE uint64_t leaf(uint64_t x)
{
	return work(x, 20);
}

static NOINLINE uint64_t small(uint64_t x, int left)
{
	return left <= 0 ? leaf(x) : steps[x & 3](x + 1, left - 1);
}

static NOINLINE uint64_t framed(uint64_t x, int left)
{
	volatile char room[100];

	room[x % 100] = (char)x;
	x = work(leaf(x), 4) + (uint64_t)room[x % 50];
	return steps[(x >> 3) & 3](x, left - 1);
}

static NOINLINE uint64_t saving(uint64_t x, int left)
{
	uint64_t a = leaf(x), b = leaf(x + 1), c = leaf(a + b);

	return left <= 0 ? leaf(a + b + c) : small(a ^ b ^ c, left - 1);
}

static NOINLINE uint64_t direct(uint64_t x, int left)
{
	return saving(work(x, 10), left - 1);
}

int main(int argc, char **argv)
{
	steps[0] = small, steps[1] = framed, steps[2] = saving, steps[3] = direct;
	until_start(argc, argv);
	while (until_goes_on())
		sink += small(sink, 30);
	return 0;
}
