/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/processes/programs.h"

#include <stdlib.h>
#include <time.h>

#include "common/hash_table.h"

enum {
	START_SLACK_MS = 1000, /* between a process' start and its fork event */
	KEEP_ENDED_MS = 3000,  /* samples come in time order with events, but their stacks may have
				  to wait for unwind tables */
	CHECK_AFTER_MS = 60000,
};

#define NONE      UINT32_MAX
#define NS_PER_MS 1000000ull

struct programs {
	struct program **slots; /* NULL: free */
	uint32_t slot_count, capacity, limit, live;
	uint32_t first_hole; /* no free slot before this one */
	uint32_t oldest, newest;
	uint32_t last_serial;
	uint32_t next_check;
	uint64_t pushed_out;
	struct hash_table by_tgid; /* several programs of one pid */
};

struct programs *programs_new(size_t limit, struct error *err)
{
	struct programs *programs = calloc(1, sizeof(*programs));

	if (!programs) {
		error_set(err, ERROR_MEMORY, "no memory for the table of programs");
		return NULL;
	}
	programs->limit = (uint32_t)limit;
	programs->oldest = programs->newest = NONE;
	hash_table_init(&programs->by_tgid, (uint32_t)limit);
	return programs;
}

static void free_program(struct program *program)
{
	mapping_set_free(program->set);
	program_info_free(program->info);
	program_info_free(program->inherited);
	free(program->exec_path);
	free(program);
}

void programs_free(struct programs *programs)
{
	if (!programs)
		return;
	for (uint32_t i = 0; i < programs->slot_count; i++)
		if (programs->slots[i])
			free_program(programs->slots[i]);
	hash_table_release(&programs->by_tgid);
	free(programs->slots);
	free(programs);
}

uint32_t programs_count(const struct programs *programs)
{
	return programs->live;
}

uint64_t programs_pushed_out(const struct programs *programs)
{
	return programs->pushed_out;
}

/* --- by last sample --- */

static void unlink_program(struct programs *programs, struct program *program)
{
	if (program->older != NONE)
		programs->slots[program->older]->newer = program->newer;
	else
		programs->oldest = program->newer;
	if (program->newer != NONE)
		programs->slots[program->newer]->older = program->older;
	else
		programs->newest = program->older;
}

static void link_newest(struct programs *programs, struct program *program)
{
	program->older = programs->newest;
	program->newer = NONE;
	if (programs->newest != NONE)
		programs->slots[programs->newest]->newer = program->slot;
	else
		programs->oldest = program->slot;
	programs->newest = program->slot;
}

static void use(struct programs *programs, struct program *program, uint64_t time_ns)
{
	if (time_ns > program->used_ns)
		program->used_ns = time_ns;
	if (programs->newest == program->slot)
		return;
	unlink_program(programs, program);
	link_newest(programs, program);
}

/* --- making and forgetting --- */

static uint64_t tgid_hash(uint32_t tgid)
{
	return hash_word(0, tgid);
}

static void forget(struct programs *programs, struct program *program)
{
	unlink_program(programs, program);
	hash_table_remove(&programs->by_tgid, tgid_hash(program->key.tgid), program->slot);
	programs->slots[program->slot] = NULL;
	if (program->slot < programs->first_hole)
		programs->first_hole = program->slot;
	programs->live--;
	free_program(program);
}

static bool take_slot(struct programs *programs, uint32_t *slot)
{
	while (programs->first_hole < programs->slot_count && programs->slots[programs->first_hole])
		programs->first_hole++;
	if (programs->first_hole == programs->capacity) {
		uint32_t capacity = programs->capacity ? programs->capacity * 2 : 64;
		struct program **grown = realloc(programs->slots, capacity * sizeof(*grown));

		if (!grown)
			return false;
		programs->slots = grown;
		programs->capacity = capacity;
	}
	*slot = programs->first_hole;
	if (*slot == programs->slot_count)
		programs->slots[programs->slot_count++] = NULL;
	return true;
}

static struct program *add_program(struct programs *programs, uint32_t tgid,
				   enum program_origin origin, uint64_t time_ns)
{
	struct program *program;
	uint32_t slot;

