/* SPDX-License-Identifier: Apache-2.0 */
/* room_below SECONDS: spins with the stack pointer on memory that has never been touched, as a
 * function does between making room for its locals and using it. The loop is long: a thread that
 * went on after its sample is told by where it stands. */
#include <stdlib.h>
#include <time.h>

static void __attribute__((noinline)) spin(void)
{
	/* 20000 bytes of room: a whole number of words, but not of pages */
	__asm__ volatile("sub $20000, %%rsp\n"
			 ".cfi_adjust_cfa_offset 20000\n"
			 "mov $2000000, %%ecx\n"
			 "1: .rept 63\n"
			 "inc %%eax\n"
			 ".endr\n"
			 "dec %%ecx\n"
			 "jnz 1b\n"
			 "add $20000, %%rsp\n"
			 ".cfi_adjust_cfa_offset -20000\n"
			 :
			 :
			 : "eax", "ecx", "cc", "memory");
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atol(argv[1]) : 1);

	while (time(NULL) < end)
		spin();
	return 0;
}
