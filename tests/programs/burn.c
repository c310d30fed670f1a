/* SPDX-License-Identifier: Apache-2.0 */
/* burn PERCENT SECONDS: uses so much of one CPU, then prints the CPU seconds it used, as getrusage
 * counts them. The bursts' lengths vary, so that no sampling clock can fall into step with them. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static double now_s(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static __attribute__((noinline)) void burn_until(double cpu_end_s)
{
	volatile unsigned work = 1;

	while (now_s(CLOCK_PROCESS_CPUTIME_ID) < cpu_end_s)
		for (int i = 0; i < 2000; i++)
			work = work * 1664525u + 1013904223u;
}

int main(int argc, char **argv)
{
	double share = argc > 1 ? atof(argv[1]) / 100 : 0.5, seconds = argc > 2 ? atof(argv[2]) : 1;
	double start_s = now_s(CLOCK_MONOTONIC), elapsed_s;
	struct rusage usage;

	srand(1);
	/* Behind its share: burn up to it; ahead: sleep. So a busy machine delays but does not
	 * change the shares while there is time left. */
	while ((elapsed_s = now_s(CLOCK_MONOTONIC) - start_s) < seconds) {
		double used_s = now_s(CLOCK_PROCESS_CPUTIME_ID);

		if (used_s < elapsed_s * share)
			burn_until(used_s + 0.002 + 0.01 * rand() / RAND_MAX);
		else
			nanosleep(&(struct timespec){.tv_nsec = 1000000 + rand() % 4000000}, NULL);
	}
	getrusage(RUSAGE_SELF, &usage);
	printf("%.6f\n", (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
				 (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
	return 0;
}
