/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow: items, and how many there is room for (a size_t or a uint32_t). */
#ifndef COMMON_ARRAY_H
#define COMMON_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"

/* True when `items`, of malloc() or NULL, has room for `wanted` of them. If it has not, the room at
 * least doubles: adding one by one copies each item a few times in all. What is new is not zeroed.
 * False: no memory, or more than can be counted; items and room stay. Arguments are read twice. */
#define ARRAY_RESERVE(items, wanted, room) \
	((wanted) <= (room) ||             \
	 array_grow(NULL, &(items), sizeof *(items), (wanted), &(room), ARRAY_ROOM_MAX(room)))

/* The same for one more than there are. */
#define ARRAY_GROW(items, count, room) \
	((count) < (room) || ARRAY_RESERVE(items, (size_t)(count) + 1, room))

/* Likewise for items that lie in an arena, which keeps the smaller ones; what is new is zeroed. */
#define ARENA_GROW(arena, items, count, room)                                                  \
	((count) < (room) || array_grow(arena, &(items), sizeof *(items), (size_t)(count) + 1, \
					&(room), ARRAY_ROOM_MAX(room)))

#define ARRAY_ROOM_MAX(room) _Generic(&(room), size_t * : SIZE_MAX, uint32_t * : UINT32_MAX)

/* What they call. items: the address of the pointer; arena: NULL for malloc(); most: what `room`
 * can say, which also tells its type. */
bool array_grow(struct arena *arena, void *items, size_t size, size_t wanted, void *room,
		size_t most);

#endif
