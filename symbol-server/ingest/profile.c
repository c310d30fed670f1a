/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/ingest/reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/hash_table.h"
#include "symbol-server/ingest/resource.h"

/* How the values of a profile's samples are read. */
struct value_rule {
	unsigned type;   /* number of the profile type */
	bool is_pair;    /* ours: [count, value] */
	bool is_count;   /* values are counts, worth period_ns each; else sums in the unit */
	uint64_t period; /* 0: unknown */
};

__attribute__((format(printf, 2, 3))) static void reject(struct reader *reader, const char *format,
							 ...)
{
	va_list list;

	reader->rejects->profiles++;
	if (reader->rejects->message[0])
		return;
	va_start(list, format);
	vsnprintf(reader->rejects->message, sizeof reader->rejects->message, format, list);
	va_end(list);
}

/* --- one profile's scalars --- */

static bool read_value_type(struct wire wire, struct value_type *to)
{
	struct wire_field field;
	int got;

	while ((got = wire_next_fast(&wire, &field)) > 0) {
		if (field.number != 1 && field.number != 2)
			continue;
		if (field.type != WIRE_VARINT)
			return false;
		*(field.number == 1 ? &to->type : &to->unit) = field.value;
	}
	return got == 0;
}

static bool read_profile_field(const struct wire_field *field, struct profile_facts *facts)
{
	static const uint8_t types[] = {
		[1] = WIRE_BYTES, [2] = WIRE_BYTES,  [3] = WIRE_FIXED64, [4] = WIRE_VARINT,
		[5] = WIRE_BYTES, [6] = WIRE_VARINT, [7] = WIRE_BYTES,   [8] = WIRE_VARINT,
		[9] = WIRE_BYTES, [10] = WIRE_BYTES};
	struct wire_scalars run;
	uint64_t index;

	if (field->number < sizeof types && field->type != types[field->number])
		return false;
	switch (field->number) {
	case 1:
		return read_value_type(field->bytes, &facts->sample_type);
	case 2:
		facts->sample_count++;
		return true;
	case 3:
		facts->time_ns = field->value;
		return true;
	case 4:
		facts->duration_ns = field->value;
		return true;
	case 5:
		return read_value_type(field->bytes, &facts->period_type);
	case 6:
		facts->period = (int64_t)field->value;
		return true;
	case 7:
		memset(facts->id, 0, 16);
		if (field->bytes.end - field->bytes.at == 16)
			memcpy(facts->id, field->bytes.at, 16);
		return true;
	case 11:
		if (!wire_scalars(field, &run))
			return false;
		while (!wire_is_done(&run))
			if (!wire_scalar(&run, &index))
				return false;
		return true;
	}
	return true;
}

bool profile_read_facts(struct wire wire, struct profile_facts *facts)
{
	struct wire_field field;
	int got;

	while ((got = wire_next_fast(&wire, &field)) > 0)
		if (!read_profile_field(&field, facts))
			return false;
	return got == 0;
}

/* --- what the values mean --- */

static bool choose_rule(struct reader *reader, const struct profile_facts *facts, bool is_ours,
			struct value_rule *rule)
{
	struct dictionary *dictionary = &reader->dictionary;
	struct text type, unit, period_type, period_unit;
	int number;

