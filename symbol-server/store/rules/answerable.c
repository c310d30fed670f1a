/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/rules/answerable.h"

#include <stdlib.h>
#include <string.h>

bool answerable_any_type(const struct samples_query *query, int *type, struct error *err)
{
	*type = query->type ? profile_type_find(query->type, strlen(query->type)) : -1;
	return !query->type || *type >= 0 ||
	       error_set(err, ERROR_OPTION, "'%s' is not a profile type", query->type);
}

bool answerable_type(const struct samples_query *query, int *type, struct error *err)
{
	return answerable_any_type(query, type, err) &&
	       (query->type || error_set(err, ERROR_OPTION, "'' is not a profile type"));
}

bool answerable_time_line(const struct samples_query *query, int *type, struct error *err)
{
	if (!answerable_type(query, type, err))
		return false;
	if (query->thread_wanted || query->by_thread)
		return error_set(err, ERROR_OPTION,
				 "a time line of sums does not tell threads apart");
	if (query->step_ms < 0 || query->step_ms % (query->by_second ? 1000 : SAMPLES_BUCKET_MS))
		return error_set(err, ERROR_OPTION, "a step is a multiple of %s",
				 query->by_second ? "1 s" : "60 s");
	return true;
}

bool answer_is_too_large(size_t most_bytes, struct error *err)
{
	if (err && err->kind)
		return false;
	return error_set(err, ERROR_LIMIT,
			 "the answer does not fit %zu MiB: narrow the time range or the selection",
			 most_bytes >> 20);
}

bool time_line_is_too_large(struct error *err)
{
	if (err && err->kind)
		return false;
	return error_set(err, ERROR_LIMIT,
			 "the time line has too many series or steps: group by fewer labels, ask "
			 "for a longer step or narrow the selection");
}

static int compare_points(const void *left, const void *right)
{
	const struct timeline_point *a = left, *b = right;

	if (a->series != b->series)
		return a->series < b->series ? -1 : 1;
	return (a->time_ms > b->time_ms) - (a->time_ms < b->time_ms);
}

size_t time_line_merge_points(struct timeline_point *points, size_t count)
{
	size_t kept = 0;

	if (count)
		qsort(points, count, sizeof *points, compare_points);
	for (size_t i = 0; i < count; i++) {
		if (kept && !compare_points(&points[kept - 1], &points[i])) {
			points[kept - 1].samples += points[i].samples;
			points[kept - 1].value += points[i].value;
		} else {
			points[kept++] = points[i];
		}
	}
	return kept;
}

bool time_line_put_points(struct samples_timeline *timeline, struct timeline_point *points,
			  size_t count)
{
	size_t kept = time_line_merge_points(points, count);

	timeline->points = arena_copy(&timeline->arena, points, kept * sizeof *points);
	timeline->point_count = kept;
	return timeline->points;
}
