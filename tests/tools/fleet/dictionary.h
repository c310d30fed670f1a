/* SPDX-License-Identifier: Apache-2.0 */
/* The dictionary of one report, of an app of the made-up world. */
#ifndef TESTS_TOOLS_FLEET_DICTIONARY_H
#define TESTS_TOOLS_FLEET_DICTIONARY_H

#include "tests/tools/fleet/protobuf.h"
#include "tests/tools/fleet/world.h"

enum { FRESH_LOCATION = 1 };

struct tables {
	const struct world *world;
	const struct world_app *app;
	struct buffer mappings, locations, functions, strings, attributes, stacks, entry;
	uint32_t mapping_count, location_count, function_count, string_count, attribute_count,
		stack_count;
	uint32_t *mapping_of, *location_of; /* 0: not there yet */
	uint32_t thread_of[WORLD_THREADS], sentence_of[3];
	uint32_t *id_of;                    /* of threads with an id: by name, then by thread */
	uint32_t *lifetime_of, *command_of; /* attributes, of the lifetimes */
	uint32_t key_thread, key_incomplete, key_type, key_gnu, key_base, key_anonymous;
	uint32_t native, kernel, python, anonymous; /* attributes */
	size_t fresh_at;                            /* its address in locations */
};

uint32_t tables_add_string(struct tables *tables, const char *text);
void put_indices(struct buffer *out, unsigned field, const uint32_t *indices, size_t count);
uint32_t tables_stack(struct tables *tables, uint32_t number, bool is_fresh);
void tables_start(struct tables *tables, const struct world *world, const struct world_app *app);
void tables_release(struct tables *tables);

#endif
