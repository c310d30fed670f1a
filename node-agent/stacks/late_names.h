/* SPDX-License-Identifier: Apache-2.0 */
/* Samples whose frames have other names soon: in code of no file whose program tells the names of
 * such code, they wait until what it has told by their time was read, about a second. Else code
 * would be called after what lay there before. And in files of which it is not known yet whether
 * they are an interpreter. Bounded as waiting_stacks.h is; what has no room is called as it is
 * known. */
#ifndef NODE_AGENT_STACKS_LATE_NAMES_H
#define NODE_AGENT_STACKS_LATE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/events.h"
#include "node-agent/processes/process_table.h"
#include "node-agent/runtimes/jit_files.h"
#include "node-agent/runtimes/runtimes.h"
#include "node-agent/stacks/waiting_stacks.h"

struct late_names { /* all zero but for the borrowed */
	struct process_table *table;
	struct jit_files *jit;     /* NULL: nothing waits for names */
	struct runtimes *runtimes; /* NULL: nothing waits for an interpreter */
	struct waiting_stacks waiting;
	uint32_t progress; /* when all were looked at */
	struct located_frame located[USER_FRAMES_MAX];
};

/* True: it waits, with whether and how it was finished. */
bool late_names_hold(struct late_names *names, const struct sample_event *sample, bool is_finished,
		     uint32_t kernel_side_count);

/* The next one that has nothing to wait for any more, or has been taken before that time; to be
 * removed by late_names_remove(). NULL: none. */
const struct waiting_stack *late_names_next(struct late_names *names, uint64_t expired_ns,
					    uint32_t *at);
void late_names_remove(struct late_names *names, uint32_t at);

void late_names_release(struct late_names *names);

#endif
