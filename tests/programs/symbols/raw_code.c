/* SPDX-License-Identifier: Apache-2.0 */
int before(int x)
{
	return x + 1;
}

/* Lines that no function's description covers, as hand-written assembler has them. */
__asm__(".globl raw_code\n"
	".type raw_code,@function\n"
	"raw_code:\n"
	".loc 1 4001\n"
	"nop\nnop\n"
	".loc 1 4002\n"
	"nop\nret\n"
	".size raw_code,.-raw_code\n");

int after(int x)
{
	return x + 2;
}
