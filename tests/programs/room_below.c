/* SPDX-License-Identifier: Apache-2.0 */
/* room_below SECONDS: spins with the stack pointer on memory that has never been touched, as a
 * function does between making room for its locals and using it. */
#include <stdlib.h>
#include <time.h>

static void __attribute__((noinline)) spin(void)
{
	/* 20000 bytes of room: a whole number of words, but not of pages */
	__asm__ volatile("sub $20000, %%rsp\n"
			 ".cfi_adjust_cfa_offset 20000\n"
			 "mov $100000000, %%ecx\n"
			 "1: dec %%ecx\n"
			 "jnz 1b\n"
			 "add $20000, %%rsp\n"
			 ".cfi_adjust_cfa_offset -20000\n"
			 :
			 :
			 : "ecx", "cc", "memory");
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atol(argv[1]) : 1);

	while (time(NULL) < end)
		spin();
	return 0;
}