	if (dictionary_string(dictionary, facts->sample_type.type, "sample type", &type) ||
	    dictionary_string(dictionary, facts->sample_type.unit, "sample unit", &unit) ||
	    dictionary_string(dictionary, facts->period_type.type, "period type", &period_type) ||
	    dictionary_string(dictionary, facts->period_type.unit, "period unit", &period_unit)) {
		reader->bad_indices++;
		reject(reader, "%s", dictionary->problem);
		return false;
	}
	*rule = (struct value_rule){.is_pair = is_ours};
	if (facts->period > 0 && text_is(period_unit, "nanoseconds"))
		rule->period = (uint64_t)facts->period;
	number = profile_type_find(type.at, type.length);
	if (number >= 0 && text_is(unit, profile_type_unit((unsigned)number))) {
		rule->type = (unsigned)number;
		return true;
	}
	rule->type = (unsigned)profile_type_find("on-cpu", 6);
	rule->is_count = text_is(type, "samples") && text_is(unit, "count");
	if (!is_ours && rule->is_count && text_is(period_type, "cpu") && rule->period)
		return true;
	if (!is_ours && text_is(type, "cpu") && text_is(unit, "nanoseconds"))
		return true;
	rule->type = (unsigned)profile_type_find("off-cpu", 7);
	if (!is_ours && text_is(type, "off_cpu") && text_is(unit, "nanoseconds"))
		return true;
	reject(reader,
	       "a profile of type %.*s/%.*s (period %.*s/%.*s) is not one this server knows",
	       (int)text_cut(type, 32).length, type.at, (int)text_cut(unit, 32).length, unit.at,
	       (int)text_cut(period_type, 32).length, period_type.at,
	       (int)text_cut(period_unit, 32).length, period_unit.at);
	return false;
}

static uint64_t multiply(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX >> 1 : product;
}

/* --- samples --- */

struct sample_facts {
	uint64_t stack;
	uint32_t incomplete; /* attribute */
	uint32_t link;
	struct context_request context;
	uint64_t values[2], sum;
	unsigned value_count, timestamp_count;
	uint64_t first_timestamp_ns;
	bool is_negative;
};

static enum dictionary_result keep_attribute(struct dictionary *dictionary, uint64_t index,
					     struct sample_facts *facts)
{
	const struct dictionary_attribute *attribute;

	if ((uint32_t)index >= dictionary->attribute_count)
		return (uint32_t)index ? dictionary_bad_index(dictionary, "attribute", index,
							      dictionary->attribute_count)
				       : DICTIONARY_OK;
	attribute = &dictionary->attributes[(uint32_t)index];
	if (attribute->key == KEY_OTHER || attribute->key == KEY_THREAD_ID ||
	    attribute->key == KEY_PROCESS)
		context_request_add(&facts->context, dictionary, (uint32_t)index);
	if (attribute->value.kind != VALUE_TEXT || !attribute->value.text.length)
		return DICTIONARY_OK;
	if (attribute->key == KEY_THREAD_NAME)
		facts->context.thread = text_cut(attribute->value.text, LABEL_NAME_MAX);
	else if (attribute->key == KEY_INCOMPLETE)
		facts->incomplete = (uint32_t)index;
	return DICTIONARY_OK;
}

static void keep_value(struct sample_facts *facts, uint64_t value)
{
	facts->is_negative |= (int64_t)value < 0;
	if (facts->value_count < 2)
		facts->values[facts->value_count] = value;
	facts->value_count++;
	if (__builtin_add_overflow(facts->sum, value, &facts->sum))
		facts->is_negative = true;
}

/* Fields 2 and 4: repeated integers. */
static enum dictionary_result keep_scalars(struct dictionary *dictionary,
					   const struct wire_field *field,
					   struct sample_facts *facts)
{
	enum dictionary_result result = DICTIONARY_OK;
	struct wire_scalars run;
	uint64_t value;

	if (!wire_scalars(field, &run))
		return DICTIONARY_MALFORMED;
	while (!wire_is_done(&run)) {
		if (!wire_scalar(&run, &value))
			return DICTIONARY_MALFORMED;
		if (field->number == 4)
			keep_value(facts, value);
		else if (keep_attribute(dictionary, value, facts) != DICTIONARY_OK)
			result = DICTIONARY_BAD_INDEX;
	}
	return result;
}

static bool keep_timestamps(const struct wire_field *field, struct sample_facts *facts)
{
	uint64_t count = 1, first = field->value;

	if (field->type == WIRE_BYTES) {
		size_t length = (size_t)(field->bytes.end - field->bytes.at);

		if (length % 8)
			return false;
		count = length / 8;
		for (int i = 0; count && i < 8; i++)
			first = first >> 8 | (uint64_t)field->bytes.at[i] << 56;
	} else if (field->type != WIRE_FIXED64) {
		return false;
	}
	if (count && !facts->timestamp_count)
		facts->first_timestamp_ns = first;
	facts->timestamp_count += (unsigned)count;
	return true;
}

