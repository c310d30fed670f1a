/* SPDX-License-Identifier: Apache-2.0 */
/* Three threads of the C library and one by clone() on a stack of its own. */
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/unwind/until.h"

static NOINLINE uint64_t leaf(uint64_t x)
{
	return work(x, 400);
}

static NOINLINE uint64_t down(uint64_t x, int depth)
{
	return work(depth > 0 ? down(x + 1, depth - 1) : leaf(x), 8);
}

static void *in_thread(void *depth)
{
	uint64_t x = 1;

	while (until_goes_on())
		x += down(x, (int)(intptr_t)depth);
	return (void *)(intptr_t)(x & 1);
}

static int in_clone(void *depth)
{
	return (int)(intptr_t)in_thread(depth);
}

int main(int argc, char **argv)
{
	enum { STACK_BYTES = 256 * 1024 };
	pthread_t threads[3];
	char *stack = malloc(STACK_BYTES);

	until_start(argc, argv);
	for (intptr_t i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, in_thread, (void *)(4 + i * 10));
	/* No CLONE_SETTLS: it must not call what uses thread-local storage. */
	clone(in_clone, stack + STACK_BYTES,
	      CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD, (void *)7);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	usleep(20000);
	return 0;
}
