/* SPDX-License-Identifier: Apache-2.0 */
/* Where the interpreters of CPython's processes have the frames of their threads: found, told to
 * the kernel side, and what of it is known of each process. */
#ifndef NODE_AGENT_RUNTIMES_PYTHON_PLACES_H
#define NODE_AGENT_RUNTIMES_PYTHON_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "node-agent/kernel/runtime_places.h"
#include "node-agent/processes/processes.h"
#include "node-agent/runtimes/known_places.h"
#include "node-agent/runtimes/python_threads.h"

struct python_places_counters {
	uint64_t located; /* processes whose places were found, or had from their parent */
	uint64_t unknown; /* declared: as struct runtimes_counters has them */
	uint64_t not_located, contradicted, others, refused;
	uint32_t places; /* now */
};

struct python_places {
	struct runtime_places table;
	struct known_places known;
	struct python_places_counters counters;
};

/* What is known of one process. All zero: nothing. */
struct python_process {
	uint32_t failures; /* but for what has not started yet */
	uint32_t version;
	enum python_found found;     /* the last time */
	uint64_t placed_ns;          /* since when there is a place; 0: never */
	bool is_placed, is_expected; /* found; not yet, and where another process had it */
	bool has_identity, has_others, is_declared;
	bool has_layout; /* which stays when it has ended: names are asked for later */
	struct runtime_place place;
	struct python_layout layout;
	uint64_t state;            /* the address of its state */
	uint64_t lock, lock_bytes; /* where the interpreter's lock is */
};

/* A file that a process has mapped with base added. */
struct python_interpreter {
	uint32_t executable;
	uint64_t base;
	struct runtime_symbols symbols;
};

/* The maps of runtime_places_init(). */
void python_places_init(struct python_places *places, int map, int pids_map);
void python_places_release(struct python_places *places);

/* The first that has threads. A place that was found stays, as long as nothing better is. Returns
 * how often its memory was read. */
uint32_t python_places_find(struct python_places *places, struct python_process *python,
			    const struct process *process,
			    const struct python_interpreter *interpreters, uint32_t count);

/* A child of fork() has its parent's memory, and one of its threads. */
void python_places_inherit(struct python_places *places, struct python_process *python,
			   const struct process *process, const struct python_process *parent);

/* The first sample says who the process is; until then only its pid is known. */
void python_places_write(struct python_places *places, struct python_process *python,
			 const struct process *process);
void python_places_remove(struct python_places *places, struct python_process *python,
			  const struct process *process);

#endif
