/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows of a day's file stand for which part of the time, so that every sample counts once:
 * roll-ups where a bucket lies whole in the range and has one, and minutes elsewhere, and what was
 * folded after a roll-up was made. Where minutes are kept for a shorter time than roll-ups they are
 * not looked at: the range grows to whole buckets there. */
#include "symbol-server/store/sqlite/answers/view.h"

#include <string.h>

#include "symbol-server/store/sqlite/days/hours.h"
#include "symbol-server/store/sqlite/rollups/rollup.h"

void view_wants(struct view *view, const struct samples_query *query)
{
	struct rollup_wants wants = rollup_wants_of(query);

	wants.sums &= !view->store->no_rollups;
	wants.hours &= wants.sums;
	view->wants = wants;
	view->wants_threads = query->by_thread || query->thread_wanted;
	view->level = wants.by_instance ? DAY_10M : DAY_10M_FLEET;
	view->kept = rollup_kept_at(view->store->keep_ms, &view->store->days.aging, view->now_ms);
}

bool view_has_hours_only(const struct view *view, int64_t day)
{
	return rollup_has_hours_only(&view->kept, (day + 1) * day_ms);
}

struct choice {
	struct view *view;
	struct view_day *day;
	struct day_mark marks[ROLLUPS_PER_DAY];
	bool is_rolled[ROLLUPS_PER_DAY]; /* chosen */
	struct view_parts raw, rolled;
};

static bool keep_mark(void *context, const struct day_mark *mark)
{
	struct choice *choice = context;

	if (mark->bucket < MINUTES_PER_DAY)
		choice->marks[mark->bucket / ROLLUP_MINUTES] = *mark;
	return true;
}

static void add_part(struct view_parts *parts, enum day_level level, uint32_t from, uint32_t until,
		     uint64_t above)
{
	struct view_part *last = parts->count ? &parts->at[parts->count - 1] : NULL;

	if (last && last->until == from && last->level == level && last->above == above)
		last->until = until;
	else
		parts->at[parts->count++] = (struct view_part){level, from, until, above};
}

static int64_t minute_ms(const struct choice *choice, uint32_t minute)
{
	return choice->day->day->day * day_ms + minute * (int64_t)SAMPLES_BUCKET_MS;
}

/* The first minute that is kept. */
static uint32_t kept_minute(const struct choice *choice, uint32_t from, uint32_t until)
{
	int64_t kept_ms = choice->view->kept.from_ms[SAMPLES_RAW];
	int64_t first_ms = rollup_first_kept_ms(minute_ms(choice, from), minute_ms(choice, until),
						kept_ms, SAMPLES_BUCKET_MS);

	return (uint32_t)((first_ms - minute_ms(choice, 0)) / SAMPLES_BUCKET_MS);
}

static void choose_bucket(struct choice *choice, unsigned number)
{
	struct view_day *day = choice->day;
	const struct day_mark *mark = &choice->marks[number];
	uint32_t start = number * ROLLUP_MINUTES, end = start + ROLLUP_MINUTES;
	uint32_t from = day->from > start ? day->from : start;
	uint32_t until = day->until < end ? day->until : end;
	const struct rollup_kept *kept = &choice->view->kept;
	const struct rollup_bucket bucket = {
		.start_ms = minute_ms(choice, start),
		.is_whole = from == start && until == end,
		.is_made = mark->through,
		.has_minutes = !day->is_reduced &&
			       minute_ms(choice, from) >= kept->from_ms[SAMPLES_RAW],
	};
	uint64_t above = day->hours ? day->hours[number / 6] : 0;

	if (above) { /* the rest is among the month's hours */
		choice->is_rolled[number] = true;
		if (mark->newest > above)
			add_part(&choice->rolled, choice->view->level, start, end, above);
		add_part(&choice->raw, DAY_RAW, start, end,
			 mark->through > above ? mark->through : above);
		return;
	}
	if (!rollup_is_taken(&choice->view->wants, kept, &bucket)) {
		from = kept_minute(choice, from, until);
		if (from < until)
			add_part(&choice->raw, DAY_RAW, from, until, 0);
		return;
	}
	choice->is_rolled[number] = true;
	if (mark->through)
		add_part(&choice->rolled, choice->view->level, start, end, 0);
	if (mark->newest > mark->through || !mark->through)
		add_part(&choice->raw, DAY_RAW, start, end, mark->through);
}

