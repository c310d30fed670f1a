/* SPDX-License-Identifier: Apache-2.0 */
/* Sampled memory: what was taken, by stack, and what of it is still in use. Joins capture and
 * aggregate, as only main may. */
#ifndef NODE_AGENT_ALLOCATIONS_ALLOCATIONS_H
#define NODE_AGENT_ALLOCATIONS_ALLOCATIONS_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/alloc.h"
#include "bpf/events.h"
#include "common/error.h"
#include "node-agent/allocations/live_set.h"
#include "node-agent/stacks/samples.h"

struct allocations_sources { /* borrowed */
	struct processes *processes; /* ends are heard of from there */
	struct samples *samples;
	uint32_t types; /* bit n: enum sample_type n is wanted */
	/* Bytes of which the process samples one on average; never 0. */
	uint64_t (*rate)(void *context, const struct sample_event *sample);
	void *context;
};

struct allocations;

struct allocations *allocations_new(const struct allocations_sources *from, struct error *err);
void allocations_free(struct allocations *allocations);

/* A stack is on its way: as capture gives it, before anything else is done with it. */
void allocations_expect(struct allocations *allocations, const struct sample_event *sample);
/* There it is; for struct samples_sources. */
void allocations_hold(struct allocations *allocations, const struct sample_event *sample,
		      size_t walked);
/* As live_set_bound(), now. */
uint64_t allocations_bound(struct allocations *allocations, uint32_t tgid, live_set_most most,
			   void *context);
void allocations_give(struct allocations *allocations, const struct alloc_free_event *event);
/* What the process has in use is not known any more. */
void allocations_end(struct allocations *allocations, uint32_t tgid);

/* At the end of an interval: what is in use then. */
void allocations_report(struct allocations *allocations);

struct allocations_counters {
	uint64_t samples; /* of mem-alloc */
	struct live_counters live;
};
void allocations_counters(const struct allocations *allocations, struct allocations_counters *out);

/* How many such pieces one stands for that was chosen by a Poisson process of one event in rate
 * bytes: 1 / (1 − exp(−bytes / rate)), in 1/LIVE_OBJECT. As scaleHeapSample() of Go's
 * runtime/pprof/protomem.go. */
uint64_t allocations_weight(uint64_t bytes, uint64_t rate);

#endif
