/* SPDX-License-Identifier: Apache-2.0 */
/* Counted stacks of two sides → functions and processes, what each has on both sides, and what can
 * be said of the difference (change_test.h). Pure.
 *
 * A side is made of parts of its time, which repeat each other. Hosts of one side only count in
 * sums, not in tests. A function belongs to the process that has most of it: those are tested
 * first. */
#ifndef SYMBOL_SERVER_FLAMEGRAPH_DIFF_TABLE_H
#define SYMBOL_SERVER_FLAMEGRAPH_DIFF_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol-server/flamegraph/change_test.h"
#include "symbol-server/flamegraph/flame_tree.h"

enum diff_side { DIFF_BASE, DIFF_COMPARE, DIFF_SIDES };
/* DIFF_PER_SECOND: value by time; DIFF_SHARE: by the side's whole value; DIFF_RAW: as it is. */
enum diff_norm { DIFF_PER_SECOND, DIFF_SHARE, DIFF_RAW };

enum {
	DIFF_PARTS_MAX = 64,        /* of a side; further ones add to the last */
	DIFF_INTERVALS_MAX = 10000, /* rows that get one */
};

enum diff_state { DIFF_SAME, DIFF_NEW, DIFF_GONE, DIFF_CHANGED };
enum diff_sustained { DIFF_TOO_SHORT, DIFF_NOT_SUSTAINED, DIFF_SUSTAINED };
extern const char *const diff_state_names[], *const diff_sustained_names[];

struct diff_sum { /* one measure of one side */
	uint64_t value, samples;
};

struct diff_row { /* one name of one module, or a process, of which only frame.name counts */
	struct flame_frame frame;
	struct diff_sum self[DIFF_SIDES], total[DIFF_SIDES];
	/* of the measure compared */
	double before, after;           /* normalized: per second, share, or value */
	double change;                  /* after / before − 1; NAN: nothing before */
	double change_low, change_high; /* 95 % interval; NAN: cannot be said */
	enum diff_state state;
	bool is_recorded;
	enum diff_sustained sustained;
	/* private below */
	bool is_process, is_touched;
	uint32_t number, process; /* the process with most of it, as votes of its value say */
	uint64_t votes, last_stack;
	struct diff_sum
		now; /* of the part at hand; only of hosts that both sides have, as weight */
	struct change_weight weight;
};

struct diff_whole { /* one side */
	uint64_t value, samples;
	double seconds;
	uint32_t parts;
	/* private: of hosts that both sides have */
	double common;
	double part_values[DIFF_PARTS_MAX], part_seconds[DIFF_PARTS_MAX];
};

struct diff_stack {
	const struct flame_frame *frames; /* root first */
	size_t depth;
	const char *process;
	bool is_common; /* its host is on both sides */
	uint64_t value, samples;
};

struct diff_cell { /* private: what a row has in a part of a side */
	uint32_t row;
	uint16_t part, side;
	double value, samples;
};

struct diff_table {
	struct diff_row *processes, *functions; /* by the size of the difference */
	size_t process_count, function_count;
	enum diff_norm norm;
	bool by_total;
	struct diff_whole whole[DIFF_SIDES];
	size_t tested, recorded, sustained; /* functions */
	bool is_too_short;
	double effective; /* what one sample counts for: less than 1 where their values differ */
	double scale;     /* base values times this compare with the others */
	/* private below */
	struct diff_row *rows;
	size_t count, capacity, limit;
	uint64_t stacks;
	uint32_t *touched;
	size_t touched_count;
	enum diff_side side;
	bool in_part;
	struct diff_cell *cells;
	size_t cell_count, cell_capacity;
	struct diff_index *index;
};

/* by_total: a function has what is in its callees, too. NULL: no memory. */
struct diff_table *diff_table_new(enum diff_norm norm, bool by_total, size_t limit_rows);

/* Begins a part of a side and ends the last one; parts without any stack count, too. false: as
 * below. */
bool diff_table_part(struct diff_table *table, enum diff_side side, double seconds);

/* Into the part at hand; group, root, incomplete and cut frames are no functions. false: the limit
 * or memory is reached (the table is then unusable). */
bool diff_table_add(struct diff_table *table, const struct diff_stack *stack);

/* Ends the last part, tests and sorts. Only the first intervals rows of each kind get one. false:
 * no memory. */
bool diff_table_test(struct diff_table *table, size_t intervals);

/* ± of a row's before or after, 95 %: of its effective samples. */
double diff_table_error(const struct diff_table *table, enum diff_side side,
			const struct diff_row *row);

/* A value of a side as norm has it. */
double diff_table_normalized(const struct diff_table *table, enum diff_side side, uint64_t value);

void diff_table_free(struct diff_table *table); /* NULL is fine */

#endif
