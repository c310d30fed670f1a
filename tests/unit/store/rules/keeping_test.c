/* SPDX-License-Identifier: Apache-2.0 */
/* What either engine decides of age and of roll-ups, case by case: from when on what is kept, by a
 * clock that may be wrong, and when a question is answered of sums. */
#include "symbol-server/store/rules/rollup_choice.h"
#include "tests/check.h"

static const int64_t minute = 60000, hour = 3600000, day = 86400000;

/* --- a wrong clock --- */

static const struct {
	const char *what;
	uint32_t days[AGING_DAYS];
	unsigned count;
	uint32_t newest; /* day; 0: none */
} newest_cases[] = {
	{"nothing", {0}, 0, 0},
	{"one day", {20000}, 1, 20000},
	{"a week", {19993, 19994, 19995, 19996, 19997, 19998, 19999, 20000}, 8, 20000},
	{"one a year ahead", {19999, 20000, 20365}, 3, 20000},
	{"six a year ahead", {20000, 20365, 20366, 20367, 20368, 20369, 20370}, 7, 20000},
	{"a holiday of 30 days", {19970, 20000}, 2, 20000},
	{"two clocks", {20000, 20365, 20730}, 3, 20000},
};

/* Turns at these moments of the clock, in days; so much of real time lies between two. */
static const struct {
	const char *what;
	int64_t newest, between, clock[4]; /* days */
	int64_t behind[4];                 /* of each turn, days */
} clock_cases[] = {
	{"a clock that is right", 20000, 1, {20001, 20002, 20003, 20004}, {0, 0, 0, 0}},
	{"an empty store believes it", 0, 1, {20365, 20366, 20367, 20368}, {0, 0, 0, 0}},
	{"away for six days", 20000, 1, {20006, 20007, 20008, 20009}, {0, 0, 0, 0}},
	/* Six after the newest day's begin are believed, then 24 a day. */
	{"a year ahead at start", 20000, 1, {20365, 20366, 20367, 20368}, {359, 336, 313, 290}},
	{"jumps a year", 20000, 1, {20001, 20366, 20367, 20368}, {0, 341, 318, 295}},
	{"jumps a year and back", 20000, 1, {20001, 20366, 20003, 20004}, {0, 341, 0, 0}},
	{"jumps back", 20000, 1, {20001, 19000, 19001, 19002}, {0, 0, 0, 0}},
};

static void check_clock(size_t number)
{
	struct aging aging = {0};

	printf("# %s\n", clock_cases[number].what);
	for (int i = 0; i < 4; i++) {
		aging_step(&aging, clock_cases[number].newest * day,
			   clock_cases[number].clock[i] * day,
			   clock_cases[number].between * day * (i + 1));
		CHECK_NUMBER(aging_behind_ms(&aging) / day, clock_cases[number].behind[i]);
	}
}

/* --- what is kept --- */

static const struct {
	int64_t keep[SAMPLES_RESOLUTIONS], behind, from[SAMPLES_RESOLUTIONS]; /* days before now */
	bool outlives;
} kept_cases[] = {
	{{0, 0, 0}, 0, {0, 0, 0}, false},
	{{30, 0, 0}, 0, {30, 30, 30}, false},
	{{7, 30, 365}, 0, {7, 30, 365}, true},
	{{7, 30, 0}, 0, {7, 30, 30}, true},
	{{7, 0, 365}, 0, {7, 7, 365}, true},
	{{7, 30, 365}, 360, {367, 390, 725}, true}, /* the clock is ahead of what is believed */
	{{30, 7, 7}, 0, {30, 7, 7}, false},
	{{100000, 0, 0}, 0, {0, 0, 0}, false}, /* since before 1970: all */
};

static void check_kept(size_t number)
{
	const int64_t now_ms = 20000 * day;
	struct aging aging = {.behind_ms = kept_cases[number].behind * day};
	int64_t keep_ms[SAMPLES_RESOLUTIONS];
	struct rollup_kept kept;

	for (unsigned i = 0; i < SAMPLES_RESOLUTIONS; i++)
		keep_ms[i] = kept_cases[number].keep[i] * day;
	kept = rollup_kept_at(keep_ms, &aging, now_ms);
	for (unsigned i = 0; i < SAMPLES_RESOLUTIONS; i++)
		CHECK_NUMBER(kept.from_ms[i], kept_cases[number].from[i]
						      ? now_ms - kept_cases[number].from[i] * day
						      : 0);
	CHECK(rollup_outlives_minutes(keep_ms) == kept_cases[number].outlives);
}

static const struct rollup_kept of_three = {{1000 * day, 900 * day, 500 * day}};

static void days_have_hours_only(void)
{
	const struct rollup_kept equal = {{1000 * day, 900 * day, 900 * day}};

	CHECK(rollup_has_hours_only(&of_three, 900 * day));
	CHECK(!rollup_has_hours_only(&of_three, 900 * day + 1));
	CHECK(!rollup_has_hours_only(&equal, 900 * day));
}

