/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/ingest/ingest.h"

#include "common/array.h"
#include "symbol-server/ingest/reader.h"
#include "symbol-server/ingest/resource.h"

enum {
	PARTS_MAX = 64,    /* dictionaries in one request */
	COUNTERS_MAX = 64, /* agents' own resources in one request */
};

/* --- the agent's own resource --- */

static enum dictionary_result add_counters(struct reader *reader, const struct resource *resource,
					   struct wire profile)
{
	struct sample_batch *batch = reader->batch;
	struct profile_facts facts = {0};
	struct batch_counters *counters;
	int64_t time_ms;

	if (!profile_read_facts(profile, &facts))
		return DICTIONARY_MALFORMED;
	if (batch->counters_count >= COUNTERS_MAX)
		return DICTIONARY_OK;
	if (!ARENA_GROW(reader->arena, batch->counters, batch->counters_count,
			reader->counters_capacity))
		return DICTIONARY_NO_ROOM;
	counters = &batch->counters[batch->counters_count++];
	memset(counters, 0, sizeof *counters);
	resource_counters(resource, counters);
	if (!counters->host.length)
		counters->host = batch->sender;
	memcpy(counters->profile_id, facts.id, 16);
	time_ms = profile_start_ms(reader, &facts);
	/* The minute of the samples they stand for, also by a clock ahead of ours. But counts are
	 * never refused for their time: they say what was lost. */
	counters->numbers.time_ms = time_ms > reader->now_ms + AHEAD_MAX_MS ? reader->now_ms
				    : time_ms < reader->oldest_ms           ? reader->oldest_ms
									    : time_ms;
	counters->numbers.duration_ms =
		(int64_t)(facts.duration_ns / 1000000 % (1000 * AHEAD_MAX_MS));
	counters->numbers.received_ms = reader->now_ms;
	return DICTIONARY_OK;
}

/* --- scopes and resources --- */

/* The last name counts: a scope may come in parts. */
static void read_scope_name(struct wire wire, bool *is_ours)
{
	static const char ours[] = "farflame-agent";
	struct wire_field field;

	while (wire_next_fast(&wire, &field) > 0)
		if (field.number == 1)
			*is_ours = field.bytes.end - field.bytes.at == sizeof ours - 1 &&
				   !memcmp(field.bytes.at, ours, sizeof ours - 1);
}

static bool check_scope_profiles(struct wire wire, bool *is_ours)
{
	struct wire_field field;
	int got;

	while ((got = wire_next_fast(&wire, &field)) > 0) {
		if (field.number >= 1 && field.number <= 3 && field.type != WIRE_BYTES)
			return false;
		if (field.number != 1)
			continue;
		if (!wire_check(field.bytes, WIRE_SCOPE, 0))
			return false;
		read_scope_name(field.bytes, is_ours);
	}
	return got == 0;
}

static enum dictionary_result read_scope(struct reader *reader, struct wire wire,
					 const struct resource *resource, uint32_t series)
{
	enum dictionary_result result = DICTIONARY_OK;
	struct wire_field field;
	bool is_ours = false;

	if (!check_scope_profiles(wire, &is_ours))
		return DICTIONARY_MALFORMED;
	while (result == DICTIONARY_OK && wire_next_fast(&wire, &field) > 0) {
		if (field.number != 2)
			continue;
		if (resource->is_agent && is_ours)
			result = add_counters(reader, resource, field.bytes);
		if (result == DICTIONARY_OK)
			result = profile_read(reader, field.bytes, is_ours, series);
	}
	return result;
}

/* The resource's attributes first, wherever they are in the message. */
static enum dictionary_result read_attributes(struct reader *reader, struct wire wire,
					      struct resource *resource)
{
	enum dictionary_result result = DICTIONARY_OK;
	struct wire_field field;
	int got;

	while ((got = wire_next_fast(&wire, &field)) > 0) {
		if (field.number >= 1 && field.number <= 3 && field.type != WIRE_BYTES)
			return DICTIONARY_MALFORMED;
		if (field.number != 1)
			continue;
		result = resource_read(&reader->dictionary, field.bytes, resource);
		if (result == DICTIONARY_MALFORMED || result == DICTIONARY_NO_ROOM)
			return result;
	}
	/* A reference outside the tables costs a label, not the profile. */
	return got == 0 ? DICTIONARY_OK : DICTIONARY_MALFORMED;
}

