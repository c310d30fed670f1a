/* SPDX-License-Identifier: Apache-2.0 */
#include "common/otlp.h"

#include <string.h>

#include "common/otlp_message.h"
#include "common/otlp_order.h"

enum { ARENA_LIMIT = 32 << 20, PROFILE_TYPES_MAX = 12 };

/* What encoding one profile needs: the dictionary being filled and what was put in it already. */
struct encoder {
	struct arena arena;
	const struct profile *profile;
	const struct profile_host *host;
	struct otlp_order order;
	Dictionary *dictionary;
	int32_t *string_rows; /* string number → row of string_table, 0: none yet */
	size_t string_room, attribute_room, function_room;
	int32_t *thread_attributes;        /* string number → attribute index, 0: none yet */
	int32_t *incomplete_attributes;    /* likewise */
	int32_t *type_attributes;          /* likewise */
	int32_t native, kernel, anonymous; /* attribute indices */
	int32_t key_thread, key_incomplete, key_frame_type, key_gnu, key_go, key_htlhash, key_base,
		key_anonymous;
};

static int32_t add_string(struct encoder *encoder, const char *text)
{
	Dictionary *dictionary = encoder->dictionary;

	if (dictionary->n_string_table >= encoder->string_room) {
		encoder->arena.failed = true;
		return 0;
	}
	dictionary->string_table[dictionary->n_string_table] = otlp_text(&encoder->arena, text);
	return (int32_t)dictionary->n_string_table++;
}

/* The row of one of the profile's strings. Only what a row refers to goes out: most of the strings
 * are texts of resources and attributes, which hold them themselves. */
