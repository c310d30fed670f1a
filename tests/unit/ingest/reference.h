/* SPDX-License-Identifier: Apache-2.0 */
/* What a request means, told twice as text: from the in-place reader's batch, and from what
 * protobuf-c decodes, by the plainest code there is. Equal texts, equal meaning. */
#ifndef TESTS_UNIT_INGEST_REFERENCE_H
#define TESTS_UNIT_INGEST_REFERENCE_H

#include "tests/unit/ingest/reference_resource.h"

enum told_values { PAIR, COUNTS, SUMS, UNKNOWN_VALUES, BAD_STRINGS };

static enum told_values choose_values(const struct teller *teller, const MESSAGE(Profile) * profile,
				      bool is_ours, const char **type, uint64_t *period)
{
	static const MESSAGE(ValueType) none = FARFLAME__OTLP__VALUE_TYPE__INIT;
	const MESSAGE(ValueType) *sample = profile->sample_type ? profile->sample_type : &none;
	const MESSAGE(ValueType) *times = profile->period_type ? profile->period_type : &none;
	const char *name = string_at(teller, sample->type_strindex);
	const char *unit = string_at(teller, sample->unit_strindex);
	const char *period_name = string_at(teller, times->type_strindex);
	const char *period_unit = string_at(teller, times->unit_strindex);
	int number;

	if (!name || !unit || !period_name || !period_unit)
		return BAD_STRINGS;
	*period = profile->period > 0 && !strcmp(period_unit, "nanoseconds")
			  ? (uint64_t)profile->period
			  : 0;
	number = profile_type_find(name, strlen(name));
	*type = name;
	if (number >= 0 && !strcmp(unit, profile_type_unit((unsigned)number)))
		return is_ours ? PAIR : SUMS;
	*type = "on-cpu";
	if (is_ours)
		return UNKNOWN_VALUES;
	if (!strcmp(name, "samples") && !strcmp(unit, "count") && !strcmp(period_name, "cpu") &&
	    *period)
		return COUNTS;
	if (!strcmp(name, "cpu") && !strcmp(unit, "nanoseconds"))
		return SUMS;
	*type = "off-cpu";
	if (!strcmp(name, "off_cpu") && !strcmp(unit, "nanoseconds"))
		return SUMS;
	return UNKNOWN_VALUES;
}

/* 1 told, 0 a bad value, -1 a bad index. */
static int tell_one_sample(const struct teller *teller, const MESSAGE(Sample) * sample,
			   enum told_values values, const char *type, uint64_t period,
			   struct buffer *out)
{
	const MESSAGE(AnyValue) *thread = NULL, *incomplete = NULL;
	uint64_t count = sample->n_timestamps_unix_nano, sum = 0, value;
	const char *text;
	struct buffer stack;
	bool ok = true;

	for (size_t i = 0; i < sample->n_attribute_indices; i++) {
		const MESSAGE(AnyValue) *found = NULL;

		ok &= find_attribute(teller, &sample->attribute_indices[i], 1, "thread.name",
				     &found, true);
		if (found && *value_text(teller, found))
			thread = found;
		found = NULL;
		find_attribute(teller, &sample->attribute_indices[i], 1, "farflame.incomplete",
			       &found, true);
		if (found && *value_text(teller, found))
			incomplete = found;
	}
	if (!ok)
		return -1;
	for (size_t i = 0; i < sample->n_values; i++) {
		if (sample->values[i] < 0 ||
		    __builtin_add_overflow(sum, (uint64_t)sample->values[i], &sum))
			return 0;
	}
	if (values == PAIR) {
		if (sample->n_values != 2)
			return 0;
		count = (uint64_t)sample->values[0];
		value = (uint64_t)sample->values[1];
	} else if (values == COUNTS) {
		count = sample->n_values ? sum : count;
		if (__builtin_mul_overflow(count, period, &value))
			value = UINT64_MAX >> 1;
	} else {
		value = sum;
		if (!sample->n_values && __builtin_mul_overflow(count, period, &value))
			value = UINT64_MAX >> 1;
		if (!count && period && !strcmp(type, "on-cpu"))
			count = value / period;
		if (!count)
			count = value != 0;
	}
	if (!count && !value)
		return 1;
	buffer_init(&stack, 64 << 20);
	if (!tell_stack(teller, sample->stack_index,
			incomplete ? value_text(teller, incomplete) : NULL, &stack)) {
		buffer_release(&stack);
		return -1;
	}
	text = thread ? value_text(teller, thread) : "";
	buffer_append_text(out, "  sample ");
	put_text(out, text, strlen(text) < 64 ? strlen(text) : 64);
	buffer_printf(out, " %llu %llu\n", (unsigned long long)count, (unsigned long long)value);
	buffer_append(out, stack.bytes, stack.length);
	buffer_release(&stack);
	return 1;
}

static int64_t told_start(const struct teller *teller, const MESSAGE(Profile) * profile)
{
	uint64_t first = 0;

	for (size_t i = 0; i < profile->n_samples; i++) {
		const MESSAGE(Sample) *sample = profile->samples[i];

		if (sample->n_timestamps_unix_nano && sample->timestamps_unix_nano[0] &&
		    (!first || sample->timestamps_unix_nano[0] < first))
			first = sample->timestamps_unix_nano[0];
	}
	if (profile->time_unix_nano)
		first = profile->time_unix_nano;
	return first ? (int64_t)(first / 1000000) : teller->now_ms;
}