static enum dictionary_result read_sample(struct dictionary *dictionary, struct wire wire,
					  struct sample_facts *facts)
{
	enum dictionary_result result = DICTIONARY_OK, next;
	struct wire_field field;
	int got;

	while ((got = wire_next_fast(&wire, &field)) > 0) {
		next = DICTIONARY_OK;
		if (field.number == 1 || field.number == 3) {
			if (field.type != WIRE_VARINT)
				return DICTIONARY_MALFORMED;
			if (field.number == 1)
				facts->stack = (uint32_t)field.value;
			else
				facts->link = (uint32_t)field.value;
		} else if (field.number == 2 || field.number == 4) {
			next = keep_scalars(dictionary, &field, facts);
		} else if (field.number == 5 && !keep_timestamps(&field, facts)) {
			return DICTIONARY_MALFORMED;
		}
		if (next == DICTIONARY_MALFORMED)
			return next;
		if (next != DICTIONARY_OK)
			result = next;
	}
	return got == 0 ? result : DICTIONARY_MALFORMED;
}

/* NULL, or what is wrong with the values. */
static const char *count_and_value(const struct value_rule *rule, const struct sample_facts *facts,
				   struct batch_sample *sample)
{
	if (facts->is_negative)
		return "a sample has a negative value";
	if (rule->is_pair) {
		if (facts->value_count != 2)
			return "a sample of a farflame agent has not [count, value]";
		sample->samples = facts->values[0];
		sample->value = facts->values[1];
		return NULL;
	}
	if (rule->is_count) {
		sample->samples = facts->value_count ? facts->sum : facts->timestamp_count;
		sample->value = multiply(sample->samples, rule->period);
		return NULL;
	}
	sample->value = facts->value_count ? facts->sum
					   : multiply(facts->timestamp_count, rule->period);
	sample->samples = facts->timestamp_count;
	if (!sample->samples && rule->period && rule->type == 0)
		sample->samples = sample->value / rule->period;
	if (!sample->samples)
		sample->samples = sample->value != 0;
	return NULL;
}

static uint64_t fixed64(const uint8_t *at)
{
	uint64_t value = 0;

	for (int i = 7; i >= 0; i--)
		value = value << 8 | at[i];
	return value;
}

/* When the sample was taken, as often as it was: field 5 of a message that was read before. */
static bool add_times(struct reader *reader, struct wire wire, struct batch_sample *sample)
{
	struct sample_batch *batch = reader->batch;
	struct wire_field field;

	sample->first_time = batch->time_count;
	while (wire_next_fast(&wire, &field) > 0) {
		size_t count = field.type == WIRE_BYTES
				       ? (size_t)(field.bytes.end - field.bytes.at) / 8
				       : 1;

		for (size_t i = 0; field.number == 5 && i < count; i++) {
			if (!ARENA_GROW(reader->arena, batch->times, batch->time_count,
					reader->time_capacity))
				return false;
			batch->times[batch->time_count++] =
				field.type == WIRE_BYTES ? fixed64(field.bytes.at + 8 * i)
							 : field.value;
		}
	}
	sample->time_count = batch->time_count - sample->first_time;
	return true;
}

/* Adds one sample; samples of nothing are left out. False: result and, for a bad profile, why. */
static enum dictionary_result add_sample(struct reader *reader, struct wire wire,
					 const struct value_rule *rule,
					 struct profile_facts *profile, const char **why)
{
	struct sample_batch *batch = reader->batch;
	struct sample_facts facts = {.context.thread = {"", 0}};
	enum dictionary_result result = read_sample(&reader->dictionary, wire, &facts);
	struct batch_sample *sample;

