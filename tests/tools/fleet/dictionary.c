/* SPDX-License-Identifier: Apache-2.0 */
/* Field numbers: opentelemetry-proto 1.11, profiles/v1development (schema/wire/profiles.proto). */
#include "tests/tools/fleet/dictionary.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>

uint32_t tables_add_string(struct tables *tables, const char *text)
{
	put_text(&tables->strings, 5, text);
	return tables->string_count++;
}

static uint32_t add_attribute(struct tables *tables, uint32_t key, const char *text)
{
	struct buffer value = message();

	if (text)
		put_text(&value, 1, text);
	else
		put_number(&value, 2, 1); /* true */
	put_number(&tables->entry, 1, key);
	put_message(&tables->entry, 2, &value);
	put_message(&tables->attributes, 6, &tables->entry);
	buffer_release(&value);
	return tables->attribute_count++;
}

static uint32_t add_number_attribute(struct tables *tables, uint32_t key, uint64_t number)
{
	struct buffer value = message();

	put_number(&value, 3, number);
	put_number(&tables->entry, 1, key);
	put_message(&tables->entry, 2, &value);
	put_message(&tables->attributes, 6, &tables->entry);
	buffer_release(&value);
	return tables->attribute_count++;
}

static void add_thread_ids(struct tables *tables)
{
	uint32_t count = WORLD_THREADS * tables->world->options.thread_ids;
	uint32_t key;

	if (!count)
		return;
	key = tables_add_string(tables, "thread.id");
	tables->id_of = calloc(count, sizeof *tables->id_of);
	if (!tables->id_of)
		errx(2, "no memory for the made-up fleet");
	for (uint32_t i = 0; i < count; i++)
		tables->id_of[i] = add_number_attribute(tables, key, 4000 + i * 3);
}

static void add_lifetimes(struct tables *tables)
{
	const uint32_t count = tables->world->options.lifetimes;
	uint32_t lifetime, command;
	char text[160];

	if (!count)
		return;
	lifetime = tables_add_string(tables, "farflame.lifetime");
	command = tables_add_string(tables, "process.command_line");
	tables->lifetime_of = calloc(count, sizeof *tables->lifetime_of);
	tables->command_of = calloc(count, sizeof *tables->command_of);
	if (!tables->lifetime_of || !tables->command_of)
		errx(2, "no memory for the made-up fleet");
	for (uint32_t i = 0; i < count; i++) {
		snprintf(text, sizeof text, "%u.%012x", 4000 + i, i * 2654435761u);
		tables->lifetime_of[i] = add_attribute(tables, lifetime, text);
		snprintf(text, sizeof text,
			 "/usr/bin/server --listen 0.0.0.0:8080 --config "
			 "/etc/server/production.yaml --shard %u",
			 i);
		tables->command_of[i] = add_attribute(tables, command, text);
	}
}

void put_indices(struct buffer *out, unsigned field, const uint32_t *indices, size_t count)
{
	struct buffer run = message();

	for (size_t i = 0; i < count; i++)
		buffer_append_varint(&run, indices[i]);
	put_message(out, field, &run);
	buffer_release(&run);
}

static uint32_t mapping_of(struct tables *tables, uint32_t number)
{
	const struct world_module *module = &tables->world->modules[number];
	uint32_t indices[2];

	if (tables->mapping_of[number])
		return tables->mapping_of[number];
	indices[0] = add_attribute(tables, tables->key_gnu, module->build_id);
	if (module->is_kernel) {
		indices[1] = add_attribute(tables, tables->key_base, "_text");
	} else {
		put_number(&tables->entry, 1, 0x1000);
		put_number(&tables->entry, 2, UINT64_C(1) << 36);
		put_number(&tables->entry, 3, 0x1000);
	}
	put_number(&tables->entry, 4, tables_add_string(tables, module->name));
	put_indices(&tables->entry, 5, indices, module->is_kernel ? 2 : 1);
	put_message(&tables->mappings, 1, &tables->entry);
	return tables->mapping_of[number] = tables->mapping_count++;
}

static void put_function_line(struct tables *tables, uint32_t number)
{
	struct buffer line = message(), function = message();
	char name[40];

	snprintf(name, sizeof name, "function_%u", number);
	put_number(&function, 1, tables_add_string(tables, name));
	put_number(&function, 3, tables_add_string(tables, "module.py"));
	put_message(&tables->functions, 3, &function);
	put_number(&line, 1, tables->function_count++);
	put_number(&line, 2, number);
	put_message(&tables->entry, 3, &line);
	buffer_release(&line);
	buffer_release(&function);
}

