/* SPDX-License-Identifier: Apache-2.0 */
/* Locations and stacks of the request's tables → those of the batch.
 *
 * What an address counts from. Our agent and the OpenTelemetry profiler send ELF virtual addresses,
 * and ELF virtual addresses as memory_start and memory_limit: file offset = address − memory_start
 * + file_offset leads through the file's program headers back to the same address, so it is kept as
 * it is. memory_limit = 0 says the same. A pprof-style sender has run-time addresses and a run-time
 * memory_start; program headers are not at hand here, so address − memory_start + file_offset is
 * kept, which is the ELF address of every file whose code segment has p_vaddr = p_offset. Told
 * apart by memory_start: no file is linked at 2^40 or above, and no kernel maps
 * position-independent code below. */
#include "common/array.h"
#include "symbol-server/ingest/dictionary.h"

#include <stdio.h>

#include "common/hash_table.h"

static const uint64_t run_time_start = 1ull << 40;
static const char cut_sentence[] = "deeper than 2048 frames, cut at the root end";
static const char empty_sentence[] = "the sender gave no stack";
static const char marker_sentence[] = "the sender's unwinder gave up";

static uint64_t text_hash(uint64_t hash, struct text text)
{
	return hash_word(hash, hash_bytes(text.at, text.length, 0));
}

/* The part of a stack's stable id that one frame contributes. */
static uint64_t location_hash(const struct dictionary *dictionary,
			      const struct batch_location *location)
{
	uint64_t hash = hash_word(
		location->kind,
		location->module == UINT32_MAX ? 0 : dictionary->module_hashes[location->module]);

	switch (location->kind) {
	case LOCATION_NATIVE:
	case LOCATION_KERNEL:
	case LOCATION_RUNTIME:
		return hash_word(hash, location->address);
	case LOCATION_NAMED:
	case LOCATION_INCOMPLETE:
		hash = text_hash(hash, location->function);
		hash = text_hash(hash, location->file);
		hash = text_hash(hash, location->type);
		return hash_word(hash, location->line);
	case LOCATION_ANONYMOUS:
		break;
	}
	return hash;
}

static struct batch_location *add_location(struct dictionary *dictionary,
					   const struct batch_location *location)
{
	struct sample_batch *batch = dictionary->batch;
	uint32_t capacity = dictionary->location_capacity;

	if (!ARENA_GROW(dictionary->arena, batch->locations, batch->location_count, capacity) ||
	    !ARENA_GROW(dictionary->arena, dictionary->location_hashes, batch->location_count,
			dictionary->location_capacity))
		return NULL;
	dictionary->location_hashes[batch->location_count] = location_hash(dictionary, location);
	batch->locations[batch->location_count] = *location;
	return &batch->locations[batch->location_count++];
}

/* What the attributes of one location say. */
struct location_facts {
	struct text type;
	bool is_anonymous, is_runtime;
	uint64_t mapping, address;
	unsigned line_count;
};

static void keep_location_attribute(void *to, const struct dictionary_attribute *attribute)
{
	struct location_facts *facts = to;

	if (attribute->key == KEY_FRAME_TYPE && attribute->value.kind == VALUE_TEXT)
		facts->type = attribute->value.text;
	else if (attribute->key == KEY_ANONYMOUS && attribute->value.kind == VALUE_NUMBER)
		facts->is_anonymous = attribute->value.number != 0;
	else if (attribute->key == KEY_RUNTIME && attribute->value.kind == VALUE_NUMBER)
		facts->is_runtime = attribute->value.number != 0;
}

static enum dictionary_result read_facts(struct dictionary *dictionary, struct wire wire,
					 struct location_facts *facts, bool *is_bad)
{
	enum dictionary_result result = DICTIONARY_OK;
	struct wire_field field;
	int got;

	while ((got = wire_next_fast(&wire, &field)) > 0) {
		if (field.number == 1 || field.number == 2) {
			if (field.type != WIRE_VARINT)
				return DICTIONARY_MALFORMED;
			if (field.number == 1)
				facts->mapping = (uint32_t)field.value;
			else
				facts->address = field.value;
		} else if (field.number == 3) {
			if (field.type != WIRE_BYTES)
				return DICTIONARY_MALFORMED;
			facts->line_count++;
		} else if (field.number == 4) {
			result = dictionary_each_attribute(dictionary, &field,
							   keep_location_attribute, facts);
			if (result == DICTIONARY_MALFORMED)
				return result;
			*is_bad |= result == DICTIONARY_BAD_INDEX;
		}
	}
	return got == 0 ? DICTIONARY_OK : DICTIONARY_MALFORMED;
}

static enum dictionary_result read_line(struct dictionary *dictionary, struct wire wire,
					struct batch_location *location, bool *is_bad)
{
	struct wire_field field;
	uint64_t function = 0;
	int64_t line = 0;
	int got;

