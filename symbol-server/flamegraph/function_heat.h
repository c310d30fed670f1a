/* SPDX-License-Identifier: Apache-2.0 */
/* When functions ran: a row for each function that is chosen, a column for each step of time. What
 * is in a cell is what top_table.h would have of that function in that step. Pure. */
#ifndef SYMBOL_SERVER_FLAMEGRAPH_FUNCTION_HEAT_H
#define SYMBOL_SERVER_FLAMEGRAPH_FUNCTION_HEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/hash_table.h"
#include "symbol-server/flamegraph/sampling_error.h"
#include "symbol-server/flamegraph/top_table.h"

struct heat_value {
	uint64_t value, samples;
	double squares; /* for sampling_error() */
};

struct function_heat {
	int64_t first_ms, column_ms; /* of the first column: when it starts */
	uint32_t columns, rows;
	bool by_total; /* stacks through a function count, not only those that end in it */
	struct sampling sampling; /* of the samples that are added as one */
	const struct top_function *const *functions; /* borrowed, by row */
	/* private below */
	struct heat_value *cells;
	uint64_t stacks, *last_stack; /* by row */
	struct hash_table index;
};

/* first_ms, column_ms, columns, rows, by_total, sampling and functions are set, the rest is zero.
 * False: no memory. Release it in either case. */
bool function_heat_init(struct function_heat *heat);
/* Cells that init makes, as many as a limit of memory has to allow. */
uint64_t function_heat_cells(uint32_t columns, uint32_t rows);
/* Frames root first, of a stack of the step that begins at time_ms; one outside of all columns is
 * left out. A stack counts once for each function, however often that is in it. */
void function_heat_add(struct function_heat *heat, const struct flame_frame *frames, size_t depth,
		       int64_t time_ms, uint64_t value, uint64_t samples);
/* The columns of a row; of what is in no row; of everything. */
const struct heat_value *function_heat_row(const struct function_heat *heat, uint32_t row);
const struct heat_value *function_heat_other(const struct function_heat *heat);
const struct heat_value *function_heat_all(const struct function_heat *heat);
void function_heat_release(struct function_heat *heat);

#endif
