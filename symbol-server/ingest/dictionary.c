/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/ingest/dictionary.h"

#include <stdio.h>

#include "common/hash_table.h"
#include "symbol-server/store/sample_context.h"

enum dictionary_result dictionary_bad_index(struct dictionary *dictionary, const char *what,
					    uint64_t index, uint32_t count)
{
	if (!dictionary->problem[0])
		snprintf(dictionary->problem, sizeof dictionary->problem,
			 "%s %lld is outside its table of %u", what, (long long)(int32_t)index,
			 count);
	return DICTIONARY_BAD_INDEX;
}

enum dictionary_result dictionary_string(struct dictionary *dictionary, uint64_t index,
					 const char *what, struct text *text)
{
	*text = (struct text){"", 0};
	if ((uint32_t)index >= dictionary->string_count)
		return (uint32_t)index ? dictionary_bad_index(dictionary, what, index,
							      dictionary->string_count)
				       : DICTIONARY_OK;
	*text = dictionary->strings[(uint32_t)index];
	return DICTIONARY_OK;
}

/* --- spans --- */

static bool count_spans(struct dictionary *dictionary, struct wire wire)
{
	struct wire_field field;
	int got;

	while ((got = wire_next_fast(&wire, &field)) > 0) {
		if (field.number < TABLE_MAPPINGS || field.number > TABLE_STACKS)
			continue;
		if (field.type != WIRE_BYTES)
			return false;
		if (field.number == TABLE_LINKS && !wire_check(field.bytes, WIRE_LINK, 0))
			return false;
		dictionary->tables[field.number].capacity++;
	}
	return got == 0;
}

static void keep_spans(struct dictionary *dictionary, struct wire wire)
{
	struct wire_field field;

	while (wire_next_fast(&wire, &field) > 0) {
		struct dictionary_table *table;

		if (field.number < TABLE_MAPPINGS || field.number > TABLE_STACKS)
			continue;
		table = &dictionary->tables[field.number];
		table->spans[table->count++] = field.bytes;
	}
}

static enum dictionary_result find_spans(struct dictionary *dictionary, const struct wire *spans,
					 unsigned span_count)
{
	for (unsigned i = 0; i < span_count; i++)
		if (!count_spans(dictionary, spans[i]))
			return DICTIONARY_MALFORMED;
	for (unsigned i = TABLE_MAPPINGS; i <= TABLE_STACKS; i++) {
		struct dictionary_table *table = &dictionary->tables[i];

		table->spans = arena_array(dictionary->arena, table->capacity, sizeof(struct wire));
		if (!table->spans)
			return DICTIONARY_NO_ROOM;
	}
	for (unsigned i = 0; i < span_count; i++)
		keep_spans(dictionary, spans[i]);
	return DICTIONARY_OK;
}

/* --- strings and attributes --- */

static enum dictionary_result read_strings(struct dictionary *dictionary)
{
	const struct dictionary_table *table = &dictionary->tables[TABLE_STRINGS];

	dictionary->strings = arena_array(dictionary->arena, table->count, sizeof(struct text));
	if (!dictionary->strings)
		return DICTIONARY_NO_ROOM;
	for (uint32_t i = 0; i < table->count; i++)
		dictionary->strings[i] = text_cut(text_repair(dictionary->arena, table->spans[i]),
						  TEXT_MAX);
	dictionary->string_count = table->count;
	return dictionary->arena->failed ? DICTIONARY_NO_ROOM : DICTIONARY_OK;
}

static enum attribute_key key_of(struct text name)
{
	static const struct {
		const char *name;
		enum attribute_key key;
	} keys[] = {
		{"thread.name", KEY_THREAD_NAME},
		{"thread.id", KEY_THREAD_ID},
		{"farflame.incomplete", KEY_INCOMPLETE},
		{"profile.frame.type", KEY_FRAME_TYPE},
		{"process.executable.build_id.gnu", KEY_GNU},
		{"process.executable.build_id.go", KEY_GO},
		{"process.executable.build_id.htlhash", KEY_HTLHASH},
		{"farflame.address_base", KEY_ADDRESS_BASE},
		{"farflame.anonymous", KEY_ANONYMOUS},
		{"farflame.runtime", KEY_RUNTIME},
	};

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (text_is(name, keys[i].name))
			return keys[i].key;
	return sample_context_is_process_key(name.at, name.length) ? KEY_PROCESS : KEY_OTHER;
}

