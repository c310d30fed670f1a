/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/processes/processes.h"

#include "common/clock.h"
#include "node-agent/processes/process_entries.h"

enum {
	START_SLACK_MS = 1000, /* between a process' start and its fork event */
	KEEP_ENDED_MS = 3000,  /* samples come in time order with events, but their stacks may have
				  to wait for unwind tables */
	CHECK_AFTER_MS = 60000,
};

#define NS_PER_MS 1000000ull

static void pin(struct process *process)
{
	if (process)
		process->pins++;
}

static void unpin(struct process *process)
{
	if (process)
		process->pins--;
}

/* Another takes its place; to be unpinned. */
static void retire(struct process *process, uint64_t time_ns)
{
	if (!process)
		return;
	pin(process);
	process->is_current = false;
	process->gone_ns = time_ns; /* what /proc shows now is the next process */
	if (!process->ended_ns)
		process->ended_ns = time_ns;
}

/* The rooms are told when the next is there. */
static void retired(struct processes *processes, struct process *process)
{
	if (process)
		process_entry_ends(processes, process);
	unpin(process);
}

/* --- finding --- */

/* The hash is a bijection of the pid, so entries of one hash are of one pid; checked all the same.
 */
struct process *processes_current(struct processes *processes, uint32_t tgid)
{
	uint32_t probe = 0;

	for (struct process *p = process_entry_first(processes, tgid, &probe); p;
	     p = process_entry_next(processes, tgid, &probe))
		if (p->is_current && p->key.tgid == tgid)
			return p;
	return NULL;
}

struct process *processes_find(struct processes *processes, const struct process_key *key)
{
	uint32_t probe = 0;

	for (struct process *p = process_entry_first(processes, key->tgid, &probe); p;
	     p = process_entry_next(processes, key->tgid, &probe))
		if (p->is_identified && process_key_is_same(&p->key, key))
			return p;
	return NULL;
}

struct process *processes_current_or_new(struct processes *processes, uint32_t tgid,
					 uint64_t time_ns)
{
	struct process *process = processes_current(processes, tgid);

	return process ? process : process_entry_add(processes, tgid, PROCESS_SEEN, time_ns);
}

/* Events are in monotonic time, start times in boot time; the difference is the time suspended. A
 * suspend in between only makes a doubt of it, and then /proc is asked. */
static bool start_fits(const struct process *process, uint64_t start_time_ns)
{
	const uint64_t slack = START_SLACK_MS * NS_PER_MS;
	const uint64_t suspended = boot_time_ns() - monotonic_ns();
	const uint64_t born = process->born_ns + suspended;

	if (process->ended_ns && start_time_ns > process->ended_ns + suspended)
		return false;
	if (process->origin == PROCESS_SEEN)
		return true;
	if (start_time_ns > born + slack)
		return false; /* started after this process did: the pid was used again */
	return process->origin == PROCESS_EXECED || start_time_ns + slack >= born;
}

static bool was_running(const struct process *process, uint64_t time_ns)
{
	if (process->origin != PROCESS_SEEN && time_ns < process->born_ns)
		return false;
	/* a process goes on for some microseconds behind its exit event */
	return process->is_current || time_ns < process->ended_ns;
}

static struct process *adopt(struct processes *processes, const struct process_key *key,
			     uint64_t time_ns)
{
	uint32_t probe = 0;

	for (struct process *p = process_entry_first(processes, key->tgid, &probe); p;
	     p = process_entry_next(processes, key->tgid, &probe)) {
		if (p->is_identified || p->key.tgid != key->tgid || !was_running(p, time_ns) ||
		    !start_fits(p, key->start_time_ns))
			continue;
		p->key = *key;
		p->is_identified = true;
		return p;
	}
	return NULL;
}

/* From before the current process, and nothing is known of what ran then. */
static bool is_late(const struct process *current, const struct process_key *key, uint64_t time_ns)
{
	if (!current)
		return false;
	if (current->origin != PROCESS_SEEN && time_ns < current->born_ns)
		return true;
	return current->is_identified && current->key.start_time_ns == key->start_time_ns &&
	       (int32_t)(key->exec_id - current->key.exec_id) < 0;
}

/* What runs by its samples runs, whatever was told of it. Returns the entry of that identity. */
static struct process *run_again(struct processes *processes, struct process *process,
				 uint64_t time_ns)
{
	struct process *current = processes_current(processes, process->key.tgid);

	if (!process->ended_ns || time_ns <= process->ended_ns + PROCESS_DOUBT_NS)
		return process;
	if (process->is_current) { /* its first thread has ended, others have not */
		process_entry_runs_again(processes, process);
		process->ended_ns = 0;
		return process;
	}
	if (current && current->is_identified)
		return process;
	if (current && start_fits(current, process->key.start_time_ns)) {
		current->key = process->key;
		current->is_identified = true;
		process->is_identified = false;
		return current;
	}
	retire(current, time_ns);
	process_entry_runs_again(processes, process);
	process->ended_ns = process->gone_ns = 0;
	process->is_current = true;
	pin(process);
	retired(processes, current);
	unpin(process);
	return process;
}

