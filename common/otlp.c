/* SPDX-License-Identifier: Apache-2.0 */
#include "common/otlp.h"

#include <stdlib.h>
#include <string.h>

#include "common/otlp_encoder.h"

enum { ARENA_LIMIT = 32 << 20 };

int32_t otlp_add_string(struct encoder *encoder, const char *text)
{
	Dictionary *dictionary = encoder->dictionary;

	if (dictionary->n_string_table >= encoder->string_room) {
		encoder->arena.failed = true;
		return 0;
	}
	dictionary->string_table[dictionary->n_string_table] = otlp_text(&encoder->arena, text);
	return (int32_t)dictionary->n_string_table++;
}

/* Only what a row refers to goes out: most of the strings
 * are texts of resources and attributes, which hold them themselves. */
int32_t otlp_string_row(struct encoder *encoder, uint32_t string)
{
	if (!string || string >= encoder->profile->string_count)
		return 0;
	if (!encoder->string_rows[string])
		encoder->string_rows[string] = otlp_add_string(encoder,
							       encoder->profile->strings[string]);
	return encoder->string_rows[string];
}

/* Fills everything but the value, which the caller sets. NULL: no room, arena.failed is set. */
static Attribute *add_attribute(struct encoder *encoder, int32_t key, int32_t *index)
{
	Dictionary *dictionary = encoder->dictionary;
	Attribute *attribute = MAKE(&encoder->arena, Attribute);

	*index = 0;
	if (!attribute || dictionary->n_attribute_table >= encoder->attribute_room) {
		encoder->arena.failed = true;
		return NULL;
	}
	attribute->key_strindex = key;
	attribute->value = MAKE(&encoder->arena, AnyValue);
	if (!attribute->value)
		return NULL;
	*index = (int32_t)dictionary->n_attribute_table;
	dictionary->attribute_table[dictionary->n_attribute_table++] = attribute;
	return attribute;
}

int32_t otlp_add_text_attribute(struct encoder *encoder, int32_t key, const char *text)
{
	int32_t index;
	Attribute *attribute = add_attribute(encoder, key, &index);

	if (attribute) {
		attribute->value->value_case = FARFLAME__OTLP__ANY_VALUE__VALUE_STRING_VALUE;
		attribute->value->string_value = otlp_text(&encoder->arena, text);
	}
	return index;
}

int32_t otlp_string_attribute(struct encoder *encoder, int32_t *known, int32_t key, uint32_t string)
{
	if (string >= encoder->profile->string_count)
		return 0;
	if (!known[string])
		known[string] = otlp_add_text_attribute(encoder, key,
							encoder->profile->strings[string]);
	return known[string];
}

int32_t otlp_add_number_attribute(struct encoder *encoder, int32_t key, int64_t number)
{
	int32_t index;
	Attribute *attribute = add_attribute(encoder, key, &index);

	if (attribute) {
		attribute->value->value_case = FARFLAME__OTLP__ANY_VALUE__VALUE_INT_VALUE;
		attribute->value->int_value = number;
	}
	return index;
}

static int32_t add_flag_attribute(struct encoder *encoder, int32_t key)
{
	int32_t index;
	Attribute *attribute = add_attribute(encoder, key, &index);

	if (attribute) {
		attribute->value->value_case = FARFLAME__OTLP__ANY_VALUE__VALUE_BOOL_VALUE;
		attribute->value->bool_value = true;
	}
	return index;
}

/* --- the dictionary --- */

static void fill_mapping(struct encoder *encoder, const struct profile_mapping *from, Mapping *to)
{
	char hex[BUILD_ID_HEX];
	int32_t indices[4];
	size_t count = 0;

	to->memory_start = from->start;
	to->memory_limit = from->limit;
	to->file_offset = from->file_offset;
	to->filename_strindex = otlp_string_row(encoder, from->file_name);
	if (from->gnu.length)
		indices[count++] = otlp_add_text_attribute(encoder, encoder->key_gnu,
							   build_id_format(&from->gnu, hex));
	if (from->go_id)
		indices[count++] = otlp_add_text_attribute(encoder, encoder->key_go,
							   encoder->profile->strings[from->go_id]);
	if (from->htlhash.length)
		indices[count++] = otlp_add_text_attribute(encoder, encoder->key_htlhash,
							   build_id_format(&from->htlhash, hex));
	if (from->base != ADDRESS_ELF)
		indices[count++] = otlp_add_text_attribute(
			encoder, encoder->key_base,
			from->base == ADDRESS_KERNEL_TEXT ? "_text" : ".text");
	to->attribute_indices = arena_copy(&encoder->arena, indices, count * sizeof *indices);
	to->n_attribute_indices = to->attribute_indices ? count : 0;
}