	if (result != DICTIONARY_OK)
		return result;
	if (facts.first_timestamp_ns && (!profile->first_timestamp_ns ||
					 facts.first_timestamp_ns < profile->first_timestamp_ns))
		profile->first_timestamp_ns = facts.first_timestamp_ns;
	if (!ARENA_GROW(reader->arena, batch->samples, batch->sample_count,
			reader->sample_capacity))
		return DICTIONARY_NO_ROOM;
	sample = &batch->samples[batch->sample_count];
	*why = count_and_value(rule, &facts, sample);
	if (*why || (!sample->samples && !sample->value))
		return DICTIONARY_OK;
	sample->thread = facts.context.thread;
	if (!contexts_make(&reader->contexts, &reader->dictionary, &facts.context,
			   &sample->context))
		return DICTIONARY_NO_ROOM;
	result = dictionary_link(&reader->dictionary, facts.link, &sample->link);
	if (result != DICTIONARY_OK)
		return result;
	sample->first_time = sample->time_count = 0;
	if (facts.timestamp_count && !add_times(reader, wire, sample))
		return DICTIONARY_NO_ROOM;
	result = dictionary_stack(&reader->dictionary, (uint32_t)facts.stack, facts.incomplete,
				  &sample->stack);
	if (result == DICTIONARY_OK)
		batch->sample_count++;
	return result;
}

static enum dictionary_result read_samples(struct reader *reader, struct wire wire,
					   const struct value_rule *rule,
					   struct profile_facts *profile, bool *is_bad)
{
	enum dictionary_result result = DICTIONARY_OK, next;
	struct wire_field field;

	while (wire_next_fast(&wire, &field) > 0) {
		const char *why = NULL;

		if (field.number != 2)
			continue;
		next = add_sample(reader, field.bytes, rule, profile, &why);
		if (next == DICTIONARY_MALFORMED || next == DICTIONARY_NO_ROOM)
			return next;
		if (next == DICTIONARY_BAD_INDEX)
			result = next;
		if (why && !*is_bad) {
			*is_bad = true;
			reject(reader, "%s", why);
		}
	}
	return result;
}

/* A profile that is left out still has to be protobuf. */
static bool check_samples(struct reader *reader, struct wire wire)
{
	struct wire_field field;

	while (wire_next_fast(&wire, &field) > 0) {
		struct sample_facts facts = {.context.thread = {"", 0}};

		if (field.number == 2 &&
		    read_sample(&reader->dictionary, field.bytes, &facts) == DICTIONARY_MALFORMED)
			return false;
	}
	return true;
}

/* --- profiles --- */

int64_t profile_start_ms(const struct reader *reader, const struct profile_facts *facts)
{
	uint64_t ns = facts->time_ns ? facts->time_ns : facts->first_timestamp_ns;

	return ns ? (int64_t)(ns / 1000000) : reader->now_ms;
}

/* Senders without profile ids (the OpenTelemetry profiler, b442421) repeat a request byte by byte:
 * its hash and the profile's number in it are the id. Without a time of its own, equal bytes may be
 * other samples. */
static void make_id(struct reader *reader, const struct profile_facts *facts, uint32_t number,
		    uint8_t id[16])
{
	static const uint8_t none[16];

	memcpy(id, facts->id, 16);
	if (!facts->time_ns || memcmp(id, none, sizeof none))
		return;
	if (!reader->has_body_id) {
		size_t length = (size_t)(reader->body.end - reader->body.at);
		uint64_t hash[2] = {hash_bytes(reader->body.at, length, 1),
				    hash_bytes(reader->body.at, length, 2)};

		memcpy(reader->body_id, hash, sizeof reader->body_id);
		reader->has_body_id = true;
	}
	memcpy(id, reader->body_id, sizeof reader->body_id);
	for (unsigned i = 0; i < 4; i++)
		id[12 + i] = (uint8_t)(number >> (24 - 8 * i));
}