/* The rules of wire types for the fields that are not read are wire_check()'s. */
enum dictionary_result dictionary_value(struct dictionary *dictionary, struct wire wire,
					struct attribute_value *value)
{
	enum dictionary_result result = DICTIONARY_OK;
	struct wire_field field;

	if (!wire_check(wire, WIRE_ANY_VALUE, 0))
		return DICTIONARY_MALFORMED;
	while (result == DICTIONARY_OK && wire_next_fast(&wire, &field) > 0) {
		struct attribute_value next = {VALUE_NONE, {"", 0}, 0};

		if (field.number == 1) {
			next.kind = VALUE_TEXT;
			next.text = text_repair(dictionary->arena, field.bytes);
		} else if (field.number == 2 || field.number == 3) {
			next.kind = VALUE_NUMBER;
			next.number = field.number == 2 ? field.value != 0 : (int64_t)field.value;
		} else if (field.number == 8) {
			next.kind = VALUE_TEXT;
			result = dictionary_string(dictionary, field.value, "string", &next.text);
		} else if (field.number > 8) {
			continue; /* not of the oneof */
		}
		*value = next;
	}
	return dictionary->arena->failed ? DICTIONARY_NO_ROOM : result;
}

static enum dictionary_result read_attribute(struct dictionary *dictionary, struct wire wire,
					     struct dictionary_attribute *attribute)
{
	enum dictionary_result result = DICTIONARY_OK;
	struct wire_field field;
	struct text key;
	int got;

	attribute->value.text = attribute->name = (struct text){"", 0};
	while ((got = wire_next_fast(&wire, &field)) > 0) {
		if (field.number == 1 || field.number == 3) {
			if (field.type != WIRE_VARINT)
				return DICTIONARY_MALFORMED;
			if (field.number == 3)
				continue;
			result = dictionary_string(dictionary, field.value, "attribute key", &key);
			attribute->key = key_of(key);
			attribute->name = key;
		} else if (field.number == 2) {
			if (field.type != WIRE_BYTES)
				return DICTIONARY_MALFORMED;
			result = dictionary_value(dictionary, field.bytes, &attribute->value);
		}
		if (result == DICTIONARY_MALFORMED || result == DICTIONARY_NO_ROOM)
			return result;
	}
	/* A bad key or value leaves an attribute that means nothing. */
	return got == 0 ? DICTIONARY_OK : DICTIONARY_MALFORMED;
}

/* A Link: 1 trace id, 2 span id (opentelemetry-proto, profiles.proto); wire_check() has seen it. */
enum dictionary_result dictionary_link(struct dictionary *dictionary, uint32_t index,
				       const uint8_t **ids)
{
	const struct dictionary_table *table = &dictionary->tables[TABLE_LINKS];
	struct wire_field field;
	struct wire wire;
	uint8_t *to;

	*ids = NULL;
	if (!index)
		return DICTIONARY_OK;
	if (index >= table->count)
		return dictionary_bad_index(dictionary, "link", index, table->count);
	to = arena_alloc(dictionary->arena, 24);
	if (!to)
		return DICTIONARY_NO_ROOM;
	memset(to, 0, 24);
	wire = table->spans[index];
	while (wire_next_fast(&wire, &field) > 0) {
		size_t length = field.type == WIRE_BYTES
					? (size_t)(field.bytes.end - field.bytes.at)
					: 0;

		if (field.number == 1 && length == 16)
			memcpy(to, field.bytes.at, 16);
		else if (field.number == 2 && length == 8)
			memcpy(to + 16, field.bytes.at, 8);
	}
	for (unsigned i = 0; i < 24 && !*ids; i++)
		*ids = to[i] ? to : NULL;
	return DICTIONARY_OK;
}

static enum dictionary_result read_attributes(struct dictionary *dictionary)
{
	const struct dictionary_table *table = &dictionary->tables[TABLE_ATTRIBUTES];
	enum dictionary_result result = DICTIONARY_OK;

