/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks of the result: their part of each day's tree, and its locations and modules. Which
 * those are is marked first, a bit for each of the day, and so is known before there has to be room
 * for them: where there is not, the heaviest stacks are taken. */
#include <stdlib.h>
#include <string.h>

#include "symbol-server/store/sqlite/answers/querying.h"

enum {
	WORD_BITS = 64,
	NODE_BYTES = 2 * sizeof(struct result_node), /* with what naming them takes */
	LOCATION_BYTES = 2 * sizeof(struct result_location),
};

struct marks { /* numbers of a day that take part */
	uint64_t *words;
	uint32_t *
		before; /* how many numbers of earlier words do, and what of the result is before */
	uint32_t words_count;
};

struct placing {
	struct querying *querying;
	struct marks *nodes, *locations; /* by day */
	uint32_t node_count, location_count;
	uint32_t module_room;
};

static bool is_marked(const struct marks *marks, uint32_t number)
{
	return marks->words[number / WORD_BITS] >> number % WORD_BITS & 1;
}

static bool mark(struct marks *marks, uint32_t number)
{
	if (is_marked(marks, number))
		return false;
	marks->words[number / WORD_BITS] |= UINT64_C(1) << number % WORD_BITS;
	return true;
}

/* The result's number of what is marked. */
static uint32_t number_of(const struct marks *marks, uint32_t number)
{
	uint64_t earlier = (UINT64_C(1) << number % WORD_BITS) - 1;

	return marks->before[number / WORD_BITS] +
	       (uint32_t)__builtin_popcountll(marks->words[number / WORD_BITS] & earlier);
}

/* From that number on; the next one is returned. */
static uint32_t set_numbers(struct marks *marks, uint32_t number)
{
	for (uint32_t i = 0; i < marks->words_count; i++) {
		marks->before[i] = number;
		number += (uint32_t)__builtin_popcountll(marks->words[i]);
	}
	return number;
}

static void make_marks(struct arena *arena, struct marks *marks, uint32_t count)
{
	marks->words_count = count / WORD_BITS + 1;
	marks->words = arena_array(arena, marks->words_count, sizeof *marks->words);
	marks->before = arena_array(arena, marks->words_count, sizeof *marks->before);
}

static void clear_marks(struct placing *placing)
{
	for (unsigned i = 0; i < placing->querying->view.day_count; i++) {
		struct marks *nodes = &placing->nodes[i], *locations = &placing->locations[i];

		if (!nodes->words)
			continue;
		memset(nodes->words, 0, nodes->words_count * sizeof *nodes->words);
		memset(locations->words, 0, locations->words_count * sizeof *locations->words);
	}
	placing->node_count = 1; /* 0 is none */
	placing->location_count = 0;
}

static bool make_room(struct placing *placing)
{
	struct view *view = &placing->querying->view;

	placing->nodes = arena_array(&view->arena, view->day_count, sizeof *placing->nodes);
	placing->locations = arena_array(&view->arena, view->day_count, sizeof *placing->locations);
	for (unsigned i = 0; !view->arena.failed && i < view->day_count; i++) {
		const struct view_day *day = &view->days[i];
		const uint32_t *count = day->mark.count;

		if (!day->catalog)
			continue;
		make_marks(&view->arena, &placing->nodes[i], day->mark.nodes);
		make_marks(&view->arena, &placing->locations[i], count[CATALOG_LOCATIONS]);
		placing->querying->maps[i].modules = arena_array(&view->arena,
								 count[CATALOG_MODULES], 4);
		placing->module_room += count[CATALOG_MODULES];
	}
	return !view->arena.failed;
}

static void mark_stack(struct placing *placing, const struct distinct_stack *stack)
{
	size_t day = (size_t)(stack->day - placing->querying->view.days);
	const struct catalog *catalog = stack->day->catalog;

	for (uint32_t at = stack->from->node; at && mark(&placing->nodes[day], at);
	     at = catalog_node(catalog, at)->caller) {
		placing->node_count++;
		placing->location_count += mark(&placing->locations[day],
						catalog_node(catalog, at)->location);
	}
}

/* Beside what was collected. */
static bool fits(const struct placing *placing)
{
	const struct querying *querying = placing->querying;
	uint64_t bytes = (uint64_t)placing->node_count * NODE_BYTES +
			 (uint64_t)placing->location_count * LOCATION_BYTES;

	return !querying->most_bytes || querying_bytes(querying) + bytes <= querying->most_bytes;
}

static bool mark_all(struct placing *placing)
{
	struct querying *querying = placing->querying;

	clear_marks(placing);
	for (uint32_t i = 0; i < querying->stack_count && fits(placing); i++) {
		mark_stack(placing, &querying->stacks[i]);
		if (!querying_goes_on(querying))
			return false;
	}
	return true;
}

