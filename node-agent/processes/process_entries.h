/* SPDX-License-Identifier: Apache-2.0 */
/* Where the registry's entries lie, processes.c's alone: found by pid, forgotten when room is
 * needed, those without a sample for longest first, and how rooms are told. */
#ifndef NODE_AGENT_PROCESSES_PROCESS_ENTRIES_H
#define NODE_AGENT_PROCESSES_PROCESS_ENTRIES_H

#include "common/hash_table.h"
#include "node-agent/processes/processes.h"

struct processes {
	struct process **slots; /* NULL: free */
	uint32_t slot_count, capacity, limit, live;
	uint32_t first_hole; /* no free slot before this one */
	uint32_t oldest, newest;
	uint32_t last_serial;
	uint32_t next_check;
	struct processes_counters counters;
	struct hash_table by_tgid; /* several processes of one pid */
	struct process_room rooms[PROCESS_ROOMS_MAX];
	uint32_t room_count;
};

/* NULL: memory, or all that there are are held; counted. */
struct process *process_entry_add(struct processes *processes, uint32_t tgid,
				  enum process_origin origin, uint64_t time_ns);
void process_entry_forget(struct processes *processes, struct process *process);
void process_entry_use(struct processes *processes, struct process *process, uint64_t time_ns);

/* All of one pid; NULL: no more. */
struct process *process_entry_first(const struct processes *processes, uint32_t tgid,
				    uint32_t *probe);
struct process *process_entry_next(const struct processes *processes, uint32_t tgid,
				   uint32_t *probe);

/* The end is told once, until it is told to run again. */
void process_entry_begins(struct processes *processes, struct process *process,
			  struct process *from);
void process_entry_ends(struct processes *processes, struct process *process);
void process_entry_runs_again(struct processes *processes, struct process *process);

#endif
