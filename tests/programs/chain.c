/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/programs/chain.h"

#include <sys/syscall.h>
#include <time.h>

#include "tests/programs/inline_syscall.h"

#define LEVEL __attribute__((noinline, noclone))

static inline __attribute__((always_inline)) long now_ms(void)
{
	struct timespec now;

	inline_syscall(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&now, 0);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* About a microsecond of arithmetic, so that entries and exits of functions are hit as well. The
 * volatile makes it use the stack: without, gcc gives a leaf function no frame whatever the flags
 * say. */
static LEVEL unsigned leaf(unsigned seed)
{
	volatile unsigned kept = seed;

	seed += kept;
	for (int i = 0; i < 1000; i++)
		seed = seed * 1664525u + 1013904223u;
	return seed;
}

/* Every caller does something with the result, so that no call is a jump. */
static LEVEL unsigned level_4(unsigned seed)
{
	return leaf(seed) + 4; /* call: level_4 */
}

static LEVEL unsigned level_3(unsigned seed)
{
	return level_4(seed) + 3; /* call: level_3 */
}

static LEVEL unsigned level_2(unsigned seed)
{
	return level_3(seed) + 2; /* call: level_2 */
}

static LEVEL unsigned level_1(unsigned seed)
{
	return level_2(seed) + 1; /* call: level_1 */
}

LEVEL void chain_run(long seconds)
{
	long end_ms = now_ms() + seconds * 1000;
	volatile unsigned seed = 1;

	while (now_ms() < end_ms) {
		for (int i = 0; i < 200; i++)
			seed = level_1(seed); /* call: chain_run */
	}
}
