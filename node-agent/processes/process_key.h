/* SPDX-License-Identifier: Apache-2.0 */
/* Who a process is, as everything that comes out of the kernel says it: a pid may be used again,
 * and one process runs several programs in turn. */
#ifndef NODE_AGENT_PROCESSES_PROCESS_KEY_H
#define NODE_AGENT_PROCESSES_PROCESS_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/events.h"

/* Identity of one program in one process. */
struct process_key {
	uint32_t tgid;
	uint32_t exec_id;
	uint64_t start_time_ns; /* CLOCK_BOOTTIME */
};

static inline struct process_key process_key_of(const struct sample_event *sample)
{
	return (struct process_key){sample->tgid, sample->exec_id, sample->start_time_ns};
}

static inline bool process_key_is_same(const struct process_key *a, const struct process_key *b)
{
	return a->tgid == b->tgid && a->exec_id == b->exec_id &&
	       a->start_time_ns == b->start_time_ns;
}

#endif
