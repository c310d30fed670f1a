/* SPDX-License-Identifier: Apache-2.0 */
/* Which program a pid was running when: one entry per (tgid, start time, exec id). Samples name
 * that identity; process events only have a pid and a time. */
#ifndef NODE_AGENT_PROCESSES_PROGRAMS_H
#define NODE_AGENT_PROCESSES_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node-agent/processes/mapping_set.h"
#include "node-agent/processes/process_table.h"
#include "node-agent/processes/program_info.h"

enum program_origin {
	PROGRAM_SEEN,   /* was there before anything told us so */
	PROGRAM_FORKED, /* its parent's memory */
	PROGRAM_EXECED, /* its memory is empty but for what mapping events bring */
};

/* Why maps is to be read. What looks like a return address is often none; each has a back-off of
 * its own. */
enum program_need { NEED_PERHAPS, NEED_CERTAIN };

struct program {
	struct process_key key;
	bool is_identified; /* a sample gave start time and exec id; before that only key.tgid
			       counts */
	bool is_current;    /* what the pid runs now, as far as events tell */
	bool is_complete;   /* set has all executable mappings: since its exec, or maps was read */
	enum program_origin origin;
	uint64_t born_ns;  /* exec or fork event, else first sample */
	uint64_t used_ns;  /* last sample */
	uint64_t ended_ns; /* exit, or the next program's start; 0: runs */
	uint64_t gone_ns;  /* since when /proc is known not to have it; 0: it may */

	struct mapping_set *set; /* NULL: nothing known */
	uint32_t near;           /* where the last address was found in it */
	struct {
		uint32_t attempts;
		uint64_t next_ns;
	} maps_read[2];              /* enum program_need */
	uint64_t maps_dear_until_ns; /* the last reading cost so much */

	uint32_t parent, parent_serial; /* FORKED: slot; serial 0 = none */
	struct program_info *info;      /* NULL: not read yet */
	struct program_info
		*inherited; /* the parent's or predecessor's, when its own cannot be read */
	char *exec_path;    /* EXECED: the first file mapped, the program itself */

	uint32_t slot, serial;
	uint32_t older, newer; /* by last sample */
};

struct programs;

struct programs *programs_new(size_t limit, struct error *err);
void programs_free(struct programs *programs);

/* A sample that much later than its program's end says that the end was not its. */
#define PROGRAM_DOUBT_NS 100000000ull

/* The program a sample of that time belongs to. An entry without identity that was running then
 * takes the sample's; a sample that contradicts what runs makes a new entry (events were lost), one
 * that contradicts its program's end makes that one run again, as nothing is known of it.
 * NULL: older than anything known of that pid, or no memory. Counts as a use. */
struct program *programs_for_sample(struct programs *programs, const struct process_key *key,
				    uint64_t time_ns);
/* The entry of exactly that identity, or NULL. */
struct program *programs_find(struct programs *programs, const struct process_key *key);
/* What the pid runs now, or NULL. */
struct program *programs_current(struct programs *programs, uint32_t tgid);
/* The same, made when it is not there. NULL: no memory. */
struct program *programs_current_or_new(struct programs *programs, uint32_t tgid, uint64_t time_ns);

void programs_exec(struct programs *programs, uint32_t tgid, uint64_t time_ns);
void programs_fork(struct programs *programs, uint32_t tgid, uint32_t parent, uint64_t time_ns);
void programs_exit(struct programs *programs, uint32_t tgid, uint64_t time_ns);

/* The parent a forked program still has its memory from, or NULL when that runs something else. */
struct program *programs_parent(struct programs *programs, const struct program *program);

/* Forgets what ended a while ago. */
void programs_sweep(struct programs *programs, uint64_t time_ns);

/* Every so often the next entry that has not been sampled for a while, to see whether it is still
 * there (an exit event can be lost); NULL: none due. */
struct program *programs_next_to_check(struct programs *programs, uint64_t time_ns);

uint32_t programs_count(const struct programs *programs);
uint64_t programs_pushed_out(const struct programs *programs); /* forgotten early for the limit */

#endif
