/* SPDX-License-Identifier: Apache-2.0 */
/* burn PERCENT SECONDS: uses so much of one CPU, then prints the CPU seconds it used, as getrusage
 * counts them, and the seconds it was on a CPU by the wall's clock, as perf's task-clock counts them:
 * more by what a hypervisor took away meanwhile. The bursts' lengths vary, so that no sampling clock
 * can fall into step with them. */
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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

/* -1: not permitted. */
static int task_clock_open(void)
{
	struct perf_event_attr clock = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof clock, .config = PERF_COUNT_SW_TASK_CLOCK};

	return (int)syscall(SYS_perf_event_open, &clock, 0, -1, -1, 0);
}

int main(int argc, char **argv)
{
	double share = argc > 1 ? atof(argv[1]) / 100 : 0.5, seconds = argc > 2 ? atof(argv[2]) : 1;
	double start_s = now_s(CLOCK_MONOTONIC), elapsed_s;
	int task_clock = task_clock_open();
	unsigned long long on_cpu_ns;
	struct rusage usage;
	double used_s;

	srand(1);
	/* Behind its share: burn up to it; ahead: sleep. So a busy machine delays but does not
	 * change the shares while there is time left. */
	while ((elapsed_s = now_s(CLOCK_MONOTONIC) - start_s) < seconds) {
		double so_far_s = now_s(CLOCK_PROCESS_CPUTIME_ID);

		if (so_far_s < elapsed_s * share)
			burn_until(so_far_s + 0.002 + 0.01 * rand() / RAND_MAX);
		else
			nanosleep(&(struct timespec){.tv_nsec = 1000000 + rand() % 4000000}, NULL);
	}
	getrusage(RUSAGE_SELF, &usage);
	used_s = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
		 (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
	if (read(task_clock, &on_cpu_ns, sizeof on_cpu_ns) != sizeof on_cpu_ns)
		on_cpu_ns = (unsigned long long)(used_s * 1e9);
	printf("%.6f %.6f\n", used_s, (double)on_cpu_ns / 1e9);
	return 0;
}
