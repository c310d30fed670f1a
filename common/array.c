/* SPDX-License-Identifier: Apache-2.0 */
#include "common/array.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 64 };

static size_t larger_room(size_t room, size_t wanted, size_t most)
{
	size_t larger = room > most / 2 ? most : 2 * room;

	if (larger < FIRST_ROOM)
		larger = FIRST_ROOM;
	return larger < wanted ? wanted : larger;
}

bool array_grow(struct arena *arena, void *items, size_t size, size_t wanted, void *room,
		size_t most)
{
	const bool is_32 = most == UINT32_MAX;
	const size_t old = is_32 ? *(uint32_t *)room : *(size_t *)room;
	const size_t larger = larger_room(old, wanted, most);
	void *at, *grown;

	if (wanted <= old)
		return true;
	if (larger > most || larger > PTRDIFF_MAX / size) {
		if (arena)
			arena->failed = true;
		return false;
	}
	memcpy(&at, items, sizeof at); /* a pointer of any type */
	grown = arena ? arena_array(arena, larger, size) : realloc(at, larger * size);
	if (!grown)
		return false;
	if (arena && old)
		memcpy(grown, at, old * size);
	memcpy(items, &grown, sizeof grown);
	if (is_32)
		*(uint32_t *)room = (uint32_t)larger;
	else
		*(size_t *)room = larger;
	return true;
}
