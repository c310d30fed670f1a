/* SPDX-License-Identifier: Apache-2.0 */
/* perf's samples of all CPUs, in time order straight out of the rings: of everything that runs, or
 * of single threads and of those they start. */
#ifndef NODE_AGENT_CAPTURE_PERF_RINGS_H
#define NODE_AGENT_CAPTURE_PERF_RINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "node-agent/kernel/perf_event.h"

struct perf_rings;

/* cpus: CPU numbers are below this; online: how many there are, which share 32 MiB. sampler: what
 * all take; its cpu and thread are not looked at, and stack_bytes is the most: less where rings
 * would hold too few samples. */
struct perf_rings *perf_rings_new(unsigned cpus, unsigned online,
				  const struct perf_sampler *sampler, struct error *err);

/* Samples from now on. ERROR_NOT_FOUND: the CPU went offline. */
bool perf_rings_add_cpu(struct perf_rings *rings, unsigned cpu, struct error *err);
/* Instead, any number of threads: samples from perf_rings_start() on. */
bool perf_rings_add_thread(struct perf_rings *rings, unsigned cpu, uint32_t thread,
			   struct error *err);
bool perf_rings_start(struct perf_rings *rings, struct error *err);
/* What it wrote is still given. */
void perf_rings_remove_cpu(struct perf_rings *rings, unsigned cpu);
bool perf_rings_has_cpu(const struct perf_rings *rings, unsigned cpu);

/* An epoll descriptor, readable when a ring has filled since perf_rings_look(). */
int perf_rings_descriptor(const struct perf_rings *rings);

/* Takes note of what the kernel has written: only that is given until the next look. */
void perf_rings_look(struct perf_rings *rings);
/* The oldest record of all, borrowed until perf_rings_release(). NULL: none. */
const void *perf_rings_next(struct perf_rings *rings, unsigned *cpu, size_t *length);
void perf_rings_release(struct perf_rings *rings, unsigned cpu, size_t length);

/* Nanoseconds counted so far: of a CPU that perf_rings_add_cpu() added, or of all and all threads.
 */
uint64_t perf_rings_cpu_count(const struct perf_rings *rings, unsigned cpu);
uint64_t perf_rings_count(const struct perf_rings *rings);

/* No samples of ours any more. The kernel tells of lost ones with the next record only: after all
 * has been read, and where some may have been lost, this lets the timers tick on for a moment. Look
 * again; samples from *stopped_ns on are none. */
void perf_rings_stop(struct perf_rings *rings, uint64_t *stopped_ns);

void perf_rings_free(struct perf_rings *rings); /* NULL is fine */

#endif
