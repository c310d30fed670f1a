/* SPDX-License-Identifier: Apache-2.0 */
/* samples_timeline(): the sums that rows carry beside their packed stacks, added up by step and by
 * the labels that are asked for. */
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "symbol-server/store/rules/answerable.h"
#include "symbol-server/store/sqlite/answers/query_run.h"
#include "symbol-server/store/rules/series_labels.h"

enum { TIMELINE_BYTES_MAX = 256 << 20, ATTEMPTS = 3, ASK_ROWS = 64 };

struct timeline_run {
	struct query_run run; /* view, query, strings; its result has the hosts */
	struct samples_timeline *timeline;
	uint32_t **series; /* of each day: number → series of the time line + 1; 0: not met */
	struct hash_table series_index, point_index, host_index;
	size_t series_room, point_room, host_room;
	struct series_labels *hosts; /* one label each: the hosts that rows were met of */
	uint32_t host_count;
	struct error *err;
	bool is_full, is_over; /* over: a limit, as err says */
};

static const char *const host_name[] = {"host"};

/* --- series: the labels asked for, all of them when none are named --- */

static bool copy_labels(struct samples_timeline *timeline, const struct series_labels *from,
			struct series_labels *to)
{
	struct arena *arena = &timeline->arena;
	const char **names = arena_array(arena, from->count, sizeof *names);
	const char **values = arena_array(arena, from->count, sizeof *values);

	for (uint32_t i = 0; names && values && i < from->count; i++) {
		names[i] = arena_text(arena, from->names[i], strlen(from->names[i]));
		values[i] = arena_text(arena, from->values[i], strlen(from->values[i]));
	}
	*to = (struct series_labels){names, values, from->count};
	return !arena->failed;
}

/* The list's number of these labels; added when they are new. False: no room. */
static bool take_labels(struct timeline_run *at, struct hash_table *index,
			struct series_labels **list, uint32_t *count, size_t *room,
			const struct series_labels *labels, uint32_t *number)
{
	uint64_t hash = series_labels_hash(labels);

	HASH_TABLE_EACH(i, index, hash)
		if (series_labels_equal(&(*list)[i], labels)) {
			*number = i;
			return true;
		}
	if (!ARRAY_GROW(*list, *count, *room) ||
	    !copy_labels(at->timeline, labels, &(*list)[*count]) ||
	    !hash_table_add(index, hash, *count))
		return false;
	*number = (*count)++;
	return true;
}

static bool map_series(struct timeline_run *at, const struct view_day *day, uint32_t number,
		       uint32_t *mapped)
{
	uint32_t *known = &at->series[day - at->run.view.days][number], unused;
	const struct catalog_series *from = catalog_series(day->catalog, number);
	const char *names[SAMPLES_LABELS_MAX], *values[SAMPLES_LABELS_MAX];
	struct series_labels labels = {names, values, 0};
	struct samples_timeline *timeline = at->timeline;

	for (uint32_t i = 0; !*known && i < from->label_count; i++) {
		const char *name = catalog_string(day->catalog, from->labels[2 * i])->text;
		const char *value = catalog_string(day->catalog, from->labels[2 * i + 1])->text;
		struct series_labels host = {host_name, &value, 1};

		if (!strcmp(name, *host_name) &&
		    !take_labels(at, &at->host_index, &at->hosts, &at->host_count, &at->host_room,
				 &host, &unused))
			return false;
		if (!samples_query_asks(at->run.query, name))
			continue;
		names[labels.count] = name;
		values[labels.count++] = value;
	}
	if (!*known) {
		if (!take_labels(at, &at->series_index, &timeline->series, &timeline->series_count,
				 &at->series_room, &labels, mapped))
			return false;
		*known = *mapped + 1;
	}
	*mapped = *known - 1;
	return true;
}

/* --- points --- */

