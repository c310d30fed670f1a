/* SPDX-License-Identifier: Apache-2.0 */
/* A system call without the C library: no frame of code that was built without frame pointers. Its
 * sixth argument, which the kernel does not look at here, is the call's number: who compares a
 * thread's registers at two moments sees whether it is the same call. */
#ifndef TESTS_PROGRAMS_INLINE_SYSCALL_H
#define TESTS_PROGRAMS_INLINE_SYSCALL_H

static long inline_syscalls;

static inline __attribute__((always_inline)) long inline_syscall(long number, long first,
								 long second, long third)
{
#if defined(__x86_64__)
	register long sixth __asm__("r9") = ++inline_syscalls;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(first), "S"(second), "d"(third), "r"(sixth)
			 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = first;
	register long x1 __asm__("x1") = second;
	register long x2 __asm__("x2") = third;
	register long x5 __asm__("x5") = ++inline_syscalls;

	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x5) : "memory");
	return x0;
#else
#error "no inline system call for this architecture"
#endif
}

#endif
