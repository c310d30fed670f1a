/* SPDX-License-Identifier: Apache-2.0 */
/* Work in signal handlers, raised and by timer, one within the other; with -DALTERNATE on a stack
 * of their own. */
#include <signal.h>
#include <sys/time.h>

#include "tests/programs/unwind/until.h"

static char other_stack[256 * 1024] __attribute__((aligned(16)));

static NOINLINE uint64_t in_handler(uint64_t x)
{
	return work(x, 500);
}

static void on_timer(int number)
{
	sink += work(in_handler((uint64_t)number), 2000);
}

static void on_raise(int number)
{
	sink += in_handler((uint64_t)number);
	sink += work(sink, 300);
}

static NOINLINE uint64_t leaf(uint64_t x)
{
	return work(x, 100);
}

static NOINLINE uint64_t interrupted(uint64_t x)
{
	volatile char room[64];

	room[x % 64] = (char)x;
	x = leaf(x);
	raise(SIGUSR1);
	return leaf(x + (uint64_t)room[x % 64]);
}

int main(int argc, char **argv)
{
	struct sigaction timer = {.sa_handler = on_timer}, raised = {.sa_handler = on_raise};
	struct itimerval every = {{0, 1000}, {0, 1000}};

#ifdef ALTERNATE
	stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof(other_stack)};

	sigaltstack(&stack, NULL);
	timer.sa_flags = raised.sa_flags = SA_ONSTACK;
#else
	sink += (uint64_t)other_stack[0];
#endif
	sigaction(SIGALRM, &timer, NULL);
	sigaction(SIGUSR1, &raised, NULL);
	until_start(argc, argv);
	setitimer(ITIMER_REAL, &every, NULL);
	while (until_goes_on())
		sink += interrupted(sink);
	return 0;
}
