/* SPDX-License-Identifier: Apache-2.0 */
/* Roll-ups change how much is read and nothing of what is answered: the same questions with and
 * without them, and against what the sender counted; sums in the file by sqlite3. */
#include "tests/unit/store/rollup_world.h"

static void test_equal_answers(void)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	struct samples_counters counters;
	unsigned rolled;

	CHECK(store && send_all(store));
	CHECK_NUMBER(count_wrong(store, &rolled), 0);
	CHECK_NUMBER(rolled, 0); /* all of it is in memory */
	CHECK(samples_fold(store, NULL));
	CHECK_NUMBER(count_wrong(store, &rolled), 0);
	CHECK(rolled > 100);
	samples_counters(store, &counters);
	CHECK(counters.rollup_pairs > 1000);
	/* Each sample is once in each level. */
	CHECK_NUMBER(ask_sqlite(directory, "SELECT sum(samples) FROM samples"), all_sent());
	CHECK_NUMBER(ask_sqlite(directory, "SELECT sum(samples) FROM rollups WHERE level = 1"),
		     all_sent());
	CHECK_NUMBER(ask_sqlite(directory, "SELECT sum(samples) FROM rollups WHERE level = 2"),
		     all_sent());
	CHECK_NUMBER(
		ask_sqlite(directory, "SELECT count(DISTINCT series) FROM rollups WHERE level = 2"),
		SERVICES);
	samples_close(store);
	store = open_store(directory, NULL);
	CHECK_NUMBER(count_wrong(store, &rolled), 0);
	CHECK(rolled > 100);
	samples_close(store);
	remove_directory(directory);
}

/* Samples that come days after their time are right at once, and rolled up later. */
static void test_late_samples(void)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	unsigned rolled, late = sent_count = 0;

	CHECK(store && send_all(store) && samples_fold(store, NULL));
	sqlite_samples_of(store)->rollup_late_pause_ms = 3600000;
	for (unsigned round = 0; round < 3; round++) {
		/* The first late ones are rolled up at once, the next wait for company. */
		for (unsigned host = 0; host < HOSTS; host++)
			CHECK(send_report(store, host, start_ms + (35 + 10 * round) * minute_ms,
					  10000 + ++late));
		CHECK_NUMBER(count_wrong(store, &rolled), 0); /* in memory */
		CHECK(samples_fold(store, NULL));
		CHECK_NUMBER(count_wrong(store, &rolled), 0); /* in the file */
		CHECK(rolled > 100);
		CHECK(ask_sqlite(directory, "SELECT sum(samples) FROM rollups WHERE level = 2") ==
			      all_sent() ||
		      round);
	}
	CHECK(ask_sqlite(directory, "SELECT sum(samples) FROM rollups WHERE level = 1") <
	      all_sent());
	CHECK_NUMBER(
		ask_sqlite(directory, "SELECT count(*) FROM rollup_marks WHERE newest > through"),
		2);
	samples_close(store);
	store = open_store(directory, NULL);
	sqlite_samples_of(store)->rollup_late_pause_ms = 0;
	CHECK(samples_fold(store, NULL));
	CHECK_NUMBER(ask_sqlite(directory, "SELECT sum(samples) FROM rollups WHERE level = 1"),
		     all_sent());
	CHECK_NUMBER(ask_sqlite(directory, "SELECT sum(samples) FROM rollups WHERE level = 2"),
		     all_sent());
	CHECK_NUMBER(count_wrong(store, &rolled), 0);
	samples_close(store);
	remove_directory(directory);
}