/* Our agents count by themselves what was refused; of others the server does. */
static bool keep_untimely(struct reader *reader, const struct profile_facts *facts,
			  const struct value_rule *rule, uint32_t first_sample, uint32_t series,
			  const char *reason)
{
	struct sample_batch *batch = reader->batch;
	struct batch_untimely *untimely;

	if (!ARENA_GROW(reader->arena, batch->untimely, batch->untimely_count,
			reader->untimely_capacity))
		return false;
	untimely = &batch->untimely[batch->untimely_count++];
	*untimely = (struct batch_untimely){.type = profile_type_name(rule->type),
					    .reason = reason,
					    .series = series,
					    .received_ms = reader->now_ms};
	make_id(reader, facts, UINT32_MAX - batch->untimely_count, untimely->id);
	for (uint32_t i = first_sample; i < batch->sample_count; i++)
		untimely->samples += batch->samples[i].samples;
	return true;
}

static enum dictionary_result keep_profile(struct reader *reader, const struct profile_facts *facts,
					   const struct value_rule *rule, uint32_t first_sample,
					   uint32_t series)
{
	struct sample_batch *batch = reader->batch;
	int64_t time_ms = profile_start_ms(reader, facts);
	struct batch_profile *profile;

	if (time_ms > reader->rejects->newest_ms)
		reader->rejects->newest_ms = time_ms;
	if (time_ms > reader->now_ms + AHEAD_MAX_MS || time_ms < reader->oldest_ms) {
		if (!rule->is_pair &&
		    !keep_untimely(reader, facts, rule, first_sample, series,
				   time_ms > reader->now_ms ? "too_new" : "too_old"))
			return DICTIONARY_NO_ROOM;
		batch->sample_count = first_sample;
		reader->untimely++;
		reject(reader, "a profile's time is %lld s %s",
		       (long long)llabs(time_ms - reader->now_ms) / 1000,
		       time_ms > reader->now_ms ? "in the future" : "ago, older than what is kept");
		return DICTIONARY_OK;
	}
	if (!ARENA_GROW(reader->arena, batch->profiles, batch->profile_count,
			reader->profile_capacity))
		return DICTIONARY_NO_ROOM;
	profile = &batch->profiles[batch->profile_count];
	make_id(reader, facts, ++batch->profile_count, profile->id);
	profile->type = profile_type_name(rule->type);
	profile->time_ms = time_ms;
	profile->duration_ms = facts->duration_ns < (uint64_t)INT64_MAX
				       ? (int64_t)(facts->duration_ns / 1000000)
				       : 0;
	profile->series = series;
	profile->first_sample = first_sample;
	profile->sample_count = batch->sample_count - first_sample;
	profile->is_counted = rule->is_pair && !rule->type; /* agents count timer ticks only */
	reader->good++;
	return DICTIONARY_OK;
}

enum dictionary_result profile_read(struct reader *reader, struct wire wire, bool is_ours,
				    uint32_t series)
{
	uint32_t first_sample = reader->batch->sample_count;
	struct profile_facts facts = {0};
	enum dictionary_result result;
	struct value_rule rule;
	bool is_bad = false;

	if (!profile_read_facts(wire, &facts))
		return DICTIONARY_MALFORMED;
	if (!facts.sample_count)
		return DICTIONARY_OK;
	if (!choose_rule(reader, &facts, is_ours, &rule))
		return check_samples(reader, wire) ? DICTIONARY_OK : DICTIONARY_MALFORMED;
	result = read_samples(reader, wire, &rule, &facts, &is_bad);
	if (result == DICTIONARY_BAD_INDEX) {
		if (!is_bad)
			reject(reader, "%s", reader->dictionary.problem);
		reader->bad_indices++;
		is_bad = true;
	} else if (result != DICTIONARY_OK) {
		return result;
	}
	if (is_bad) {
		reader->batch->sample_count = first_sample;
		return DICTIONARY_OK;
	}
	return keep_profile(reader, &facts, &rule, first_sample, series);
}
