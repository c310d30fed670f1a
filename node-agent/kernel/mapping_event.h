/* SPDX-License-Identifier: Apache-2.0 */
/* An executable mapping appeared, as PERF_RECORD_MMAP2 tells it: without a race, also of processes
 * that are gone before anybody reads /proc. */
#ifndef NODE_AGENT_KERNEL_MAPPING_EVENT_H
#define NODE_AGENT_KERNEL_MAPPING_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/build_id.h"

struct mapping_event {
	uint64_t time_ns; /* CLOCK_MONOTONIC, as in samples */
	uint32_t tgid;
	uint64_t start, length, file_offset;
	uint32_t device_major,
		device_minor; /* 0 with a build-id: the kernel gives one or the other */
	uint64_t inode, inode_generation;
	struct build_id build_id; /* GNU; length 0: the kernel could not read it */
	bool is_anonymous;        /* "//anon", "[heap]", JIT memory */
	const char *path; /* borrowed during the call; as the process' mount namespace has it */
};

#endif
