/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of 100 KiB: offsets beyond 16 bits, and more stack than any copy holds. argv[2]: how many.
 */
#include "tests/programs/unwind/until.h"

static NOINLINE uint64_t big(int depth, uint64_t x)
{
	volatile char room[100 * 1024];

	room[x % sizeof(room)] = (char)work(x, 50);
	x = depth > 1 ? big(depth - 1, x + 1) : work(x, 1000);
	return work(x + (uint64_t)room[x % sizeof(room)], 50);
}

int main(int argc, char **argv)
{
	int depth = argc > 2 ? atoi(argv[2]) : 20;

	until_start(argc, argv);
	while (until_goes_on())
		sink += big(depth, sink);
	return 0;
}
