/* SPDX-License-Identifier: Apache-2.0 */
/* Samples by perf_event_open(2) alone, for hosts and users that may not use BPF: as capture.h says,
 * but each stack arrives as registers and a copy of its memory (SAMPLE_HAS_COPY).
 *
 * Everything that runs, where that is permitted; else the processes of options.pids, which every
 * user may do for their own (kernel.perf_event_paranoid ≤ 2; above 1 without ticks of kernel code:
 * those are counted as filtered). Nothing here is newer than Linux 4.19. */
#ifndef NODE_AGENT_CAPTURE_PERF_CAPTURE_H
#define NODE_AGENT_CAPTURE_PERF_CAPTURE_H

#include "node-agent/capture/capture.h"

struct perf_capture;

struct perf_capture *perf_capture_open(const struct capture_options *options,
				       const struct capture_callbacks *callbacks,
				       struct error *err);
bool perf_capture_poll(struct perf_capture *capture, int timeout_ms, struct error *err);
uint64_t perf_capture_delivered_until_ns(const struct perf_capture *capture);
void perf_capture_watch(struct perf_capture *capture, int fd);
void perf_capture_stop(struct perf_capture *capture);
/* Timers' counts now; without it they are a second old at most, of threads' timers ten. */
void perf_capture_count(struct perf_capture *capture);
void perf_capture_totals(struct perf_capture *capture, struct capture_totals *totals);
void perf_capture_close(struct perf_capture *capture); /* NULL is fine */

#endif