	while ((got = wire_next_fast(&wire, &field)) > 0) {
		if (field.number >= 1 && field.number <= 3 && field.type != WIRE_VARINT)
			return DICTIONARY_MALFORMED;
		if (field.number == 1)
			function = (uint32_t)field.value;
		else if (field.number == 2)
			line = (int64_t)field.value;
	}
	if (got < 0)
		return DICTIONARY_MALFORMED;
	location->line = line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
	location->function = location->file = (struct text){"", 0};
	if (function < dictionary->function_count) {
		location->function = dictionary->functions[function].name;
		location->file = dictionary->functions[function].file;
		*is_bad |= dictionary->functions[function].is_bad;
	} else if (function) {
		dictionary_bad_index(dictionary, "function", function, dictionary->function_count);
		*is_bad = true;
	}
	return DICTIONARY_OK;
}

/* One batch location per line; a marker becomes one incomplete location. */
static enum dictionary_result add_named(struct dictionary *dictionary, struct wire wire,
					struct batch_location *location,
					struct dictionary_location *to)
{
	enum dictionary_result result;
	struct wire_field field;

	location->address = 0;
	location->kind = to->is_marker ? LOCATION_INCOMPLETE : LOCATION_NAMED;
	while (wire_next_fast(&wire, &field) > 0) {
		if (field.number != 3)
			continue;
		result = read_line(dictionary, field.bytes, location, &to->is_bad);
		if (result != DICTIONARY_OK)
			return result;
		if (to->is_marker && to->count)
			continue;
		if (to->is_marker) {
			location->type = (struct text){"", 0};
			location->module = UINT32_MAX;
			if (!location->function.length)
				location->function = text_of(marker_sentence);
		}
		if (!add_location(dictionary, location))
			return DICTIONARY_NO_ROOM;
		to->count++;
	}
	return DICTIONARY_OK;
}

static uint64_t canonical_address(const struct dictionary_mapping *mapping, uint64_t address)
{
	if (!mapping || mapping->is_kernel || !mapping->limit || mapping->start < run_time_start ||
	    address < mapping->start || address >= mapping->limit)
		return address;
	return address - mapping->start + mapping->file_offset;
}

static void choose_kind(const struct location_facts *facts,
			const struct dictionary_mapping *mapping, struct batch_location *location)
{
	location->address = canonical_address(mapping, facts->address);
	if (facts->is_anonymous) {
		location->kind = LOCATION_ANONYMOUS;
		location->module = UINT32_MAX;
		location->address = 0;
	} else if ((mapping && mapping->is_kernel) || text_is(facts->type, "kernel")) {
		location->kind = LOCATION_KERNEL;
	} else {
		location->kind = facts->is_runtime ? LOCATION_RUNTIME : LOCATION_NATIVE;
	}
}

static enum dictionary_result read_location(struct dictionary *dictionary, struct wire wire,
					    struct dictionary_location *to)
{
	struct location_facts facts = {.type = {"", 0}};
	struct batch_location location = {.module = UINT32_MAX};
	const struct dictionary_mapping *mapping = NULL;
	enum dictionary_result result = read_facts(dictionary, wire, &facts, &to->is_bad);

	if (result != DICTIONARY_OK)
		return result;
	to->first = dictionary->batch->location_count;
	to->is_marker = text_is(facts.type, "abort-marker");
	if (facts.mapping < dictionary->mapping_count) {
		mapping = &dictionary->mappings[facts.mapping];
		to->is_bad |= mapping->is_bad;
		location.module = mapping->module;
	} else if (facts.mapping) {
		dictionary_bad_index(dictionary, "mapping", facts.mapping,
				     dictionary->mapping_count);
		to->is_bad = true;
	}
	location.type = facts.type;
	location.function = location.file = (struct text){"", 0};
	if (facts.line_count)
		return add_named(dictionary, wire, &location, to);
	choose_kind(&facts, mapping, &location);
	location.type = (struct text){"", 0};
	if (to->is_marker) {
		location = (struct batch_location){
			LOCATION_INCOMPLETE, UINT32_MAX,    0, text_of(marker_sentence),
			location.file,       location.type, 0};
	}
	to->count = 1;
	return add_location(dictionary, &location) ? DICTIONARY_OK : DICTIONARY_NO_ROOM;
}

enum dictionary_result dictionary_read_locations(struct dictionary *dictionary)
{
	const struct dictionary_table *table = &dictionary->tables[TABLE_LOCATIONS];
	enum dictionary_result result = DICTIONARY_OK;

