/* SPDX-License-Identifier: Apache-2.0 */
/* A parent that works between vfork() and exec of something short; with -DFORK_ONLY: the child of a
 * fork() without exec works, and its parent waits. */
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/unwind/until.h"

static NOINLINE uint64_t leaf(uint64_t x)
{
	return work(x, 3000);
}

static NOINLINE uint64_t busy(uint64_t x, int depth)
{
	return depth > 0 ? work(busy(x + 1, depth - 1), 10) : leaf(x);
}

#ifdef FORK_ONLY
int main(int argc, char **argv)
{
	pid_t child;

	until_start(argc, argv);
	sink += busy(1, 3);
	child = fork();
	if (child)
		return waitpid(child, NULL, 0) != child;
	while (until_goes_on())
		sink += busy(sink, 12);
	return 0;
}
#else
static NOINLINE void spawn(void)
{
	pid_t child = vfork();

	if (!child) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
	until_start(argc, argv);
	while (until_goes_on()) {
		for (int i = 0; i < 100; i++)
			sink += busy(sink, 5);
		spawn();
	}
	return 0;
}
#endif
