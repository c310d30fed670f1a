/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/recent.h"

#include <stdlib.h>

enum { ENTRY_BYTES_MAX = RECENT_HOST_BYTES_MAX + 64 };

static const int64_t minute_ms = 60000;

static int64_t minute_of(const struct cell_key *key)
{
	return key->day * INT64_C(1440) + key->bucket;
}

void recent_miss(struct recent *recent, int64_t minute)
{
	if (recent->whole_from <= minute)
		recent->whole_from = minute + 1;
}

static void drop(struct recent *recent, unsigned place)
{
	struct recent_minute *minute = recent->places[place];

	if (!minute)
		return;
	recent_miss(recent, minute->minute);
	recent->bytes -= memory_table_bytes(minute->table) + sizeof *minute;
	memory_table_release(minute->table);
	free(minute);
	recent->places[place] = NULL;
}

void recent_age(struct recent *recent, int64_t now_ms)
{
	for (unsigned i = 0; i < RECENT_PLACES; i++)
		if (recent->places[i] &&
		    recent->places[i]->minute < now_ms / minute_ms - RECENT_MINUTES)
			drop(recent, i);
}

void recent_forget(struct recent *recent, int64_t now_ms)
{
	recent_miss(recent, now_ms / minute_ms);
	recent_release(recent);
}

void recent_init(struct recent *recent)
{
	*recent = (struct recent){0};
	buffer_init(&recent->entry, ENTRY_BYTES_MAX);
}

void recent_release(struct recent *recent)
{
	for (unsigned i = 0; i < RECENT_PLACES; i++)
		drop(recent, i);
	buffer_release(&recent->entry);
}

bool recent_has(const struct recent *recent, int64_t now_ms, int64_t from_ms, int64_t until_ms)
{
	int64_t from = from_ms / minute_ms;

	return from >= recent->whole_from && from >= now_ms / minute_ms - RECENT_MINUTES &&
	       until_ms > from_ms;
}

/* NULL: the minute is not kept whole. */
static struct recent_minute *take(struct recent *recent, int64_t now_ms, int64_t number)
{
	unsigned place = (unsigned)(number % RECENT_PLACES);
	struct recent_minute *minute = recent->places[place];

	if (number < recent->whole_from)
		return NULL;
	if (minute && minute->minute == number)
		return minute;
	recent_age(recent, now_ms);
	minute = recent->places[place];
	/* The clock was set, if there is one: the later minute stays. */
	if (number < now_ms / minute_ms - RECENT_MINUTES || (minute && minute->minute > number)) {
		recent_miss(recent, number);
		return NULL;
	}
	drop(recent, place);
	minute = calloc(1, sizeof *minute);
	if (minute)
		minute->table = memory_table_new(0);
	if (!minute || !minute->table) {
		free(minute);
		recent_miss(recent, number);
		return NULL;
	}
	minute->minute = number;
	recent->bytes += memory_table_bytes(minute->table) + sizeof *minute;
	recent->places[place] = minute;
	return minute;
}

/* The oldest minutes go, and with them the one that is being filled when it is alone too large. */
static void make_room(struct recent *recent)
{
	while (recent->bytes > RECENT_BYTES_MAX) {
		unsigned oldest = RECENT_PLACES;

		for (unsigned i = 0; i < RECENT_PLACES; i++)
			if (recent->places[i] &&
			    (oldest == RECENT_PLACES ||
			     recent->places[i]->minute < recent->places[oldest]->minute))
				oldest = i;
		drop(recent, oldest);
	}
}

/* What the entry holds. */
static void append(struct recent *recent, struct recent_minute *minute, const struct cell_key *key,
		   enum recent_content content)
{
	size_t before = memory_table_bytes(minute->table);
	struct cell_key of = *key;
	struct memory_cell *cell;

	of.series = content;
	cell = memory_table_cell(minute->table, &of);
	if (!cell || recent->entry.failed ||
	    !memory_cell_append(minute->table, cell, recent->entry.bytes,
				(uint32_t)recent->entry.length))
		recent_miss(recent, minute->minute);
	recent->bytes += memory_table_bytes(minute->table) - before;
	make_room(recent);
}

void recent_add(struct recent *recent, int64_t now_ms, const struct cell_key *key, uint32_t host,
		const struct recent_row *row)
{
	struct recent_minute *minute = take(recent, now_ms, minute_of(key));
	struct buffer *entry = &recent->entry;
	uint32_t *used;

	if (!minute)
		return;
	used = &minute->host_bytes[host % RECENT_HOSTS];
	buffer_clear(entry);
	buffer_append_varint(entry, row->series);
	if (*used + row->packed.length > RECENT_HOST_BYTES_MAX) {
		append(recent, minute, key, RECENT_CUT);
		return;
	}
	buffer_append_varint(entry, row->samples);
	buffer_append_varint(entry, row->value);
	buffer_append_varint(entry, row->packed.length);
	buffer_append(entry, row->packed.at, row->packed.length);
	*used += (uint32_t)entry->length;
	append(recent, minute, key, RECENT_SAMPLES);
}

void recent_add_account(struct recent *recent, int64_t now_ms, const struct cell_key *key,
			const struct bytes *account)
{
	struct recent_minute *minute = take(recent, now_ms, minute_of(key));

	if (!minute)
		return;
	buffer_clear(&recent->entry);
	buffer_append(&recent->entry, account->at, account->length);
	append(recent, minute, key, RECENT_ACCOUNTS);
}

bool recent_each(const uint8_t *at, size_t length, recent_row_fn *fn, void *context)
{
	const uint8_t *end = length ? at + length : at;

	while (at < end) {
		uint64_t series, bytes;
		struct recent_row row;

		if (!varint_read(&at, end, &series) || !varint_read(&at, end, &row.samples) ||
		    !varint_read(&at, end, &row.value) || !varint_read(&at, end, &bytes) ||
		    bytes > (uint64_t)(end - at))
			return false;
		row.series = (uint32_t)series;
		row.packed = (struct bytes){at, (size_t)bytes};
		at += bytes;
		if (!fn(context, &row))
			return false;
	}
	return true;
}
