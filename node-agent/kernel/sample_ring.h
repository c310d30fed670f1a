/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a BPF ring buffer in place, up to a point in time. Layout: Documentation/bpf/ringbuf.rst
 * and kernel/bpf/ringbuf.c; libbpf's own reader cannot stop before the end. */
#ifndef NODE_AGENT_KERNEL_SAMPLE_RING_H
#define NODE_AGENT_KERNEL_SAMPLE_RING_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct sample_ring {
	uint64_t *consumer;       /* a page of its own, ours to write */
	const uint64_t *producer; /* followed by the data, mapped twice in a row so that a record
				   * never wraps */
	const uint8_t *data;
	size_t bytes;
};

/* bytes: the map's size. */
bool sample_ring_open(struct sample_ring *ring, int map_fd, size_t bytes, struct error *err);
void sample_ring_close(struct sample_ring *ring); /* also what is all zero */

/* Where the next record will be written: all records up to here are there or being written. */
uint64_t sample_ring_end(const struct sample_ring *ring);

/* The oldest record before end, borrowed until sample_ring_release(). NULL: none is complete. */
const void *sample_ring_next(struct sample_ring *ring, uint64_t end, size_t *length);
/* Gives that record's room back to the kernel. */
void sample_ring_release(struct sample_ring *ring);

/* For readers that hold several records: the first one at or after *position that is before end;
 * *position becomes where it ends. Start at sample_ring_start(). NULL: it is not complete yet. */
const void *sample_ring_look(const struct sample_ring *ring, uint64_t *position, uint64_t end,
			     size_t *length);
uint64_t sample_ring_start(const struct sample_ring *ring); /* what is not given back yet */
/* Gives back everything before position. */
void sample_ring_release_to(struct sample_ring *ring, uint64_t position);

#endif
