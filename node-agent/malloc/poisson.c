/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/malloc/poisson.h"

typedef unsigned __int128 uint128;

enum {
	LOG_BITS = 32,     /* of fractions of logarithms */
	ONE_BITS = 62,     /* of numbers from 0 to 2 */
	SERIES_TERMS = 20, /* 1/20! is less than they can tell apart */
	SURE = 48,         /* so many times the rate are always sampled */
};

#define ONE (UINT64_C(1) << ONE_BITS)
#define LN2 UINT64_C(0xb17217f7d1cf79ab) /* times 2^64 */

uint64_t poisson_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(0x2545f4914f6cdd1d);
}

/* log2(1 + f) within 8e-6, both in 1/2^32: f + f (1 - f) q(f), where q meets it at the Chebyshev
 * nodes. */
static uint64_t log2_one_and(uint32_t f)
{
	static const int64_t terms[] = {950592382, -593928485, 395353520, -208739348, 55171566};
	const uint64_t bow = ((uint64_t)f * (uint32_t)-f) >> 32;
	int64_t q = 0; /* in 1/2^31 */

	for (int i = 4; i >= 0; i--)
		q = terms[i] + q * (int64_t)f / (INT64_C(1) << 32);
	return f + ((bow * (uint64_t)q) >> 31);
}

/* 64 - log2(number), in 1/2^LOG_BITS; number is not 0. */
static uint64_t log2_below(uint64_t number)
{
	const unsigned zeros = (unsigned)__builtin_clzll(number);
	const uint32_t rest = (uint32_t)(number << zeros << 1 >> LOG_BITS);

	return ((uint64_t)(zeros + 1) << LOG_BITS) - log2_one_and(rest);
}

uint64_t poisson_distance(uint64_t random, uint64_t rate)
{
	const uint64_t log = (uint64_t)(((uint128)log2_below(random | 1) * LN2) >> 64);
	const uint128 distance = ((uint128)log * rate) >> LOG_BITS;

	return distance > INT64_MAX ? INT64_MAX : (uint64_t)distance;
}

static uint64_t multiply(uint64_t a, uint64_t b)
{
	return (uint64_t)(((uint128)a * b) >> ONE_BITS);
}

/* 1 - exp(-x) of x from 0 to 1: x (1 - x/2 (1 - x/3 (1 - …))). */
static uint64_t chance_small(uint64_t x)
{
	uint64_t sum = ONE;

	for (unsigned n = SERIES_TERMS; n > 1; n--)
		sum = ONE - multiply(x, sum) / n;
	return multiply(x, sum);
}

uint64_t poisson_weight(uint64_t size, uint64_t rate)
{
	unsigned halved = 0;
	uint64_t chance;
	uint128 x;

	if (size / rate >= SURE)
		return size;
	for (x = ((uint128)size << ONE_BITS) / rate; x > ONE; x /= 2)
		halved++;
	chance = chance_small((uint64_t)x);
	while (halved--) /* 1 - exp(-2x) = (1 - exp(-x)) (2 - (1 - exp(-x))) */
		chance = multiply(chance, 2 * ONE - chance);
	return chance ? (uint64_t)(((uint128)size << ONE_BITS) / chance) : rate;
}
