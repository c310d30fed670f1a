/* SPDX-License-Identifier: Apache-2.0 */
/* Resources and their samples: what refers to the dictionary. */
#include <string.h>

#include "common/otlp_encoder.h"

/* --- what a process is --- */

static const struct profile_attribute_set *attribute_set(const struct profile *profile,
							 uint32_t index)
{
	static const struct profile_attribute_set none;

	return index < profile->attribute_set_count ? &profile->attribute_sets[index] : &none;
}

static const char *service_of(const struct encoder *encoder, const struct profile_process *process)
{
	const struct profile_host *host = encoder->host;
	const struct profile *profile = encoder->profile;
	const struct profile_attribute_set *own = attribute_set(profile, process->attributes);

	for (uint32_t i = 0; i < own->count; i++) {
		const struct profile_attribute *attribute =
			&profile->attributes[profile->attribute_indices[own->first_index + i]];

		if (!strcmp(profile->strings[attribute->key], "service.name"))
			return profile->strings[attribute->value];
	}
	for (size_t i = 0; i < host->label_count; i++)
		if (!strcmp(host->label_names[i], "service"))
			return host->label_values[i];
	return encoder->profile->strings[process->service];
}

static bool has_attribute(const Resource *resource, const char *key)
{
	for (size_t i = 0; i < resource->n_attributes; i++)
		if (!strcmp(resource->attributes[i]->key, key))
			return true;
	return false;
}

/* What a program says of itself; what the agent knows itself stands. */
static void add_own_attributes(struct encoder *encoder, Resource *resource,
			       const struct profile_process *process)
{
	const struct profile *profile = encoder->profile;
	const struct profile_attribute_set *own = attribute_set(profile, process->attributes);

	for (uint32_t i = 0; i < own->count; i++) {
		const struct profile_attribute *attribute =
			&profile->attributes[profile->attribute_indices[own->first_index + i]];
		const char *key = profile->strings[attribute->key];

		if (strncmp(key, "farflame.", 9) != 0 && !has_attribute(resource, key))
			otlp_add_text(&encoder->arena, resource, key,
				      profile->strings[attribute->value]);
	}
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
	add_own_attributes(encoder, resource, process);
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

static int32_t thread_id_attribute(const struct encoder *encoder, uint32_t id)
{
	size_t low = 0, high = encoder->thread_id_count;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (encoder->thread_ids[middle] <= id)
			low = middle;
		else
			high = middle;
	}
	return encoder->thread_id_attributes[low];
}

static int32_t own_attribute(struct encoder *encoder, uint32_t index)
{
	const struct profile_attribute *attribute = &encoder->profile->attributes[index];

	if (!encoder->attributes[index])
		encoder->attributes[index] =
			otlp_add_text_attribute(encoder, otlp_string_row(encoder, attribute->key),
						encoder->profile->strings[attribute->value]);
	return encoder->attributes[index];
}

static Sample *make_sample(struct encoder *encoder, const struct profile_sample *from)
{
	const struct profile_stack *stack = &encoder->profile->stacks[from->stack];
	Sample *sample = MAKE(&encoder->arena, Sample);
	const struct profile_attribute_set *own = attribute_set(encoder->profile, from->attributes);
	int32_t *indices = arena_array(&encoder->arena, own->count + 3, sizeof *indices);
	size_t count = 0;

	if (!sample || !indices)
		return NULL;
	if (from->thread)
		indices[count++] = otlp_string_attribute(encoder, encoder->thread_attributes,
							 encoder->key_thread, from->thread);
	if (from->thread_id)
		indices[count++] = thread_id_attribute(encoder, from->thread_id);
	if (stack->incomplete)
		indices[count++] = otlp_string_attribute(encoder, encoder->incomplete_attributes,
							 encoder->key_incomplete,
							 stack->incomplete);
	sample->stack_index = encoder->order.stack_rows[from->stack];
	for (uint32_t i = 0; i < own->count; i++)
		indices[count++] = own_attribute(
			encoder, encoder->profile->attribute_indices[own->first_index + i]);
	sample->attribute_indices = indices;
	sample->link_index = (int32_t)from->link;
	sample->values = arena_array(&encoder->arena, 2, sizeof *sample->values);
	if (!sample->values || !fill_times(encoder, from, sample))
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

bool otlp_fill_resources(struct encoder *encoder, Request *request)
{
	const struct profile *profile = encoder->profile;
	const struct profile_sample *samples = encoder->order.samples;
	int32_t nanoseconds = otlp_add_string(encoder, "nanoseconds");
	ValueType *sample_types[PROFILE_TYPES_MAX] = {
		make_value_type(encoder, otlp_add_string(encoder, profile->type),
				otlp_add_string(encoder, profile->unit))};
	ValueType *period_type = make_value_type(encoder, otlp_add_string(encoder, "cpu"),
						 nanoseconds);
	size_t count;

	for (size_t i = 1; i <= profile->other_type_count && i < PROFILE_TYPES_MAX; i++)
		sample_types[i] = make_value_type(
			encoder, otlp_add_string(encoder, profile->other_types[i - 1].name),
			otlp_add_string(encoder, profile->other_types[i - 1].unit));
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
					sample_types[samples[first].type], period_type);
		if (!resource)
			return false;
		request->resource_profiles[request->n_resource_profiles++] = resource;
	}
	return true;
}
