/* SPDX-License-Identifier: Apache-2.0 */
/* Who the thread of a perf record is: its records have a pid and a tid only, samples an identity
 * and names. From process events, and for what was there before them from /proc, once each. A table
 * of its own beside processes.h: it is of threads, and makes the identities by which processes are
 * known there. */
#ifndef NODE_AGENT_CAPTURE_PERF_TASKS_H
#define NODE_AGENT_CAPTURE_PERF_TASKS_H

#include <stdint.h>

#include "bpf/events.h"
#include "common/error.h"
#include "node-agent/capture/perf_records.h"

struct perf_tasks;

/* limit: most threads remembered; when there are more all are looked up afresh. proc_root: "/proc",
 * another directory in tests. */
struct perf_tasks *perf_tasks_new(uint32_t limit, const char *proc_root, struct error *err);

/* In time order with the samples. */
void perf_tasks_note(struct perf_tasks *tasks, const struct process_event *event);

/* Process events were lost: what is known may be of a pid's former owner. */
void perf_tasks_forget(struct perf_tasks *tasks);

/* Fills tgid, tid, start_time_ns, exec_id, comm and process_comm. A program keeps its identity as
 * long as it is remembered; exec_id is not the kernel's count, but grows with every exec as that
 * does. start_time_ns is exact to 10 ms: /proc has no more. */
void perf_tasks_identify(struct perf_tasks *tasks, uint32_t tgid, uint32_t tid, uint64_t time_ns,
			 struct sample_event *event);

void perf_tasks_free(struct perf_tasks *tasks); /* NULL is fine */

#endif
