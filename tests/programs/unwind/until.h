/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs here share: they run for argv[1] seconds, and their work is spread over the
 * code that is of interest rather than over one leaf. */
#ifndef TESTS_PROGRAMS_UNWIND_UNTIL_H
#define TESTS_PROGRAMS_UNWIND_UNTIL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

static double until_end_s;
static volatile uint64_t sink;

static inline double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static inline void until_start(int argc, char **argv)
{
	until_end_s = now_s() + (argc > 1 ? atof(argv[1]) : 1);
}

static inline bool until_goes_on(void)
{
	return now_s() < until_end_s;
}

/* A little work wherever it is put. */
static inline __attribute__((always_inline)) uint64_t work(uint64_t x, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		sink += x;
	}
	return x;
}

#endif