	if (programs->live >= programs->limit && programs->oldest != NONE) {
		forget(programs, programs->slots[programs->oldest]);
		programs->pushed_out++;
	}
	program = calloc(1, sizeof(*program));
	if (!program || !take_slot(programs, &slot) ||
	    !hash_table_add(&programs->by_tgid, tgid_hash(tgid), slot)) {
		free(program);
		return NULL;
	}
	program->key.tgid = tgid;
	program->is_current = true;
	program->origin = origin;
	program->born_ns = program->used_ns = time_ns;
	program->slot = slot;
	program->serial = ++programs->last_serial ? programs->last_serial : ++programs->last_serial;
	programs->slots[slot] = program;
	programs->live++;
	link_newest(programs, program);
	return program;
}

static void retire(struct program *program, uint64_t time_ns)
{
	if (!program)
		return;
	program->is_current = false;
	program->gone_ns = time_ns; /* what /proc shows now is the next program */
	if (!program->ended_ns)
		program->ended_ns = time_ns;
}

/* --- finding --- */

static struct program *first_of(struct programs *programs, uint32_t tgid, uint32_t *probe)
{
	uint32_t slot = hash_table_first(&programs->by_tgid, tgid_hash(tgid), probe);

	return slot == HASH_TABLE_NONE ? NULL : programs->slots[slot];
}

static struct program *next_of(struct programs *programs, uint32_t tgid, uint32_t *probe)
{
	uint32_t slot = hash_table_next(&programs->by_tgid, tgid_hash(tgid), probe);

	return slot == HASH_TABLE_NONE ? NULL : programs->slots[slot];
}

/* The hash is a bijection of the pid, so entries of one hash are of one pid; checked all the same.
 */
struct program *programs_current(struct programs *programs, uint32_t tgid)
{
	uint32_t probe = 0;

	for (struct program *p = first_of(programs, tgid, &probe); p;
	     p = next_of(programs, tgid, &probe))
		if (p->is_current && p->key.tgid == tgid)
			return p;
	return NULL;
}

struct program *programs_find(struct programs *programs, const struct process_key *key)
{
	uint32_t probe = 0;

	for (struct program *p = first_of(programs, key->tgid, &probe); p;
	     p = next_of(programs, key->tgid, &probe))
		if (p->is_identified && process_key_is_same(&p->key, key))
			return p;
	return NULL;
}

struct program *programs_current_or_new(struct programs *programs, uint32_t tgid, uint64_t time_ns)
{
	struct program *program = programs_current(programs, tgid);

	return program ? program : add_program(programs, tgid, PROGRAM_SEEN, time_ns);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Events are in monotonic time, start times in boot time; the difference is the time suspended. A
 * suspend in between only makes a doubt of it, and then /proc is asked. */
static bool start_fits(const struct program *program, uint64_t start_time_ns)
{
	const uint64_t slack = START_SLACK_MS * NS_PER_MS;
	const uint64_t suspended = clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC);
	const uint64_t born = program->born_ns + suspended;

	if (program->ended_ns && start_time_ns > program->ended_ns + suspended)
		return false;
	if (program->origin == PROGRAM_SEEN)
		return true;
	if (start_time_ns > born + slack)
		return false; /* started after this program did: the pid was used again */
	return program->origin == PROGRAM_EXECED || start_time_ns + slack >= born;
}

static bool was_running(const struct program *program, uint64_t time_ns)
{
	if (program->origin != PROGRAM_SEEN && time_ns < program->born_ns)
		return false;
	/* a process goes on for some microseconds behind its exit event */
	return program->is_current || time_ns < program->ended_ns;
}

static struct program *adopt(struct programs *programs, const struct process_key *key,
			     uint64_t time_ns)
{
	uint32_t probe = 0;

	for (struct program *p = first_of(programs, key->tgid, &probe); p;
	     p = next_of(programs, key->tgid, &probe)) {
		if (p->is_identified || p->key.tgid != key->tgid || !was_running(p, time_ns) ||
		    !start_fits(p, key->start_time_ns))
			continue;
		p->key = *key;
		p->is_identified = true;
		return p;
	}
	return NULL;
}

/* From before the current program, and nothing is known of what ran then. */
static bool is_late(const struct program *current, const struct process_key *key, uint64_t time_ns)
{
	if (!current)
		return false;
	if (current->origin != PROGRAM_SEEN && time_ns < current->born_ns)
		return true;
	return current->is_identified && current->key.start_time_ns == key->start_time_ns &&
	       (int32_t)(key->exec_id - current->key.exec_id) < 0;
}