/* Locations of one function come one after the other. */
static int32_t function_row(struct encoder *encoder, const struct profile_frame *frame)
{
	Dictionary *dictionary = encoder->dictionary;
	const int32_t name = otlp_string_row(encoder, frame->function);
	const int32_t file = otlp_string_row(encoder, frame->file);
	const size_t last = dictionary->n_function_table - 1;
	Function *function = dictionary->function_table[last];

	if (last && function->name_strindex == name && function->filename_strindex == file)
		return (int32_t)last;
	function = MAKE(&encoder->arena, Function);
	if (!function || dictionary->n_function_table >= encoder->function_room) {
		encoder->arena.failed = true;
		return 0;
	}
	function->name_strindex = name;
	function->filename_strindex = file;
	dictionary->function_table[dictionary->n_function_table] = function;
	return (int32_t)dictionary->n_function_table++;
}

static void fill_named_location(struct encoder *encoder, const struct profile_frame *from,
				Location *to)
{
	Line *line = MAKE(&encoder->arena, Line);

	to->lines = arena_array(&encoder->arena, 1, sizeof *to->lines);
	if (!line || !to->lines)
		return;
	line->function_index = function_row(encoder, from);
	line->line = from->line;
	to->lines[0] = line;
	to->n_lines = 1;
}

/* Made for the first frame that has it: most reports have none. */
static int32_t runtime_attribute(struct encoder *encoder)
{
	if (!encoder->runtime)
		encoder->runtime = add_flag_attribute(encoder,
						      otlp_add_string(encoder, "farflame.runtime"));
	return encoder->runtime;
}

static void fill_location(struct encoder *encoder, const struct profile_frame *from, Location *to)
{
	int32_t indices[2] = {encoder->native};
	size_t count = 1;

	to->address = from->address;
	switch (from->kind) {
	case PROFILE_FRAME_NATIVE:
		to->mapping_index = (int32_t)from->mapping;
		break;
	case PROFILE_FRAME_KERNEL:
		to->mapping_index = (int32_t)from->mapping;
		indices[0] = encoder->kernel;
		break;
	case PROFILE_FRAME_NAMED:
		indices[0] = otlp_string_attribute(encoder, encoder->type_attributes,
						   encoder->key_frame_type, from->type);
		fill_named_location(encoder, from, to);
		break;
	case PROFILE_FRAME_ANONYMOUS:
		indices[count++] = encoder->anonymous;
		break;
	case PROFILE_FRAME_RUNTIME:
		to->mapping_index = (int32_t)from->mapping;
		indices[count++] = runtime_attribute(encoder);
		break;
	}
	to->attribute_indices = arena_copy(&encoder->arena, indices, count * sizeof *indices);
	to->n_attribute_indices = to->attribute_indices ? count : 0;
}

/* One table of count entries plus the zero entry in front; entries are made, not filled. */
#define FILL_TABLE(encoder_, field_, type_, count_)                                         \
	do {                                                                                \
		size_t entries_ = (count_) ? (count_) : 1;                                  \
		Dictionary *d_ = (encoder_)->dictionary;                                    \
		d_->field_ = arena_array(&(encoder_)->arena, entries_, sizeof *d_->field_); \
		for (size_t i_ = 0; d_->field_ && i_ < entries_; i_++)                      \
			d_->field_[i_] = MAKE(&(encoder_)->arena, type_);                   \
		d_->n_##field_ = d_->field_ ? entries_ : 0;                                 \
	} while (0)

static int compare_ids(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return left < right ? -1 : left > right;
}

