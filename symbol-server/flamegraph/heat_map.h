/* SPDX-License-Identifier: Apache-2.0 */
/* Samples by the second (columns) and by the part of that second (rows), as FlameScope draws them
 * (github.com/Netflix/flamescope): what happens now and then becomes a pattern. Pure. */
#ifndef SYMBOL_SERVER_FLAMEGRAPH_HEAT_MAP_H
#define SYMBOL_SERVER_FLAMEGRAPH_HEAT_MAP_H

#include <stdbool.h>
#include <stdint.h>

enum { HEAT_COLUMNS_MAX = 3600, HEAT_ROWS_MAX = 100 };

struct heat_cell {
	uint64_t samples, value;
};

struct heat_map {
	int64_t from_ms; /* start of the first column, a multiple of column_ms */
	int64_t column_ms;
	uint32_t columns, rows;
	struct heat_cell *cells; /* columns × rows, column by column, the earliest part first */
	struct heat_cell sum;
	uint64_t most_samples; /* in one cell */
};

/* Columns that cover [from_ms, until_ms). False: no memory, or more than HEAT_COLUMNS_MAX, or rows
 * that do not divide column_ms into whole milliseconds. */
bool heat_map_init(struct heat_map *map, int64_t from_ms, int64_t until_ms, int64_t column_ms,
		   uint32_t rows);
/* A time outside of all columns is left out. */
void heat_map_add(struct heat_map *map, int64_t time_ms, uint64_t value);
void heat_map_release(struct heat_map *map);

#endif
