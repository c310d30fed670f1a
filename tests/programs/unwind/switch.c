/* SPDX-License-Identifier: Apache-2.0 */
/* A small interpreter: jump tables, their cases with calls, early returns, shared tails. */
#include "tests/programs/unwind/until.h"

static NOINLINE uint64_t helper(uint64_t x)
{
	return work(x, 6);
}

static NOINLINE uint64_t interpret(uint64_t x, int depth)
{
	uint64_t stack[16] = {x}, top = 0;

	for (int i = 0; i < 64; i++) {
		x = work(x, 2);
		switch (x % 12) {
		case 0:
			stack[top & 15] = helper(x);
			break;
		case 1:
			top++;
			break;
		case 2:
			x += stack[top & 15] * 3;
			break;
		case 3:
			x ^= helper(stack[top & 15]);
			break;
		case 4:
			top--;
			break;
		case 5:
			x = depth > 0 ? interpret(x + 1, depth - 1) : x + 1;
			break;
		case 6:
			stack[(top + 1) & 15] = work(x, 9);
			break;
		case 7:
			x = helper(x) - stack[0];
			break;
		case 8:
			if (stack[top & 15] & 1)
				return x;
			break;
		case 9:
			x = work(x, 5) + (uint64_t)i;
			break;
		case 10:
			x = helper(helper(x));
			break;
		default:
			stack[x & 15] ^= x;
			break;
		}
	}
	return x;
}

int main(int argc, char **argv)
{
	uint64_t x = 88172645463325252ULL;

	until_start(argc, argv);
	while (until_goes_on())
		x = interpret(x | 1, 6);
	sink = x;
	return 0;
}
