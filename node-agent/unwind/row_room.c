/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/unwind/row_room.h"

#include <stdlib.h>

#include "common/array.h"

enum { POOL_ROWS = UNWIND_POOL_ELEMENTS * UNWIND_ELEMENT_ROWS };

static void row_room_init(struct row_room *room)
{
	*room = (struct row_room){0};
}

void row_room_release(struct row_room *room)
{
	free(room->gaps);
	row_room_init(room);
}

/* Rows to leave out at the gap's beginning: the largest pages fill all their elements. */
static uint32_t left_out(const struct row_span *gap, uint32_t count)
{
	uint32_t slot = gap->first % UNWIND_ELEMENT_ROWS;

	return slot + count > UNWIND_PAGE_ROWS_MAX ? UNWIND_ELEMENT_ROWS - slot : 0;
}

uint32_t row_room_take(struct row_room *room, uint32_t count)
{
	struct row_span *best = NULL;
	uint32_t first;

	for (uint32_t i = 0; i < room->count; i++) {
		struct row_span *gap = &room->gaps[i];

		if (gap->count >= left_out(gap, count) + count &&
		    (!best || gap->count < best->count))
			best = gap;
	}
	if (!best)
		return ROW_PLACE_NONE;
	first = best->first + left_out(best, count);
	best->count -= first + count - best->first;
	best->first = first + count;
	if (!best->count)
		*best = room->gaps[--room->count];
	return first;
}

static int by_place(const void *a, const void *b)
{
	const struct row_span *left = a, *right = b;

	return left->first < right->first ? -1 : left->first > right->first;
}

static void add_gaps(struct row_room *room, uint32_t first, uint32_t end)
{
	while (first < end) {
		uint32_t pool_end = (first / POOL_ROWS + 1) * POOL_ROWS;
		uint32_t gap_end = end < pool_end ? end : pool_end;

		room->gaps[room->count++] = (struct row_span){first, gap_end - first};
		first = gap_end;
	}
}

bool row_room_recount(struct row_room *room, uint32_t pools, struct row_span *used,
		      uint32_t used_count)
{
	uint32_t at = 0;

	/* One before each that is used, one at the end, and as many more as are cut by pools. */
	if (!ARRAY_RESERVE(room->gaps, used_count + 1 + pools, room->room))
		return false;
	qsort(used, used_count, sizeof *used, by_place);
	room->count = 0;
	for (uint32_t i = 0; i < used_count; i++) {
		add_gaps(room, at, used[i].first);
		at = used[i].first + used[i].count;
	}
	add_gaps(room, at, pools * POOL_ROWS);
	return true;
}
