/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/clickhouse/parts.h"

#include <stdlib.h>

#include "symbol-server/store/clickhouse/scope.h"
#include "symbol-server/store/clickhouse/marks.h"

struct choice {
	struct clickhouse_samples *store;
	struct parts *parts;
	const struct rollup_wants *wants;
	struct rollup_kept kept;
	struct marks marks;
	bool is_full;
	uint32_t least_s; /* shorter runs of sums between minutes are read as minutes */
};

struct rollup_kept clickhouse_kept(const struct clickhouse_samples *store, int64_t now_ms)
{
	return rollup_kept_at(store->keep_ms, &store->aging, now_ms);
}

static bool has_hours_only(const struct choice *choice, uint32_t time)
{
	return rollup_has_hours_only(&choice->kept, (time / DAY_S + 1ll) * day_ms);
}

static uint32_t round_up(uint32_t time, uint32_t to)
{
	return (time + to - 1) / to * to;
}

static void widen_to_hours(struct choice *choice)
{
	struct parts *parts = choice->parts;

	if (has_hours_only(choice, parts->from))
		parts->from = parts->from / HOUR_S * HOUR_S;
	if (parts->until > parts->from && has_hours_only(choice, parts->until - 1))
		parts->until = round_up(parts->until, HOUR_S);
}

/* Whether the day of that time has anything. */
static bool has_day(const struct choice *choice, uint32_t time)
{
	struct clickhouse_samples *store = choice->store;
	uint32_t day = time / DAY_S;
	bool has;

	pthread_mutex_lock(&store->lock);
	has = day < DAY_NUMBERS && store->days[day / 8] & 1 << day % 8;
	pthread_mutex_unlock(&store->lock);
	if (has)
		return true;
	for (size_t i = 0; i < choice->marks.bucket_count; i++)
		if (choice->marks.buckets[i].start / DAY_S == time / DAY_S)
			return true;
	return false;
}

/* Its minutes are not kept any more, and sums are. */
static bool is_old(const struct choice *choice, uint32_t time)
{
	int64_t start_ms = time / BUCKET_S * BUCKET_S * 1000ll;

	return start_ms < choice->kept.from_ms[SAMPLES_RAW] &&
	       start_ms >= choice->kept.from_ms[SAMPLES_1H];
}

static void widen_to_buckets(struct choice *choice)
{
	struct parts *parts = choice->parts;

	if (parts->until == parts->from)
		return;
	if (is_old(choice, parts->from) && has_day(choice, parts->from))
		parts->from = parts->from / BUCKET_S * BUCKET_S;
	if (is_old(choice, parts->until - 1) && has_day(choice, parts->until - 1))
		parts->until = round_up(parts->until, BUCKET_S);
}

static void add_rolled(struct choice *choice, uint32_t start, uint32_t length, uint64_t version,
		       bool is_alone)
{
	struct parts *parts = choice->parts;

	if (!SCOPE_GROW(parts->rolled, parts->rolled_count, parts->rolled_room)) {
		choice->is_full = true;
		return;
	}
	parts->rolled[parts->rolled_count++] = (struct rolled){start, length, version, is_alone};
}

static bool is_inside(const struct parts *parts, uint32_t start, uint32_t length)
{
	return start >= parts->from && start + length <= parts->until;
}

/* One that was changed since it was made stands for nothing. */
static void choose_bucket(struct choice *choice, const struct mark *mark)
{
	const struct rollup_bucket bucket = {
		.start_ms = mark->start * 1000ll,
		.is_whole = is_inside(choice->parts, mark->start, BUCKET_S),
		.is_made = mark_is_clean(mark),
		.has_minutes = mark->start * 1000ll >= choice->kept.from_ms[SAMPLES_RAW],
	};

	if (bucket.is_made && bucket.is_whole &&
	    rollup_is_taken(choice->wants, &choice->kept, &bucket))
		add_rolled(choice, mark->start, BUCKET_S, mark->version, !bucket.has_minutes);
}

static void choose_sums(struct choice *choice)
{
	const struct marks *marks = &choice->marks;
	size_t at = 0;

	for (size_t i = 0; i < marks->hour_count; i++) {
		const struct mark *hour = &marks->hours[i];
		bool is_alone = has_hours_only(choice, hour->start);
		bool is_taken = mark_is_clean(hour) &&
				hour->start * 1000ll >= choice->kept.from_ms[SAMPLES_1H] &&
				is_inside(choice->parts, hour->start, HOUR_S) &&
				(choice->wants->hours || is_alone);

		if (is_taken)
			add_rolled(choice, hour->start, HOUR_S, hour->version, is_alone);
		for (; at < marks->bucket_count && marks->buckets[at].start < hour->start + HOUR_S;
		     at++)
			if (!is_taken)
				choose_bucket(choice, &marks->buckets[at]);
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
static void choose_minutes(struct choice *choice)
{
	struct parts *parts = choice->parts;
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
		if (!is_alone && end - start < choice->least_s)
			continue;
		add_span(parts, cursor, start);
		cursor = end;
		for (size_t k = i; k < next; k++)
			parts->rolled[kept++] = parts->rolled[k];
	}
	parts->rolled_count = kept;
	add_span(parts, cursor, parts->until);
}

static void set_kept(struct choice *choice)
{
	const int64_t *from_ms = choice->kept.from_ms;
	struct parts *parts = choice->parts;
	uint32_t unit_s = SAMPLES_BUCKET_MS / 1000;

	if (from_ms[SAMPLES_RAW] > from_ms[SAMPLES_1H])
		unit_s = has_hours_only(choice, (uint32_t)(from_ms[SAMPLES_1H] / 1000)) ? HOUR_S
											: BUCKET_S;
	parts->kept_from = (uint32_t)(rollup_first_kept_ms(parts->from * 1000ll,
							   parts->until * 1000ll,
							   from_ms[SAMPLES_1H], unit_s * 1000ll) /
				      1000);
}

static void set_resolution(struct parts *parts)
{
	parts->resolution_s = SAMPLES_BUCKET_MS / 1000;
	for (size_t i = 0; i < parts->rolled_count; i++)
		if (parts->rolled[i].length > parts->resolution_s)
			parts->resolution_s = parts->rolled[i].length;
}

bool parts_choose(struct clickhouse_samples *store, int64_t now_ms, uint32_t from, uint32_t until,
		  const struct rollup_wants *wants, struct parts *parts, struct error *err)
{
	struct choice choice = {
		.store = store,
		.parts = parts,
		.wants = wants,
		.kept = clickhouse_kept(store, now_ms),
	};

	*parts = (struct parts){.from = from, .until = until};
	widen_to_hours(&choice);
	if (!marks_read(store->client, parts->from / DAY_S * DAY_S,
			parts->until > UINT32_MAX - HOUR_S ? UINT32_MAX
							   : round_up(parts->until, HOUR_S),
			&choice.marks, err))
		return false;
	widen_to_buckets(&choice);
	set_kept(&choice);
	choose_sums(&choice);
	do
		choose_minutes(&choice);
	while (parts->raw_count > SPANS_MAX &&
	       (choice.least_s = choice.least_s ? choice.least_s * 2 : HOUR_S));
	marks_release(&choice.marks);
	set_resolution(parts);
	parts->has_late = rollup_outlives_minutes(store->keep_ms) &&
			  parts->from <
				  choice.kept.from_ms[SAMPLES_RAW] / 1000 + LATE_MARGIN_S + DAY_S;
	if (!choice.is_full)
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
