/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/kernel/hotspot_places.h"

#include <unistd.h>

#include "node-agent/kernel/bpf_map.h"

static const uint32_t only;

void hotspot_places_init(struct hotspot_places *places, int array)
{
	places->array = array;
	places->places = -1;
}

void hotspot_places_release(struct hotspot_places *places)
{
	if (places->places < 0)
		return;
	bpf_map_remove(places->array, &only, NULL);
	close(places->places);
	places->places = -1;
}

static bool make(struct hotspot_places *places, struct error *err)
{
	if (places->places >= 0)
		return true;
	if (places->array < 0)
		return error_set(err, ERROR_UNSUPPORTED, "frames of JVMs are walked by BPF alone");
	places->places = bpf_map_new_hash(sizeof(uint32_t), sizeof(struct hotspot_place),
					  HOTSPOT_PROCESSES, err);
	if (places->places >= 0 && bpf_map_write(places->array, &only, &places->places, err))
		return true;
	if (places->places >= 0)
		close(places->places);
	places->places = -1;
	return false;
}

bool hotspot_places_put(struct hotspot_places *places, uint32_t tgid,
			const struct hotspot_place *place, struct error *err)
{
	return make(places, err) && bpf_map_write(places->places, &tgid, place, err);
}

bool hotspot_places_find(const struct hotspot_places *places, uint32_t tgid,
			 struct hotspot_place *place)
{
	return places->places >= 0 && bpf_map_read(places->places, &tgid, place, NULL);
}

void hotspot_places_remove(struct hotspot_places *places, uint32_t tgid, uint64_t start_time_ns,
			   uint32_t exec_id)
{
	struct hotspot_place place;

	if (hotspot_places_find(places, tgid, &place) && place.start_time_ns == start_time_ns &&
	    place.exec_id == exec_id)
		bpf_map_remove(places->places, &tgid, NULL);
}
