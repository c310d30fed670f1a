/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of functions that never return as the last instruction of a function: the return address
 * belongs to the next one, or to none. */
#include <setjmp.h>

#include "tests/programs/unwind/until.h"

static jmp_buf back;

static NOINLINE uint64_t inner(uint64_t x)
{
	return work(x, 300);
}

static NOINLINE __attribute__((noreturn)) void fails(uint64_t x)
{
	sink += work(inner(x), 300);
	longjmp(back, 1);
}

/* One after the other, each ends with its call; each has another frame. */
#define CALLER(n_, bytes_)                                                     \
	static NOINLINE __attribute__((noreturn)) void caller_##n_(uint64_t x) \
	{                                                                      \
		volatile char room[bytes_];                                    \
                                                                               \
		room[x % (bytes_)] = (char)work(x, 5);                         \
		fails(x + (uint64_t)room[x % 8]);                              \
	}
CALLER(1, 24)
CALLER(2, 200)
CALLER(3, 72)
CALLER(4, 1000)

static NOINLINE void outer(uint64_t x)
{
	static void (*const callers[])(uint64_t) = {caller_1, caller_2, caller_3, caller_4};

	if (!setjmp(back))
		callers[x & 3](x);
}

int main(int argc, char **argv)
{
	until_start(argc, argv);
	while (until_goes_on())
		for (uint64_t i = 0; i < 64; i++)
			outer(i);
	return 0;
}
