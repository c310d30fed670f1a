/* SPDX-License-Identifier: Apache-2.0 */
/* The process events of all CPUs, merged in time order straight out of the rings: nothing is
 * queued, what may not be delivered yet stays where the kernel wrote it. */
#ifndef NODE_AGENT_CAPTURE_PROCESS_EVENTS_H
#define NODE_AGENT_CAPTURE_PROCESS_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "node-agent/capture/capture.h"
#include "node-agent/capture/perf_records.h"

struct process_events;

/* cpus: CPU numbers are below this. The callbacks are borrowed for the object's life. */
struct process_events *process_events_new(unsigned cpus, const struct capture_callbacks *callbacks,
					  struct error *err);
/* Sees every event before the callbacks do, also those they are not told of. */
void process_events_watch(struct process_events *events,
			  void (*watch)(void *context, const struct process_event *event),
			  void *context);

/* ERROR_NOT_FOUND: the CPU went offline. Adding one that is there starts it afresh. */
bool process_events_add_cpu(struct process_events *events, unsigned cpu, struct error *err);
/* Instead: one thread's events and those of the threads and processes it starts, for which no
 * privileges are needed. ERROR_NOT_FOUND: the CPU is offline or the thread is gone. */
bool process_events_add_thread(struct process_events *events, unsigned cpu, uint32_t thread,
			       struct error *err);
/* What it wrote is still delivered. */
void process_events_remove_cpu(struct process_events *events, unsigned cpu);

/* An epoll descriptor, readable when a CPU wrote something since process_events_look(). */
int process_events_descriptor(const struct process_events *events);

/* Takes note of what the kernel has written: only that is delivered until the next look. */
void process_events_look(struct process_events *events);
/* Delivers noted events up to a time. Returns whether later ones are left. */
bool process_events_deliver(struct process_events *events, uint64_t until_ns);

uint64_t process_events_delivered(const struct process_events *events);
/* Records the kernel dropped because a ring was full, and malformed ones. */
uint64_t process_events_lost(const struct process_events *events);

void process_events_free(struct process_events *events); /* NULL is fine */

#endif
