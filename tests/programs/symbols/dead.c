/* SPDX-License-Identifier: Apache-2.0 */
/* For the symbol tests: what nobody calls is thrown away by the linker, and is larger than what is
 * left is far from 0: a description of it that begins at 0 lies over the living code. */
#define FILL __asm__ volatile(".skip 70000, 0x90")

__attribute__((noinline)) int dead_first(int x)
{
	FILL;
	return x + 1;
}

__attribute__((noinline)) int live_helper(int x)
{
	return x * 7 + 1;
}

__attribute__((noinline)) int dead_second(int x)
{
	FILL;
	return dead_first(x) + 2;
}

void live_entry(void)
{
	__asm__ volatile("" : : "r"(live_helper(3)));
	for (;;)
		;
}
