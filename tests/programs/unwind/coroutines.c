/* SPDX-License-Identifier: Apache-2.0 */
/* Coroutines by makecontext() on stacks from malloc: their outermost frame is __start_context. */
#include <ucontext.h>

#include "tests/programs/unwind/until.h"

enum { COROUTINES = 4, STACK_BYTES = 128 * 1024 };

static ucontext_t main_context, contexts[COROUTINES];

static NOINLINE uint64_t down(uint64_t x, int depth)
{
	volatile char room[30];

	room[0] = (char)x;
	return work(depth > 0 ? down(x + 1, depth - 1) : work(x, 2000), 10) + (uint64_t)room[0];
}

static void coroutine(int number)
{
	for (;;) {
		sink += down(sink, 3 + number * 4);
		swapcontext(&contexts[number],
			    number + 1 < COROUTINES ? &contexts[number + 1] : &main_context);
	}
}

int main(int argc, char **argv)
{
	for (int i = 0; i < COROUTINES; i++) {
		getcontext(&contexts[i]);
		contexts[i].uc_stack.ss_sp = malloc(STACK_BYTES);
		contexts[i].uc_stack.ss_size = STACK_BYTES;
		contexts[i].uc_link = &main_context;
		makecontext(&contexts[i], (void (*)(void))coroutine, 1, i);
	}
	until_start(argc, argv);
	while (until_goes_on())
		swapcontext(&main_context, &contexts[0]);
	return 0;
}
