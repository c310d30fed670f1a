/* SPDX-License-Identifier: Apache-2.0 */
/* A chain of 40 functions without frame pointers, frames of many sizes, work on every level. */
#include "tests/programs/unwind/until.h"

static NOINLINE uint64_t level_0(uint64_t x)
{
	return work(x, 40);
}

/* Locals of the given size, and values that live over the call: saved registers. */
#define LEVEL(n_, below_, bytes_)                                  \
	static NOINLINE uint64_t level_##n_(uint64_t x)            \
	{                                                          \
		volatile char room[bytes_];                        \
		uint64_t a = x * 3, b = x + 7, c = x ^ 11;         \
                                                                   \
		room[0] = (char)work(x, 3);                        \
		uint64_t r = level_##below_(x + (n_));             \
		uint64_t s = (n_) % 4 ? r : level_##below_(r);     \
		return work(s + a + b * c + (uint64_t)room[0], 2); \
	}
#define FOUR(a_, b_, c_, d_, e_) \
	LEVEL(b_, a_, 8) LEVEL(c_, b_, 40) LEVEL(d_, c_, 200) LEVEL(e_, d_, 3000)

FOUR(0, 1, 2, 3, 4)
FOUR(4, 5, 6, 7, 8)
FOUR(8, 9, 10, 11, 12)
FOUR(12, 13, 14, 15, 16)
FOUR(16, 17, 18, 19, 20)
FOUR(20, 21, 22, 23, 24)
FOUR(24, 25, 26, 27, 28)
FOUR(28, 29, 30, 31, 32)
FOUR(32, 33, 34, 35, 36)
FOUR(36, 37, 38, 39, 40)

int main(int argc, char **argv)
{
	until_start(argc, argv);
	while (until_goes_on())
		sink += level_40(sink);
	return 0;
}
