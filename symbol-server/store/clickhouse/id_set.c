/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/clickhouse/id_set.h"

#include <stdlib.h>
#include <string.h>

/* The place of the id, or the free one where it would be. Ids are hashes already. */
static size_t place_of(const struct id_set *set, uint64_t id)
{
	size_t at = (size_t)(id * 0x9e3779b97f4a7c15ull >> 20) & (set->size - 1);

	while (set->slots[at] && set->slots[at] != id)
		at = (at + 1) & (set->size - 1);
	return at;
}

static uint64_t stored(uint64_t id)
{
	return id ? id : 1;
}

bool id_set_has(const struct id_set *set, uint64_t id)
{
	return set->count && set->slots[place_of(set, stored(id))];
}

static bool grow(struct id_set *set)
{
	struct id_set larger = {.size = set->size ? set->size * 2 : 1024};

	larger.slots = calloc(larger.size, sizeof *larger.slots);
	if (!larger.slots)
		return false;
	for (size_t i = 0; i < set->size; i++)
		if (set->slots[i])
			larger.slots[place_of(&larger, set->slots[i])] = set->slots[i];
	larger.count = set->count;
	free(set->slots);
	*set = larger;
	return true;
}

bool id_set_add(struct id_set *set, uint64_t id)
{
	size_t at;

	id = stored(id);
	if (set->count * 2 >= set->size && !grow(set))
		return false;
	at = place_of(set, id);
	if (set->slots[at])
		return false;
	set->slots[at] = id;
	set->count++;
	return true;
}

void id_set_clear(struct id_set *set)
{
	if (set->count)
		memset(set->slots, 0, set->size * sizeof *set->slots);
	set->count = 0;
}

void id_set_release(struct id_set *set)
{
	free(set->slots);
	*set = (struct id_set){0};
}
