/* SPDX-License-Identifier: Apache-2.0 */
/* Page faults of every CPU, counted by the kernel and every so many of them sampled by BPF. */
#ifndef NODE_AGENT_CAPTURE_FAULT_EVENTS_H
#define NODE_AGENT_CAPTURE_FAULT_EVENTS_H

#include <stdbool.h>

#include "common/error.h"
#include "node-agent/capture/capture.h"

struct fault_events;

/* programs is borrowed. */
struct fault_events *fault_events_new(const struct kernel_programs *programs, unsigned cpus,
				      struct error *err);
void fault_events_free(struct fault_events *events); /* NULL is fine, here and below */

/* A CPU has come, or gone. ERROR_NOT_FOUND: it is offline again already. */
bool fault_events_add_cpu(struct fault_events *events, unsigned cpu, struct error *err);
void fault_events_remove_cpu(struct fault_events *events, unsigned cpu);

/* No more samples come, and what has been counted stays. */
void fault_events_stop(struct fault_events *events);

void fault_events_count(const struct fault_events *events, struct fault_totals *totals);

#endif
