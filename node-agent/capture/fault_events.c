/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/capture/fault_events.h"

#include <stdlib.h>
#include <unistd.h>

#include "node-agent/kernel/perf_event.h"

enum { MINOR, MAJOR, KINDS };

/* A minor fault takes half a microsecond, a major one waits for a disk. Primes, so that no rhythm
 * of a program falls in step with the samples. */
static const uint64_t periods[KINDS] = {61, 1};
static const enum kernel_program programs_of[KINDS] = {KERNEL_PROGRAM_FAULT_MINOR,
						       KERNEL_PROGRAM_FAULT_MAJOR};

struct cpu_faults {
	int fds[KINDS]; /* −1: none */
};

struct fault_events {
	const struct kernel_programs *programs;
	struct cpu_faults *cpus;
	unsigned count;
	uint64_t ended[KINDS]; /* counted by events that are closed */
};

struct fault_events *fault_events_new(const struct kernel_programs *programs, unsigned cpus,
				      struct error *err)
{
	struct fault_events *events = calloc(1, sizeof *events);

	if (events)
		events->cpus = calloc(cpus, sizeof *events->cpus);
	if (!events || !events->cpus) {
		error_set(err, ERROR_MEMORY, "no memory for page fault events");
		fault_events_free(events);
		return NULL;
	}
	events->programs = programs;
	events->count = cpus;
	for (unsigned cpu = 0; cpu < cpus; cpu++)
		events->cpus[cpu] = (struct cpu_faults){{-1, -1}};
	return events;
}

bool fault_events_add_cpu(struct fault_events *events, unsigned cpu, struct error *err)
{
	for (int kind = 0; events && kind < KINDS; kind++) {
		int *fd = &events->cpus[cpu].fds[kind];

		if (*fd < 0)
			*fd = perf_faults_open(cpu, kind == MAJOR, periods[kind],
					       events->programs->programs[programs_of[kind]], err);
		if (*fd < 0) {
			fault_events_remove_cpu(events, cpu);
			return false;
		}
	}
	return true;
}

void fault_events_remove_cpu(struct fault_events *events, unsigned cpu)
{
	for (int kind = 0; events && kind < KINDS; kind++) {
		int *fd = &events->cpus[cpu].fds[kind];

		if (*fd < 0)
			continue;
		events->ended[kind] += perf_faults_count(*fd);
		close(*fd);
		*fd = -1;
	}
}

void fault_events_stop(struct fault_events *events)
{
	for (unsigned cpu = 0; events && cpu < events->count; cpu++)
		fault_events_remove_cpu(events, cpu);
}

void fault_events_count(const struct fault_events *events, struct fault_totals *totals)
{
	uint64_t sums[KINDS] = {0};

	*totals = (struct fault_totals){0};
	if (!events)
		return;
	for (int kind = 0; kind < KINDS; kind++) {
		sums[kind] = events->ended[kind];
		for (unsigned cpu = 0; cpu < events->count; cpu++)
			if (events->cpus[cpu].fds[kind] >= 0)
				sums[kind] += perf_faults_count(events->cpus[cpu].fds[kind]);
	}
	totals->minor = sums[MINOR];
	totals->major = sums[MAJOR];
}

void fault_events_free(struct fault_events *events)
{
	if (!events)
		return;
	if (events->cpus)
		fault_events_stop(events);
	free(events->cpus);
	free(events);
}