static void tell_counts(const struct told_counts *counts, struct buffer *out)
{
	for (unsigned i = 0; i < counts->count; i++) {
		put_text(out, counts->names[i], strlen(counts->names[i]));
		buffer_printf(out, "%llu", (unsigned long long)counts->counts[i]);
	}
}

static void tell_told_counters(struct teller *teller, const struct told_resource *resource,
			       const MESSAGE(Profile) * profile)
{
	struct buffer *out = &teller->counters;
	int64_t time_ms = profile->time_unix_nano ? (int64_t)(profile->time_unix_nano / 1000000)
						  : teller->now_ms;

	time_ms = time_ms > teller->now_ms + 600000 ? teller->now_ms : time_ms;
	time_ms = time_ms < teller->oldest_ms ? teller->oldest_ms : time_ms;
	buffer_append_text(out, "counters ");
	for (int i = 0; i < 32; i++)
		buffer_append_char(out, (char)(resource->agent[i] | 0x20));
	put_text(out, *resource->host ? resource->host : teller->peer,
		 strlen(*resource->host ? resource->host : teller->peer));
	put_text(out, resource->version, strlen(resource->version));
	put_text(out, resource->kernel, strlen(resource->kernel));
	buffer_printf(out, "rate %u seq %llu ack %llu taken %llu idle %llu time %lld + %lld",
		      (uint32_t)resource->rate, (unsigned long long)resource->seq,
		      (unsigned long long)resource->acknowledged,
		      (unsigned long long)resource->taken, (unsigned long long)resource->idle,
		      (long long)time_ms,
		      (long long)(profile->duration_nano / 1000000 % 600000000));
	tell_counts(&resource->lost, out);
	tell_counts(&resource->stacks, out);
	buffer_append_char(out, '\n');
}

/* The sender's own, else one of the request's hash and the profile's number in it. */
static void tell_id(const struct teller *teller, const MESSAGE(Profile) * profile,
		    struct buffer *out)
{
	uint64_t hash[2] = {hash_bytes(teller->body.at, teller->body.length, 1),
			    hash_bytes(teller->body.at, teller->body.length, 2)};
	bool is_own = !profile->time_unix_nano;
	uint8_t id[16] = {0};

	for (size_t i = 0; i < 16 && profile->profile_id.len == 16; i++)
		is_own |= profile->profile_id.data[i];
	if (is_own && profile->profile_id.len == 16)
		memcpy(id, profile->profile_id.data, 16);
	if (!is_own)
		memcpy(id, hash, 12);
	for (int i = 0; !is_own && i < 4; i++)
		id[12 + i] = (uint8_t)((teller->good + 1) >> (24 - 8 * i));
	for (size_t i = 0; i < 16; i++)
		buffer_printf(out, "%02x", id[i]);
}

static void tell_profile(struct teller *teller, const struct told_resource *resource,
			 const MESSAGE(Profile) * profile, bool is_ours)
{
	int64_t time_ms = told_start(teller, profile);
	struct buffer text;
	const char *type;
	uint64_t period;
	enum told_values values;
	int worst = 1;

	if (!profile->n_samples)
		return;
	values = choose_values(teller, profile, is_ours, &type, &period);
	if (values >= UNKNOWN_VALUES) {
		teller->rejected++;
		teller->bad_indices += values == BAD_STRINGS;
		return;
	}
	buffer_init(&text, 256 << 20);
	buffer_printf(&text, "profile %s %lld %d ", type, (long long)time_ms, is_ours);
	tell_id(teller, profile, &text);
	tell_labels(teller, resource, &text);
	buffer_append_char(&text, '\n');
	for (size_t i = 0; i < profile->n_samples; i++) {
		int got = tell_one_sample(teller, profile->samples[i], values, type, period, &text);

		worst = got < worst ? got : worst;
	}
	if (worst < 0)
		teller->bad_indices++;
	if (worst < 1 || time_ms > teller->now_ms + 600000 || time_ms < teller->oldest_ms) {
		teller->rejected++;
	} else {
		teller->good++;
		buffer_append(teller->out, text.bytes, text.length);
	}
	buffer_release(&text);
}

/* False: the request is one that is to be refused as a whole. */
static bool tell_request(const Request *request, struct bytes body, const char *peer,
			 int64_t now_ms, int64_t oldest_ms, unsigned *rejected, struct buffer *out)
{
	static const Dictionary none = FARFLAME__OTLP__PROFILES_DICTIONARY__INIT;
	struct teller teller = {request->dictionary ? request->dictionary : &none,
				now_ms,
				oldest_ms,
				peer,
				0,
				0,
				0,
				out,
				{0},
				body};

	buffer_init(&teller.counters, 1 << 20);
	for (size_t i = 0; i < request->n_resource_profiles; i++) {
		const MESSAGE(ResourceProfiles) *outer = request->resource_profiles[i];
		struct told_resource resource;

		read_resource(&teller, outer->resource, &resource);
		for (size_t k = 0; k < outer->n_scope_profiles; k++) {
			const MESSAGE(ScopeProfiles) *scope = outer->scope_profiles[k];
			bool is_ours = scope->scope &&
				       !strcmp(scope->scope->name, "farflame-agent");

			for (size_t n = 0; n < scope->n_profiles; n++) {
				if (is_ours && resource.agent)
					tell_told_counters(&teller, &resource, scope->profiles[n]);
				tell_profile(&teller, &resource, scope->profiles[n], is_ours);
			}
		}
	}
	buffer_append(out, teller.counters.bytes, teller.counters.length);
	buffer_release(&teller.counters);
	*rejected = teller.rejected;
	return teller.good || !teller.bad_indices;
}

#endif
