/* SPDX-License-Identifier: Apache-2.0 */
/* For the symbol tests: code of no line, and two rows at one address. */
extern int outside(int);

int line_zero(int x)
{
	__asm__ volatile(".loc 1 0\n"
			 "nop\nnop\n"
			 ".loc 1 5001\n"
			 ".loc 1 5002\n"
			 "nop\nnop\n");
	return outside(x);
}