static bool add_point(struct timeline_run *at, uint32_t series, int64_t time_ms,
		      const struct view_row *row)
{
	struct samples_timeline *timeline = at->timeline;
	uint64_t hash = hash_word((uint64_t)time_ms, series);

	HASH_TABLE_EACH(i, &at->point_index, hash) {
		struct timeline_point *point = &timeline->points[i];

		if (point->series != series || point->time_ms != time_ms)
			continue;
		point->samples += row->samples;
		point->value += row->value;
		return true;
	}
	if (timeline->point_count * sizeof *timeline->points >= TIMELINE_BYTES_MAX ||
	    !ARRAY_GROW(timeline->points, timeline->point_count, at->point_room) ||
	    !hash_table_add(&at->point_index, hash, (uint32_t)timeline->point_count))
		return false;
	timeline->points[timeline->point_count++] =
		(struct timeline_point){series, time_ms, row->samples, row->value};
	return true;
}

static uint64_t bytes_taken(const struct timeline_run *at)
{
	return at->run.view.arena.used + at->timeline->arena.used + at->run.result->arena.used +
	       at->point_room * sizeof *at->timeline->points +
	       (at->series_room + at->host_room) * sizeof *at->hosts;
}

static bool goes_on(struct timeline_run *at)
{
	struct limit_watch *watch = &at->run.view.watch;

	at->is_over |= !limit_watch_row(watch, at->err) ||
		       (watch->rows % ASK_ROWS == 0 &&
			!limit_watch_allows(watch, bytes_taken(at), at->err));
	return !at->is_over;
}

static bool add_row(void *context, const struct view_row *row)
{
	struct timeline_run *at = context;
	int64_t time_ms = view_row_ms(row);
	uint32_t series;

	if (row->hosts_length)
		view_each_host(row, query_run_keep_host, &at->run);
	if (!map_series(at, row->day, row->series, &series) ||
	    !add_point(at, series, time_ms / at->timeline->step_ms * at->timeline->step_ms, row))
		at->is_full = true;
	return !at->is_full && goes_on(at);
}

static bool add_day(struct timeline_run *at, struct view_day *day, struct error *err)
{
	struct view *view = &at->run.view;

	at->run.day = day;
	return view_choose_series(view, day, at->run.query, err) &&
	       (!day->wanted ||
		(view_each(view, day, at->run.query, at->run.type, false, add_row, at, err) &&
		 !at->is_over));
}

/* --- all of it --- */

static bool make_maps(struct timeline_run *at)
{
	struct view *view = &at->run.view;

	at->run.maps = arena_array(&view->arena, view->day_count, sizeof *at->run.maps);
	at->series = arena_array(&view->arena, view->day_count, sizeof *at->series);
	for (unsigned i = 0; at->run.maps && at->series && i < view->day_count; i++) {
		const uint32_t *count = view->days[i].mark.count;

		at->run.maps[i].strings = arena_array(&view->arena, count[CATALOG_STRINGS],
						      sizeof(const char *));
		at->run.maps[i].is_host = arena_alloc(&view->arena, count[CATALOG_STRINGS]);
		at->series[i] = arena_array(&view->arena, count[CATALOG_SERIES], 4);
	}
	return !view->arena.failed;
}

/* The hosts' accounts by the same rules as a query's, whose result is only lent for it. */
static bool put_hosts(struct timeline_run *at, struct error *err)
{
	struct samples_result *result = at->run.result;
	struct samples_timeline *timeline = at->timeline;
	bool ok;

	result->series = at->hosts;
	result->series_count = at->host_count;
	ok = query_run_put_hosts(&at->run, err);
	result->series = NULL;
	timeline->hosts = arena_copy(&timeline->arena, result->hosts,
				     result->host_count * sizeof *result->hosts);
	timeline->host_count = result->host_count;
	timeline->host_steps = arena_copy(&timeline->arena, result->host_steps,
					  result->host_step_count * sizeof *result->host_steps);
	timeline->host_step_count = result->host_step_count;
	for (uint32_t i = 0; timeline->hosts && i < timeline->host_count; i++) {
		struct host_accounting *host = &timeline->hosts[i];

		host->host = arena_text(&timeline->arena, host->host, strlen(host->host));
		for (unsigned k = 0; k < host->lost_count; k++)
			host->lost_by[k].reason = arena_text(&timeline->arena,
							     host->lost_by[k].reason,
							     strlen(host->lost_by[k].reason));
	}
	return ok && !timeline->arena.failed;
}