static void test_reduced_day(void)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	struct samples_counters counters;

	sent_count = 0;
	CHECK(store && send_all(store) && samples_fold(store, NULL));
	samples_close(store);

	/* No longer kept by the minute: at once not answered so, and soon not there. */
	store = open_keeping(directory, 2 * day_ms, 30 * day_ms, 0);
	CHECK_NUMBER(count_wrong_as_widened(store, ROLLUP_BUCKET_MS), 0);
	CHECK(samples_fold(store, NULL));
	samples_counters(store, &counters);
	CHECK_NUMBER(counters.days_reduced, 1);
	CHECK_NUMBER(counters.level_bytes[SAMPLES_RAW], 0);
	CHECK(counters.level_bytes[SAMPLES_10M] > 0);
	CHECK(counters.forecast_bytes > 27 * counters.level_bytes[SAMPLES_10M]);
	CHECK_NUMBER(counters.rollup_lag_ms, 0);
	CHECK_NUMBER(ask_sqlite(directory, "SELECT count(*) FROM samples"), 0);
	CHECK_NUMBER(ask_sqlite(directory, "SELECT sum(samples) FROM rollups WHERE level = 1"),
		     all_sent());
	CHECK_NUMBER(count_wrong_as_widened(store, ROLLUP_BUCKET_MS), 0);

	/* What comes even later counts at once, and is added. */
	for (unsigned host = 0; host < HOSTS; host++)
		CHECK(send_report(store, host, start_ms + 37 * minute_ms, 20000 + host));
	CHECK_NUMBER(count_wrong_as_widened(store, ROLLUP_BUCKET_MS), 0);
	CHECK(samples_fold(store, NULL));
	CHECK_NUMBER(count_wrong_as_widened(store, ROLLUP_BUCKET_MS), 0);
	samples_close(store);
	store = open_keeping(directory, 2 * day_ms, 30 * day_ms, 0);
	CHECK(samples_fold(store, NULL));
	samples_counters(store, &counters);
	CHECK_NUMBER(counters.days_reduced, 0);
	CHECK_NUMBER(count_wrong_as_widened(store, ROLLUP_BUCKET_MS), 0);
	CHECK_NUMBER(ask_sqlite(directory, "SELECT sum(samples) FROM rollups WHERE level = 2"),
		     all_sent());
	samples_close(store);

	/* Nor by ten minutes. */
	store = open_keeping(directory, day_ms, 2 * day_ms, 0);
	CHECK_NUMBER(ask(store, (struct question){.from_ms = start_ms - day_ms,
						  .until_ms = start_ms + day_ms})
			     .samples,
		     0);
	CHECK(samples_fold(store, NULL));
	samples_counters(store, &counters);
	CHECK_NUMBER(counters.days, 0);
	CHECK_NUMBER(counters.days_deleted, 1);
	samples_close(store);
	remove_directory(directory);
}

/* ---- hours ---- */

/* Whole days and ragged ends around the one day that has samples. */
static unsigned count_wrong_days(struct samples_store *store, unsigned *hours)
{
	const int64_t midnight = start_ms / day_ms * day_ms;
	const int64_t froms[] = {midnight - 5 * day_ms, midnight - 3 * day_ms - 7 * minute_ms,
				 midnight, start_ms + 33 * minute_ms};
	const int64_t untils[] = {midnight + day_ms, start_ms + 95 * minute_ms,
				  midnight + 3 * day_ms + 11 * minute_ms};
	unsigned wrong = 0;

	*hours = 0;
	for (unsigned kind = 0; kind < 4; kind++)
		for (unsigned i = 0; i < 4; i++)
			for (unsigned k = 0; k < 3; k++) {
				struct question question = {
					.host = kind & 1 ? host_names[kind] : NULL,
					.service = kind & 2 ? service_names[1] : NULL,
					.from_ms = froms[i],
					.until_ms = untils[k]};
				int64_t resolution_ms;

				if (question.from_ms >= question.until_ms)
					continue;
				wrong += !is_right(store, &question, &resolution_ms);
				*hours += resolution_ms == hour_ms;
			}
	return wrong;
}

