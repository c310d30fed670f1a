/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/processes/process_entries.h"

#include <stdlib.h>

#include "common/array.h"

#define NONE UINT32_MAX

struct processes *processes_new(size_t limit, struct error *err)
{
	struct processes *processes = calloc(1, sizeof(*processes));

	if (!processes) {
		error_set(err, ERROR_MEMORY, "no memory for the registry of processes");
		return NULL;
	}
	processes->limit = (uint32_t)limit;
	processes->oldest = processes->newest = NONE;
	hash_table_init(&processes->by_tgid, (uint32_t)limit);
	return processes;
}

/* --- rooms --- */

uint32_t processes_room(struct processes *processes, const struct process_room *room)
{
	if (processes->room_count == PROCESS_ROOMS_MAX)
		abort(); /* rooms are written down in the program, none comes by what it reads */
	processes->rooms[processes->room_count] = *room;
	return processes->room_count++;
}

void processes_leave(struct processes *processes, uint32_t room)
{
	if (processes)
		processes->rooms[room] = (struct process_room){0};
}

void process_entry_begins(struct processes *processes, struct process *process,
			  struct process *from)
{
	for (uint32_t i = 0; i < processes->room_count; i++)
		if (processes->rooms[i].begin)
			processes->rooms[i].begin(processes->rooms[i].context, process, from);
}

void process_entry_ends(struct processes *processes, struct process *process)
{
	if (process->is_end_told)
		return;
	process->is_end_told = true;
	for (uint32_t i = 0; i < processes->room_count; i++)
		if (process->states[i] && processes->rooms[i].end)
			processes->rooms[i].end(processes->rooms[i].context, process);
}

void process_entry_runs_again(struct processes *processes, struct process *process)
{
	process->is_end_told = false;
	for (uint32_t i = 0; i < processes->room_count; i++)
		if (process->states[i] && processes->rooms[i].again)
			processes->rooms[i].again(processes->rooms[i].context, process);
}

static void free_process(struct processes *processes, struct process *process)
{
	for (uint32_t i = 0; i < processes->room_count; i++)
		if (process->states[i] && processes->rooms[i].forget)
			processes->rooms[i].forget(processes->rooms[i].context, process);
	free(process);
}

void processes_free(struct processes *processes)
{
	if (!processes)
		return;
	for (uint32_t i = 0; i < processes->slot_count; i++)
		if (processes->slots[i])
			free_process(processes, processes->slots[i]);
	hash_table_release(&processes->by_tgid);
	free(processes->slots);
	free(processes);
}

void processes_counters(const struct processes *processes, struct processes_counters *out)
{
	*out = processes->counters;
	out->count = processes->live;
}

/* --- by last sample; without those that are held --- */

static void unlink_process(struct processes *processes, struct process *process)
{
	if (process->older != NONE)
		processes->slots[process->older]->newer = process->newer;
	else
		processes->oldest = process->newer;
	if (process->newer != NONE)
		processes->slots[process->newer]->older = process->older;
	else
		processes->newest = process->older;
}

static void link_newest(struct processes *processes, struct process *process)
{
	process->older = processes->newest;
	process->newer = NONE;
	if (processes->newest != NONE)
		processes->slots[processes->newest]->newer = process->slot;
	else
		processes->oldest = process->slot;
	processes->newest = process->slot;
}

void process_entry_use(struct processes *processes, struct process *process, uint64_t time_ns)
{
	if (time_ns > process->used_ns)
		process->used_ns = time_ns;
	if (process->holds || processes->newest == process->slot)
		return;
	unlink_process(processes, process);
	link_newest(processes, process);
}

void processes_hang(struct processes *processes, struct process *process, uint32_t room,
		    void *state)
{
	const bool had = process->states[room];

	process->states[room] = state;
	if (state)
		process->is_end_told = false; /* it may have ended already */
	if (!processes->rooms[room].holds || had == (state != NULL))
		return;
	if (state && !process->holds++)
		unlink_process(processes, process);
	else if (!state && !--process->holds)
		link_newest(processes, process);
}

/* --- making and forgetting --- */

static uint64_t tgid_hash(uint32_t tgid)
{
	return hash_word(0, tgid);
}

void process_entry_forget(struct processes *processes, struct process *process)
{
	unlink_process(processes, process);
	hash_table_remove(&processes->by_tgid, tgid_hash(process->key.tgid), process->slot);
	processes->slots[process->slot] = NULL;
	if (process->slot < processes->first_hole)
		processes->first_hole = process->slot;
	processes->live--;
	free_process(processes, process);
}

static bool take_slot(struct processes *processes, uint32_t *slot)
{
	while (processes->first_hole < processes->slot_count &&
	       processes->slots[processes->first_hole])
		processes->first_hole++;
	if (!ARRAY_GROW(processes->slots, processes->first_hole, processes->capacity))
		return false;
	*slot = processes->first_hole;
	if (*slot == processes->slot_count)
		processes->slots[processes->slot_count++] = NULL;
	return true;
}

static void push_out(struct processes *processes)
{
	uint32_t at = processes->oldest;

	while (at != NONE && processes->slots[at]->pins)
		at = processes->slots[at]->newer;
	if (at == NONE)
		return;
	process_entry_forget(processes, processes->slots[at]);
	processes->counters.pushed_out++;
}

struct process *process_entry_add(struct processes *processes, uint32_t tgid,
				  enum process_origin origin, uint64_t time_ns)
{
	struct process *process;
	uint32_t slot;

	if (processes->live >= processes->limit)
		push_out(processes);
	process = calloc(1, sizeof(*process));
	if (!process || !take_slot(processes, &slot) ||
	    !hash_table_add(&processes->by_tgid, tgid_hash(tgid), slot)) {
		free(process);
		processes->counters.refused++;
		return NULL;
	}
	process->key.tgid = tgid;
	process->is_current = true;
	process->origin = origin;
	process->born_ns = process->used_ns = time_ns;
	process->slot = slot;
	process->serial = ++processes->last_serial ? processes->last_serial
						   : ++processes->last_serial;
	processes->slots[slot] = process;
	processes->live++;
	link_newest(processes, process);
	return process;
}

struct process *process_entry_first(const struct processes *processes, uint32_t tgid,
				    uint32_t *probe)
{
	uint32_t slot = hash_table_first(&processes->by_tgid, tgid_hash(tgid), probe);

	return slot == HASH_TABLE_NONE ? NULL : processes->slots[slot];
}

struct process *process_entry_next(const struct processes *processes, uint32_t tgid,
				   uint32_t *probe)
{
	uint32_t slot = hash_table_next(&processes->by_tgid, tgid_hash(tgid), probe);

	return slot == HASH_TABLE_NONE ? NULL : processes->slots[slot];
}
