/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/known_places.h"

static const struct known_place *find(const struct known_places *places, uint32_t executable)
{
	for (uint32_t i = 0; executable && i < KNOWN_PLACES_MAX; i++)
		if (places->items[i].executable == executable)
			return &places->items[i];
	return NULL;
}

void known_places_put(struct known_places *places, const struct known_place *place)
{
	const struct known_place *known = find(places, place->executable);
	const uint32_t at = known ? (uint32_t)(known - places->items)
				  : places->next++ % KNOWN_PLACES_MAX;

	places->items[at] = *place;
}

bool known_places_find(const struct known_places *places, uint32_t executable, uint64_t base,
		       struct known_place *out)
{
	const struct known_place *known = find(places, executable);

	if (!known)
		return false;
	*out = *known;
	out->base = base;
	if (known->place.current_at)
		out->place.current_at = known->place.current_at - known->base + base;
	return true;
}
