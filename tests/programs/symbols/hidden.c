/* SPDX-License-Identifier: Apache-2.0 */
/* For the symbol tests: a function that only .gnu_debugdata tells the name of. */
extern int outside(int);

static __attribute__((noinline)) int hidden_function(int x)
{
	return outside(x) * 3;
}

int shown_function(int x)
{
	return hidden_function(x) + 1;
}
