/* SPDX-License-Identifier: Apache-2.0 */
/* What a roll-up refers to: series, stacks and strings of one dictionary in another, and series
 * without the labels that name one instance. */
#include <string.h>

#include "symbol-server/store/sqlite/rollups/rolling.h"

static struct text text_at(const struct catalog *catalog, uint32_t string)
{
	const struct catalog_string *at = catalog_string(catalog, string);

	return (struct text){at->text, at->length};
}

/* The number in "to" of a series of "from", with all labels or without those of instances. */
static uint32_t add_series(struct rolling *rolling, uint32_t number, bool is_fleet)
{
	const struct catalog_series *from = catalog_series(rolling->from, number);
	struct batch_label labels[SAMPLES_LABELS_MAX];
	struct batch_series series = {.labels = labels};
	uint32_t added;

	for (uint32_t i = 0; i < from->label_count && i < SAMPLES_LABELS_MAX; i++) {
		uint32_t name = from->labels[2 * i];

		if (is_fleet && rollup_drops_label(catalog_string(rolling->from, name)->text))
			continue;
		labels[series.label_count++] =
			(struct batch_label){text_at(rolling->from, name),
					     text_at(rolling->from, from->labels[2 * i + 1])};
	}
	pthread_mutex_lock(&rolling->store->lock);
	added = catalog_add_series(rolling->to, from->tenant, &series);
	pthread_mutex_unlock(&rolling->store->lock);
	return added;
}

bool rolling_series(struct rolling *rolling, uint32_t from, uint32_t *series, uint32_t *fleet)
{
	*series = from;
	if (rolling->series_map) {
		if (!rolling->series_map[from])
			rolling->series_map[from] = add_series(rolling, from, false);
		*series = rolling->series_map[from];
	}
	if (!rolling->fleet_of[from])
		rolling->fleet_of[from] = add_series(rolling, from, true);
	/* Without room it stays as it is, and view.c looks for it there. Memory comes back. */
	if (!rolling->fleet_of[from] && !catalog_is_full(rolling->to))
		return false;
	*fleet = rolling->fleet_of[from] ? rolling->fleet_of[from] : *series;
	return *series;
}

static void fill_location(const struct catalog *from, const struct catalog_location *location,
			  uint32_t number, struct sample_batch *batch)
{
	struct batch_location *to = &batch->locations[number];

	*to = (struct batch_location){.kind = location->kind,
				      .module = UINT32_MAX,
				      .address = location->address,
				      .function = text_at(from, location->function),
				      .file = text_at(from, location->file),
				      .type = text_at(from, location->type),
				      .line = location->line};
	if (location->module) {
		const struct catalog_module *module = catalog_module(from, location->module);

		to->module = number;
		batch->modules[number] = (struct batch_module){
			module->id, module->htlhash, text_at(from, module->go_id),
			text_at(from, module->name), module->base};
	}
	batch->location_indices[number] = number;
}

uint32_t rolling_copy_stack(struct rolling *rolling, uint32_t number)
{
	const struct catalog_stack *stack = catalog_stack(rolling->from, number);
	struct batch_module modules[SAMPLES_DEPTH_MAX];
	struct batch_location locations[SAMPLES_DEPTH_MAX];
	uint32_t indices[SAMPLES_DEPTH_MAX], from[SAMPLES_DEPTH_MAX], module_map[SAMPLES_DEPTH_MAX],
		location_map[SAMPLES_DEPTH_MAX], stack_map = 0;
	struct batch_stack one = {.depth = stack->depth, .hash = {stack->hash[0], stack->hash[1]}};
	struct sample_batch batch = {.modules = modules,
				     .locations = locations,
				     .location_indices = indices,
				     .stacks = &one};
	struct catalog_translation translation = {&batch, module_map, location_map, &stack_map};

	if (stack->depth > SAMPLES_DEPTH_MAX)
		return CATALOG_OVERFLOW_STACK;
	memset(module_map, 0, stack->depth * sizeof *module_map);
	memset(location_map, 0, stack->depth * sizeof *location_map);
	catalog_stack_locations(rolling->from, stack, from);
	for (uint32_t i = 0; i < stack->depth; i++)
		fill_location(rolling->from, catalog_location(rolling->from, from[i]), i, &batch);
	pthread_mutex_lock(&rolling->store->lock);
	number = catalog_add_stack(rolling->to, &translation, 0);
	pthread_mutex_unlock(&rolling->store->lock);
	return number;
}

uint32_t rolling_string(struct rolling *rolling, uint32_t from)
{
	uint32_t *known;

	if (!rolling->string_map || !from)
		return from;
	known = &rolling->string_map[from];
	if (!*known) {
		pthread_mutex_lock(&rolling->store->lock);
		*known = catalog_add_string(rolling->to, text_at(rolling->from, from));
		pthread_mutex_unlock(&rolling->store->lock);
	}
	return *known;
}
