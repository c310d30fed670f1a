/* SPDX-License-Identifier: Apache-2.0 */
/* What processes have in use of the memory that was sampled when they took it: each piece with the
 * stack that took it, until it is given back or its process ends. A piece is found by its key: the
 * address of a block, or what a runtime has in its place: Go's has one bucket for all that one
 * stack took of one size, so that its key stands for many pieces. Equal stacks are kept once;
 * number and bytes are bounded, and what there was no room for is counted. What was taken before
 * somebody watched is not known here.
 *
 * The record that a piece was taken comes first, its stack with it or later (one that had to be
 * finished), its end at any time after. Joins capture and aggregate, as only main may. */
#ifndef NODE_AGENT_ALLOCATIONS_LIVE_SET_H
#define NODE_AGENT_ALLOCATIONS_LIVE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/events.h"
#include "common/error.h"
#include "node-agent/processes/processes.h"

/* Of a stack, in use now; objects in 1/LIVE_OBJECT. The sample is as live_set_stack() got it. */
typedef void (*live_set_add)(void *context, const struct sample_event *sample, size_t walked,
			     uint64_t bytes, uint64_t objects);

enum { LIVE_OBJECT = 1024 };

struct live_piece {
	struct process_key owner;
	uint64_t key;
	uint64_t time_ns; /* of its sample, which may bring its stack later */
	uint64_t bytes;   /* what it stands for: weighted, as every sample */
	uint64_t objects; /* likewise, in 1/LIVE_OBJECT */
	bool is_bucket;   /* one more of that key, which all have the same stack and size */
};

struct live_counters { /* cumulative, but for the last four */
	uint64_t taken, freed;
	uint64_t refused;  /* pieces for which there was no room */
	uint64_t unknown;  /* given back, and not known to have been taken */
	uint64_t replaced; /* of the key of another that nobody saw given back */
	uint32_t pieces, stacks, owners, stack_bytes;
};

struct live_set;

struct live_set *live_set_new(struct processes *processes, struct error *err);
void live_set_free(struct live_set *set);

void live_set_take(struct live_set *set, const struct live_piece *piece);
/* The stack of a piece that was taken at sample->time_ns; the piece may be gone. walked: as struct
 * samples_sources' hold() has it. The sample is copied. */
void live_set_stack(struct live_set *set, uint64_t key, const struct sample_event *sample,
		    size_t walked);
void live_set_give(struct live_set *set, const struct process_key *owner, uint64_t key,
		   uint64_t time_ns);

/* Where ends were lost: of a process' buckets no more are in use than most() says of each, or
 * UINT64_MAX where it does not know. What is told later of a time up to now_ns is in that already.
 * Returns how many pieces went. */
typedef uint64_t (*live_set_most)(void *context, uint64_t key);
uint64_t live_set_bound(struct live_set *set, uint32_t tgid, live_set_most most, void *context,
			uint64_t now_ns);

/* What the process has in use is not known any more, as when it has ended or become another by
 * execve(), which is heard of from the registry. */
void live_set_end(struct live_set *set, uint32_t tgid);
/* Every stack that has something in use, once. */
void live_set_report(const struct live_set *set, live_set_add add, void *context);

void live_set_counters(const struct live_set *set, struct live_counters *out);

#endif