static enum dictionary_result read_resource(struct reader *reader, struct wire wire)
{
	struct sample_batch *batch = reader->batch;
	struct resource resource;
	enum dictionary_result result;
	struct wire_field field;

	resource_init(&resource);
	result = read_attributes(reader, wire, &resource);
	if (result != DICTIONARY_OK)
		return result;
	if (!ARENA_GROW(reader->arena, batch->series, batch->series_count, reader->series_capacity))
		return DICTIONARY_NO_ROOM;
	result = resource_series(&reader->dictionary, &resource, batch->sender,
				 &batch->series[batch->series_count]);
	reader->rejects->labels_left_out += resource.attributes_left_out;
	batch->series_count++;
	if (!contexts_begin_resource(&reader->contexts, reader->arena, resource.told,
				     resource.told_count,
				     resource.host.length ? resource.host : batch->sender))
		return DICTIONARY_NO_ROOM;
	while (result == DICTIONARY_OK && wire_next_fast(&wire, &field) > 0)
		if (field.number == 2)
			result = read_scope(reader, field.bytes, &resource,
					    batch->series_count - 1);
	return result;
}

/* --- the request --- */

static enum dictionary_result read_dictionaries(struct reader *reader, struct wire wire)
{
	struct wire spans[PARTS_MAX];
	struct wire_field field;
	unsigned count = 0;
	int got;

	while ((got = wire_next(&wire, &field)) > 0) {
		if (field.number != 1 && field.number != 2)
			continue;
		if (field.type != WIRE_BYTES)
			return DICTIONARY_MALFORMED;
		if (field.number != 2)
			continue;
		if (count == PARTS_MAX)
			return DICTIONARY_NO_ROOM;
		spans[count++] = field.bytes;
	}
	if (got < 0)
		return DICTIONARY_MALFORMED;
	reader->has_dictionary = count;
	return dictionary_read(&reader->dictionary, spans, count);
}

static enum dictionary_result read_request(struct reader *reader, struct wire wire)
{
	enum dictionary_result result = read_dictionaries(reader, wire);
	struct wire_field field;

	while (result == DICTIONARY_OK && wire_next(&wire, &field) > 0)
		if (field.number == 1)
			result = read_resource(reader, field.bytes);
	if (result == DICTIONARY_OK && !dictionary_check_unused(&reader->dictionary))
		result = DICTIONARY_MALFORMED;
	return result;
}

bool ingest_read(const void *bytes, size_t length, const char *peer, int64_t now_ms,
		 int64_t oldest_ms, struct arena *arena, struct sample_batch *batch,
		 struct ingest_rejects *rejects, struct error *err)
{
	static const char not_otlp[] = "not OTLP profiles 1.10 or newer";
	struct reader reader = {.arena = arena,
				.batch = batch,
				.rejects = rejects,
				.dictionary = {.arena = arena, .batch = batch},
				.now_ms = now_ms,
				.oldest_ms = oldest_ms};
	struct wire wire = {bytes, (const uint8_t *)bytes + length};
	enum dictionary_result result;

	reader.body = wire;
	*batch = (struct sample_batch){.tenant = 1, .sender = text_of(peer ? peer : "")};
	*rejects = (struct ingest_rejects){0};
	result = read_request(&reader, wire);
	rejects->attributes_left_out = reader.contexts.dropped;
	if (result == DICTIONARY_NO_ROOM || arena->failed)
		return error_set(err, ERROR_LIMIT,
				 "the request needs more than %zu MiB to be decoded",
				 arena->limit >> 20);
	if (result != DICTIONARY_OK)
		return error_set(err, ERROR_FORMAT,
				 "%s: the body is not the protobuf message "
				 "ExportProfilesServiceRequest",
				 not_otlp);
	if (!reader.good && reader.bad_indices && !reader.has_dictionary)
		return error_set(err, ERROR_FORMAT, "%s: there is no dictionary", not_otlp);
	if (!reader.good && reader.bad_indices)
		return error_set(err, ERROR_FORMAT, "%s: %s", not_otlp, reader.dictionary.problem);
	rejects->untimely = reader.untimely;
	rejects->is_all_untimely = !reader.good && batch->counters_count && reader.untimely &&
				   reader.untimely == rejects->profiles;
	return true;
}
