/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/capture/cpu_ticks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void cpu_ticks_settle(const struct cpu_ticks *cpu, uint64_t period_ns, uint64_t *idle,
		      uint64_t *missed)
{
	uint64_t expected = cpu->counted_ns / period_ns, covered = cpu->idle_ns / period_ns;
	uint64_t late = expected > cpu->ticks ? expected - cpu->ticks : 0;

	if (covered < cpu->idle_ticks)
		covered = cpu->idle_ticks;
	if (covered > cpu->idle_ticks + late)
		covered = cpu->idle_ticks + late;
	*idle = covered;
	*missed = cpu->idle_ticks + late - covered;
}

bool cpu_idle_parse(const char *line, long ticks_per_second, unsigned *cpu, uint64_t *idle_ns)
{
	uint64_t idle, waiting;

	if (sscanf(line, "cpu%u %*u %*u %*u %" SCNu64 " %" SCNu64, cpu, &idle, &waiting) != 3 ||
	    line[3] == ' ')
		return false;
	*idle_ns = (idle + waiting) * (1000000000 / (uint64_t)ticks_per_second);
	return true;
}

bool cpu_idle_read(const char *path, uint64_t *idle_ns, size_t room, struct error *err)
{
	long ticks_per_second = sysconf(_SC_CLK_TCK);
	FILE *file = fopen(path, "re");
	char line[512];
	uint64_t idle;
	unsigned cpu;

	if (!file)
		return error_set_system(err, errno, "open '%s'", path);
	/* The CPUs come first; what follows is long and dear to read. */
	while (fgets(line, sizeof line, file) && !strncmp(line, "cpu", 3))
		if (cpu_idle_parse(line, ticks_per_second > 0 ? ticks_per_second : 100, &cpu,
				   &idle) &&
		    cpu < room)
			idle_ns[cpu] = idle;
	fclose(file);
	return true;
}