/* What runs by its samples runs, whatever was told of it. Returns the entry of that identity. */
static struct program *run_again(struct programs *programs, struct program *program,
				 uint64_t time_ns)
{
	struct program *current = programs_current(programs, program->key.tgid);

	if (!program->ended_ns || time_ns <= program->ended_ns + PROGRAM_DOUBT_NS)
		return program;
	if (program->is_current) { /* its first thread has ended, others have not */
		program->ended_ns = 0;
		return program;
	}
	if (current && current->is_identified)
		return program;
	if (current && start_fits(current, program->key.start_time_ns)) {
		current->key = program->key;
		current->is_identified = true;
		program->is_identified = false;
		return current;
	}
	retire(current, time_ns);
	program_info_free(program->info);
	program->info = NULL;
	program->ended_ns = program->gone_ns = 0;
	program->is_current = true;
	program->is_complete = false;
	return program;
}

struct program *programs_for_sample(struct programs *programs, const struct process_key *key,
				    uint64_t time_ns)
{
	struct program *program = programs_find(programs, key), *current;

	if (program)
		program = run_again(programs, program, time_ns);
	else
		program = adopt(programs, key, time_ns);
	if (!program) {
		current = programs_current(programs, key->tgid);
		if (is_late(current, key, time_ns))
			return NULL;
		retire(current, time_ns);
		program = add_program(programs, key->tgid, PROGRAM_SEEN, time_ns);
		if (!program)
			return NULL;
		program->key = *key;
		program->is_identified = true;
	}
	use(programs, program, time_ns);
	return program;
}

struct program *programs_parent(struct programs *programs, const struct program *program)
{
	struct program *parent;

	if (!program->parent_serial || program->parent >= programs->slot_count)
		return NULL;
	parent = programs->slots[program->parent];
	if (!parent || parent->serial != program->parent_serial || !parent->is_current ||
	    parent->ended_ns)
		return NULL;
	return parent;
}

/* --- events --- */

static bool is_known_already(const struct program *current, uint64_t time_ns)
{
	/* a sample of the new program came before the event that tells of it */
	return current && current->is_identified && current->born_ns > time_ns;
}

void programs_exec(struct programs *programs, uint32_t tgid, uint64_t time_ns)
{
	struct program *before = programs_current(programs, tgid), *program;
	struct program_info *inherited = NULL;

	if (is_known_already(before, time_ns))
		return;
	if (before)
		inherited = program_info_share(before->info ? before->info : before->inherited);
	retire(before, time_ns);
	program = add_program(programs, tgid, PROGRAM_EXECED, time_ns);
	if (!program) {
		program_info_free(inherited);
		return;
	}
	program->inherited = inherited;
	program->is_complete = true;
}

void programs_fork(struct programs *programs, uint32_t tgid, uint32_t parent_tgid, uint64_t time_ns)
{
	struct program *before = programs_current(programs, tgid), *program, *parent;

	if (is_known_already(before, time_ns))
		return;
	retire(before, time_ns);
	program = add_program(programs, tgid, PROGRAM_FORKED, time_ns);
	if (!program || !parent_tgid || parent_tgid == tgid)
		return;
	/* also one that nothing was known of: its maps serve all its children */
	parent = programs_current_or_new(programs, parent_tgid, time_ns);
	if (!parent)
		return;
	program->parent = parent->slot;
	program->parent_serial = parent->serial;
	program->inherited = program_info_share(parent->info ? parent->info : parent->inherited);
	program->set = mapping_set_share(parent->set);
	program->is_complete = parent->is_complete;
}

void programs_exit(struct programs *programs, uint32_t tgid, uint64_t time_ns)
{
	struct program *program = programs_current(programs, tgid);

	if (program && !program->ended_ns && !is_known_already(program, time_ns))
		program->ended_ns = time_ns;
}

void programs_sweep(struct programs *programs, uint64_t time_ns)
{
	for (uint32_t i = 0; i < programs->slot_count; i++) {
		struct program *program = programs->slots[i];
		uint64_t last;

		if (!program || !program->ended_ns)
			continue;
		last = program->ended_ns > program->used_ns ? program->ended_ns : program->used_ns;
		if (time_ns > last + KEEP_ENDED_MS * NS_PER_MS)
			forget(programs, program);
	}
}

struct program *programs_next_to_check(struct programs *programs, uint64_t time_ns)
{
	for (uint32_t i = 0; i < programs->slot_count; i++) {
		struct program *program;

		if (programs->next_check >= programs->slot_count)
			programs->next_check = 0;
		program = programs->slots[programs->next_check++];
		if (program && !program->ended_ns &&
		    time_ns > program->used_ns + CHECK_AFTER_MS * NS_PER_MS)
			return program;
	}
	return NULL;
}