/* One that nothing told of. */
static struct process *see(struct processes *processes, const struct process_key *key,
			   uint64_t time_ns)
{
	struct process *current = processes_current(processes, key->tgid), *process;

	if (is_late(current, key, time_ns))
		return NULL;
	retire(current, time_ns);
	process = process_entry_add(processes, key->tgid, PROCESS_SEEN, time_ns);
	if (process) {
		process->key = *key;
		process->is_identified = true;
	}
	pin(process);
	retired(processes, current);
	unpin(process);
	return process;
}

struct process *processes_for_sample(struct processes *processes, const struct process_key *key,
				     uint64_t time_ns)
{
	struct process *process = processes_find(processes, key);

	if (process)
		process = run_again(processes, process, time_ns);
	else
		process = adopt(processes, key, time_ns);
	if (!process)
		process = see(processes, key, time_ns);
	if (process)
		process_entry_use(processes, process, time_ns);
	return process;
}

struct process *processes_parent(struct processes *processes, const struct process *process)
{
	struct process *parent;

	if (!process->parent_serial || process->parent >= processes->slot_count)
		return NULL;
	parent = processes->slots[process->parent];
	if (!parent || parent->serial != process->parent_serial || !parent->is_current ||
	    parent->ended_ns)
		return NULL;
	return parent;
}

/* --- events --- */

static bool is_known_already(const struct process *current, uint64_t time_ns)
{
	/* a sample of the new process came before the event that tells of it */
	return current && current->is_identified && current->born_ns > time_ns;
}

/* One has ended, or none, and another has begun: all there are while rooms are told. */
static void tell(struct processes *processes, struct process *ended, struct process *begun,
		 struct process *from)
{
	pin(begun);
	pin(from);
	if (ended)
		process_entry_ends(processes, ended);
	if (begun)
		process_entry_begins(processes, begun, from);
	unpin(begun);
	unpin(from);
}

void processes_exec(struct processes *processes, uint32_t tgid, uint64_t time_ns)
{
	struct process *before = processes_current(processes, tgid), *process;

	if (is_known_already(before, time_ns)) {
		tell(processes, NULL, before, NULL);
		return;
	}
	retire(before, time_ns);
	process = process_entry_add(processes, tgid, PROCESS_EXECED, time_ns);
	tell(processes, before, process, before);
	unpin(before);
}

/* Also a parent that nothing was known of: its maps serve all its children. */
static struct process *parent_of(struct processes *processes, struct process *process,
				 uint32_t parent_tgid, uint64_t time_ns)
{
	struct process *parent = NULL;

	if (process && parent_tgid && parent_tgid != process->key.tgid)
		parent = processes_current_or_new(processes, parent_tgid, time_ns);
	if (!parent)
		return NULL;
	process->parent = parent->slot;
	process->parent_serial = parent->serial;
	return parent;
}

void processes_fork(struct processes *processes, uint32_t tgid, uint32_t parent_tgid,
		    uint64_t time_ns)
{
	struct process *before = processes_current(processes, tgid), *process;

	if (is_known_already(before, time_ns)) {
		tell(processes, NULL, before, processes_current(processes, parent_tgid));
		return;
	}
	retire(before, time_ns);
	process = process_entry_add(processes, tgid, PROCESS_FORKED, time_ns);
	pin(process);
	tell(processes, before, process, parent_of(processes, process, parent_tgid, time_ns));
	unpin(process);
	unpin(before);
}

void processes_end(struct processes *processes, struct process *process, uint64_t time_ns)
{
	process->ended_ns = time_ns;
	pin(process);
	process_entry_ends(processes, process);
	unpin(process);
}

void processes_exit(struct processes *processes, uint32_t tgid, uint64_t time_ns)
{
	struct process *process = processes_current(processes, tgid);

	if (process && !process->ended_ns && !is_known_already(process, time_ns))
		processes_end(processes, process, time_ns);
}

void processes_sweep(struct processes *processes, uint64_t time_ns)
{
	for (uint32_t i = 0; i < processes->slot_count; i++) {
		struct process *process = processes->slots[i];
		uint64_t last;

		if (!process || !process->ended_ns || process->holds)
			continue;
		last = process->ended_ns > process->used_ns ? process->ended_ns : process->used_ns;
		if (time_ns > last + KEEP_ENDED_MS * NS_PER_MS)
			process_entry_forget(processes, process);
	}
}

/* After its end, of which nobody would hear again. */
static bool is_hung_on_since(const struct process *process)
{
	return process->holds && !process->is_end_told;
}

struct process *processes_next_to_check(struct processes *processes, uint64_t time_ns)
{
	for (uint32_t i = 0; i < processes->slot_count; i++) {
		struct process *process;

		if (processes->next_check >= processes->slot_count)
			processes->next_check = 0;
		process = processes->slots[processes->next_check++];
		if (process && (!process->ended_ns || is_hung_on_since(process)) &&
		    time_ns > process->used_ns + CHECK_AFTER_MS * NS_PER_MS)
			return process;
	}
	return NULL;
}