static int32_t string_row(struct encoder *encoder, uint32_t string)
{
	if (!string || string >= encoder->profile->string_count)
		return 0;
	if (!encoder->string_rows[string])
		encoder->string_rows[string] = add_string(encoder,
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

static int32_t add_text_attribute(struct encoder *encoder, int32_t key, const char *text)
{
	int32_t index;
	Attribute *attribute = add_attribute(encoder, key, &index);

	if (attribute) {
		attribute->value->value_case = FARFLAME__OTLP__ANY_VALUE__VALUE_STRING_VALUE;
		attribute->value->string_value = otlp_text(&encoder->arena, text);
	}
	return index;
}

/* The attribute whose value is one of the profile's strings; made once per string and key. */
static int32_t string_attribute(struct encoder *encoder, int32_t *known, int32_t key,
				uint32_t string)
{
	if (string >= encoder->profile->string_count)
		return 0;
	if (!known[string])
		known[string] = add_text_attribute(encoder, key, encoder->profile->strings[string]);
	return known[string];
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

/* --- what a process is --- */

static const char *service_of(const struct encoder *encoder, const struct profile_process *process)
{
	const struct profile_host *host = encoder->host;

	for (size_t i = 0; i < host->label_count; i++)
		if (!strcmp(host->label_names[i], "service"))
			return host->label_values[i];
	return encoder->profile->strings[process->service];
}

static void add_process_attributes(struct encoder *encoder, Resource *resource,
				   const struct profile_process *process)
{
	const char **strings = encoder->profile->strings;
	const char *path = strings[process->executable];
	const char *slash = strrchr(path, '/');
	struct arena *arena = &encoder->arena;

	otlp_add_text(arena, resource, "farflame.process", strings[process->name]);
	otlp_add_text(arena, resource, "process.executable.path", path);
	otlp_add_text(arena, resource, "process.executable.name", slash ? slash + 1 : path);
	otlp_add_text(arena, resource, "container.id", strings[process->container_id]);
	otlp_add_text(arena, resource, "service.name", service_of(encoder, process));
	for (uint32_t i = 0; i < process->label_count; i++) {
		const uint32_t *pair =
			&encoder->profile->label_indices[process->first_label + 2 * i];

		otlp_add_text(arena, resource,
			      !strcmp(strings[pair[0]], "pod")         ? "k8s.pod.name"
			      : !strcmp(strings[pair[0]], "namespace") ? "k8s.namespace.name"
								       : strings[pair[0]],
			      strings[pair[1]]);
	}
	otlp_add_labels(arena, resource, encoder->host);
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
	to->filename_strindex = string_row(encoder, from->file_name);
	if (from->gnu.length)
		indices[count++] = add_text_attribute(encoder, encoder->key_gnu,
						      build_id_format(&from->gnu, hex));
	if (from->go_id)
		indices[count++] = add_text_attribute(encoder, encoder->key_go,
						      encoder->profile->strings[from->go_id]);
	if (from->htlhash.length)
		indices[count++] = add_text_attribute(encoder, encoder->key_htlhash,
						      build_id_format(&from->htlhash, hex));
	if (from->base != ADDRESS_ELF)
		indices[count++] = add_text_attribute(encoder, encoder->key_base,
						      from->base == ADDRESS_KERNEL_TEXT ? "_text"
											: ".text");
	to->attribute_indices = arena_copy(&encoder->arena, indices, count * sizeof *indices);
	to->n_attribute_indices = to->attribute_indices ? count : 0;
}

static void fill_named_location(struct encoder *encoder, const struct profile_frame *from,
				Location *to)
{
	Dictionary *dictionary = encoder->dictionary;
	Function *function = MAKE(&encoder->arena, Function);
	Line *line = MAKE(&encoder->arena, Line);

	to->lines = arena_array(&encoder->arena, 1, sizeof *to->lines);
	if (!function || !line || !to->lines ||
	    dictionary->n_function_table >= encoder->function_room) {
		encoder->arena.failed = true;
		return;
	}
	function->name_strindex = string_row(encoder, from->function);
	function->filename_strindex = string_row(encoder, from->file);
	line->function_index = (int32_t)dictionary->n_function_table;
	line->line = from->line;
	dictionary->function_table[dictionary->n_function_table++] = function;
	to->lines[0] = line;
	to->n_lines = 1;
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
		indices[0] = string_attribute(encoder, encoder->type_attributes,
					      encoder->key_frame_type, from->type);
		fill_named_location(encoder, from, to);
		break;
	case PROFILE_FRAME_ANONYMOUS:
		indices[count++] = encoder->anonymous;
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

static bool start_dictionary(struct encoder *encoder)
{
	const struct profile *profile = encoder->profile;
	struct arena *arena = &encoder->arena;
	Dictionary *dictionary = MAKE(arena, Dictionary);
	size_t strings = profile->string_count ? profile->string_count : 1;

	encoder->dictionary = dictionary;
	encoder->string_room = strings + 24 + 2 * PROFILE_TYPES_MAX;
	encoder->attribute_room = 3 * strings + 4 * profile->mapping_count + 16;
	encoder->function_room = profile->frame_count + 1;
	encoder->string_rows = arena_array(arena, strings, sizeof(int32_t));
	encoder->thread_attributes = arena_array(arena, strings, sizeof(int32_t));
	encoder->incomplete_attributes = arena_array(arena, strings, sizeof(int32_t));
	encoder->type_attributes = arena_array(arena, strings, sizeof(int32_t));
	if (!dictionary)
		return false;
	dictionary->string_table = arena_array(arena, encoder->string_room, sizeof(char *));
	dictionary->attribute_table = arena_array(arena, encoder->attribute_room,
						  sizeof *dictionary->attribute_table);
	dictionary->function_table = arena_array(arena, encoder->function_room,
						 sizeof *dictionary->function_table);
	if (arena->failed)
		return false;
	add_string(encoder, "");
	dictionary->attribute_table[dictionary->n_attribute_table++] = MAKE(arena, Attribute);
	dictionary->function_table[dictionary->n_function_table++] = MAKE(arena, Function);
	return !arena->failed;
}

static void add_keys(struct encoder *encoder)
{
	encoder->key_thread = add_string(encoder, "thread.name");
	encoder->key_incomplete = add_string(encoder, "farflame.incomplete");
	encoder->key_frame_type = add_string(encoder, "profile.frame.type");
	encoder->key_gnu = add_string(encoder, "process.executable.build_id.gnu");
	encoder->key_go = add_string(encoder, "process.executable.build_id.go");
	encoder->key_htlhash = add_string(encoder, "process.executable.build_id.htlhash");
	encoder->key_base = add_string(encoder, "farflame.address_base");
	encoder->key_anonymous = add_string(encoder, "farflame.anonymous");
	encoder->native = add_text_attribute(encoder, encoder->key_frame_type, "native");
	encoder->kernel = add_text_attribute(encoder, encoder->key_frame_type, "kernel");
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
	FILL_TABLE(encoder, link_table, Link, 1);
	FILL_TABLE(encoder, stack_table, Stack, profile->stack_count + 1);
	if (encoder->arena.failed)
		return false;
	for (size_t i = 1; i < profile->mapping_count; i++)
		fill_mapping(encoder, &profile->mappings[i], dictionary->mapping_table[i]);
	for (size_t i = 1; i < profile->frame_count; i++)
		fill_location(encoder, &profile->frames[encoder->order.frames[i]],
			      dictionary->location_table[i]);
	for (size_t i = 0; i < profile->stack_count; i++) {
		const struct profile_stack *stack = &profile->stacks[encoder->order.stacks[i]];

		dictionary->stack_table[i + 1]->location_indices =
			&encoder->order.locations[stack->first_index];
		dictionary->stack_table[i + 1]->n_location_indices = stack->depth;
	}
	return !encoder->arena.failed;
}

/* --- samples --- */

/* As OTLP has them: unix time, oldest first. */
static bool fill_times(struct encoder *encoder, const struct profile_sample *from, Sample *to)
{
	const struct profile *profile = encoder->profile;
	uint32_t time = from->first_time;

	if (!from->time_count)
		return true;
	to->timestamps_unix_nano = arena_array(&encoder->arena, from->time_count,
					       sizeof *to->timestamps_unix_nano);
	if (!to->timestamps_unix_nano)
		return false;
	for (size_t i = from->time_count; i-- && time && time < profile->time_count;) {
		to->timestamps_unix_nano[i] = profile->times[time].time_ns +
					      profile->time_offset_ns;
		time = profile->times[time].next;
	}
	to->n_timestamps_unix_nano = from->time_count;
	return true;
}

static Sample *make_sample(struct encoder *encoder, const struct profile_sample *from)
{
	const struct profile_stack *stack = &encoder->profile->stacks[from->stack];
	Sample *sample = MAKE(&encoder->arena, Sample);
	int32_t indices[2];
	size_t count = 0;

	if (!sample)
		return NULL;
	if (from->thread)
		indices[count++] = string_attribute(encoder, encoder->thread_attributes,
						    encoder->key_thread, from->thread);
	if (stack->incomplete)
		indices[count++] = string_attribute(encoder, encoder->incomplete_attributes,
						    encoder->key_incomplete, stack->incomplete);
	sample->stack_index = encoder->order.stack_rows[from->stack];
	sample->attribute_indices = arena_copy(&encoder->arena, indices, count * sizeof *indices);
	sample->values = arena_array(&encoder->arena, 2, sizeof *sample->values);
	if (!sample->attribute_indices || !sample->values || !fill_times(encoder, from, sample))
		return NULL;
	sample->n_attribute_indices = count;
	sample->values[0] = (int64_t)from->count;
	sample->values[1] = (int64_t)from->value;
	sample->n_values = 2;
	return sample;
}

static ValueType *make_value_type(struct encoder *encoder, int32_t type, int32_t unit)
{
	ValueType *value_type = MAKE(&encoder->arena, ValueType);

	if (value_type) {
		value_type->type_strindex = type;
		value_type->unit_strindex = unit;
	}
	return value_type;
}

/* profile_id of the nth resource: the last four bytes count up, big-endian. */
static void nth_id(const uint8_t id[16], uint32_t n, uint8_t out[16])
{
	uint32_t last;

	memcpy(out, id, 16);
	last = ((uint32_t)id[12] << 24 | (uint32_t)id[13] << 16 | (uint32_t)id[14] << 8 | id[15]) +
	       n;
	for (int i = 0; i < 4; i++)
		out[15 - i] = (uint8_t)(last >> (8 * i));
}

/* All samples of one process and type: samples[first] … samples[first + count − 1]. */
static ResourceProfiles *make_process(struct encoder *encoder, size_t first, size_t count,
				      uint32_t number, ValueType *sample_type,
				      ValueType *period_type)
{
	const struct profile *profile = encoder->profile;
	uint8_t id[16];
	Profile *to;
	ResourceProfiles *resource;

	nth_id(profile->id, number, id);
	resource = otlp_new_resource(&encoder->arena, encoder->host, id, &to);
	if (!resource)
		return NULL;
	add_process_attributes(encoder, resource->resource,
			       &profile->processes[encoder->order.samples[first].process]);
	to->sample_type = sample_type;
	if (!encoder->order.samples[first].type) {
		to->period_type = profile->period_ns ? period_type : NULL;
		to->period = (int64_t)profile->period_ns;
	}
	to->time_unix_nano = profile->start_ns;
	to->duration_nano = profile->duration_ns;
	to->samples = arena_array(&encoder->arena, count, sizeof *to->samples);
	for (size_t i = 0; to->samples && i < count; i++) {
		to->samples[i] = make_sample(encoder, &encoder->order.samples[first + i]);
		if (!to->samples[i])
			return NULL;
	}
	to->n_samples = count;
	return encoder->arena.failed ? NULL : resource;
}

static bool fill_resources(struct encoder *encoder, Request *request)
{
	const struct profile *profile = encoder->profile;
	const struct profile_sample *samples = encoder->order.samples;
	int32_t nanoseconds = add_string(encoder, "nanoseconds");
	ValueType *sample_types[PROFILE_TYPES_MAX] = {
		make_value_type(encoder, add_string(encoder, profile->type),
				add_string(encoder, profile->unit))};
	ValueType *period_type = make_value_type(encoder, add_string(encoder, "cpu"), nanoseconds);
	size_t count;

	for (size_t i = 1; i <= profile->other_type_count && i < PROFILE_TYPES_MAX; i++)
		sample_types[i] = make_value_type(
			encoder, add_string(encoder, profile->other_types[i - 1].name),
			add_string(encoder, profile->other_types[i - 1].unit));
	request->resource_profiles = arena_array(&encoder->arena, profile->sample_count + 1,
						 sizeof *request->resource_profiles);
	if (encoder->arena.failed)
		return false;
	for (size_t first = 0; first < profile->sample_count; first += count) {
		ResourceProfiles *resource;

		for (count = 1; first + count < profile->sample_count &&
				samples[first + count].process == samples[first].process &&
				samples[first + count].type == samples[first].type;)
			count++;
		if (samples[first].type >= PROFILE_TYPES_MAX ||
		    samples[first].type > profile->other_type_count)
			return false;
		resource = make_process(encoder, first, count,
					(uint32_t)request->n_resource_profiles,
					sample_types[samples[first].type],
					period_type);
		if (!resource)
			return false;
		request->resource_profiles[request->n_resource_profiles++] = resource;
	}
	return true;
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
	size_t stacks = TABLE_BYTES(dictionary, stack_table);

	parts->count = 0;
	add_part(parts, length - tables); /* the resources, and the dictionary's own length */
	add_part(parts, mappings);
	add_part(parts, locations);
	add_part(parts, tables - mappings - locations - stacks);
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
	    !fill_dictionary(&encoder) || !fill_resources(&encoder, &request) ||
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
