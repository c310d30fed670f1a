/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of copied stacks, and which sample each belongs to. A CPU writes a copy before its
 * sample, but the two rings may interleave the CPUs differently; a sample that found its ring full
 * leaves its copy behind. */
#ifndef NODE_AGENT_CAPTURE_STACK_COPIES_H
#define NODE_AGENT_CAPTURE_STACK_COPIES_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/events.h"
#include "node-agent/kernel/sample_ring.h"

enum {
	STACK_COPIES_HELD = 128,    /* complete records known at once; more wait in the ring */
	STACK_COPIES_WAIT_MS = 100, /* for the other of the two, before it counts as lost */
};

struct held_copy {
	const struct stack_copy_event *event; /* NULL: taken, or not a copy at all */
	uint64_t end;                         /* in the ring */
	uint64_t seen_ns;
};

struct stack_copies {
	struct sample_ring ring;
	uint64_t position; /* where the next record to look at begins */
	struct held_copy held[STACK_COPIES_HELD];
	unsigned count;
	uint64_t taken, unmatched, bytes; /* found by their samples; without one; of both */
};

/* The ring is the caller's until here. */
void stack_copies_init(struct stack_copies *copies, const struct sample_ring *ring);

/* The sample's copy, borrowed until it is given back. NULL: there is none; with *is_coming it
 * may still be written. */
const struct stack_copy_event *stack_copies_take(struct stack_copies *copies, uint32_t cpu,
						 uint64_t cpu_taken, uint64_t now_ns,
						 bool *is_coming);

/* After a sample: gives back what was taken, and what its CPU's samples have passed. delivered():
 * cpu_taken of the last sample of that CPU. */
void stack_copies_release(struct stack_copies *copies,
			  uint64_t (*delivered)(const void *context, uint32_t cpu),
			  const void *context);

/* After all samples that were there: besides, what has waited too long. Not before: the sample may
 * be one of those that are there, however long ago its copy was seen. */
void stack_copies_settle(struct stack_copies *copies,
			 uint64_t (*delivered)(const void *context, uint32_t cpu),
			 const void *context, uint64_t now_ns);

#endif
