/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/journal/record.h"

#include <string.h>

enum { FLAG_COUNTED = 1, FLAG_HAS_ID = 2 };

static void add_entry(struct buffer *out, enum record_kind kind, const struct buffer *body)
{
	buffer_append_varint(out, kind);
	buffer_append_varint(out, body->length);
	buffer_append(out, body->bytes, body->length);
	if (body->failed)
		out->failed = true;
}

static void add_number(struct buffer *out, enum record_kind kind, uint32_t number)
{
	uint8_t bytes[5];
	size_t length = 0;

	for (; number >= 0x80; number >>= 7)
		bytes[length++] = (uint8_t)(number | 0x80);
	bytes[length++] = (uint8_t)number;
	buffer_append_varint(out, kind);
	buffer_append_varint(out, length);
	buffer_append(out, bytes, length);
}

void record_add_day(struct buffer *out, uint32_t day)
{
	add_number(out, RECORD_DAY, day);
}

void record_add_second(struct buffer *out, uint32_t second)
{
	add_number(out, RECORD_SECOND, second);
}

void record_add_definitions(struct buffer *out, struct buffer *scratch,
			    const struct catalog *catalog, enum catalog_kind kind, uint32_t first,
			    uint32_t count)
{
	buffer_clear(scratch);
	buffer_append_varint(scratch, kind);
	buffer_append_varint(scratch, first);
	buffer_append_varint(scratch, count);
	catalog_encode(catalog, kind, first, count, scratch);
	add_entry(out, RECORD_DEFINITIONS, scratch);
}

void record_add_ids(struct buffer *out, struct buffer *scratch, const struct report_run *run)
{
	buffer_clear(scratch);
	buffer_append_varint(scratch, run->tenant);
	buffer_append(scratch, run->prefix, sizeof run->prefix);
	buffer_append_varint(scratch, run->first);
	buffer_append_varint(scratch, run->count);
	add_entry(out, RECORD_IDS, scratch);
}

static void add_with_samples(struct buffer *out, struct buffer *scratch, enum record_kind kind,
			     const struct record_profile *profile)
{
	buffer_clear(scratch);
	buffer_append_varint(scratch, profile->tenant);
	buffer_append_varint(scratch, profile->type);
	buffer_append_varint(scratch, profile->bucket);
	buffer_append_varint(scratch, profile->series);
	buffer_append_varint(scratch, (profile->is_counted ? FLAG_COUNTED : 0) |
					      (profile->has_id ? FLAG_HAS_ID : 0));
	if (profile->has_id)
		buffer_append_varint(scratch, profile->id_number);
	buffer_append(scratch, profile->samples.at, profile->samples.length);
	add_entry(out, kind, scratch);
}

void record_add_profile(struct buffer *out, struct buffer *scratch,
			const struct record_profile *profile)
{
	add_with_samples(out, scratch, RECORD_PACKED, profile);
}

void record_add_moments(struct buffer *out, struct buffer *scratch,
			const struct record_profile *profile)
{
	add_with_samples(out, scratch, RECORD_MOMENTS, profile);
}

void record_add_spans(struct buffer *out, struct buffer *scratch,
		      const struct record_profile *profile)
{
	add_with_samples(out, scratch, RECORD_SPANS, profile);
}

void record_add_refused(struct buffer *out, struct buffer *scratch,
			const struct record_refused *refused)
{
	buffer_clear(scratch);
	buffer_append_varint(scratch, refused->tenant);
	buffer_append_varint(scratch, refused->type);
	buffer_append_varint(scratch, refused->bucket);
	buffer_append_varint(scratch, refused->host);
	buffer_append_varint(scratch, refused->reason);
	buffer_append_varint(scratch, refused->samples);
	buffer_append_varint(scratch, (refused->is_counted ? FLAG_COUNTED : 0) |
					      (refused->has_id ? FLAG_HAS_ID : 0));
	if (refused->has_id)
		buffer_append_varint(scratch, refused->id_number);
	add_entry(out, RECORD_REFUSED, scratch);
}

