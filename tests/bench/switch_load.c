/* SPDX-License-Identifier: Apache-2.0 */
/* switch_load RATE SECONDS: two processes on CPU 0 that hand a byte to and fro, RATE context
 * switches a second in all, or as many as there is time for. Says "SWITCHES NANOSECONDS": how many
 * there were and the CPU time of both. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t cpu_ns(int who)
{
	struct rusage used;

	getrusage(who, &used);
	return (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000 +
	       (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000;
}

static void answer(int in, int out)
{
	char byte;

	while (read(in, &byte, 1) == 1)
		if (write(out, &byte, 1) != 1)
			break;
	_exit(0);
}

int main(int argc, char **argv)
{
	const struct timespec pause = {0, 2000000};
	uint64_t rate, begin, end, switches = 0;
	int to[2], from[2];
	cpu_set_t cpus;
	char byte = 1;

	if (argc < 3 || pipe(to) || pipe(from))
		return 1;
	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	sched_setaffinity(0, sizeof cpus, &cpus);
	rate = strtoull(argv[1], NULL, 10);
	if (!fork()) {
		close(to[1]);
		answer(to[0], from[1]);
	}
	begin = now_ns();
	end = begin + strtoull(argv[2], NULL, 10) * 1000000000;
	for (uint64_t now = begin; now < end; now = now_ns()) {
		if (switches * 1000000000 >= rate * (now - begin)) {
			nanosleep(&pause, NULL);
			continue;
		}
		for (int i = 0; i < 10; i++, switches += 2)
			if (write(to[1], &byte, 1) != 1 || read(from[0], &byte, 1) != 1)
				return 1;
	}
	close(to[1]);
	wait(NULL);
	printf("%llu %llu\n", (unsigned long long)switches,
	       (unsigned long long)(cpu_ns(RUSAGE_SELF) + cpu_ns(RUSAGE_CHILDREN)));
	return 0;
}
