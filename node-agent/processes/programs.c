/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/processes/programs.h"

#include <stdlib.h>

/* NULL: no process, or no memory. */
static struct program *program_of(struct programs *programs, struct process *process)
{
	struct program *program = process ? process->states[programs->room] : NULL;

	if (program || !process)
		return program;
	program = calloc(1, sizeof *program);
	if (!program)
		return NULL;
	program->process = process;
	processes_hang(programs->processes, process, programs->room, program);
	return program;
}

static void begin(void *context, struct process *process, struct process *from)
{
	struct programs *programs = context;
	struct program *program, *before;

	if (process->origin == PROCESS_SEEN) /* its samples have told more */
		return;
	program = program_of(programs, process);
	if (!program)
		return;
	program->is_complete = process->origin == PROCESS_EXECED;
	before = from ? from->states[programs->room] : NULL;
	if (!before)
		return;
	program->inherited = program_info_share(before->info ? before->info : before->inherited);
	if (process->origin == PROCESS_EXECED)
		return;
	program->set = mapping_set_share(before->set);
	program->is_complete = before->is_complete;
}

/* What was read of the pid since may have been another's. */
static void again(void *context, struct process *process)
{
	struct program *program = process->states[((struct programs *)context)->room];

	if (process->is_current)
		return;
	program_info_free(program->info);
	program->info = NULL;
	program->is_complete = false;
}

static void forget(void *context, struct process *process)
{
	struct program *program = process->states[((struct programs *)context)->room];

	mapping_set_free(program->set);
	program_info_free(program->info);
	program_info_free(program->inherited);
	free(program->exec_path);
	free(program);
}

void programs_init(struct programs *programs, struct processes *processes)
{
	programs->processes = processes;
	programs->room = processes_room(processes, &(struct process_room){.begin = begin,
									  .again = again,
									  .forget = forget,
									  .context = programs});
}

struct program *programs_for_sample(struct programs *programs, const struct process_key *key,
				    uint64_t time_ns)
{
	return program_of(programs, processes_for_sample(programs->processes, key, time_ns));
}

struct program *programs_find(struct programs *programs, const struct process_key *key)
{
	return program_of(programs, processes_find(programs->processes, key));
}

struct program *programs_current_or_new(struct programs *programs, uint32_t tgid, uint64_t time_ns)
{
	return program_of(programs, processes_current_or_new(programs->processes, tgid, time_ns));
}

struct program *programs_parent(struct programs *programs, const struct program *program)
{
	return program_of(programs, processes_parent(programs->processes, program->process));
}

uint64_t program_start_ns(const struct program *program)
{
	return program->process->is_identified ? program->process->key.start_time_ns : 0;
}
