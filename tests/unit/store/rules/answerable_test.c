/* SPDX-License-Identifier: Apache-2.0 */
/* What can be asked of either engine, case by case, and the points of a time line. */
#include "symbol-server/store/rules/answerable.h"
#include "tests/check.h"

static bool all(void *context, const char *thread)
{
	return context || thread;
}

static const struct {
	struct samples_query query;
	const char *any, *one, *time_line; /* sentences; "": it has an answer */
} cases[] = {
	{{.type = "on-cpu"}, "", "", ""},
	{{.type = NULL}, "", "'' is not a profile type", "'' is not a profile type"},
	{{.type = ""},
	 "'' is not a profile type",
	 "'' is not a profile type",
	 "'' is not a profile type"},
	{{.type = "cpu"},
	 "'cpu' is not a profile type",
	 "'cpu' is not a profile type",
	 "'cpu' is not a profile type"},
	{{.type = "off-cpu", .by_thread = true},
	 "",
	 "",
	 "a time line of sums does not tell threads apart"},
	{{.type = "off-cpu", .thread_wanted = all},
	 "",
	 "",
	 "a time line of sums does not tell threads apart"},
	{{.type = "on-cpu", .step_ms = 120000}, "", "", ""},
	{{.type = "on-cpu", .step_ms = 90000}, "", "", "a step is a multiple of 60 s"},
	{{.type = "on-cpu", .step_ms = -60000}, "", "", "a step is a multiple of 60 s"},
	{{.type = "on-cpu", .step_ms = 90000, .by_second = true}, "", "", ""},
	{{.type = "on-cpu", .step_ms = 1500, .by_second = true},
	 "",
	 "",
	 "a step is a multiple of 1 s"},
};

typedef bool answerable_fn(const struct samples_query *query, int *type, struct error *err);

static void check_one(answerable_fn *fn, const struct samples_query *query, const char *sentence)
{
	struct error err = {0};
	int type = -2;

	CHECK(fn(query, &type, &err) == !*sentence);
	CHECK_TEXT(err.message, sentence);
	if (!*sentence && query->type)
		CHECK_TEXT(profile_type_name((unsigned)type), query->type);
	else if (!*sentence)
		CHECK_NUMBER(type, -1);
}

static void errors_are_kept(void)
{
	struct error err = {ERROR_BUSY, 0, "first"};

	CHECK(!answer_is_too_large(1, &err) && !time_line_is_too_large(&err));
	CHECK_TEXT(err.message, "first");
	err = (struct error){0};
	CHECK(!answer_is_too_large(512 << 20, &err));
	CHECK_TEXT(err.message,
		   "the answer does not fit 512 MiB: narrow the time range or the selection");
	err = (struct error){0};
	CHECK(!time_line_is_too_large(&err) && err.kind == ERROR_LIMIT);
	CHECK(!answer_is_too_large(1, NULL) && !time_line_is_too_large(NULL));
}

static void points_are_merged(void)
{
	struct timeline_point points[] = {
		{1, 60, 1, 10}, {0, 120, 2, 20}, {1, 60, 4, 40}, {0, 60, 8, 80}, {1, 60, 16, 160}};
	struct samples_timeline timeline = {0};

	arena_init(&timeline.arena, 1 << 20);
	CHECK(time_line_put_points(&timeline, points, 5));
	CHECK_NUMBER(timeline.point_count, 3);
	CHECK(timeline.points[0].series == 0 && timeline.points[0].time_ms == 60);
	CHECK(timeline.points[1].series == 0 && timeline.points[1].time_ms == 120);
	CHECK_NUMBER(timeline.points[2].samples, 21);
	CHECK_NUMBER(timeline.points[2].value, 210);
	CHECK(time_line_put_points(&timeline, NULL, 0));
	CHECK_NUMBER(timeline.point_count, 0);
	arena_release(&timeline.arena);
	arena_init(&timeline.arena, 16);
	CHECK(!time_line_put_points(&timeline, points, 5)); /* no room */
	arena_release(&timeline.arena);
}

int main(void)
{
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		check_one(answerable_any_type, &cases[i].query, cases[i].any);
		check_one(answerable_type, &cases[i].query, cases[i].one);
		check_one(answerable_time_line, &cases[i].query, cases[i].time_line);
	}
	errors_are_kept();
	points_are_merged();
	return checks_done();
}
