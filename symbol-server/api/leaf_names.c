/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/api/leaf_names.h"

enum { MODULES_ASKED = 2048 }; /* of one report; what is beyond has no name then */

static bool is_named(const struct sample_batch *batch, const struct batch_stack *stack,
		     const bool *has_table)
{
	const struct batch_location *leaf;

	if (!stack->depth)
		return false;
	leaf = &batch->locations[batch->location_indices[stack->first_index]];
	if (leaf->kind == LOCATION_NAMED)
		return true;
	return location_has_address(leaf->kind) && leaf->module < MODULES_ASKED &&
	       leaf->module < batch->module_count && has_table[leaf->module];
}

void leaf_names_count(struct api *api, const struct sample_batch *batch)
{
	const struct build_id *ids[MODULES_ASKED];
	bool has_table[MODULES_ASKED];
	uint64_t named = 0, nameless = 0;
	size_t count = batch->module_count < MODULES_ASKED ? batch->module_count : MODULES_ASKED;

	for (size_t i = 0; i < count; i++)
		ids[i] = &batch->modules[i].id;
	symbolizer_have_names(api->symbolizer, ids, count, has_table);
	for (uint32_t i = 0; i < batch->sample_count; i++) {
		const struct batch_sample *sample = &batch->samples[i];
		bool is = is_named(batch, &batch->stacks[sample->stack], has_table);

		*(is ? &named : &nameless) += sample->samples;
	}
	api->leaves_named += named;
	api->leaves_nameless += nameless;
}
