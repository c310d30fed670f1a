/* SPDX-License-Identifier: Apache-2.0 */
/* Recursion 600 deep, or as deep as argv[2] says, without frame pointers. */
#include "tests/programs/unwind/until.h"

static NOINLINE uint64_t down(int depth, uint64_t x)
{
	volatile char room[40];

	room[0] = (char)x;
	return work((depth <= 1 ? work(x, 20000) : down(depth - 1, x + 1)) + (uint64_t)room[0], 2);
}

int main(int argc, char **argv)
{
	int depth = argc > 2 ? atoi(argv[2]) : 600;

	until_start(argc, argv);
	while (until_goes_on())
		sink += down(depth, sink);
	return 0;
}