static const struct {
	int64_t from, until, kept, unit, first; /* minutes */
} first_cases[] = {
	{100, 200, 0, 1, 100},    {100, 200, 100, 10, 100}, {100, 200, 101, 1, 101},
	{100, 200, 101, 10, 110}, {100, 200, 195, 60, 200}, {100, 200, 900, 1, 200},
	{105, 200, 100, 10, 105}, /* what is kept is not widened here */
};

/* --- roll-ups or minutes --- */

static bool all(void *context, const char *thread)
{
	return context || thread;
}

static const char *const service[] = {"service"}, *const by_pid[] = {"service", "host"};

static const struct {
	const char *what;
	struct samples_query query; /* of until_ms milliseconds */
	struct rollup_wants wants;
} wants_cases[] = {
	{"a day, any label", {.until_ms = 86400000}, {true, false, true}},
	{"three days", {.until_ms = 3 * 86400000}, {true, true, true}},
	{"a little less", {.until_ms = 3 * 86400000 - 1}, {true, false, true}},
	{"by service",
	 {.until_ms = 3 * 86400000, .labels = service, .label_count = 1},
	 {true, true, false}},
	{"no labels",
	 {.until_ms = 3 * 86400000, .labels = service, .label_count = 0},
	 {true, true, false}},
	{"by host",
	 {.until_ms = 3 * 86400000, .labels = by_pid, .label_count = 2},
	 {true, true, true}},
	{"by thread", {.until_ms = 3 * 86400000, .by_thread = true}, {false, false, true}},
	{"of a thread", {.until_ms = 3 * 86400000, .thread_wanted = all}, {false, false, true}},
	{"each minute", {.until_ms = 3 * 86400000, .by_bucket = true}, {false, false, true}},
	{"15 minutes",
	 {.until_ms = 3 * 86400000, .by_bucket = true, .step_ms = 900000},
	 {false, false, true}},
	{"half an hour",
	 {.until_ms = 3 * 86400000, .by_bucket = true, .step_ms = 1800000},
	 {true, false, true}},
	{"two hours",
	 {.until_ms = 3 * 86400000, .by_bucket = true, .step_ms = 7200000},
	 {true, true, true}},
};

static void check_wants(size_t number)
{
	struct rollup_wants wants = rollup_wants_of(&wants_cases[number].query);

	printf("# %s\n", wants_cases[number].what);
	CHECK(wants.sums == wants_cases[number].wants.sums);
	CHECK(wants.hours == wants_cases[number].wants.hours);
	CHECK(wants.by_instance == wants_cases[number].wants.by_instance);
}

static const struct {
	bool wants;
	struct rollup_bucket bucket; /* start in days */
	bool is_taken;
} taken_cases[] = {
	{true, {1001, true, true, true}, true},
	{false, {1001, true, true, true}, false},  /* a thread is asked for */
	{true, {1001, false, true, true}, false},  /* not all of it is asked for */
	{true, {1001, true, false, true}, false},  /* it is not made yet */
	{false, {999, false, false, false}, true}, /* there is nothing else */
	{true, {500, true, true, false}, true},
	{true, {499, true, true, false}, false}, /* older than all that is kept */
};

int main(void)
{
	for (size_t i = 0; i < sizeof newest_cases / sizeof *newest_cases; i++) {
		printf("# %s\n", newest_cases[i].what);
		CHECK_NUMBER(aging_newest_ms(newest_cases[i].days, newest_cases[i].count),
			     newest_cases[i].newest * day);
	}
	for (size_t i = 0; i < sizeof clock_cases / sizeof *clock_cases; i++)
		check_clock(i);
	for (size_t i = 0; i < sizeof kept_cases / sizeof *kept_cases; i++)
		check_kept(i);
	days_have_hours_only();
	for (size_t i = 0; i < sizeof first_cases / sizeof *first_cases; i++)
		CHECK_NUMBER(rollup_first_kept_ms(
				     first_cases[i].from * minute, first_cases[i].until * minute,
				     first_cases[i].kept * minute, first_cases[i].unit * minute),
			     first_cases[i].first * minute);
	CHECK_NUMBER(rollup_first_kept_ms(0, day, hour + 1, minute), hour + minute);
	for (size_t i = 0; i < sizeof wants_cases / sizeof *wants_cases; i++)
		check_wants(i);
	for (size_t i = 0; i < sizeof taken_cases / sizeof *taken_cases; i++) {
		struct rollup_wants wants = {.sums = taken_cases[i].wants};
		struct rollup_bucket bucket = taken_cases[i].bucket;

		bucket.start_ms *= day;
		CHECK(rollup_is_taken(&wants, &of_three, &bucket) == taken_cases[i].is_taken);
	}
	return checks_done();
}