static bool find_thread_ids(struct encoder *encoder)
{
	const struct profile *profile = encoder->profile;
	uint32_t *ids = arena_array(&encoder->arena, profile->sample_count, sizeof *ids);
	size_t count = 0;

	for (size_t i = 0; ids && i < profile->sample_count; i++)
		if (profile->samples[i].thread_id)
			ids[count++] = profile->samples[i].thread_id;
	if (count > 1)
		qsort(ids, count, sizeof *ids, compare_ids);
	for (size_t i = 0; i < count; i++)
		if (!i || ids[i] != ids[i - 1])
			ids[encoder->thread_id_count++] = ids[i];
	encoder->thread_ids = ids;
	encoder->thread_id_attributes = arena_array(&encoder->arena, encoder->thread_id_count,
						    sizeof(int32_t));
	return !encoder->arena.failed;
}

static void add_thread_ids(struct encoder *encoder)
{
	int32_t key = encoder->thread_id_count ? otlp_add_string(encoder, "thread.id") : 0;

	for (size_t i = 0; i < encoder->thread_id_count; i++)
		encoder->thread_id_attributes[i] =
			otlp_add_number_attribute(encoder, key, encoder->thread_ids[i]);
}

static void fill_links(struct encoder *encoder)
{
	const struct profile *profile = encoder->profile;

	for (size_t i = 1; i < profile->link_count; i++) {
		Link *link = encoder->dictionary->link_table[i];

		link->trace_id.data = profile->links[i].trace_id;
		link->trace_id.len = sizeof profile->links[i].trace_id;
		link->span_id.data = profile->links[i].span_id;
		link->span_id.len = sizeof profile->links[i].span_id;
	}
}

static bool start_dictionary(struct encoder *encoder)
{
	const struct profile *profile = encoder->profile;
	struct arena *arena = &encoder->arena;
	Dictionary *dictionary = MAKE(arena, Dictionary);
	size_t strings = profile->string_count ? profile->string_count : 1;

	encoder->dictionary = dictionary;
	encoder->string_room = strings + 26 + 2 * PROFILE_TYPES_MAX;
	encoder->attribute_room = 3 * strings + 4 * profile->mapping_count + 16 +
				  profile->attribute_count;
	encoder->function_room = profile->frame_count + 1;
	encoder->string_rows = arena_array(arena, strings, sizeof(int32_t));
	encoder->thread_attributes = arena_array(arena, strings, sizeof(int32_t));
	encoder->incomplete_attributes = arena_array(arena, strings, sizeof(int32_t));
	encoder->type_attributes = arena_array(arena, strings, sizeof(int32_t));
	encoder->attributes = arena_array(arena, profile->attribute_count, sizeof(int32_t));
	if (!dictionary || !find_thread_ids(encoder))
		return false;
	encoder->attribute_room += encoder->thread_id_count;
	dictionary->string_table = arena_array(arena, encoder->string_room, sizeof(char *));
	dictionary->attribute_table = arena_array(arena, encoder->attribute_room,
						  sizeof *dictionary->attribute_table);
	dictionary->function_table = arena_array(arena, encoder->function_room,
						 sizeof *dictionary->function_table);
	if (arena->failed)
		return false;
	otlp_add_string(encoder, "");
	dictionary->attribute_table[dictionary->n_attribute_table++] = MAKE(arena, Attribute);
	dictionary->function_table[dictionary->n_function_table++] = MAKE(arena, Function);
	return !arena->failed;
}

static void add_keys(struct encoder *encoder)
{
	encoder->key_thread = otlp_add_string(encoder, "thread.name");
	encoder->key_incomplete = otlp_add_string(encoder, "farflame.incomplete");
	encoder->key_frame_type = otlp_add_string(encoder, "profile.frame.type");
	encoder->key_gnu = otlp_add_string(encoder, "process.executable.build_id.gnu");
	encoder->key_go = otlp_add_string(encoder, "process.executable.build_id.go");
	encoder->key_htlhash = otlp_add_string(encoder, "process.executable.build_id.htlhash");
	encoder->key_base = otlp_add_string(encoder, "farflame.address_base");
	encoder->key_anonymous = otlp_add_string(encoder, "farflame.anonymous");
	encoder->native = otlp_add_text_attribute(encoder, encoder->key_frame_type, "native");
	encoder->kernel = otlp_add_text_attribute(encoder, encoder->key_frame_type, "kernel");
	encoder->anonymous = add_flag_attribute(encoder, encoder->key_anonymous);
}

