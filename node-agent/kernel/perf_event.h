/* SPDX-License-Identifier: Apache-2.0 */
/* perf_event_open(2): the timer of one CPU, and the ring of one CPU's process events.
 * Layouts: <linux/perf_event.h>, struct perf_event_mmap_page. */
#ifndef NODE_AGENT_KERNEL_PERF_EVENT_H
#define NODE_AGENT_KERNEL_PERF_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* A disabled cpu-clock timer that runs the program every period on that CPU, idle or not. −1: no. A
 * CPU that went offline is ERROR_NOT_FOUND. */
int perf_timer_open(unsigned cpu, uint64_t period_ns, int program_fd, struct error *err);
bool perf_timer_enable(int fd, bool is_enabled, struct error *err);
/* Nanoseconds the timer has counted on its CPU; 0 when it cannot be read. */
uint64_t perf_timer_count(int fd);

struct perf_ring {
	int fd;        /* readable when a quarter is full, or at once: see perf_ring_open() */
	uint8_t *base; /* the control page, then the data; NULL: closed */
	size_t bytes;  /* of the data */
	uint64_t head,
		tail;    /* what the kernel has written up to the last look; what we have read */
	uint8_t *record; /* a copy of the record that wraps around the end */
};

enum { PERF_RECORD_BYTES_MAX = 1 << 16 }; /* perf_event_header.size is 16 bits */

/* Process events of one CPU: exec, executable mappings, fork, exit of every process that is on it,
 * with CLOCK_MONOTONIC times; every new record wakes the reader. pages: a power of two.
 * *has_build_ids is tried when true and set to false on kernels before 5.12. */
bool perf_ring_open(struct perf_ring *ring, unsigned cpu, unsigned pages, bool *has_build_ids,
		    struct error *err);
void perf_ring_close(struct perf_ring *ring); /* also what is closed */

/* Takes note of how far the kernel has written: perf_ring_next() reads up to here. */
void perf_ring_look(struct perf_ring *ring);
/* The oldest record with its header, borrowed until perf_ring_release(). NULL: none. */
const void *perf_ring_next(struct perf_ring *ring, size_t *length);
void perf_ring_release(struct perf_ring *ring, size_t length);

#endif
