/* SPDX-License-Identifier: Apache-2.0 */
/* Every process that something is known of, once: one entry per (tgid, start time, exec id), on
 * which each room hangs what it knows of the process. Samples name that identity; process events
 * only have a pid and a time.
 *
 * One life: it begins with a fork, an execve() or the first sample; ends once, with its exit, the
 * next execve(), or when another is seen to have its pid; and is forgotten some seconds later, or
 * when room is needed, but not while a room holds it. */
#ifndef NODE_AGENT_PROCESSES_PROCESSES_H
#define NODE_AGENT_PROCESSES_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "node-agent/processes/process_key.h"

enum process_origin {
	PROCESS_SEEN,   /* was there before anything told us so */
	PROCESS_FORKED, /* its parent's memory */
	PROCESS_EXECED, /* its memory is empty but for what mapping events bring */
};

enum { PROCESS_ROOMS_MAX = 12 };

struct process {
	struct process_key key;
	bool is_identified; /* a sample gave start time and exec id; before that only key.tgid
			       counts */
	bool is_current;    /* what the pid runs now, as far as events tell */
	bool is_end_told;   /* to the rooms */
	enum process_origin origin;
	uint64_t born_ns;  /* exec or fork event, else first sample */
	uint64_t used_ns;  /* last sample */
	uint64_t ended_ns; /* exit, or the next program's start; 0: runs */
	uint64_t gone_ns;  /* since when /proc is known not to have it; 0: it may */

	uint32_t parent, parent_serial; /* FORKED: slot; serial 0 = none */
	uint32_t slot, serial;
	uint32_t older, newer; /* by last sample, unless it is held */
	uint32_t holds;        /* by rooms */
	uint32_t pins;         /* while rooms are told: they may ask for others */
	void *states[PROCESS_ROOMS_MAX];
};

/* What a room hears of all processes; NULL: it does not want to. All may ask about any process. */
struct process_room {
	/* A fork or execve(), perhaps after the first samples. from: the parent, or what the pid
	 * ran before; NULL: not known. */
	void (*begin)(void *context, struct process *process, struct process *from);
	/* Of those on which the room has hung something: */
	void (*end)(void *context, struct process *process);
	/* It goes on being sampled after its end: its first thread has ended, others have not
	 * (is_current), or the end was another's. */
	void (*again)(void *context, struct process *process);
	void (*forget)(void *context, struct process *process); /* to be freed: never if it holds */
	void *context;
	bool holds; /* a process stays as long as something of this room hangs on it */
};

struct processes;

struct processes *processes_new(size_t limit, struct error *err);
void processes_free(struct processes *processes);

/* Its number, below PROCESS_ROOMS_MAX: one more ends the program. Rooms are told in this order. The
 * room is copied. One that goes before processes_free() takes what it has hung with it and calls
 * processes_leave(). */
uint32_t processes_room(struct processes *processes, const struct process_room *room);
void processes_leave(struct processes *processes, uint32_t room); /* NULL is fine */

/* state NULL: nothing any more. An end that was told is told again of what was hung on it since. */
void processes_hang(struct processes *processes, struct process *process, uint32_t room,
		    void *state);

/* A sample that much later than its process' end says that the end was not its. */
#define PROCESS_DOUBT_NS 100000000ull

/* The process a sample of that time belongs to. An entry without identity that was running then
 * takes the sample's; a sample that contradicts what runs makes a new entry (events were lost), one
 * that contradicts its process' end makes that one run again, as nothing is known of it.
 * NULL: older than anything known of that pid, or no room. Counts as a use. */
struct process *processes_for_sample(struct processes *processes, const struct process_key *key,
				     uint64_t time_ns);
/* The entry of exactly that identity, or NULL. */
struct process *processes_find(struct processes *processes, const struct process_key *key);
/* What the pid runs now, or NULL. */
struct process *processes_current(struct processes *processes, uint32_t tgid);
/* The same, made when it is not there. NULL: no room. */
struct process *processes_current_or_new(struct processes *processes, uint32_t tgid,
					 uint64_t time_ns);

void processes_exec(struct processes *processes, uint32_t tgid, uint64_t time_ns);
void processes_fork(struct processes *processes, uint32_t tgid, uint32_t parent, uint64_t time_ns);
void processes_exit(struct processes *processes, uint32_t tgid, uint64_t time_ns);
/* It was found to be gone. */
void processes_end(struct processes *processes, struct process *process, uint64_t time_ns);

/* The parent a forked process still has its memory from, or NULL when that runs something else. */
struct process *processes_parent(struct processes *processes, const struct process *process);

/* Forgets what ended a while ago. */
void processes_sweep(struct processes *processes, uint64_t time_ns);

/* Every so often the next entry that has not been sampled for a while, to see whether it is still
 * there (an exit event can be lost, and a room hang something on what has ended); NULL: none due.
 * Rooms need not look themselves. */
struct process *processes_next_to_check(struct processes *processes, uint64_t time_ns);

struct processes_counters {
	uint32_t count;      /* now */
	uint64_t pushed_out; /* forgotten early for the limit */
	uint64_t refused;    /* not taken: rooms hold all there are */
};
void processes_counters(const struct processes *processes, struct processes_counters *out);

#endif