static void test_hours(void)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	struct samples_counters counters;
	unsigned hours, late = 0;

	sent_count = 0;
	CHECK(store && send_all(store) && samples_fold(store, NULL));
	CHECK_NUMBER(ask_month(directory, "SELECT sum(samples) FROM rollups WHERE level = 3"),
		     all_sent());
	CHECK_NUMBER(ask_month(directory, "SELECT sum(samples) FROM rollups WHERE level = 4"),
		     all_sent());
	CHECK_NUMBER(ask_month(directory, "SELECT count(DISTINCT bucket) FROM rollups"),
		     (MINUTES + 59) / 60);
	CHECK_NUMBER(count_wrong_days(store, &hours), 0);
	CHECK(hours > 10);
	sqlite_samples_of(store)->rollup_late_pause_ms = 3600000;
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned host = 0; host < HOSTS; host++)
			CHECK(send_report(store, host, start_ms + (40 + 50 * round) * minute_ms,
					  30000 + ++late));
		CHECK_NUMBER(count_wrong_days(store, &hours), 0);
		CHECK(samples_fold(store, NULL));
		CHECK_NUMBER(count_wrong_days(store, &hours), 0);
		CHECK(hours > 10);
	}
	sqlite_samples_of(store)->rollup_late_pause_ms = 0;
	samples_close(store);

	store = open_keeping(directory, day_ms, 2 * day_ms, 300 * day_ms);
	CHECK(samples_fold(store, NULL)); /* the late ones get their roll-ups */
	CHECK(samples_fold(store, NULL)); /* then the day goes */
	samples_counters(store, &counters);
	CHECK_NUMBER(counters.days_deleted, 1);
	CHECK_NUMBER(counters.days, 0);
	CHECK(counters.level_bytes[SAMPLES_1H] > 0);
	CHECK_NUMBER(ask_month(directory, "SELECT sum(samples) FROM rollups WHERE level = 3"),
		     all_sent());
	CHECK_NUMBER(count_wrong_as_widened(store, hour_ms), 0);
	for (unsigned host = 0; host < HOSTS; host++)
		CHECK(send_report(store, host, start_ms + 37 * minute_ms, 40000 + host));
	CHECK_NUMBER(count_wrong_as_widened(store, hour_ms), 0);
	CHECK(samples_fold(store, NULL));
	CHECK_NUMBER(count_wrong_as_widened(store, hour_ms), 0);
	samples_close(store);
	store = open_keeping(directory, day_ms, 2 * day_ms, 300 * day_ms);
	CHECK(samples_fold(store, NULL));
	CHECK_NUMBER(ask_month(directory, "SELECT sum(samples) FROM rollups WHERE level = 4"),
		     all_sent());
	samples_counters(store, &counters);
	CHECK_NUMBER(counters.days, 0);
	CHECK_NUMBER(count_wrong_as_widened(store, hour_ms), 0);
	samples_close(store);
	remove_directory(directory);
}

/* ---- a clock that is wrong ---- */

static unsigned days_left(struct samples_store *store)
{
	struct samples_counters counters;

	for (unsigned i = 0; i < 2; i++)
		CHECK(samples_fold(store, NULL));
	samples_counters(store, &counters);
	CHECK_NUMBER(counters.days_reduced, 0);
	return (unsigned)counters.days;
}

/* It is a year ahead at start, or jumps there: nothing goes; and goes when the time really passes.
 */
static void test_wrong_clock(void)
{
	const int64_t keep_ms[] = {7 * day_ms, 30 * day_ms, 90 * day_ms}, year_ms = 365 * day_ms;
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	struct samples_counters counters;
	unsigned rolled;

	sent_count = 0;
	CHECK(store && send_all(store) && samples_fold(store, NULL));
	samples_close(store);
	for (unsigned round = 0; round < 2; round++) {
		clock_jump_ms = round ? 0 : year_ms;
		store = open_keeping(directory, keep_ms[0], keep_ms[1], keep_ms[2]);
		CHECK_NUMBER(days_left(store), 1);
		CHECK_NUMBER(count_wrong(store, &rolled), 0);
		clock_jump_ms = round ? year_ms : 0;
		CHECK_NUMBER(days_left(store), 1);
		CHECK_NUMBER(count_wrong(store, &rolled), 0);
		clock_jump_ms = -year_ms;
		CHECK_NUMBER(days_left(store), 1);
		clock_jump_ms = 0;
		samples_close(store);
	}
	CHECK_NUMBER(ask_sqlite(directory, "SELECT sum(samples) FROM samples"), all_sent());
	clock_jump_ms = year_ms;
	store = open_keeping(directory, keep_ms[0], keep_ms[1], keep_ms[2]);
	CHECK_NUMBER(days_left(store), 1);
	elapsed_jump_ms = 17 * day_ms;
	for (unsigned i = 0; i < 3; i++)
		CHECK(samples_fold(store, NULL));
	samples_counters(store, &counters);
	CHECK_NUMBER(counters.days, 0);
	samples_close(store);
	clock_jump_ms = elapsed_jump_ms = 0;
	remove_directory(directory);
}

int main(void)
{
	make_world();
	test_equal_answers();
	test_late_samples();
	test_reduced_day();
	test_hours();
	test_wrong_clock();
	return checks_done();
}
