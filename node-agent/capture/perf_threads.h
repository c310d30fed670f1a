/* SPDX-License-Identifier: Apache-2.0 */
/* Timers and process events for every thread that some processes have now; those they start later
 * inherit them. */
#ifndef NODE_AGENT_CAPTURE_PERF_THREADS_H
#define NODE_AGENT_CAPTURE_PERF_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "node-agent/capture/perf_rings.h"
#include "node-agent/capture/process_events.h"

/* On each CPU of is_online. Replaces the watch of the events, and delivers some of them.
 * ERROR_NOT_FOUND: a process is not there. ERROR_UNSUPPORTED: not permitted. */
bool perf_threads_add(struct process_events *events, struct perf_rings *rings,
		      const bool *is_online, unsigned cpus, const uint32_t *pids, size_t pid_count,
		      struct error *err);

#endif
