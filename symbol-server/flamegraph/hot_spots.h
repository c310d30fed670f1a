/* SPDX-License-Identifier: Apache-2.0 */
/* Counted stacks of processes and steps → each step's functions, and when a process's mix of them
 * changed (hot_changes.h). Pure. */
#ifndef SYMBOL_SERVER_FLAMEGRAPH_HOT_SPOTS_H
#define SYMBOL_SERVER_FLAMEGRAPH_HOT_SPOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol-server/flamegraph/flame_tree.h"
#include "symbol-server/flamegraph/hot_changes.h"

#define HOT_ALL_FUNCTIONS UINT32_MAX

struct hot_cell { /* what a function has in a step of a process; HOT_ALL_FUNCTIONS: all of it */
	uint32_t process, step, function;
	uint64_t value, samples;
	double squares, single; /* private: of struct change_weight */
	double squares_most;    /* private: were each add one sample */
};

struct hot_process {
	uint64_t value, samples;
	size_t first_cell, cell_count; /* by step; a step's sum first, then the largest functions */
	uint32_t steps;                /* that have samples */
	uint32_t tested;               /* functions */
	unsigned changes;
};

struct hot_spots {
	struct flame_frame *functions; /* one name and signature of one module each */
	uint32_t function_count;
	struct hot_process *processes; /* as numbered by who adds */
	uint32_t process_count;
	struct hot_cell *cells;
	size_t cell_count;
	struct hot_change *changes; /* the most significant first */
	size_t change_count;
	uint64_t changes_left_out; /* at least */
	double tests;
	/* private below */
	uint32_t steps;
	bool by_total;
	size_t cell_room, cell_limit;
	struct hot_index *index;
};

/* by_total: a function has what is in its callees, too; else what is in itself. NULL: no memory. */
struct hot_spots *hot_spots_new(uint32_t steps, bool by_total, size_t limit_cells);

/* Root first; group, root, incomplete and cut frames are no functions, but their value counts in
 * the process's. false: the limit or memory is reached (all is then unusable). */
bool hot_spots_add(struct hot_spots *spots, uint32_t process, uint32_t step,
		   const struct flame_frame *frames, size_t depth, uint64_t value,
		   uint64_t samples);

/* Sorts, and finds changes of at least that share: those most significant, up to limit of all.
 * room: bytes that it may take for that. false: it takes more, no memory, or goes_on() (asked now
 * and then; NULL: not) said so. */
bool hot_spots_find(struct hot_spots *spots, double least, size_t limit, size_t room,
		    bool (*goes_on)(void *context), void *context);

void hot_spots_free(struct hot_spots *spots); /* NULL is fine */

#endif
