/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/kernel/runtime_places.h"

#include <stdlib.h>
#include <unistd.h>

#include "node-agent/kernel/bpf_map.h"

void runtime_places_init(struct runtime_places *places, int array, int pids_map)
{
	*places = (struct runtime_places){.array = array, .pids_map = pids_map};
	for (uint32_t i = 0; i < RUNTIME_TABLES; i++)
		places->tables[i] = -1;
}

void runtime_places_release(struct runtime_places *places)
{
	for (uint32_t i = 0; i < RUNTIME_TABLES; i++) {
		if (places->tables[i] < 0)
			continue;
		bpf_map_remove(places->array, &i, NULL);
		close(places->tables[i]);
	}
	free(places->pids);
	free(places->is_used);
	runtime_places_init(places, places->array, places->pids_map);
}

static bool make(struct runtime_places *places, struct error *err)
{
	if (places->array < 0 || places->pids_map < 0)
		return error_set(err, ERROR_UNSUPPORTED,
				 "frames of interpreters are read by BPF alone");
	if (!places->pids)
		places->pids = calloc(RUNTIME_PIDS_GROUPS, sizeof *places->pids);
	if (!places->is_used)
		places->is_used = calloc(RUNTIME_PROCESSES, sizeof *places->is_used);
	return (places->pids && places->is_used) ||
	       error_set(err, ERROR_MEMORY, "no memory for places of interpreters");
}

static bool make_table(struct runtime_places *places, uint32_t table, struct error *err)
{
	int *fd = &places->tables[table];

	if (*fd >= 0)
		return true;
	*fd = bpf_map_new_array(sizeof(struct runtime_place), RUNTIME_TABLE, err);
	if (*fd < 0 || bpf_map_write(places->array, &table, fd, err))
		return *fd >= 0;
	close(*fd);
	*fd = -1;
	return false;
}

static bool write_place(struct runtime_places *places, uint32_t number,
			const struct runtime_place *place, struct error *err)
{
	const uint32_t table = number / RUNTIME_TABLE, key = number % RUNTIME_TABLE;

	return make_table(places, table, err) &&
	       bpf_map_write(places->tables[table], &key, place, err);
}

/* Where the group has that pid; 0: where nobody is. RUNTIME_PIDS_GROUP: nowhere. */
static uint32_t find(const struct runtime_pids *group, uint32_t tgid)
{
	uint32_t i = 0;

	while (i < RUNTIME_PIDS_GROUP && group->tgids[i] != tgid)
		i++;
	return i;
}

static uint32_t unused(const struct runtime_places *places)
{
	/* Not the one that was used last, which a sample may still look at. */
	for (uint32_t i = 0; i < RUNTIME_PROCESSES; i++)
		if (!places->is_used[i] && i != places->last)
			return i;
	return places->is_used[places->last] ? RUNTIME_PROCESSES : places->last;
}

static void give_back(struct runtime_places *places, uint32_t number)
{
	places->is_used[number] = 0;
	places->last = number;
}

static bool write_group(const struct runtime_places *places, uint32_t key, struct error *err)
{
	return bpf_map_write(places->pids_map, &key, &places->pids[key], err);
}

/* The place is written first, then who has it: its number, and for a new one the pid at last. */
bool runtime_places_put(struct runtime_places *places, uint32_t tgid,
			const struct runtime_place *place, struct error *err)
{
	const uint32_t key = runtime_pids_of(tgid);

	if (!make(places, err))
		return false;
	struct runtime_pids *group = &places->pids[key];
	const uint32_t had = find(group, tgid),
		       at = had < RUNTIME_PIDS_GROUP ? had : find(group, 0);
	uint32_t number = unused(places);
	if (number == RUNTIME_PROCESSES && had < RUNTIME_PIDS_GROUP)
		number = group->places[at];
	if (at == RUNTIME_PIDS_GROUP || number == RUNTIME_PROCESSES)
		return error_set(err, ERROR_LIMIT, "%d processes have an interpreter already",
				 RUNTIME_PROCESSES);
	if (!write_place(places, number, place, err))
		return false;
	if (had < RUNTIME_PIDS_GROUP && group->places[at] != number)
		give_back(places, group->places[at]);
	places->is_used[number] = 1;
	group->places[at] = (uint16_t)number;
	if (had == RUNTIME_PIDS_GROUP && !write_group(places, key, err))
		return false;
	group->tgids[at] = tgid;
	return write_group(places, key, err);
}

bool runtime_places_find(const struct runtime_places *places, uint32_t tgid,
			 struct runtime_place *place)
{
	const struct runtime_pids *group = places->pids ? &places->pids[runtime_pids_of(tgid)]
							: NULL;
	const uint32_t at = group ? find(group, tgid) : RUNTIME_PIDS_GROUP;

	if (at == RUNTIME_PIDS_GROUP)
		return false;
	const uint32_t key = group->places[at] % RUNTIME_TABLE;
	return bpf_map_read(places->tables[group->places[at] / RUNTIME_TABLE], &key, place, NULL);
}

void runtime_places_remove(struct runtime_places *places, uint32_t tgid, uint64_t start_time_ns,
			   uint32_t exec_id)
{
	const uint32_t key = runtime_pids_of(tgid);
	struct runtime_place place;

	if (!runtime_places_find(places, tgid, &place) || place.start_time_ns != start_time_ns ||
	    place.exec_id != exec_id)
		return;
	const uint32_t at = find(&places->pids[key], tgid);
	give_back(places, places->pids[key].places[at]);
	places->pids[key].tgids[at] = 0;
	write_group(places, key, NULL);
}