	dictionary->attributes = arena_array(dictionary->arena, table->count,
					     sizeof *dictionary->attributes);
	if (!dictionary->attributes)
		return DICTIONARY_NO_ROOM;
	for (uint32_t i = 0; i < table->count && result == DICTIONARY_OK; i++)
		result = read_attribute(dictionary, table->spans[i], &dictionary->attributes[i]);
	dictionary->attribute_count = table->count;
	return result;
}

enum dictionary_result
dictionary_each_attribute(struct dictionary *dictionary, const struct wire_field *field,
			  void (*found)(void *to, const struct dictionary_attribute *attribute),
			  void *to)
{
	enum dictionary_result result = DICTIONARY_OK;
	struct wire_scalars run;
	uint64_t index;

	if (!wire_scalars(field, &run))
		return DICTIONARY_MALFORMED;
	while (!wire_is_done(&run)) {
		if (!wire_scalar(&run, &index))
			return DICTIONARY_MALFORMED;
		if ((uint32_t)index < dictionary->attribute_count)
			found(to, &dictionary->attributes[(uint32_t)index]);
		else if ((uint32_t)index)
			result = dictionary_bad_index(dictionary, "attribute", index,
						      dictionary->attribute_count);
	}
	return result;
}

/* --- mappings --- */

struct mapping_ids {
	struct build_id gnu, htlhash;
	struct text go;
	enum address_base base;
};

static void keep_mapping_attribute(void *to, const struct dictionary_attribute *attribute)
{
	struct mapping_ids *ids = to;
	struct text text = attribute->value.text;

	if (attribute->value.kind != VALUE_TEXT)
		return;
	switch (attribute->key) {
	case KEY_GNU:
		build_id_parse(&ids->gnu, text.at, text.length);
		break;
	case KEY_HTLHASH:
		build_id_parse(&ids->htlhash, text.at, text.length);
		break;
	case KEY_GO:
		ids->go = text;
		break;
	case KEY_ADDRESS_BASE:
		ids->base = text_is(text, "_text")   ? ADDRESS_KERNEL_TEXT
			    : text_is(text, ".text") ? ADDRESS_MODULE_TEXT
						     : ADDRESS_ELF;
		break;
	default:
		break;
	}
}

static void go_build_id(struct text go, struct build_id *id)
{
	for (unsigned i = 0; i < 16; i++)
		id->bytes[i] = (uint8_t)(hash_bytes(go.at, go.length, 1 + i / 8) >> (8 * (i % 8)));
	id->length = 16;
}

static uint32_t add_module(struct dictionary *dictionary, const struct mapping_ids *ids,
			   struct text name)
{
	struct sample_batch *batch = dictionary->batch;
	struct batch_module *module = &batch->modules[batch->module_count];
	uint64_t hash;

	if (!ids->gnu.length && !ids->htlhash.length && !ids->go.length && !name.length)
		return UINT32_MAX;
	*module = (struct batch_module){ids->gnu, ids->htlhash, ids->go, name, ids->base};
	if (!module->id.length)
		module->id = ids->htlhash;
	if (!module->id.length && ids->go.length)
		go_build_id(ids->go, &module->id);
	hash = module->id.length ? hash_bytes(module->id.bytes, module->id.length, 0)
				 : hash_bytes(name.at, name.length, 1);
	dictionary->module_hashes[batch->module_count] = hash_word(hash, module->base);
	return batch->module_count++;
}

static enum dictionary_result read_mapping(struct dictionary *dictionary, struct wire wire,
					   struct dictionary_mapping *mapping)
{
	enum dictionary_result result = DICTIONARY_OK;
	struct mapping_ids ids = {.go = {"", 0}};
	struct text name = {"", 0};
	struct wire_field field;
	int got;

