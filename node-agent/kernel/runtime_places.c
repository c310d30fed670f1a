/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/kernel/runtime_places.h"

#include <unistd.h>

#include "node-agent/kernel/bpf_map.h"

static const uint32_t only;

void runtime_places_init(struct runtime_places *places, int array)
{
	places->array = array;
	places->places = -1;
}

void runtime_places_release(struct runtime_places *places)
{
	if (places->places < 0)
		return;
	bpf_map_remove(places->array, &only, NULL);
	close(places->places);
	places->places = -1;
}

static bool make(struct runtime_places *places, struct error *err)
{
	if (places->places >= 0)
		return true;
	if (places->array < 0)
		return error_set(err, ERROR_UNSUPPORTED,
				 "frames of interpreters are read by BPF alone");
	places->places = bpf_map_new_hash(sizeof(uint32_t), sizeof(struct runtime_place),
					  RUNTIME_PROCESSES, err);
	if (places->places >= 0 && bpf_map_write(places->array, &only, &places->places, err))
		return true;
	if (places->places >= 0)
		close(places->places);
	places->places = -1;
	return false;
}

bool runtime_places_put(struct runtime_places *places, uint32_t tgid,
			const struct runtime_place *place, struct error *err)
{
	return make(places, err) && bpf_map_write(places->places, &tgid, place, err);
}

bool runtime_places_find(const struct runtime_places *places, uint32_t tgid,
			 struct runtime_place *place)
{
	return places->places >= 0 && bpf_map_read(places->places, &tgid, place, NULL);
}

void runtime_places_remove(struct runtime_places *places, uint32_t tgid, uint64_t start_time_ns,
			   uint32_t exec_id)
{
	struct runtime_place place;

	if (runtime_places_find(places, tgid, &place) && place.start_time_ns == start_time_ns &&
	    place.exec_id == exec_id)
		bpf_map_remove(places->places, &tgid, NULL);
}
