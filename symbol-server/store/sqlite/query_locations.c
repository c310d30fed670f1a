/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/querying.h"

#include <string.h>

static uint32_t map_module(struct querying *querying, struct view_day *day, uint32_t number,
			   uint32_t *room)
{
	uint32_t *known = &querying_maps(querying, day)->modules[number];
	const struct catalog_module *from = catalog_module(day->catalog, number);
	struct samples_result *result = querying->result;

	if (!number)
		return UINT32_MAX;
	if (!*known) {
		const char *name = querying_string(querying, day, from->name);

		for (uint32_t i = 0; day != querying->view.days && i < result->module_count; i++)
			if (build_id_equal(&result->modules[i].id, &from->id) &&
			    result->modules[i].base == from->base &&
			    !strcmp(result->modules[i].name, name))
				*known = i + 1;
		if (!*known && result->module_count < *room) {
			result->modules[result->module_count++] =
				(struct result_module){from->id, name, from->base};
			*known = result->module_count;
		}
	}
	return *known - 1;
}

static uint32_t map_location(struct querying *querying, struct view_day *day, uint32_t number,
			     uint32_t *module_room)
{
	uint32_t *known = &querying_maps(querying, day)->locations[number];
	const struct catalog_location *from = catalog_location(day->catalog, number);
	struct samples_result *result = querying->result;

	if (!*known) {
		struct result_location *to = &result->locations[result->location_count++];

		to->kind = from->kind;
		to->module = map_module(querying, day, from->module, module_room);
		to->address = from->address;
		to->function = querying_string(querying, day, from->function);
		to->file = querying_string(querying, day, from->file);
		to->type = querying_string(querying, day, from->type);
		to->line = from->line;
		*known = result->location_count;
	}
	return *known - 1;
}

static bool map_frames(struct querying *querying, struct distinct_stack *stack,
		       uint32_t *module_room)
{
	const struct catalog_stack *from = stack->from;
	uint32_t *locations = arena_array(&querying->result->arena, from->depth, sizeof *locations);

	if (!locations)
		return false;
	for (uint32_t i = 0; i < from->depth; i++)
		locations[i] = map_location(querying, stack->day, from->locations[i], module_room);
	stack->locations = locations;
	return true;
}

bool querying_put_locations(struct querying *querying)
{
	struct samples_result *result = querying->result;
	struct arena *arena = &result->arena;
	uint32_t locations = 0, modules = 0;

	for (unsigned i = 0; i < querying->view.day_count; i++) {
		locations += querying->view.days[i].mark.count[CATALOG_LOCATIONS];
		modules += querying->view.days[i].mark.count[CATALOG_MODULES];
	}
	result->locations = arena_array(arena, locations, sizeof *result->locations);
	result->modules = arena_array(arena, modules, sizeof *result->modules);
	if (arena->failed)
		return false;
	for (uint32_t i = 0; i < querying->stack_count; i++)
		if (!map_frames(querying, &querying->stacks[i], &modules))
			return false;
	for (size_t i = 0; i < result->stack_count; i++) {
		const struct distinct_stack *stack = &querying->stacks[result->stacks[i].depth];

		result->stacks[i].locations = stack->locations;
		result->stacks[i].depth = stack->from->depth;
	}
	return !querying->is_full;
}
