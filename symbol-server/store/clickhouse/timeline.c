/* SPDX-License-Identifier: Apache-2.0 */
/* samples_timeline(): sums by series and step, then by the labels that are asked for. */
#include <stdlib.h>
#include <string.h>

#include "symbol-server/store/rules/answerable.h"
#include "symbol-server/store/clickhouse/scope.h"

struct timeline_run {
	struct scope scope;
	struct samples_timeline *timeline;
	struct timeline_point *points;
	size_t point_count, point_room;
};

/* --- points --- */

static bool keep_point(void *context, struct row_reader *row)
{
	struct timeline_run *at = context;
	struct timeline_point point = {.series = (uint32_t)row_number(row, 4)};

	point.time_ms = (int64_t)row_number(row, 4) * 1000;
	point.samples = row_number(row, 8);
	point.value = row_number(row, 8);
	row->is_bad |= !row->is_short && point.series >= at->timeline->series_count;
	if (row->is_short || row->is_bad)
		return true;
	if (!SCOPE_GROW(at->points, at->point_count, at->point_room)) {
		at->scope.is_full = true;
		return false;
	}
	at->points[at->point_count++] = point;
	return true;
}

static bool read_points(struct timeline_run *at, struct error *err)
{
	static const struct source_columns columns = {
		.names = "series, minute, samples, value",
		.rolled = "series, bucket AS minute, samples, value",
		.is_whole = true,
	};
	long long step_s = (long long)at->timeline->step_ms / 1000;
	struct buffer sql;
	bool ok;

	if (!at->scope.wanted_count)
		return true;
	buffer_init(&sql, 8192);
	buffer_printf(&sql,
		      "SELECT series_group, toUInt32(intDiv(toUInt32(minute), %lld) * %lld) AS "
		      "step, sum(samples) AS all_samples, sum(value) FROM ",
		      step_s, step_s);
	scope_source(&at->scope, &sql, &columns);
	buffer_append_text(&sql, " AS profiles ALL INNER JOIN wanted USING (series) "
				 "GROUP BY series_group, step HAVING all_samples > 0");
	ok = scope_ask(&at->scope, &sql, true, keep_point, at, err);
	buffer_release(&sql);
	return ok;
}

/* --- all of it --- */

static bool put_hosts(struct timeline_run *at, struct error *err)
{
	struct samples_timeline *timeline = at->timeline;
	struct host_accounting *hosts = NULL;
	bool ok = scope_hosts(&at->scope, &timeline->arena, &hosts, &timeline->host_count, err);

	timeline->hosts = arena_copy(&timeline->arena, hosts, timeline->host_count * sizeof *hosts);
	free(hosts);
	return ok && timeline->hosts;
}

static bool run(struct timeline_run *at, struct error *err)
{
	struct samples_timeline *timeline = at->timeline;
	bool ok = scope_groups(&at->scope, &timeline->arena, &timeline->series,
			       &timeline->series_count) &&
		  read_points(at, err) &&
		  time_line_put_points(timeline, at->points, at->point_count) && put_hosts(at, err);

	return ok || time_line_is_too_large(err);
}

struct samples_timeline *clickhouse_samples_timeline(struct samples_store *base,
						     const struct samples_query *query,
						     struct error *err)
{
	struct timeline_run at = {0};
	struct samples_query by_step = *query;
	struct rollup_wants wants;
	struct error why = {0};
	bool ok = false;
	int type;

	if (!answerable_time_line(query, &type, err))
		return NULL;
	by_step.by_bucket = true;
	/* Rows are of minutes. */
	if (by_step.by_second && by_step.step_ms % SAMPLES_BUCKET_MS)
		by_step.step_ms += SAMPLES_BUCKET_MS - by_step.step_ms % SAMPLES_BUCKET_MS;
	wants = rollup_wants_of(&by_step);
	if (!scope_open(&at.scope, clickhouse_samples_of(base), &by_step, type, &wants, err))
		return NULL;
	at.timeline = calloc(1, sizeof *at.timeline);
	if (!at.timeline) {
		error_set(&why, ERROR_MEMORY, "no memory for an answer");
		goto out;
	}
	arena_init(&at.timeline->arena, SCOPE_BYTES_MAX);
	at.timeline->from_ms = at.scope.from_ms;
	at.timeline->until_ms = at.scope.until_ms;
	at.timeline->step_ms = by_step.step_ms ? by_step.step_ms : SAMPLES_BUCKET_MS;
	at.timeline->resolution_ms = at.scope.parts.resolution_s * 1000ll;
	ok = run(&at, &why);
out:
	free(at.points);
	scope_close(&at.scope);
	if (ok)
		return at.timeline;
	samples_timeline_free(at.timeline);
	if (err)
		*err = why;
	return NULL;
}