/* The accounts of an hour are of whichever of its buckets have roll-ups. */
static void choose_accounts(struct choice *choice, const struct view_parts *raw)
{
	struct view_parts *to = &choice->day->accounts;

	for (unsigned i = 0; i < raw->count; i++)
		to->at[to->count++] = raw->at[i];
	for (unsigned hour = 0; hour < ROLLUPS_PER_DAY; hour += 6) {
		const bool *is_rolled = &choice->is_rolled[hour];
		bool is_whole = is_rolled[0] && is_rolled[1] && is_rolled[2] && is_rolled[3] &&
				is_rolled[4] && is_rolled[5];

		uint64_t above = choice->day->hours ? choice->day->hours[hour / 6] : 0;

		is_whole = is_whole && !above;
		if (is_whole)
			add_part(to, DAY_1H, hour * ROLLUP_MINUTES, (hour + 6) * ROLLUP_MINUTES, 0);
		for (unsigned i = 0; i < 6 && !is_whole; i++)
			if (is_rolled[i])
				add_part(to, DAY_10M, (hour + i) * ROLLUP_MINUTES,
					 (hour + i + 1) * ROLLUP_MINUTES, above);
	}
}

static bool make_parts(struct choice *choice)
{
	struct arena *arena = &choice->view->arena;
	struct view_day *day = choice->day;
	unsigned count;

	choice->raw.at = arena_array(arena, ROLLUPS_PER_DAY, sizeof *choice->raw.at);
	choice->rolled.at = arena_array(arena, ROLLUPS_PER_DAY, sizeof *choice->raw.at);
	if (arena->failed)
		return false;
	for (unsigned i = day->from / ROLLUP_MINUTES; i * ROLLUP_MINUTES < day->until; i++)
		choose_bucket(choice, i);
	count = choice->raw.count + choice->rolled.count;
	day->samples.at = arena_array(arena, count, sizeof *day->samples.at);
	day->accounts.at = arena_array(arena, choice->raw.count + ROLLUPS_PER_DAY,
				       sizeof *day->accounts.at);
	return !arena->failed;
}

/* Sums up to that time are all there is. */
static void lose_threads(struct view *view, int64_t until_ms)
{
	if (view->wants_threads && until_ms > view->threads_from_ms)
		view->threads_from_ms = until_ms < view->until_ms ? until_ms : view->until_ms;
}

static void widen(struct choice *choice)
{
	struct view *view = choice->view;
	struct view_day *day = choice->day;
	unsigned first = day->from / ROLLUP_MINUTES, last = (day->until - 1) / ROLLUP_MINUTES;

	if (choice->is_rolled[first])
		day->from = first * ROLLUP_MINUTES;
	if (choice->is_rolled[last])
		day->until = (last + 1) * ROLLUP_MINUTES;
	if (minute_ms(choice, day->from) < view->from_ms)
		view->from_ms = minute_ms(choice, day->from);
	if (minute_ms(choice, day->until) > view->until_ms)
		view->until_ms = minute_ms(choice, day->until);
	for (unsigned i = 0; i < choice->rolled.count; i++)
		lose_threads(view, minute_ms(choice, choice->rolled.at[i].until));
	if (choice->rolled.count && view->resolution_ms < ROLLUP_BUCKET_MS)
		view->resolution_ms = ROLLUP_BUCKET_MS;
}

