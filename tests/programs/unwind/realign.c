/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that are realigned: locals of 64 bytes' alignment, alone, with alloca() and with arguments
 * on the stack, so that the caller's frame is reached through r10, a saved slot or rbp. */
#include <alloca.h>

#include "tests/programs/unwind/until.h"

static NOINLINE uint64_t leaf(volatile char *at, uint64_t x)
{
	*at = (char)x;
	return work(x, 40);
}

static NOINLINE uint64_t aligned(uint64_t x)
{
	_Alignas(64) volatile char room[128];

	x = leaf(room, x) + work(x, 5);
	return x + (uint64_t)room[0] + leaf(room + 64, x);
}

static NOINLINE uint64_t aligned_alloca(uint64_t x, unsigned bytes)
{
	_Alignas(64) volatile char room[128];
	volatile char *more = alloca(bytes);

	more[0] = (char)x;
	x = leaf(room, x) + aligned(x);
	return work(x + (uint64_t)room[0] + (uint64_t)more[0], 10);
}

static NOINLINE uint64_t aligned_arguments(uint64_t a, uint64_t b, uint64_t c, uint64_t d,
					   uint64_t e, uint64_t f, uint64_t on_stack,
					   unsigned bytes)
{
	_Alignas(64) volatile char room[256];
	volatile char *more = alloca(bytes);

	more[0] = (char)on_stack;
	room[0] = (char)(a + b + c);
	return aligned_alloca(a + d + e + f + on_stack, bytes) + work(on_stack, 10) +
	       (uint64_t)room[0] + (uint64_t)more[0];
}

int main(int argc, char **argv)
{
	until_start(argc, argv);
	while (until_goes_on())
		for (unsigned i = 1; i < 50; i++)
			sink += aligned_arguments(sink, i, i, i, i, i, sink + i, 16 * i);
	return 0;
}
