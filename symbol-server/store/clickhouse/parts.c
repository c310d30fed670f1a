/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/clickhouse/parts.h"

#include <stdlib.h>

#include "symbol-server/store/clickhouse/asking.h"
#include "symbol-server/store/clickhouse/marks.h"

struct choosing {
	struct clickhouse_samples *store;
	struct parts *parts;
	const struct parts_wanted *wanted;
	struct marks marks;
	uint32_t raw_from, tens_from, hours_from; /* kept, unix seconds, rounded up */
	bool wants_hours, is_full;
	uint32_t least_s; /* shorter runs of sums between minutes are read as minutes */
};

int64_t clickhouse_kept_from_ms(const struct clickhouse_samples *store,
				enum samples_resolution resolution, int64_t now_ms)
{
	int64_t keep_ms = store->keep_ms[resolution];
	int64_t then_ms = now_ms - __atomic_load_n(&store->aging.behind_ms, __ATOMIC_RELAXED);

	while (!keep_ms && resolution > SAMPLES_RAW)
		keep_ms = store->keep_ms[--resolution];
	return keep_ms && keep_ms < then_ms ? then_ms - keep_ms : 0;
}

bool clickhouse_keeps_sums(const struct clickhouse_samples *store)
{
	int64_t raw = store->keep_ms[SAMPLES_RAW];

	return raw && (store->keep_ms[SAMPLES_10M] > raw || store->keep_ms[SAMPLES_1H] > raw);
}

static bool has_hours_only(const struct choosing *choosing, uint32_t time)
{
	return (time / DAY_S + 1) * DAY_S <= choosing->tens_from &&
	       choosing->hours_from < choosing->tens_from;
}

static uint32_t round_up(uint32_t time, uint32_t to)
{
	return (time + to - 1) / to * to;
}

static void widen_to_hours(struct choosing *choosing)
{
	struct parts *parts = choosing->parts;

	if (has_hours_only(choosing, parts->from))
		parts->from = parts->from / HOUR_S * HOUR_S;
	if (parts->until > parts->from && has_hours_only(choosing, parts->until - 1))
		parts->until = round_up(parts->until, HOUR_S);
}

/* Whether the day of that time has anything. */
static bool has_day(const struct choosing *choosing, uint32_t time)
{
	struct clickhouse_samples *store = choosing->store;
	uint32_t day = time / DAY_S;
	bool has;

	pthread_mutex_lock(&store->lock);
	has = day < DAY_NUMBERS && store->days[day / 8] & 1 << day % 8;
	pthread_mutex_unlock(&store->lock);
	if (has)
		return true;
	for (size_t i = 0; i < choosing->marks.bucket_count; i++)
		if (choosing->marks.buckets[i].start / DAY_S == time / DAY_S)
			return true;
	return false;
}

static bool is_old(const struct choosing *choosing, uint32_t time)
{
	uint32_t start = time / BUCKET_S * BUCKET_S;

	return start < choosing->raw_from && start >= choosing->hours_from;
}

static void widen_to_buckets(struct choosing *choosing)
{
	struct parts *parts = choosing->parts;

	if (parts->until == parts->from)
		return;
	if (is_old(choosing, parts->from) && has_day(choosing, parts->from))
		parts->from = parts->from / BUCKET_S * BUCKET_S;
	if (is_old(choosing, parts->until - 1) && has_day(choosing, parts->until - 1))
		parts->until = round_up(parts->until, BUCKET_S);
}

static void add_rolled(struct choosing *choosing, uint32_t start, uint32_t length, uint64_t version,
		       bool is_alone)
{
	struct parts *parts = choosing->parts;

	if (!asking_grow((void **)&parts->rolled, parts->rolled_count, &parts->rolled_room,
			 sizeof *parts->rolled)) {
		choosing->is_full = true;
		return;
	}
	parts->rolled[parts->rolled_count++] = (struct rolled){start, length, version, is_alone};
}

static bool is_inside(const struct parts *parts, uint32_t start, uint32_t length)
{
	return start >= parts->from && start + length <= parts->until;
}

static void choose_bucket(struct choosing *choosing, const struct mark *mark)
{
	bool is_alone = is_old(choosing, mark->start);
	/* Sums of a coarser step than is asked for are taken only where there is nothing else. */
	bool may = choosing->wanted->sums && choosing->wanted->step_s % BUCKET_S == 0;

	if (mark_is_clean(mark) && is_inside(choosing->parts, mark->start, BUCKET_S) &&
	    mark->start >= choosing->hours_from && (is_alone || may))
		add_rolled(choosing, mark->start, BUCKET_S, mark->version, is_alone);
}