static uint32_t location_of(struct tables *tables, uint32_t number)
{
	const struct world_location *location = &tables->app->locations[number];
	uint32_t indices[2] = {tables->native, tables->anonymous}, count = 1;

	if (tables->location_of[number])
		return tables->location_of[number];
	if (location->kind == WORLD_NATIVE || location->kind == WORLD_KERNEL) {
		uint32_t mapping = mapping_of(tables, location->module);

		put_number(&tables->entry, 1, mapping);
	}
	if (location->kind == WORLD_NAMED) {
		put_function_line(tables, location->function);
		indices[0] = tables->python;
	} else {
		put_number(&tables->entry, 2, location->address);
	}
	if (location->kind != WORLD_NAMED && tables->world->options.is_plain)
		put_function_line(tables, number);
	if (location->kind == WORLD_KERNEL)
		indices[0] = tables->kernel;
	if (location->kind == WORLD_ANONYMOUS)
		count = 2;
	put_indices(&tables->entry, 4, indices, count);
	put_message(&tables->locations, 2, &tables->entry);
	return tables->location_of[number] = tables->location_count++;
}

/* is_fresh: its leaf is the fresh location. */
uint32_t tables_stack(struct tables *tables, uint32_t number, bool is_fresh)
{
	const struct world_stack *stack = &tables->app->stacks[number];
	struct buffer run = message();

	if (is_fresh)
		buffer_append_varint(&run, FRESH_LOCATION);
	for (uint32_t i = is_fresh; i < stack->depth; i++)
		buffer_append_varint(&run,
				     location_of(tables, tables->app->frames[stack->first + i]));
	put_message(&tables->entry, 1, &run);
	put_message(&tables->stacks, 7, &tables->entry);
	buffer_release(&run);
	return tables->stack_count++;
}

static void add_fresh_location(struct tables *tables)
{
	uint32_t mapping = mapping_of(tables, WORLD_FRESH_MODULE);

	put_number(&tables->entry, 1, mapping);
	put_number(&tables->entry, 2, WORLD_FRESH_FIRST); /* of 5 bytes, as all of them */
	tables->fresh_at = tables->entry.length - 5;
	put_indices(&tables->entry, 4, &tables->native, 1);
	tables->fresh_at += tables->locations.length + 2;
	put_message(&tables->locations, 2, &tables->entry);
	tables->location_count++;
}

void tables_start(struct tables *tables, const struct world *world, const struct world_app *app)
{
	*tables = (struct tables){.world = world, .app = app};
	tables->mappings = tables->locations = tables->functions = message();
	tables->strings = tables->attributes = tables->stacks = tables->entry = message();
	tables->mapping_of = calloc(world->module_count, sizeof(uint32_t));
	tables->location_of = calloc(app->location_count, sizeof(uint32_t));
	if (!tables->mapping_of || !tables->location_of)
		errx(2, "no memory for the made-up fleet");
	/* Entry 0 of every table means "none". */
	tables_add_string(tables, "");
	put_bytes(&tables->mappings, 1, "", 0);
	put_bytes(&tables->locations, 2, "", 0);
	put_bytes(&tables->functions, 3, "", 0);
	put_bytes(&tables->attributes, 6, "", 0);
	put_bytes(&tables->stacks, 7, "", 0);
	tables->mapping_count = tables->location_count = tables->function_count =
		tables->attribute_count = tables->stack_count = 1;
	tables->key_thread = tables_add_string(tables, "thread.name");
	tables->key_incomplete = tables_add_string(tables, "farflame.incomplete");
	tables->key_type = tables_add_string(tables, "profile.frame.type");
	tables->key_gnu = tables_add_string(tables, "process.executable.build_id.gnu");
	tables->key_base = tables_add_string(tables, "farflame.address_base");
	tables->key_anonymous = tables_add_string(tables, "farflame.anonymous");
	tables->native = add_attribute(tables, tables->key_type, "native");
	tables->kernel = add_attribute(tables, tables->key_type, "kernel");
	tables->python = add_attribute(tables, tables->key_type, "cpython");
	tables->anonymous = add_attribute(tables, tables->key_anonymous, NULL);
	add_fresh_location(tables);
	for (uint32_t i = 0; i < WORLD_THREADS; i++)
		tables->thread_of[i] = add_attribute(tables, tables->key_thread, world_thread(i));
	for (uint32_t i = 0; i < 3; i++)
		tables->sentence_of[i] = add_attribute(tables, tables->key_incomplete,
						       world_sentences[i]);
	add_thread_ids(tables);
	add_lifetimes(tables);
}

void tables_release(struct tables *tables)
{
	buffer_release(&tables->mappings);
	buffer_release(&tables->locations);
	buffer_release(&tables->functions);
	buffer_release(&tables->strings);
	buffer_release(&tables->attributes);
	buffer_release(&tables->stacks);
	buffer_release(&tables->entry);
	free(tables->mapping_of);
	free(tables->location_of);
	free(tables->id_of);
	free(tables->lifetime_of);
	free(tables->command_of);
}