static bool fill_dictionary(struct encoder *encoder)
{
	const struct profile *profile = encoder->profile;
	Dictionary *dictionary;

	if (!start_dictionary(encoder))
		return false;
	dictionary = encoder->dictionary;
	add_keys(encoder);
	FILL_TABLE(encoder, mapping_table, Mapping, profile->mapping_count);
	FILL_TABLE(encoder, location_table, Location, profile->frame_count);
	FILL_TABLE(encoder, link_table, Link, profile->link_count);
	FILL_TABLE(encoder, stack_table, Stack, profile->stack_count + 1);
	if (encoder->arena.failed)
		return false;
	for (size_t i = 1; i < profile->mapping_count; i++)
		fill_mapping(encoder, &profile->mappings[i], dictionary->mapping_table[i]);
	for (size_t i = 1; i < profile->frame_count; i++)
		fill_location(encoder, &profile->frames[encoder->order.frames[i]],
			      dictionary->location_table[i]);
	fill_links(encoder);
	add_thread_ids(encoder);
	for (size_t i = 0; i < profile->stack_count; i++) {
		const struct profile_stack *stack = &profile->stacks[encoder->order.stacks[i]];

		dictionary->stack_table[i + 1]->location_indices =
			&encoder->order.locations[stack->first_index];
		dictionary->stack_table[i + 1]->n_location_indices = stack->depth;
	}
	return !encoder->arena.failed;
}

/* --- parts --- */

static void add_part(struct otlp_parts *parts, size_t length)
{
	parts->ends[parts->count] = length + (parts->count ? parts->ends[parts->count - 1] : 0);
	parts->count++;
}

#define TABLE_BYTES(dictionary_, field_)                                     \
	({                                                                   \
		Dictionary one_ = FARFLAME__OTLP__PROFILES_DICTIONARY__INIT; \
		one_.field_ = (dictionary_)->field_;                         \
		one_.n_##field_ = (dictionary_)->n_##field_;                 \
		protobuf_c_message_get_packed_size(&one_.base);              \
	})

/* Fields are packed in the order of their numbers. */
static void find_parts(const Request *request, size_t length, struct otlp_parts *parts)
{
	const Dictionary *dictionary = request->dictionary;
	size_t tables = protobuf_c_message_get_packed_size(&dictionary->base);
	size_t mappings = TABLE_BYTES(dictionary, mapping_table);
	size_t locations = TABLE_BYTES(dictionary, location_table);
	size_t functions = TABLE_BYTES(dictionary, function_table);
	size_t attributes = TABLE_BYTES(dictionary, attribute_table);
	size_t stacks = TABLE_BYTES(dictionary, stack_table);
	size_t others = mappings + locations + functions + attributes + stacks;

	parts->count = 0;
	add_part(parts, length - tables); /* the resources, and the dictionary's own length */
	add_part(parts, mappings);
	add_part(parts, locations);
	add_part(parts, functions);
	add_part(parts, tables - others); /* links, strings */
	add_part(parts, attributes);
	add_part(parts, stacks);
}

bool otlp_encode(const struct profile *profile, const struct profile_host *host, struct buffer *out,
		 struct otlp_parts *parts, struct error *err)
{
	struct encoder encoder = {.profile = profile, .host = host};
	Request request = FARFLAME__OTLP__EXPORT_PROFILES_SERVICE_REQUEST__INIT;
	size_t before = out->length;
	bool ok = false;

	arena_init(&encoder.arena, ARENA_LIMIT);
	if (!otlp_order_make(&encoder.order, profile, &encoder.arena) ||
	    !fill_dictionary(&encoder) || !otlp_fill_resources(&encoder, &request) ||
	    encoder.arena.failed) {
		error_set(err, ERROR_LIMIT, "a report with %zu samples does not fit %d MiB",
			  profile->sample_count, ARENA_LIMIT >> 20);
		goto out;
	}
	request.dictionary = encoder.dictionary;
	ok = otlp_pack(&request.base, out, err);
	if (ok && parts)
		find_parts(&request, out->length - before, parts);
out:
	arena_release(&encoder.arena);
	return ok;
}
