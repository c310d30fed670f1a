/* SPDX-License-Identifier: Apache-2.0 */
/* short_life: one program that uses 50 ms of CPU and ends.
 * short_life COUNT: starts COUNT of them one after the other, each a program of its own, and prints
 * the CPU seconds they used, as their getrusage counts them. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

static double cpu_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static __attribute__((noinline)) unsigned short_work(unsigned seed)
{
	volatile unsigned kept =
		seed; /* on the stack, so that gcc gives this leaf function a frame */

	for (int i = 0; i < 100000; i++)
		seed = seed * 1664525u + 1013904223u;
	return seed + kept;
}

int main(int argc, char **argv)
{
	char *child_arguments[] = {"short_life", NULL}, *environment[] = {NULL};
	int count = argc > 1 ? atoi(argv[1]) : 0, status;
	volatile unsigned seed = 1;
	struct rusage usage;
	pid_t pid;

	if (!count) {
		while (cpu_s() < 0.05)
			seed = short_work(seed);
		return 0;
	}
	for (int i = 0; i < count; i++) {
		if (posix_spawn(&pid, argv[0], NULL, NULL, child_arguments, environment))
			return 1;
		waitpid(pid, &status, 0);
	}
	getrusage(RUSAGE_CHILDREN, &usage);
	printf("%.6f\n", (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
				 (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
	return 0;
}
