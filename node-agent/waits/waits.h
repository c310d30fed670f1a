/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of threads that are off their CPU, until it is known for how long: the stack at which a
 * thread left, who woke it, and that it runs again come apart, in any order but the last. What is
 * kept is bounded in number and bytes. Joins capture and aggregate, as only main may. */
#ifndef NODE_AGENT_WAITS_WAITS_H
#define NODE_AGENT_WAITS_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/events.h"
#include "bpf/off_cpu.h"
#include "common/error.h"
#include "node-agent/stacks/samples.h"

struct waits_sources { /* borrowed */
	struct samples *samples;
	uint32_t types; /* bit n: enum sample_type n is wanted */
	/* What the kernel side has of a thread now. False: nothing. */
	bool (*look)(void *context, uint32_t tid, struct thread_switch *thread);
	void *context;
};

struct waits_counters {      /* cumulative, but for the last two */
	uint64_t covered_ns; /* what off-cpu samples stand for: beside the kernel's exact count */
	uint64_t run_queue_covered_ns; /* the same of run-queue */
	uint64_t off_cpu;              /* samples of that type */
	uint64_t refused;              /* stacks for which there was no room */
	uint64_t ends_unknown;         /* blocks whose end was lost */
	uint64_t too_long;             /* stacks of waits of more than an hour */
	uint32_t kept, kept_bytes;
};

struct waits;

struct waits *waits_new(const struct waits_sources *from, struct error *err);
void waits_free(struct waits *waits);

/* A stack is on its way: as capture gives it, before anything else is done with it. */
void waits_expect(struct waits *waits, const struct sample_event *sample);
/* There it is; for struct samples_sources. */
void waits_hold(void *waits, const struct sample_event *sample, size_t walked);
/* The thread runs again. */
void waits_end(struct waits *waits, const struct switch_in_event *event);

/* A sweep took the stacks of all threads that had been waiting without one for SWITCH_SWEEP_MS when
 * it started: a wait that it was in stands for itself alone, however it got its stack. To be called
 * before the ends of waits after it. */
void waits_swept(struct waits *waits, uint64_t start_ns, uint64_t end_ns);

/* At the end, when no more stacks come: waits that have ended count with what is known of them.
 * NULL too. */
void waits_finish(struct waits *waits);

/* At the end of an interval: threads that have been waiting for long are still-blocked, by the time
 * that they waited in the interval, or since they began if it was not said yet. */
void waits_report(struct waits *waits, uint64_t now_ns);

void waits_counters(const struct waits *waits, struct waits_counters *out);

#endif
