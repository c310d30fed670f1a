/* SPDX-License-Identifier: Apache-2.0 */
/* A process' memory, for as long as one of its stacks is named: its directory is opened once
 * something has to be read. */
#ifndef NODE_AGENT_STACKS_PROCESS_MEMORY_H
#define NODE_AGENT_STACKS_PROCESS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node-agent/processes/process_key.h"

struct process_memory {
	struct process_key process;
	int directory; /* −1: not yet; −2: it cannot be */
};

void process_memory_begin(struct process_memory *memory, const struct process_key *process);
void process_memory_end(struct process_memory *memory);

/* context: a process_memory; as struct python_memory has it. */
bool process_memory_read(void *context, uint64_t address, void *to, size_t bytes);

#endif
