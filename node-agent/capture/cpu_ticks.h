/* SPDX-License-Identifier: Apache-2.0 */
/* Timer ticks that never came, told apart. An idle virtual CPU may get none at all (seen with
 * haltpoll guests on 6.18, whose idle loop runs expired timers without registers; perf record
 * gets no samples there either), and a hypervisor that runs something else swallows some: the
 * event's own count goes on in both cases. Pure, but for cpu_idle_read(). */
#ifndef NODE_AGENT_CAPTURE_CPU_TICKS_H
#define NODE_AGENT_CAPTURE_CPU_TICKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* One CPU, over the same time. */
struct cpu_ticks {
	uint64_t counted_ns; /* the perf event's own count */
	uint64_t ticks;      /* what the program saw of it, all kinds */
	uint64_t idle_ticks; /* those that found the CPU idle */
	uint64_t idle_ns;    /* how long the kernel says it was */
};

/* idle: idle_ticks, and of the ticks that did not come those the kernel's idle time covers.
 * missed: the others. ticks + (idle − idle_ticks) + missed = counted_ns / period_ns, unless there
 * are more ticks than the event counted. */
void cpu_ticks_settle(const struct cpu_ticks *cpu, uint64_t period_ns, uint64_t *idle,
		      uint64_t *missed);

/* A line "cpu1 user nice system idle iowait …" of /proc/stat, proc_stat(5): idle and iowait time.
 * False: another line, the sum of all CPUs too. */
bool cpu_idle_parse(const char *line, long ticks_per_second, unsigned *cpu, uint64_t *idle_ns);

/* Idle time of every CPU below room that is online, from "/proc/stat"; the others keep theirs. */
bool cpu_idle_read(const char *path, uint64_t *idle_ns, size_t room, struct error *err);

#endif