	dictionary->locations = arena_array(dictionary->arena, table->count,
					    sizeof *dictionary->locations);
	if (!dictionary->locations)
		return DICTIONARY_NO_ROOM;
	for (uint32_t i = 0; i < table->count && result == DICTIONARY_OK; i++)
		result = read_location(dictionary, table->spans[i], &dictionary->locations[i]);
	dictionary->location_count = table->count;
	return result;
}

/* --- stacks --- */

static bool add_index(struct dictionary *dictionary, uint32_t location)
{
	struct sample_batch *batch = dictionary->batch;

	if (!ARENA_GROW(dictionary->arena, batch->location_indices, batch->location_index_count,
			dictionary->index_capacity))
		return false;
	batch->location_indices[batch->location_index_count++] = location;
	return true;
}

/* The location that holds a sentence, made once; *known is its index + 1. */
static bool add_incomplete(struct dictionary *dictionary, struct text sentence, uint32_t *known)
{
	struct text none = {"", 0};
	struct batch_location location = {
		LOCATION_INCOMPLETE, UINT32_MAX, 0, sentence, none, none, 0};

	if (!*known) {
		if (!add_location(dictionary, &location))
			return false;
		*known = dictionary->batch->location_count;
	}
	return add_index(dictionary, *known - 1);
}

struct stack_builder {
	struct dictionary *dictionary;
	uint32_t first;  /* in location_indices */
	uint32_t marker; /* location + 1 of the last abort-marker met */
	bool is_cut;
};

/* Adds the frames of one entry of the location table. */
static enum dictionary_result add_frames(struct stack_builder *builder, uint64_t index)
{
	struct dictionary *dictionary = builder->dictionary;
	const struct dictionary_location *location;

	if ((uint32_t)index >= dictionary->location_count)
		return dictionary_bad_index(dictionary, "location", index,
					    dictionary->location_count);
	location = &dictionary->locations[(uint32_t)index];
	if (location->is_bad) {
		if (!dictionary->problem[0])
			snprintf(dictionary->problem, sizeof dictionary->problem,
				 "location %u refers outside the tables", (uint32_t)index);
		return DICTIONARY_BAD_INDEX;
	}
	if (location->is_marker) {
		builder->marker = location->first + 1;
		return DICTIONARY_OK;
	}
	for (uint32_t i = 0; i < location->count; i++) {
		if (dictionary->batch->location_index_count - builder->first >= STACK_DEPTH_MAX) {
			builder->is_cut = true;
			return DICTIONARY_OK;
		}
		if (!add_index(dictionary, location->first + i))
			return DICTIONARY_NO_ROOM;
	}
	return DICTIONARY_OK;
}

/* Room for that many more indices at once. */
static bool reserve_indices(struct dictionary *dictionary, size_t more)
{
	struct sample_batch *batch = dictionary->batch;

	while (dictionary->index_capacity - batch->location_index_count < more)
		if (!ARENA_GROW(dictionary->arena, batch->location_indices,
				dictionary->index_capacity, dictionary->index_capacity))
			return false;
	return true;
}

/* The usual frames: entries that are one sound location each. Stops at the first other one. */
static void add_plain_frames(struct stack_builder *builder, struct wire *run)
{
	struct dictionary *dictionary = builder->dictionary;
	uint32_t *to = dictionary->batch->location_indices;
	uint32_t count = dictionary->batch->location_index_count;
	uint32_t end = builder->first + STACK_DEPTH_MAX;

	if (end > dictionary->index_capacity)
		end = dictionary->index_capacity;
	while (count < end && run->at < run->end) {
		const struct dictionary_location *location;
		struct wire rest = *run;
		uint64_t index;

		if (!wire_varint(&rest, &index) || (uint32_t)index >= dictionary->location_count)
			break;
		location = &dictionary->locations[(uint32_t)index];
		if (location->count != 1 || location->is_bad || location->is_marker)
			break;
		to[count++] = location->first;
		run->at = rest.at;
	}
	dictionary->batch->location_index_count = count;
}

static enum dictionary_result add_run(struct stack_builder *builder, struct wire_scalars *run)
{
	enum dictionary_result result = DICTIONARY_OK;
	size_t bytes = (size_t)(run->packed.end - run->packed.at);
	uint64_t index;

	if (!run->has_single && !reserve_indices(builder->dictionary,
						 bytes < STACK_DEPTH_MAX ? bytes : STACK_DEPTH_MAX))
		return DICTIONARY_NO_ROOM;
	while (!wire_is_done(run)) {
		if (!run->has_single && result == DICTIONARY_OK) {
			add_plain_frames(builder, &run->packed);
			if (wire_is_done(run))
				break;
		}
		if (!wire_scalar(run, &index))
			return DICTIONARY_MALFORMED;
		if (result == DICTIONARY_OK)
			result = add_frames(builder, index);
	}
	return result;
}

