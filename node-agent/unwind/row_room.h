/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows of the pools are free: gaps, taken from where they fit best. What is given back is not
 * known here; a recount finds it. Pure. */
#ifndef NODE_AGENT_UNWIND_ROW_ROOM_H
#define NODE_AGENT_UNWIND_ROW_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/unwind_rows.h"

#define ROW_PLACE_NONE UINT32_MAX

struct row_span {
	uint32_t first, count; /* as in struct unwind_page; within one pool */
};

struct row_room {
	struct row_span *gaps;
	uint32_t count, room;
};

void row_room_release(struct row_room *room);

/* The first of count rows in a row that a page may have: in one pool, in at most
 * UNWIND_PAGE_ELEMENTS_MAX elements. ROW_PLACE_NONE: there is no such gap. */
uint32_t row_room_take(struct row_room *room, uint32_t count);

/* All that the first pools have but what is used; sorts that. False: no memory, nothing changed. */
bool row_room_recount(struct row_room *room, uint32_t pools, struct row_span *used,
		      uint32_t used_count);

#endif