bool view_choose(struct view *view, struct view_day *day, struct error *err)
{
	struct choice choice = {.view = view, .day = day};

	if (day->from >= day->until)
		return true;
	if (day->reader && !day_reader_marks(day->reader, keep_mark, &choice, err))
		return false;
	if (!make_parts(&choice))
		return error_set(err, ERROR_LIMIT, "the time range has too much in it");
	choose_accounts(&choice, &choice.raw);
	memcpy(day->samples.at, choice.rolled.at, choice.rolled.count * sizeof *choice.rolled.at);
	memcpy(day->samples.at + choice.rolled.count, choice.raw.at,
	       choice.raw.count * sizeof *choice.raw.at);
	day->samples.count = choice.rolled.count + choice.raw.count;
	widen(&choice);
	return true;
}

/* --- hours --- */

static bool keep_hour(void *context, const struct day_mark *mark)
{
	struct view_day *month = context;

	if (mark->bucket / 60 < HOURS_MAX)
		month->month_hours[mark->bucket / 60] = mark->through;
	return true;
}

static struct view_day *find_day(struct view *view, int64_t number)
{
	for (unsigned i = view->month_count; i < view->day_count; i++)
		if (view->days[i].day->day == number)
			return &view->days[i];
	return NULL;
}

/* The hours of one day, as far as the range goes and they are kept. */
static void choose_day_hours(struct view *view, struct view_day *month, int64_t number)
{
	int64_t start_ms = number * day_ms;
	int64_t from_ms = view->from_ms > start_ms ? view->from_ms : start_ms;
	int64_t until_ms = view->until_ms < start_ms + day_ms ? view->until_ms : start_ms + day_ms;
	uint32_t offset = (uint32_t)(number - month->day->day) * HOURS_PER_DAY;
	struct view_day *day = find_day(view, number);

	from_ms = rollup_first_kept_ms(from_ms, until_ms, view->kept.from_ms[SAMPLES_1H], hour_ms);
	for (int64_t at = from_ms; at < until_ms; at += hour_ms) {
		uint32_t hour = offset + (uint32_t)((at - start_ms) / hour_ms);

		if (!month->month_hours[hour])
			continue;
		add_part(&month->samples, view->level + 2, hour * 60, hour * 60 + 60, 0);
		add_part(&month->accounts, DAY_1H, hour * 60, hour * 60 + 60, 0);
		view->resolution_ms = hour_ms;
		lose_threads(view, at + hour_ms);
	}
	if (day)
		day->hours = month->month_hours + offset;
}

static bool is_whole(const struct view *view, const struct view_day *month, int64_t number)
{
	const uint64_t *hours = month->month_hours +
				(size_t)(number - month->day->day) * HOURS_PER_DAY;

	if (!view->wants.hours || view->from_ms > number * day_ms ||
	    view->until_ms < (number + 1) * day_ms)
		return false;
	for (unsigned i = 0; i < HOURS_PER_DAY; i++)
		if (!hours[i])
			return false;
	return true;
}

static bool choose_month(struct view *view, struct view_day *month, struct error *err)
{
	int64_t number = month->day->day, end = month_end(month->day->day);

	month->month_hours = arena_array(&view->arena, HOURS_MAX, sizeof *month->month_hours);
	month->samples.at = arena_array(&view->arena, HOURS_MAX, sizeof *month->samples.at);
	month->accounts.at = arena_array(&view->arena, HOURS_MAX, sizeof *month->accounts.at);
	if (view->arena.failed)
		return error_set(err, ERROR_LIMIT, "the time range has too much in it");
	if (!month->reader)
		return true; /* damaged, set aside */
	if (!day_reader_marks(month->reader, keep_hour, month, err))
		return false;
	for (; number < end; number++)
		if (number * day_ms < view->until_ms && (number + 1) * day_ms > view->from_ms &&
		    (is_whole(view, month, number) || view_has_hours_only(view, number)))
			choose_day_hours(view, month, number);
	return true;
}

bool view_choose_hours(struct view *view, struct error *err)
{
	for (unsigned i = 0; i < view->month_count; i++)
		if (!choose_month(view, &view->days[i], err))
			return false;
	return true;
}