	while ((got = wire_next_fast(&wire, &field)) > 0) {
		if (field.number >= 1 && field.number <= 4 && field.type != WIRE_VARINT)
			return DICTIONARY_MALFORMED;
		if (field.number == 1)
			mapping->start = field.value;
		else if (field.number == 2)
			mapping->limit = field.value;
		else if (field.number == 3)
			mapping->file_offset = field.value;
		else if (field.number == 4)
			mapping->is_bad |= dictionary_string(dictionary, field.value, "file name",
							     &name) != DICTIONARY_OK;
		else if (field.number == 5)
			result = dictionary_each_attribute(dictionary, &field,
							   keep_mapping_attribute, &ids);
		if (result == DICTIONARY_MALFORMED)
			return result;
		mapping->is_bad |= result != DICTIONARY_OK;
	}
	mapping->module = add_module(dictionary, &ids, text_base_name(name));
	mapping->is_kernel = ids.base != ADDRESS_ELF;
	return got == 0 ? DICTIONARY_OK : DICTIONARY_MALFORMED;
}

static enum dictionary_result read_mappings(struct dictionary *dictionary)
{
	const struct dictionary_table *table = &dictionary->tables[TABLE_MAPPINGS];
	enum dictionary_result result = DICTIONARY_OK;
	struct arena *arena = dictionary->arena;

	dictionary->mappings = arena_array(arena, table->count, sizeof *dictionary->mappings);
	dictionary->batch->modules = arena_array(arena, table->count,
						 sizeof *dictionary->batch->modules);
	dictionary->module_hashes = arena_array(arena, table->count, sizeof(uint64_t));
	if (arena->failed)
		return DICTIONARY_NO_ROOM;
	for (uint32_t i = 0; i < table->count && result == DICTIONARY_OK; i++)
		result = read_mapping(dictionary, table->spans[i], &dictionary->mappings[i]);
	dictionary->mapping_count = table->count;
	return result;
}

static enum dictionary_result read_function(struct dictionary *dictionary, struct wire wire,
					    struct dictionary_function *function)
{
	struct text system_name = {"", 0};
	struct wire_field field;
	int got;

	function->name = function->file = system_name;
	while ((got = wire_next_fast(&wire, &field)) > 0) {
		if (field.number >= 1 && field.number <= 4 && field.type != WIRE_VARINT)
			return DICTIONARY_MALFORMED;
		if (field.number >= 1 && field.number <= 3 &&
		    dictionary_string(dictionary, field.value, "function's string",
				      field.number == 1   ? &function->name
				      : field.number == 2 ? &system_name
							  : &function->file) != DICTIONARY_OK)
			function->is_bad = true;
	}
	if (!function->name.length)
		function->name = system_name;
	return got == 0 ? DICTIONARY_OK : DICTIONARY_MALFORMED;
}

static enum dictionary_result read_functions(struct dictionary *dictionary)
{
	const struct dictionary_table *table = &dictionary->tables[TABLE_FUNCTIONS];
	enum dictionary_result result = DICTIONARY_OK;

	dictionary->functions = arena_array(dictionary->arena, table->count,
					    sizeof *dictionary->functions);
	if (!dictionary->functions)
		return DICTIONARY_NO_ROOM;
	for (uint32_t i = 0; i < table->count && result == DICTIONARY_OK; i++)
		result = read_function(dictionary, table->spans[i], &dictionary->functions[i]);
	dictionary->function_count = table->count;
	return result;
}

enum dictionary_result dictionary_read(struct dictionary *dictionary, const struct wire *spans,
				       unsigned span_count)
{
	const struct dictionary_table *table = &dictionary->tables[TABLE_STACKS];
	enum dictionary_result result = find_spans(dictionary, spans, span_count);

	if (result == DICTIONARY_OK)
		result = read_strings(dictionary);
	if (result == DICTIONARY_OK)
		result = read_attributes(dictionary);
	if (result == DICTIONARY_OK)
		result = read_mappings(dictionary);
	if (result == DICTIONARY_OK)
		result = read_functions(dictionary);
	if (result == DICTIONARY_OK)
		result = dictionary_read_locations(dictionary);
	if (result != DICTIONARY_OK)
		return result;
	dictionary->stacks = arena_array(dictionary->arena, table->count,
					 sizeof *dictionary->stacks);
	if (!dictionary->stacks)
		return DICTIONARY_NO_ROOM;
	for (uint32_t i = 0; i < table->count; i++)
		dictionary->stacks[i].wire = table->spans[i];
	dictionary->stack_count = table->count;
	/* What is outside its table counts only where a sample uses it. */
	dictionary->problem[0] = '\0';
	return DICTIONARY_OK;
}
