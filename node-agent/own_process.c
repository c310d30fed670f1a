/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/own_process.h"

#include <malloc.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
	NICE = -10,
	FILES_WITHOUT_LIMIT = 256, /* when the limit cannot be read */
};

void own_memory_small(void)
{
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, 64 << 10);
	mallopt(M_TRIM_THRESHOLD, 64 << 10);
}

size_t own_file_limit(size_t reserved, size_t most)
{
	struct rlimit limit;
	size_t half;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return FILES_WITHOUT_LIMIT;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur <= 2 * reserved)
		return reserved / 2;
	half = (size_t)(limit.rlim_cur - reserved) / 2;
	return half < most ? half : most;
}

/* Where sessions share the CPUs in groups, a priority counts only among a session's own: sched(7),
 * "The autogroup feature". The group takes it when it is ours alone. */
static void give_session(int nice)
{
	FILE *file;

	if (getsid(0) != getpid())
		return;
	file = fopen("/proc/self/autogroup", "we");
	if (!file)
		return;
	fprintf(file, "%d", nice);
	fclose(file);
}

void own_priority_high(void)
{
	if (getpriority(PRIO_PROCESS, 0) == 0)
		setpriority(PRIO_PROCESS, 0, NICE);
	give_session(getpriority(PRIO_PROCESS, 0));
}

unsigned long own_memory_kib(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "re");
	char line[128];
	unsigned long kib = 0;

	while (file && fgets(line, sizeof line, file))
		if (sscanf(line, "Pss: %lu kB", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib;
}
