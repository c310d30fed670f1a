/* SPDX-License-Identifier: Apache-2.0 */
/* Unlikely parts, which the compiler moves into FUNCTION.cold elsewhere, do the work; and functions
 * with early ways out before their prologue (shrink-wrapping). */
#include "tests/programs/unwind/until.h"

static NOINLINE __attribute__((cold)) uint64_t rarely(uint64_t x)
{
	return work(x, 40);
}

static NOINLINE uint64_t leaf(uint64_t x)
{
	return work(x, 30);
}

static NOINLINE uint64_t split(uint64_t x, uint64_t *out)
{
	uint64_t a = x * 3, b = x ^ 5, c = leaf(x);

	if (__builtin_expect(x & 1, 0)) {
		*out += rarely(a + b);
		*out = work(*out + c, 40);
		*out += rarely(c);
	}
	return leaf(a + b + c);
}

static NOINLINE uint64_t wrapped(uint64_t x, uint64_t *out)
{
	if (x % 7 == 3)
		return work(x, 5);
	if (x % 7 == 4) {
		*out += 1;
		return x;
	}
	for (int i = 0; i < 4; i++)
		x += split(x, out) ^ (uint64_t)i;
	return *out & 1 ? x : split(x + *out, out);
}

int main(int argc, char **argv)
{
	uint64_t out = 0;

	until_start(argc, argv);
	while (until_goes_on())
		for (uint64_t i = 0; i < 100; i++)
			sink += wrapped(i + sink, &out);
	return 0;
}
