/* SPDX-License-Identifier: Apache-2.0 */
/* One record of a perf ring → a process event. Pure. Format: enum perf_event_type in
 * <linux/perf_event.h>, with sample_id_all and PERF_SAMPLE_TID | PERF_SAMPLE_TIME. */
#ifndef NODE_AGENT_CAPTURE_PERF_RECORDS_H
#define NODE_AGENT_CAPTURE_PERF_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node-agent/capture/capture.h"

enum process_event_type {
	PROCESS_EVENT_OTHER, /* well-formed, but nothing we tell anybody */
	PROCESS_EVENT_EXEC,
	PROCESS_EVENT_NAME,   /* a thread got another name */
	PROCESS_EVENT_FORK,   /* a new process */
	PROCESS_EVENT_THREAD, /* a new thread */
	PROCESS_EVENT_THREAD_EXIT,
	PROCESS_EVENT_MAPPING,
	PROCESS_EVENT_LOST,
};

struct process_event {
	enum process_event_type type;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t tgid, tid;
	uint32_t parent_tgid;           /* FORK, THREAD */
	uint32_t parent_tid;            /* the same: who made it */
	char name[COMM_LENGTH];         /* EXEC, NAME: the thread's, ends with a zero */
	uint64_t lost;                  /* LOST: records that did not fit the ring */
	struct mapping_event mapping;   /* MAPPING; path points into the record */
};

/* False: the record is shorter than its type needs, or its text does not end. */
bool perf_record_parse(const void *record, size_t length, struct process_event *event);

/* Only the time at the record's end; 0 when there is none. */
uint64_t perf_record_time(const void *record, size_t length);

#endif