static enum dictionary_result add_stack_frames(struct stack_builder *builder, struct wire wire)
{
	enum dictionary_result result = DICTIONARY_OK, next;
	struct wire_field field;
	int got;

	while ((got = wire_next_fast(&wire, &field)) > 0) {
		struct wire_scalars run;

		if (field.number != 1)
			continue;
		if (!wire_scalars(&field, &run))
			return DICTIONARY_MALFORMED;
		next = add_run(builder, &run);
		if (next == DICTIONARY_MALFORMED)
			return next;
		if (result == DICTIONARY_OK)
			result = next;
	}
	return got == 0 ? result : DICTIONARY_MALFORMED;
}

/* The root end: why the stack does not reach its start, at most one frame. */
static bool add_root_end(struct stack_builder *builder, uint32_t attribute)
{
	struct dictionary *dictionary = builder->dictionary;
	struct dictionary_attribute *reason = &dictionary->attributes[attribute];

	if (builder->is_cut)
		return add_incomplete(dictionary, text_of(cut_sentence), &dictionary->cut_location);
	if (attribute)
		return add_incomplete(dictionary, text_cut(reason->value.text, 400),
				      &reason->incomplete);
	if (builder->marker)
		return add_index(dictionary, builder->marker - 1);
	if (dictionary->batch->location_index_count == builder->first)
		return add_incomplete(dictionary, text_of(empty_sentence),
				      &dictionary->empty_location);
	return true;
}

static void hash_stack(const struct dictionary *dictionary, struct batch_stack *stack)
{
	const uint32_t *indices = dictionary->batch->location_indices + stack->first_index;
	uint64_t a = 0x9e3779b97f4a7c15ull, b = 0xc4ceb9fe1a85ec53ull;

	for (uint32_t i = 0; i < stack->depth; i++) {
		uint64_t hash = dictionary->location_hashes[indices[i]];

		a = hash_word(a, hash);
		b = (b ^ hash ^ a >> 17) * 0xff51afd7ed558ccdull;
		b ^= b >> 32;
	}
	stack->hash[0] = a;
	stack->hash[1] = b;
}

static enum dictionary_result make_stack(struct dictionary *dictionary, struct wire wire,
					 uint32_t attribute, uint32_t *made)
{
	struct sample_batch *batch = dictionary->batch;
	struct stack_builder builder = {dictionary, batch->location_index_count, 0, false};
	enum dictionary_result result = add_stack_frames(&builder, wire);
	struct batch_stack *stack;

	if (result == DICTIONARY_OK && !add_root_end(&builder, attribute))
		result = DICTIONARY_NO_ROOM;
	if (result == DICTIONARY_OK && !ARENA_GROW(dictionary->arena, batch->stacks,
						   batch->stack_count, dictionary->stack_capacity))
		result = DICTIONARY_NO_ROOM;
	if (result != DICTIONARY_OK) {
		batch->location_index_count = builder.first;
		return result;
	}
	stack = &batch->stacks[batch->stack_count];
	stack->first_index = builder.first;
	stack->depth = batch->location_index_count - builder.first;
	hash_stack(dictionary, stack);
	*made = ++batch->stack_count;
	return DICTIONARY_OK;
}

enum dictionary_result dictionary_stack(struct dictionary *dictionary, uint32_t index,
					uint32_t attribute, uint32_t *stack)
{
	enum dictionary_result result;
	struct dictionary_stack *entry;
	uint32_t *made;

	if (index >= dictionary->stack_count)
		return dictionary_bad_index(dictionary, "stack", index, dictionary->stack_count);
	entry = &dictionary->stacks[index];
	made = attribute ? &entry->incomplete : &entry->plain;
	if (attribute && entry->incomplete_attribute != attribute) {
		entry->incomplete_attribute = attribute;
		entry->incomplete = 0;
	}
	if (!*made) {
		result = make_stack(dictionary, entry->wire, attribute, made);
		if (result != DICTIONARY_OK)
			return result;
	}
	*stack = *made - 1;
	return DICTIONARY_OK;
}

bool dictionary_check_unused(const struct dictionary *dictionary)
{
	for (uint32_t i = 0; i < dictionary->stack_count; i++) {
		const struct dictionary_stack *entry = &dictionary->stacks[i];
		struct wire wire = entry->wire;
		struct wire_scalars run;
		struct wire_field field;
		uint64_t index;
		int got;

		if (entry->plain || entry->incomplete)
			continue;
		while ((got = wire_next_fast(&wire, &field)) > 0) {
			if (field.number != 1)
				continue;
			if (!wire_scalars(&field, &run))
				return false;
			while (!wire_is_done(&run))
				if (!wire_scalar(&run, &index))
					return false;
		}
		if (got < 0)
			return false;
	}
	return true;
}
