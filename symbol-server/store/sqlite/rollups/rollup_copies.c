/* SPDX-License-Identifier: Apache-2.0 */
/* What a roll-up refers to: series, stacks and strings of one dictionary in another, and series
 * without the labels that name one instance. */
#include <string.h>

#include "symbol-server/store/sqlite/rollups/rollup_pass.h"

static struct text text_at(const struct catalog *catalog, uint32_t string)
{
	const struct catalog_string *at = catalog_string(catalog, string);

	return (struct text){at->text, at->length};
}

/* The number in "to" of a series of "from", with all labels or without those of instances. */
static uint32_t add_series(struct rollup_pass *pass, uint32_t number, bool is_fleet)
{
	const struct catalog_series *from = catalog_series(pass->from, number);
	struct batch_label labels[SAMPLES_LABELS_MAX];
	struct batch_series series = {.labels = labels};
	uint32_t added;

	for (uint32_t i = 0; i < from->label_count && i < SAMPLES_LABELS_MAX; i++) {
		uint32_t name = from->labels[2 * i];

		if (is_fleet && rollup_drops_label(catalog_string(pass->from, name)->text))
			continue;
		labels[series.label_count++] = (struct batch_label){
			text_at(pass->from, name), text_at(pass->from, from->labels[2 * i + 1])};
	}
	pthread_mutex_lock(&pass->store->lock);
	added = catalog_add_series(pass->to, from->tenant, &series);
	pthread_mutex_unlock(&pass->store->lock);
	return added;
}

bool rollup_pass_series(struct rollup_pass *pass, uint32_t from, uint32_t *series, uint32_t *fleet)
{
	*series = from;
	if (pass->series_map) {
		if (!pass->series_map[from])
			pass->series_map[from] = add_series(pass, from, false);
		*series = pass->series_map[from];
	}
	if (!pass->fleet_of[from])
		pass->fleet_of[from] = add_series(pass, from, true);
	/* Without room it stays as it is, and view.c looks for it there. Memory comes back. */
	if (!pass->fleet_of[from] && !catalog_is_full(pass->to))
		return false;
	*fleet = pass->fleet_of[from] ? pass->fleet_of[from] : *series;
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

uint32_t rollup_pass_stack(struct rollup_pass *pass, uint32_t number)
{
	const struct catalog_stack *stack = catalog_stack(pass->from, number);
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
	catalog_stack_locations(pass->from, stack, from);
	for (uint32_t i = 0; i < stack->depth; i++)
		fill_location(pass->from, catalog_location(pass->from, from[i]), i, &batch);
	pthread_mutex_lock(&pass->store->lock);
	number = catalog_add_stack(pass->to, &translation, 0);
	pthread_mutex_unlock(&pass->store->lock);
	return number;
}

uint32_t rollup_pass_string(struct rollup_pass *pass, uint32_t from)
{
	uint32_t *known;

	if (!pass->string_map || !from)
		return from;
	known = &pass->string_map[from];
	if (!*known) {
		pthread_mutex_lock(&pass->store->lock);
		*known = catalog_add_string(pass->to, text_at(pass->from, from));
		pthread_mutex_unlock(&pass->store->lock);
	}
	return *known;
}