/* What grew by realloc() goes into the arena, which is all that the caller frees. */
static bool settle(struct timeline_run *at)
{
	struct samples_timeline *timeline = at->timeline;
	struct timeline_point *points = timeline->points;
	struct series_labels *series = timeline->series;

	time_line_put_points(timeline, points, timeline->point_count);
	timeline->series = arena_copy(&timeline->arena, series,
				      timeline->series_count * sizeof *series);
	free(points);
	free(series);
	return !timeline->arena.failed;
}

static bool run_timeline(struct timeline_run *at, struct error *err)
{
	struct view *view = &at->run.view;
	bool ok = make_maps(at);

	for (unsigned i = 0; ok && i < view->day_count; i++)
		ok = add_day(at, &view->days[i], err) && !at->is_full;
	ok = ok && put_hosts(at, err) && limit_watch_allows(&view->watch, bytes_taken(at), err);
	ok = settle(at) && ok;
	return ok || time_line_is_too_large(err);
}

static struct samples_timeline *try_timeline(struct sqlite_samples *store,
					     const struct samples_query *query, unsigned type,
					     struct error *err)
{
	struct samples_query by_step = *query;
	struct timeline_run at = {.run = {.query = &by_step, .type = type, .err = err}, .err = err};
	bool ok = false;

	by_step.by_bucket = true;
	if (!view_open(&at.run.view, store, &by_step, (int)type, err))
		return NULL;
	at.timeline = calloc(1, sizeof *at.timeline);
	at.run.result = calloc(1, sizeof *at.run.result);
	if (!at.timeline || !at.run.result) {
		error_set(err, ERROR_MEMORY, "no memory for an answer");
		goto out;
	}
	arena_init(&at.timeline->arena, TIMELINE_BYTES_MAX);
	arena_init(&at.run.result->arena, TIMELINE_BYTES_MAX);
	hash_table_init(&at.series_index, UINT32_MAX >> 1);
	hash_table_init(&at.point_index, UINT32_MAX >> 1);
	hash_table_init(&at.host_index, UINT32_MAX >> 1);
	at.timeline->from_ms = at.run.view.from_ms;
	at.timeline->until_ms = at.run.view.until_ms;
	at.timeline->step_ms = query->step_ms ? query->step_ms : SAMPLES_BUCKET_MS;
	at.timeline->resolution_ms = at.run.view.resolution_ms;
	ok = run_timeline(&at, err);
	hash_table_release(&at.series_index);
	hash_table_release(&at.point_index);
	hash_table_release(&at.host_index);
	free(at.hosts);
out:
	samples_result_free(at.run.result);
	view_close(&at.run.view);
	if (ok)
		return at.timeline;
	samples_timeline_free(at.timeline);
	return NULL;
}

struct samples_timeline *sqlite_samples_timeline(struct samples_store *base,
						 const struct samples_query *query,
						 struct error *err)
{
	struct samples_timeline *timeline = NULL;
	struct error why = {0};
	int type;

	if (!answerable_time_line(query, &type, err))
		return NULL;
	/* A file found damaged is set aside; without it the query succeeds. */
	for (int attempt = 0; attempt < ATTEMPTS && !timeline; attempt++) {
		why = (struct error){0};
		timeline = try_timeline(sqlite_samples_of(base), query, (unsigned)type, &why);
		if (!timeline && why.kind != ERROR_FORMAT)
			break;
	}
	if (!timeline && err)
		*err = why;
	return timeline;
}