/* A stack that only just does not fit is kept as well: the room is no exact figure. */
static bool mark_heaviest(struct placing *placing)
{
	struct querying *querying = placing->querying;
	uint32_t *order = querying_order_stacks(querying);
	uint8_t *is_kept = calloc((size_t)querying->stack_count + 1, 1);
	bool ok = order && is_kept;

	clear_marks(placing);
	for (uint32_t i = 0; ok && i < querying->stack_count && fits(placing); i++) {
		mark_stack(placing, &querying->stacks[order[i]]);
		is_kept[order[i]] = 1;
		ok = querying_goes_on(querying);
	}
	if (ok)
		querying_keep_stacks(querying, is_kept);
	free(order);
	free(is_kept);
	return ok;
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

static void fill_location(struct placing *placing, struct result_location *to, struct view_day *day,
			  uint32_t number)
{
	struct querying *querying = placing->querying;
	const struct catalog_location *from = catalog_location(day->catalog, number);

	to->kind = from->kind;
	to->module = map_module(querying, day, from->module, &placing->module_room);
	to->address = from->address;
	to->function = querying_string(querying, day, from->function);
	to->file = querying_string(querying, day, from->file);
	to->type = querying_string(querying, day, from->type);
	to->line = from->line;
}

/* In the order of the dictionary, in which callers come first. */
static bool fill_day(struct placing *placing, unsigned number)
{
	struct querying *querying = placing->querying;
	struct samples_result *result = querying->result;
	struct view_day *day = &querying->view.days[number];
	const struct marks *nodes = &placing->nodes[number];
	const struct marks *locations = &placing->locations[number];

	for (uint32_t i = 0; i < locations->words_count; i++)
		for (uint64_t left = locations->words[i]; left; left &= left - 1) {
			uint32_t at = i * WORD_BITS + (uint32_t)__builtin_ctzll(left);

			if (!querying_goes_on(querying))
				return false;
			fill_location(placing, &result->locations[number_of(locations, at)], day,
				      at);
		}
	for (uint32_t i = 0; i < nodes->words_count; i++)
		for (uint64_t left = nodes->words[i]; left; left &= left - 1) {
			uint32_t at = i * WORD_BITS + (uint32_t)__builtin_ctzll(left);
			const struct catalog_node *from = catalog_node(day->catalog, at);

			if (!querying_goes_on(querying))
				return false;
			result->nodes[number_of(nodes, at)] = (struct result_node){
				from->caller ? number_of(nodes, from->caller) : 0,
				number_of(locations, from->location)};
		}
	return true;
}

static bool fill(struct placing *placing)
{
	struct querying *querying = placing->querying;
	struct samples_result *result = querying->result;
	struct arena *arena = &result->arena;
	uint32_t nodes = 1, locations = 0;

	result->locations = arena_array(arena, placing->location_count, sizeof *result->locations);
	result->nodes = arena_array(arena, placing->node_count, sizeof *result->nodes);
	result->modules = arena_array(arena, placing->module_room, sizeof *result->modules);
	if (arena->failed)
		return false;
	result->location_count = placing->location_count;
	result->node_count = placing->node_count;
	for (unsigned i = 0; i < querying->view.day_count; i++) {
		if (!placing->nodes[i].words)
			continue;
		nodes = set_numbers(&placing->nodes[i], nodes);
		locations = set_numbers(&placing->locations[i], locations);
		if (!fill_day(placing, i))
			return false;
	}
	return querying_goes_on(querying);
}

static uint32_t leaf_of(const struct placing *placing, const struct distinct_stack *stack)
{
	const struct marks *nodes = &placing->nodes[stack->day - placing->querying->view.days];

	return stack->from->node && is_marked(nodes, stack->from->node)
		       ? number_of(nodes, stack->from->node)
		       : 0;
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
	bool ok = make_room(&placing) && mark_all(&placing) &&
		  (fits(&placing) || mark_heaviest(&placing)) && fill(&placing);

	for (uint32_t i = 0; ok && i < querying->stack_count; i++)
		querying->stacks[i].node = leaf_of(&placing, &querying->stacks[i]);
	ok = ok && (querying->query->only_nodes || put_lists(querying));
	for (size_t i = 0; ok && i < result->stack_count; i++) {
		const struct distinct_stack *stack = &querying->stacks[result->stacks[i].depth];

		result->stacks[i].locations = stack->locations;
		result->stacks[i].depth = stack->from->depth;
		result->stacks[i].node = stack->node;
	}
	return ok && !querying->is_full;
}
