/* SPDX-License-Identifier: Apache-2.0 */
/* Counted stacks of names → functions with their own and their callees' share. Pure. */
#ifndef SYMBOL_SERVER_FLAMEGRAPH_TOP_TABLE_H
#define SYMBOL_SERVER_FLAMEGRAPH_TOP_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol-server/flamegraph/flame_tree.h"

struct top_function { /* one name and signature of one module; inlined or not, it is the same
			 function */
	struct flame_frame frame; /* line: the one that most of its value fell on, where one does */
	uint64_t self, total; /* total counts a stack once, however often the function is in it */
	uint64_t self_samples, total_samples;
	double self_squares, total_squares; /* for sampling_error() */
	uint64_t stack;      /* for the caller: that most of self came with; 0: none */
	uint64_t last_stack; /* private */
	uint64_t line_votes; /* private: majority vote over lines, weighted by value */
};

struct top_table {
	struct top_function *functions;
	size_t count;
	uint32_t last_self; /* the function that top_table_add() gave self; UINT32_MAX: none */
	bool folds;         /* functions beyond the limit are left out */
	struct sampling sampling; /* of the samples that are added as one */
	uint64_t cut;       /* value that they would have had as self */
	uint64_t
		self_of_kind[FRAME_KIND_COUNT]; /* of all frames, those that are no functions too */
	double squares_of_kind[FRAME_KIND_COUNT];
	/* private below */
	size_t capacity, limit;
	uint64_t stacks;
	struct top_index *index;
};

struct top_table *top_table_new(size_t limit_functions);
/* Root first; group, root, incomplete and cut frames are no functions. false: the limit or memory
 * is reached (the table is then unusable; but see folds). */
bool top_table_add(struct top_table *table, const struct flame_frame *frames, size_t depth,
		   uint64_t value, uint64_t samples);
/* Heaviest first, by self or by total (then the other, then name). Nothing can be added afterwards.
 */
void top_table_sort(struct top_table *table, bool by_total);
void top_table_free(struct top_table *table); /* NULL is fine */

#endif