static void choose_sums(struct choosing *choosing)
{
	const struct marks *marks = &choosing->marks;
	size_t at = 0;

	for (size_t i = 0; i < marks->hour_count; i++) {
		const struct mark *hour = &marks->hours[i];
		bool is_alone = has_hours_only(choosing, hour->start);
		bool is_taken = mark_is_clean(hour) && hour->start >= choosing->hours_from &&
				is_inside(choosing->parts, hour->start, HOUR_S) &&
				(choosing->wants_hours || is_alone);

		if (is_taken)
			add_rolled(choosing, hour->start, HOUR_S, hour->version, is_alone);
		for (; at < marks->bucket_count && marks->buckets[at].start < hour->start + HOUR_S;
		     at++)
			if (!is_taken)
				choose_bucket(choosing, &marks->buckets[at]);
	}
}

static void add_span(struct parts *parts, uint32_t from, uint32_t until)
{
	if (from < parts->kept_from)
		from = parts->kept_from;
	if (from < until && parts->raw_count <= SPANS_MAX)
		parts->raw[parts->raw_count++] = (struct span){from, until};
}

/* The rest of the range; runs of sums shorter than least_s go to the minutes around them. */
static void choose_minutes(struct choosing *choosing)
{
	struct parts *parts = choosing->parts;
	uint32_t cursor = parts->from;
	size_t kept = 0, next;

	parts->raw_count = 0;
	for (size_t i = 0; i < parts->rolled_count; i = next) {
		uint32_t start = parts->rolled[i].start, end = start;
		bool is_alone = false;

		for (next = i; next < parts->rolled_count && parts->rolled[next].start == end;
		     next++) {
			is_alone |= parts->rolled[next].is_alone;
			end += parts->rolled[next].length;
		}
		if (!is_alone && end - start < choosing->least_s)
			continue;
		add_span(parts, cursor, start);
		cursor = end;
		for (size_t k = i; k < next; k++)
			parts->rolled[kept++] = parts->rolled[k];
	}
	parts->rolled_count = kept;
	add_span(parts, cursor, parts->until);
}

static void set_kept(struct choosing *choosing)
{
	struct parts *parts = choosing->parts;
	uint32_t kept = choosing->hours_from;

	if (choosing->raw_from > choosing->hours_from)
		kept = round_up(kept, has_hours_only(choosing, kept) ? HOUR_S : BUCKET_S);
	parts->kept_from = parts->from > kept ? parts->from : kept;
	if (parts->kept_from > parts->until)
		parts->kept_from = parts->until;
}

static void set_resolution(struct parts *parts)
{
	parts->resolution_s = SAMPLES_BUCKET_MS / 1000;
	for (size_t i = 0; i < parts->rolled_count; i++)
		if (parts->rolled[i].length > parts->resolution_s)
			parts->resolution_s = parts->rolled[i].length;
}

static uint32_t kept_s(const struct clickhouse_samples *store, enum samples_resolution resolution,
		       int64_t now_ms)
{
	int64_t kept_ms = clickhouse_kept_from_ms(store, resolution, now_ms);

	return (uint32_t)((kept_ms + SAMPLES_BUCKET_MS - 1) / SAMPLES_BUCKET_MS * 60);
}

bool parts_choose(struct clickhouse_samples *store, int64_t now_ms, uint32_t from, uint32_t until,
		  const struct parts_wanted *wanted, struct parts *parts, struct error *err)
{
	struct choosing choosing = {
		.store = store,
		.parts = parts,
		.wanted = wanted,
		.raw_from = kept_s(store, SAMPLES_RAW, now_ms),
		.tens_from = kept_s(store, SAMPLES_10M, now_ms),
		.hours_from = kept_s(store, SAMPLES_1H, now_ms),
		.wants_hours = wanted->sums && until - from >= HOURS_FROM_S &&
			       wanted->step_s % HOUR_S == 0,
		.least_s = 0,
	};

	*parts = (struct parts){.from = from, .until = until};
	widen_to_hours(&choosing);
	if (!marks_read(store->client, parts->from / DAY_S * DAY_S,
			parts->until > UINT32_MAX - HOUR_S ? UINT32_MAX
							   : round_up(parts->until, HOUR_S),
			&choosing.marks, err))
		return false;
	widen_to_buckets(&choosing);
	set_kept(&choosing);
	choose_sums(&choosing);
	do
		choose_minutes(&choosing);
	while (parts->raw_count > SPANS_MAX &&
	       (choosing.least_s = choosing.least_s ? choosing.least_s * 2 : HOUR_S));
	marks_release(&choosing.marks);
	set_resolution(parts);
	parts->has_late = clickhouse_keeps_sums(store) &&
			  parts->from < choosing.raw_from + LATE_MARGIN_S + DAY_S;
	if (!choosing.is_full)
		return true;
	parts_release(parts);
	return error_set(err, ERROR_LIMIT, "the time range has too much in it");
}

void parts_release(struct parts *parts)
{
	free(parts->rolled);
	parts->rolled = NULL;
	parts->rolled_count = parts->rolled_room = 0;
}