static void add_counts(struct buffer *out, const uint32_t *names, const uint64_t *counts,
		       unsigned count)
{
	buffer_append_varint(out, count);
	for (unsigned i = 0; i < count; i++) {
		buffer_append_varint(out, names[i]);
		buffer_append_varint(out, counts[i]);
	}
}

void record_add_counters(struct buffer *out, struct buffer *scratch,
			 const struct record_counters *counters)
{
	const struct agent_numbers *numbers = &counters->numbers;

	buffer_clear(scratch);
	buffer_append_varint(scratch, counters->tenant);
	buffer_append(scratch, counters->agent_id, sizeof counters->agent_id);
	buffer_append_varint(scratch, counters->host);
	buffer_append_varint(scratch, counters->version);
	buffer_append_varint(scratch, counters->kernel);
	buffer_append_varint(scratch, counters->bucket);
	buffer_append_varint(scratch, numbers->rate_hz);
	buffer_append_varint(scratch, numbers->seq);
	buffer_append_varint(scratch, numbers->acknowledged);
	buffer_append_varint(scratch, numbers->taken);
	buffer_append_varint(scratch, numbers->idle);
	buffer_append_varint(scratch, counters->own_samples);
	buffer_append_varint(scratch, zigzag_encode(agent_numbers_end_ms(numbers)));
	buffer_append_varint(scratch, zigzag_encode(numbers->received_ms));
	add_counts(scratch, counters->lost, numbers->lost, numbers->lost_count);
	add_counts(scratch, counters->stacks, numbers->stacks, numbers->stacks_count);
	buffer_append_varint(scratch, zigzag_encode(numbers->sent_ms));
	buffer_append_varint(scratch, zigzag_encode(numbers->duration_ms));
	buffer_append_varint(scratch, counters->reported_reason);
	add_entry(out, RECORD_COUNTERS, scratch);
}

/* --- reading --- */

static bool get_number(const uint8_t **at, const uint8_t *end, uint32_t *number)
{
	uint64_t value;

	if (!varint_read(at, end, &value) || value > UINT32_MAX)
		return false;
	*number = (uint32_t)value;
	return true;
}

static bool get_time(const uint8_t **at, const uint8_t *end, int64_t *ms)
{
	uint64_t value;

	if (!varint_read(at, end, &value))
		return false;
	*ms = zigzag_decode(value);
	return true;
}

static bool get_fixed(const uint8_t **at, const uint8_t *end, void *to, size_t length)
{
	if ((size_t)(end - *at) < length)
		return false;
	memcpy(to, *at, length);
	*at += length;
	return true;
}

static bool read_definitions(const uint8_t *at, const uint8_t *end, struct record_item *item)
{
	uint32_t kind;

	if (!get_number(&at, end, &kind) || !get_number(&at, end, &item->definitions.first) ||
	    !get_number(&at, end, &item->definitions.count))
		return false;
	item->definitions.kind = kind;
	item->definitions.bytes = (struct bytes){at, (size_t)(end - at)};
	return kind < CATALOG_KINDS;
}

static bool read_ids(const uint8_t *at, const uint8_t *end, struct report_run *run)
{
	return get_number(&at, end, &run->tenant) &&
	       get_fixed(&at, end, run->prefix, sizeof run->prefix) &&
	       get_number(&at, end, &run->first) && get_number(&at, end, &run->count);
}

static bool read_profile(const uint8_t *at, const uint8_t *end, struct record_profile *profile)
{
	uint32_t flags;

	if (!get_number(&at, end, &profile->tenant) || !get_number(&at, end, &profile->type) ||
	    !get_number(&at, end, &profile->bucket) || !get_number(&at, end, &profile->series) ||
	    !get_number(&at, end, &flags))
		return false;
	profile->is_counted = flags & FLAG_COUNTED;
	profile->has_id = flags & FLAG_HAS_ID;
	profile->id_number = 0;
	if (profile->has_id && !get_number(&at, end, &profile->id_number))
		return false;
	profile->samples = (struct bytes){at, (size_t)(end - at)};
	return true;
}

