/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/flamegraph/heat_map.h"

#include <stdlib.h>

bool heat_map_init(struct heat_map *map, int64_t from_ms, int64_t until_ms, int64_t column_ms,
		   uint32_t rows)
{
	int64_t columns;

	*map = (struct heat_map){.column_ms = column_ms, .rows = rows};
	if (column_ms < 1 || !rows || rows > HEAT_ROWS_MAX || column_ms % rows || from_ms < 0 ||
	    until_ms < from_ms)
		return false;
	map->from_ms = from_ms / column_ms * column_ms;
	columns = (until_ms - map->from_ms + column_ms - 1) / column_ms;
	if (columns < 1 || columns > HEAT_COLUMNS_MAX)
		return false;
	map->columns = (uint32_t)columns;
	map->cells = calloc((size_t)map->columns * rows, sizeof *map->cells);
	return map->cells;
}

void heat_map_add(struct heat_map *map, int64_t time_ms, uint64_t value)
{
	int64_t since = time_ms - map->from_ms;
	struct heat_cell *cell;

	if (since < 0 || since >= map->column_ms * map->columns)
		return;
	cell = &map->cells[since / map->column_ms * map->rows +
			   since % map->column_ms / (map->column_ms / map->rows)];
	cell->samples++;
	cell->value += value;
	map->sum.samples++;
	map->sum.value += value;
	if (cell->samples > map->most_samples)
		map->most_samples = cell->samples;
}

void heat_map_release(struct heat_map *map)
{
	free(map->cells);
	*map = (struct heat_map){0};
}
