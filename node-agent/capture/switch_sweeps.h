/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of threads that wait for long and left their CPU without one: every 50 ms the kernel side
 * lists them with their registers, and their memory is read from outside, by the reader of
 * strangers. What a sweep costs, there too, is bounded by its pauses. */
#ifndef NODE_AGENT_CAPTURE_SWITCH_SWEEPS_H
#define NODE_AGENT_CAPTURE_SWITCH_SWEEPS_H

#include <stdint.h>

#include "node-agent/capture/capture.h"
#include "node-agent/kernel/loader.h"

struct switch_sweeps;

/* programs and callbacks are borrowed. share: of one CPU. NULL without an error: the kernel side
 * has no sweeps. */
struct switch_sweeps *switch_sweeps_open(const struct kernel_programs *programs,
					 const struct capture_callbacks *callbacks, double share,
					 struct error *err);
void switch_sweeps_close(struct switch_sweeps *sweeps); /* NULL is fine */

/* Milliseconds until the next one is due, the given ones at most. */
int switch_sweeps_wait(const struct switch_sweeps *sweeps, uint64_t now_ns, int most_ms);

/* One sweep, if it is due. */
void switch_sweeps_run(struct switch_sweeps *sweeps, uint64_t now_ns);

void switch_sweeps_total(const struct switch_sweeps *sweeps, struct sweep_totals *totals);

/* The registers of a thread as the copy of its stack that a walk goes on with; bytes: how much of
 * the stack was read from sp − STACK_RED_ZONE on. Pure. */
void switch_sweep_describe(const struct switch_sweep_record *record, uint64_t ip, uint64_t now_ns,
			   struct sample_event *sample, struct stack_copy_event *copy,
			   uint32_t bytes);

#endif