static bool read_refused(const uint8_t *at, const uint8_t *end, struct record_refused *refused)
{
	uint32_t flags;

	if (!get_number(&at, end, &refused->tenant) || !get_number(&at, end, &refused->type) ||
	    !get_number(&at, end, &refused->bucket) || !get_number(&at, end, &refused->host) ||
	    !get_number(&at, end, &refused->reason) || !varint_read(&at, end, &refused->samples) ||
	    !get_number(&at, end, &flags))
		return false;
	refused->is_counted = flags & FLAG_COUNTED;
	refused->has_id = flags & FLAG_HAS_ID;
	return !refused->has_id || get_number(&at, end, &refused->id_number);
}

static bool read_counts(const uint8_t **at, const uint8_t *end, uint32_t *names, uint64_t *counts,
			unsigned room, unsigned *count)
{
	uint64_t all;

	if (!varint_read(at, end, &all) || all > room)
		return false;
	*count = (unsigned)all;
	for (unsigned i = 0; i < *count; i++)
		if (!get_number(at, end, &names[i]) || !varint_read(at, end, &counts[i]))
			return false;
	return true;
}

static bool read_counters(const uint8_t *at, const uint8_t *end, struct record_counters *counters)
{
	struct agent_numbers *numbers = &counters->numbers;
	int64_t end_ms;
	bool ok;

	if (!get_number(&at, end, &counters->tenant) ||
	    !get_fixed(&at, end, counters->agent_id, sizeof counters->agent_id) ||
	    !get_number(&at, end, &counters->host) || !get_number(&at, end, &counters->version) ||
	    !get_number(&at, end, &counters->kernel) || !get_number(&at, end, &counters->bucket) ||
	    !get_number(&at, end, &numbers->rate_hz) || !varint_read(&at, end, &numbers->seq) ||
	    !varint_read(&at, end, &numbers->acknowledged) ||
	    !varint_read(&at, end, &numbers->taken) || !varint_read(&at, end, &numbers->idle) ||
	    !varint_read(&at, end, &counters->own_samples) || !get_time(&at, end, &end_ms) ||
	    !get_time(&at, end, &numbers->received_ms) ||
	    !read_counts(&at, end, counters->lost, numbers->lost, BATCH_LOST_REASONS,
			 &numbers->lost_count))
		return false;
	/* Servers before wrote less. */
	ok = (at == end || read_counts(&at, end, counters->stacks, numbers->stacks,
				       BATCH_STACK_RESULTS, &numbers->stacks_count)) &&
	     (at == end || get_time(&at, end, &numbers->sent_ms)) &&
	     (at == end || (get_time(&at, end, &numbers->duration_ms) &&
			    get_number(&at, end, &counters->reported_reason)));
	numbers->time_ms = (int64_t)((uint64_t)end_ms - (uint64_t)numbers->duration_ms);
	return ok;
}

static bool read_body(const uint8_t *at, const uint8_t *end, struct record_item *item)
{
	switch (item->kind) {
	case RECORD_DAY:
		return get_number(&at, end, &item->day);
	case RECORD_SECOND:
		return get_number(&at, end, &item->second) && item->second < 60;
	case RECORD_DEFINITIONS:
		return read_definitions(at, end, item);
	case RECORD_IDS:
		return read_ids(at, end, &item->ids);
	case RECORD_MOMENTS:
	case RECORD_PACKED:
	case RECORD_SPANS:
		return read_profile(at, end, &item->profile);
	case RECORD_COUNTERS:
		return read_counters(at, end, &item->counters);
	case RECORD_REFUSED:
		return read_refused(at, end, &item->refused);
	case RECORD_UNPACKED:
	case RECORD_END:
		break;
	}
	return false;
}

bool record_next(const uint8_t **at, const uint8_t *end, struct record_item *item)
{
	memset(item, 0, sizeof *item);
	while (*at < end) {
		uint64_t kind, length;
		const uint8_t *body;

		if (!varint_read(at, end, &kind) || !varint_read(at, end, &length) ||
		    length > (uint64_t)(end - *at))
			return false;
		body = *at;
		*at += length;
		if (kind > RECORD_SECOND)
			continue;
		item->kind = (enum record_kind)kind;
		return read_body(body, *at, item);
	}
	item->kind = RECORD_END;
	return true;
}
