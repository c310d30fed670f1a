/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks of the result: their part of each day's tree, and its locations and modules. */
#include <stdlib.h>
#include <string.h>

#include "symbol-server/store/sqlite/answers/querying.h"

struct place { /* a node or a location of a day */
	struct view_day *day;
	uint32_t number;
};

struct placing {
	struct querying *querying;
	struct place *nodes, *locations; /* of the result, in order; node 0 is none */
	size_t node_count, node_room, location_count, location_room;
	uint32_t module_room;
};

static bool put_place(struct place **list, size_t *count, size_t *room, struct view_day *day,
		      uint32_t number)
{
	if (!querying_grow((void **)list, *count, room, sizeof **list))
		return false;
	(*list)[(*count)++] = (struct place){day, number};
	return true;
}

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

static bool number_location(struct placing *placing, struct view_day *day, uint32_t number)
{
	uint32_t *known = &querying_maps(placing->querying, day)->locations[number];

	if (*known)
		return true;
	*known = (uint32_t)placing->location_count + 1;
	return put_place(&placing->locations, &placing->location_count, &placing->location_room,
			 day, number);
}

/* Numbers of the result for the nodes of a stack, callers first. */
static bool number_nodes(struct placing *placing, struct distinct_stack *stack)
{
	uint32_t *known = querying_maps(placing->querying, stack->day)->nodes;
	const struct catalog *catalog = stack->day->catalog;
	uint32_t path[SAMPLES_DEPTH_MAX], depth = 0;

	for (uint32_t at = stack->from->node; at && !known[at] && depth < SAMPLES_DEPTH_MAX;
	     at = catalog_node(catalog, at)->caller)
		path[depth++] = at;
	while (depth--) {
		if (!number_location(placing, stack->day,
				     catalog_node(catalog, path[depth])->location) ||
		    !put_place(&placing->nodes, &placing->node_count, &placing->node_room,
			       stack->day, path[depth]))
			return false;
		known[path[depth]] = (uint32_t)placing->node_count - 1;
	}
	stack->node = known[stack->from->node];
	return querying_goes_on(placing->querying);
}

static bool make_room(struct placing *placing)
{
	struct view *view = &placing->querying->view;

	for (unsigned i = 0; i < view->day_count; i++) {
		const struct view_day *day = &view->days[i];
		struct day_maps *maps = &placing->querying->maps[i];
		const uint32_t *count = day->mark.count;

		if (!day->catalog)
			continue;
		maps->nodes = arena_array(&view->arena, day->mark.nodes, 4);
		maps->locations = arena_array(&view->arena, count[CATALOG_LOCATIONS], 4);
		maps->modules = arena_array(&view->arena, count[CATALOG_MODULES], 4);
		placing->module_room += count[CATALOG_MODULES];
	}
	return !view->arena.failed &&
	       put_place(&placing->nodes, &placing->node_count, &placing->node_room, NULL, 0);
}

static void fill_location(struct placing *placing, struct result_location *to,
			  const struct place *place)
{
	struct querying *querying = placing->querying;
	struct view_day *day = place->day;
	const struct catalog_location *from = catalog_location(day->catalog, place->number);

	to->kind = from->kind;
	to->module = map_module(querying, day, from->module, &placing->module_room);
	to->address = from->address;
	to->function = querying_string(querying, day, from->function);
	to->file = querying_string(querying, day, from->file);
	to->type = querying_string(querying, day, from->type);
	to->line = from->line;
}

static bool fill(struct placing *placing)
{
	struct querying *querying = placing->querying;
	struct samples_result *result = querying->result;
	struct arena *arena = &result->arena;

	result->locations = arena_array(arena, placing->location_count, sizeof *result->locations);
	result->nodes = arena_array(arena, placing->node_count, sizeof *result->nodes);
	result->modules = arena_array(arena, placing->module_room, sizeof *result->modules);
	if (arena->failed)
		return false;
	result->location_count = (uint32_t)placing->location_count;
	result->node_count = (uint32_t)placing->node_count;
	for (uint32_t i = 0; i < result->location_count && querying_goes_on(querying); i++)
		fill_location(placing, &result->locations[i], &placing->locations[i]);
	for (uint32_t i = 1; i < result->node_count; i++) {
		const struct place *place = &placing->nodes[i];
		const struct day_maps *maps = querying_maps(querying, place->day);
		const struct catalog_node *from = catalog_node(place->day->catalog, place->number);

		result->nodes[i] = (struct result_node){maps->nodes[from->caller],
							maps->locations[from->location] - 1};
	}
	return querying_goes_on(querying);
}

/* The list of each distinct stack, for callers that do not follow nodes. */
static bool put_lists(struct querying *querying)
{
	const struct result_node *nodes = querying->result->nodes;

	for (uint32_t i = 0; i < querying->stack_count; i++) {
		struct distinct_stack *stack = &querying->stacks[i];
		uint32_t *locations = arena_array(&querying->result->arena, stack->from->depth,
						  sizeof *locations);
		uint32_t at = stack->node;

		if (!locations || !querying_goes_on(querying))
			return false;
		for (uint32_t k = 0; k < stack->from->depth; k++, at = nodes[at].caller)
			locations[k] = nodes[at].location;
		stack->locations = locations;
	}
	return true;
}

bool querying_put_locations(struct querying *querying)
{
	struct samples_result *result = querying->result;
	struct placing placing = {.querying = querying};
	bool ok = make_room(&placing);

	for (uint32_t i = 0; ok && i < querying->stack_count; i++)
		ok = number_nodes(&placing, &querying->stacks[i]);
	ok = ok && fill(&placing) && (querying->query->only_nodes || put_lists(querying));
	free(placing.nodes);
	free(placing.locations);
	for (size_t i = 0; ok && i < result->stack_count; i++) {
		const struct distinct_stack *stack = &querying->stacks[result->stacks[i].depth];

		result->stacks[i].locations = stack->locations;
		result->stacks[i].depth = stack->from->depth;
		result->stacks[i].node = stack->node;
	}
	return ok && !querying->is_full;
}
