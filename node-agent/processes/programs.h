/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of the program that a process runs: its mappings and what it is called. The first
 * room of the registry, processes.h; every process that is sampled has it. */
#ifndef NODE_AGENT_PROCESSES_PROGRAMS_H
#define NODE_AGENT_PROCESSES_PROGRAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "node-agent/processes/mapping_set.h"
#include "node-agent/processes/processes.h"
#include "node-agent/processes/program_info.h"

/* Why maps is to be read. What looks like a return address is often none; each has a back-off of
 * its own. */
enum program_need { NEED_PERHAPS, NEED_CERTAIN };

struct program {
	struct process *process;
	bool is_complete; /* set has all executable mappings: since its exec, or maps was read */

	struct mapping_set *set; /* NULL: nothing known */
	uint32_t near;           /* where the last address was found in it */
	struct {
		uint32_t attempts;
		uint64_t next_ns;
	} maps_read[2];              /* enum program_need */
	uint64_t maps_dear_until_ns; /* the last reading cost so much */

	struct program_info *info; /* NULL: not read yet */
	uint64_t info_ns;          /* when */
	struct program_info
		*inherited; /* the parent's or predecessor's, when its own cannot be read */
	char *exec_path;    /* EXECED: the first file mapped, the program itself */
};

struct programs {
	struct processes *processes; /* borrowed; it ends what is known of them */
	uint32_t room;
};

void programs_init(struct programs *programs, struct processes *processes);

/* As processes_for_sample(), processes_find() and processes_current_or_new(). */
struct program *programs_for_sample(struct programs *programs, const struct process_key *key,
				    uint64_t time_ns);
struct program *programs_find(struct programs *programs, const struct process_key *key);
struct program *programs_current_or_new(struct programs *programs, uint32_t tgid, uint64_t time_ns);
/* As processes_parent(). */
struct program *programs_parent(struct programs *programs, const struct program *program);

/* The start time that it is known by, 0: it is not. */
uint64_t program_start_ns(const struct program *program);

#endif
