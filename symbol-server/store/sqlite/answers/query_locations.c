/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks of the result: their part of each day's tree, and its locations and modules. Which
 * those are is marked first, a bit for each of the day, and so is known before there has to be room
 * for them: where there is not, the heaviest stacks are taken. */
#include <stdlib.h>
#include <string.h>

#include "symbol-server/store/sqlite/answers/query_run.h"

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

struct placement {
	struct query_run *run;
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

static void clear_marks(struct placement *placement)
{
	for (unsigned i = 0; i < placement->run->view.day_count; i++) {
		struct marks *nodes = &placement->nodes[i], *locations = &placement->locations[i];

		if (!nodes->words)
			continue;
		memset(nodes->words, 0, nodes->words_count * sizeof *nodes->words);
		memset(locations->words, 0, locations->words_count * sizeof *locations->words);
	}
	placement->node_count = 1; /* 0 is none */
	placement->location_count = 0;
}

static bool make_room(struct placement *placement)
{
	struct view *view = &placement->run->view;

	placement->nodes = arena_array(&view->arena, view->day_count, sizeof *placement->nodes);
	placement->locations = arena_array(&view->arena, view->day_count,
					   sizeof *placement->locations);
	for (unsigned i = 0; !view->arena.failed && i < view->day_count; i++) {
		const struct view_day *day = &view->days[i];
		const uint32_t *count = day->mark.count;

		if (!day->catalog)
			continue;
		make_marks(&view->arena, &placement->nodes[i], day->mark.nodes);
		make_marks(&view->arena, &placement->locations[i], count[CATALOG_LOCATIONS]);
		placement->run->maps[i].modules = arena_array(&view->arena, count[CATALOG_MODULES],
							      4);
		placement->module_room += count[CATALOG_MODULES];
	}
	return !view->arena.failed;
}

static void mark_stack(struct placement *placement, const struct distinct_stack *stack)
{
	size_t day = (size_t)(stack->day - placement->run->view.days);
	const struct catalog *catalog = stack->day->catalog;

	for (uint32_t at = stack->from->node; at && mark(&placement->nodes[day], at);
	     at = catalog_node(catalog, at)->caller) {
		placement->node_count++;
		placement->location_count += mark(&placement->locations[day],
						  catalog_node(catalog, at)->location);
	}
}

/* Beside what was collected. */
static bool fits(const struct placement *placement)
{
	const struct query_run *run = placement->run;
	uint64_t bytes = (uint64_t)placement->node_count * NODE_BYTES +
			 (uint64_t)placement->location_count * LOCATION_BYTES;

	return !run->most_bytes || query_run_bytes(run) + bytes <= run->most_bytes;
}

static bool mark_all(struct placement *placement)
{
	struct query_run *run = placement->run;

	clear_marks(placement);
	for (uint32_t i = 0; i < run->stack_count && fits(placement); i++) {
		mark_stack(placement, &run->stacks[i]);
		if (!query_run_goes_on(run))
			return false;
	}
	return true;
}

/* A stack that only just does not fit is kept as well: the room is no exact figure. */
static bool mark_heaviest(struct placement *placement)
{
	struct query_run *run = placement->run;
	uint32_t *order = query_run_order_stacks(run);
	uint8_t *is_kept = calloc((size_t)run->stack_count + 1, 1);
	bool ok = order && is_kept;

	clear_marks(placement);
	for (uint32_t i = 0; ok && i < run->stack_count && fits(placement); i++) {
		mark_stack(placement, &run->stacks[order[i]]);
		is_kept[order[i]] = 1;
		ok = query_run_goes_on(run);
	}
	if (ok)
		query_run_keep_stacks(run, is_kept);
	free(order);
	free(is_kept);
	return ok;
}

static uint32_t map_module(struct query_run *run, struct view_day *day, uint32_t number,
			   uint32_t *room)
{
	uint32_t *known = &query_run_maps(run, day)->modules[number];
	const struct catalog_module *from = catalog_module(day->catalog, number);
	struct samples_result *result = run->result;

	if (!number)
		return UINT32_MAX;
	if (!*known) {
		const char *name = query_run_string(run, day, from->name);

		for (uint32_t i = 0; day != run->view.days && i < result->module_count; i++)
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

static void fill_location(struct placement *placement, struct result_location *to,
			  struct view_day *day, uint32_t number)
{
	struct query_run *run = placement->run;
	const struct catalog_location *from = catalog_location(day->catalog, number);

	to->kind = from->kind;
	to->module = map_module(run, day, from->module, &placement->module_room);
	to->address = from->address;
	to->function = query_run_string(run, day, from->function);
	to->file = query_run_string(run, day, from->file);
	to->type = query_run_string(run, day, from->type);
	to->line = from->line;
}

/* In the order of the dictionary, in which callers come first. */
static bool fill_day(struct placement *placement, unsigned number)
{
	struct query_run *run = placement->run;
	struct samples_result *result = run->result;
	struct view_day *day = &run->view.days[number];
	const struct marks *nodes = &placement->nodes[number];
	const struct marks *locations = &placement->locations[number];

	for (uint32_t i = 0; i < locations->words_count; i++)
		for (uint64_t left = locations->words[i]; left; left &= left - 1) {
			uint32_t at = i * WORD_BITS + (uint32_t)__builtin_ctzll(left);

			if (!query_run_goes_on(run))
				return false;
			fill_location(placement, &result->locations[number_of(locations, at)], day,
				      at);
		}
	for (uint32_t i = 0; i < nodes->words_count; i++)
		for (uint64_t left = nodes->words[i]; left; left &= left - 1) {
			uint32_t at = i * WORD_BITS + (uint32_t)__builtin_ctzll(left);
			const struct catalog_node *from = catalog_node(day->catalog, at);

			if (!query_run_goes_on(run))
				return false;
			result->nodes[number_of(nodes, at)] = (struct result_node){
				from->caller ? number_of(nodes, from->caller) : 0,
				number_of(locations, from->location)};
		}
	return true;
}

static bool fill(struct placement *placement)
{
	struct query_run *run = placement->run;
	struct samples_result *result = run->result;
	struct arena *arena = &result->arena;
	uint32_t nodes = 1, locations = 0;

	result->locations = arena_array(arena, placement->location_count,
					sizeof *result->locations);
	result->nodes = arena_array(arena, placement->node_count, sizeof *result->nodes);
	result->modules = arena_array(arena, placement->module_room, sizeof *result->modules);
	if (arena->failed)
		return false;
	result->location_count = placement->location_count;
	result->node_count = placement->node_count;
	for (unsigned i = 0; i < run->view.day_count; i++) {
		if (!placement->nodes[i].words)
			continue;
		nodes = set_numbers(&placement->nodes[i], nodes);
		locations = set_numbers(&placement->locations[i], locations);
		if (!fill_day(placement, i))
			return false;
	}
	return query_run_goes_on(run);
}

static uint32_t leaf_of(const struct placement *placement, const struct distinct_stack *stack)
{
	const struct marks *nodes = &placement->nodes[stack->day - placement->run->view.days];

	return stack->from->node && is_marked(nodes, stack->from->node)
		       ? number_of(nodes, stack->from->node)
		       : 0;
}

/* The list of each distinct stack, for callers that do not follow nodes. */
static bool put_lists(struct query_run *run)
{
	const struct result_node *nodes = run->result->nodes;

	for (uint32_t i = 0; i < run->stack_count; i++) {
		struct distinct_stack *stack = &run->stacks[i];
		uint32_t *locations = arena_array(&run->result->arena, stack->from->depth,
						  sizeof *locations);
		uint32_t at = stack->node;

		if (!locations || !query_run_goes_on(run))
			return false;
		for (uint32_t k = 0; k < stack->from->depth; k++, at = nodes[at].caller)
			locations[k] = nodes[at].location;
		stack->locations = locations;
	}
	return true;
}

bool query_run_put_locations(struct query_run *run)
{
	struct samples_result *result = run->result;
	struct placement placement = {.run = run};
	bool ok = make_room(&placement) && mark_all(&placement) &&
		  (fits(&placement) || mark_heaviest(&placement)) && fill(&placement);

	for (uint32_t i = 0; ok && i < run->stack_count; i++)
		run->stacks[i].node = leaf_of(&placement, &run->stacks[i]);
	ok = ok && (run->query->only_nodes || put_lists(run));
	for (size_t i = 0; ok && i < result->stack_count; i++) {
		const struct distinct_stack *stack = &run->stacks[result->stacks[i].depth];

		result->stacks[i].locations = stack->locations;
		result->stacks[i].depth = stack->from->depth;
		result->stacks[i].node = stack->node;
	}
	return ok && !run->is_full;
}
