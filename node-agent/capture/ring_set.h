/* SPDX-License-Identifier: Apache-2.0 */
/* perf's rings of all CPUs, read in time order straight out of them: nothing is queued, what may
 * not be read yet stays where the kernel wrote it. */
#ifndef NODE_AGENT_CAPTURE_RING_SET_H
#define NODE_AGENT_CAPTURE_RING_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "node-agent/kernel/perf_event.h"

struct set_ring {
	struct perf_ring ring;
	uint64_t next_ns; /* time of the oldest record noted; UINT64_MAX: none */
	bool is_leaving;
};

struct ring_set {
	int epoll_fd; /* readable when a ring wakes its reader, until ring_set_look() */
	uint64_t (*time_of)(const void *record, size_t length);
	int *threads; /* descriptors that only have to stay open: they write into another's ring */
	size_t thread_count, thread_room;
	unsigned count;
	struct set_ring *cpus;
};

/* cpus: CPU numbers are below this. No ring is open yet. */
bool ring_set_open(struct ring_set *set, unsigned cpus,
		   uint64_t (*time_of)(const void *record, size_t length), struct error *err);
void ring_set_close(struct ring_set *set); /* also what is all zero */

/* The CPU's ring afresh, with that event as its first; takes the descriptor, also on failure. */
bool ring_set_begin(struct ring_set *set, unsigned cpu, int fd, unsigned pages, struct error *err);
/* Another event of that CPU writes into its ring; takes the descriptor, also on failure. */
bool ring_set_join(struct ring_set *set, unsigned cpu, int fd, struct error *err);
void ring_set_end(struct ring_set *set, unsigned cpu);
/* Ends once all that it wrote has been read. */
void ring_set_remove(struct ring_set *set, unsigned cpu);
bool ring_set_has(const struct ring_set *set, unsigned cpu);

/* Takes note of what the kernel has written: only that is read until the next look. */
void ring_set_look(struct ring_set *set);
/* Whose record is the oldest of all; NULL: there are none. */
struct set_ring *ring_set_oldest(struct ring_set *set);
/* After its oldest record was released, or found to be gone. */
void ring_set_note(const struct ring_set *set, struct set_ring *cpu);

#endif
