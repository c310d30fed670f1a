/* SPDX-License-Identifier: Apache-2.0 */
/* What either engine decides of a report that comes, case by case: repeats, the limit of series,
 * times of single samples, reports out of time, overload. */
#include <string.h>

#include "symbol-server/store/rules/moment_times.h"
#include "symbol-server/store/rules/overload.h"
#include "symbol-server/store/rules/pending_reports.h"
#include "symbol-server/store/rules/repeats.h"
#include "symbol-server/store/rules/series_limit.h"
#include "symbol-server/store/rules/untimely_ids.h"
#include "tests/check.h"

/* --- repeats --- */

/* A letter is an id's first bytes, a digit its last one; '-': none. Profile i has 10^i samples. */
static const struct {
	const char *seen; /* of groups that are stored */
	const char *pending;
	const char *batch;
	const char *repeated; /* NULL: busy */
	uint64_t new_samples, sent_samples;
	unsigned runs; /* that the window gets */
} repeat_cases[] = {
	{"", "", "a1 a2 a3", "...", 111, 111, 1},
	{"", "", "a1 a2 a4", "...", 111, 111, 2},
	{"", "", "a1 b2 a2", "...", 111, 111, 3},
	{"a1 a2", "", "a1 a2 a3", "xx.", 100, 111, 1},
	{"a2", "", "a1 a2 a3", ".x.", 101, 111, 2},
	{"", "", "a1 a1 a1", ".xx", 1, 1, 1},
	{"a1", "", "a1 a1", "xx", 0, 1, 0},
	{"", "", "-0 -0 -0", "...", 111, 111, 0},
	{"a1", "b1", "a1 -0", "x.", 10, 11, 0},
	{"", "a1", "a2 a1", NULL, 0, 0, 0},
	{"", "", "", "", 0, 0, 0},
};

static uint32_t read_ids(const char *text, uint8_t ids[8][16])
{
	uint32_t count = 0;

	for (; *text; text += text[2] ? 3 : 2, count++) {
		memset(ids[count], 0, 16);
		if (*text == '-')
			continue;
		memset(ids[count], *text, 12);
		ids[count][15] = (uint8_t)(text[1] - '0');
	}
	return count;
}

static void fill_window(struct report_window *window, const char *text, uint64_t group)
{
	uint8_t ids[8][16];
	uint32_t count = read_ids(text, ids);

	for (uint32_t i = 0; i < count; i++) {
		struct report_run run = {.tenant = 1, .count = 1, .group = group};

		memcpy(run.prefix, ids[i], sizeof run.prefix);
		run.first = report_number(ids[i]);
		CHECK(report_window_add(window, &run));
	}
}

static void check_repeats(size_t number)
{
	struct batch_profile profiles[8] = {{.type = "on-cpu"}};
	struct batch_sample samples[8] = {{.samples = 1}};
	struct sample_batch batch = {.tenant = 1, .profiles = profiles, .samples = samples};
	bool is_repeated[8] = {false};
	char marks[9] = "";
	struct report_window window;
	struct repeats repeats;
	uint8_t ids[8][16];
	uint64_t before;
	bool ok;

	report_window_init(&window);
	fill_window(&window, repeat_cases[number].seen, 5);
	fill_window(&window, repeat_cases[number].pending, 6);
	batch.profile_count = read_ids(repeat_cases[number].batch, ids);
	for (uint32_t i = 0; i < batch.profile_count; i++) {
		profiles[i] = (struct batch_profile){
			.first_sample = i, .sample_count = 1, .is_counted = true};
		memcpy(profiles[i].id, ids[i], 16);
		samples[i].samples = i ? samples[i - 1].samples * 10 : 1;
	}
	repeats_init(&repeats, &batch, is_repeated);
	ok = repeats_find(&repeats, &window, 5, NULL);
	CHECK(ok == (repeat_cases[number].repeated != NULL));
	for (uint32_t i = 0; i < batch.profile_count; i++)
		marks[i] = is_repeated[i] ? 'x' : '.';
	if (ok) {
		CHECK_TEXT(marks, repeat_cases[number].repeated);
		CHECK_NUMBER(repeats.new_samples, repeat_cases[number].new_samples);
		CHECK_NUMBER(repeats.sent_samples, repeat_cases[number].sent_samples);
		before = window.added;
		CHECK(repeats_remember(&repeats, &window, 7));
		CHECK_NUMBER(window.added - before, repeat_cases[number].runs);
	}
	for (uint32_t i = 0; ok && i < batch.profile_count; i++)
		if (profile_has_id(&profiles[i]))
			CHECK(report_window_find(&window, 1, ids[i], 7) == REPORT_SEEN);
	repeats_release(&repeats);
	report_window_release(&window);
}

static void run_has_its_ids(void)
{
	struct report_run run = {.tenant = 1, .first = 7, .count = 2};
	struct batch_profile profile = {.id = {[15] = 7}};

	CHECK(report_run_has(&run, &profile));
	profile.id[15] = 9;
	CHECK(!report_run_has(&run, &profile));
	profile.id[15] = 6;
	CHECK(!report_run_has(&run, &profile));
	run.count = 0;
	profile.id[15] = 7;
	CHECK(!report_run_has(&run, &profile));
}

/* --- the limit of series --- */

static const struct {
	struct series_asked asked;
	enum series_verdict verdict;
} series_cases[] = {
	{{.host = 0, .all = 0, .most = 100}, SERIES_OWN},
	{{.host = 74, .all = 74, .most = 100}, SERIES_OWN},   /* alone it gets three quarters */
	{{.host = 75, .all = 75, .most = 100}, SERIES_OTHER}, /* a third of it is what is left */
	{{.host = 1, .all = 98, .most = 100}, SERIES_OWN},    /* one that has little */
	{{.host = 6, .all = 98, .most = 100}, SERIES_OTHER},
	{{.host = 0, .all = 100, .most = 100}, SERIES_OTHER},
	{{.host = 0, .all = 125, .most = 100}, SERIES_OTHER},
	{{.host = 0, .all = 126, .most = 100}, SERIES_REFUSED},
	{{.host = 0, .all = 126, .most = 100, .is_other_known = true}, SERIES_OTHER},
	{{.host = 75, .all = 126, .most = 100, .is_known = true}, SERIES_OWN},
	{{.host = 0, .all = 0, .most = 100, .is_closed = true}, SERIES_OTHER},
	{{.host = 0, .all = 0, .most = 100, .is_closed = true, .is_known = true}, SERIES_OWN},
	{{.host = 0, .all = UINT32_MAX, .most = UINT32_MAX}, SERIES_OTHER}, /* no overflow */
};

static void others_have_a_series(void)
{
	struct other_series other;

	other_series_init(&other, (struct text){"h1", 2});
	CHECK_NUMBER(other.series.label_count, 3);
	CHECK(!memcmp(series_host(&other.series).at, "h1", 2));
	other_series_init(&other, (struct text){"", 0});
	CHECK_NUMBER(other.series.label_count, 2);
	CHECK_NUMBER(series_host(&other.series).length, 0);
	for (uint32_t i = 1; i < 3; i++) { /* sorted, as of any series */
		other_series_init(&other, (struct text){"h1", 2});
		CHECK(strncmp(other.labels[i - 1].name.at, other.labels[i].name.at, 4) < 0);
	}
}

static void sender_is_told_once(void)
{
	struct batch_refusals told = {0};

	series_limit_tell(NULL, 9);
	series_limit_tell(&told, 9);
	CHECK(strstr(told.sentence, "the limit of 9 series a day is reached") != NULL);
	told.sentence[0] = 'T';
	series_limit_tell(&told, 9);
	CHECK(told.sentence[0] == 'T');
	CHECK_NUMBER(told.profiles, 2);
}

/* --- times of single samples --- */

static const struct {
	int64_t profile_ms, time_ms;
	bool fits;
} time_cases[] = {
	{3600000, 3600000, true},  {3659999, 3000000, true}, /* ten minutes before its minute */
	{3659999, 2999999, false}, {3600000, 4259999, true}, /* ten minutes after it */
	{3600000, 4260000, false}, {3600000, 0, false},
};

static void times_share_a_value(void)
{
	uint64_t times[] = {3600000000000, 3600000000000, 3600000000000}, sum = 0;
	struct sample_batch batch = {.times = times, .time_count = 3};
	struct batch_sample sample = {.value = 11, .time_count = 3};
	static const uint64_t shares[] = {4, 4, 3};

	for (uint32_t i = 0; i < 3; i++) {
		struct moment_time time;

		CHECK(moment_time_get(&batch, &sample, i, moments_from_ms(3600000), &time));
		CHECK_NUMBER(time.value, shares[i]);
		sum += time.value;
	}
	CHECK_NUMBER(sum, sample.value);
}

static void check_time(size_t number)
{
	uint64_t at = (uint64_t)time_cases[number].time_ms * 1000000;
	struct sample_batch batch = {.times = &at, .time_count = 1};
	struct batch_sample sample = {.value = 1, .time_count = 1};
	struct moment_time time;

	CHECK(moment_time_get(&batch, &sample, 0, moments_from_ms(time_cases[number].profile_ms),
			      &time) == time_cases[number].fits);
}

/* --- out of time --- */

static void untimely_count_once(void)
{
	static struct untimely_ids ids;
	struct batch_untimely two[] = {{.id = {1}}, {.id = {0}}}, other = {.id = {2}};
	struct sample_batch batch = {.untimely = two, .untimely_count = 2};

	CHECK(!untimely_ids_have(&ids, &two[0]));
	untimely_ids_note(&ids, &batch);
	CHECK(untimely_ids_have(&ids, &two[0]));
	CHECK(!untimely_ids_have(&ids, &two[1])); /* whose id is not known */
	CHECK(!untimely_ids_have(&ids, &other));
}

/* --- overload --- */

static const struct error disk_gone = {ERROR_SYSTEM, 0, "the disk is gone"};

static const struct {
	struct store_load load;
	enum error_kind kind;
	const char *sentence;
} load_cases[] = {
	{{.waiting = 10, .most_waiting = 10, .waiting_for = "x"}, ERROR_NONE, ""},
	{{.is_closing = true}, ERROR_BUSY, "the store is closing"},
	{{.waiting = 11, .most_waiting = 10, .waiting_for = "to be written"},
	 ERROR_BUSY,
	 "too much is waiting to be written"},
	{{.refused = &disk_gone}, ERROR_SYSTEM, "the disk is gone"},
	{{.refused = &(const struct error){0}}, ERROR_NONE, ""},
	{{.max_disk = 1600, .disk_left = 100, .disk = 1}, ERROR_NONE, ""},
	{{.max_disk = 1600, .disk_left = 99, .disk = 1},
	 ERROR_BUSY,
	 "--max-disk is reached, and nothing older is left to be deleted"},
	{{.max_disk = 1600, .disk_left = 111, .disk = 1, .unfolded = 4, .most_unfolded = 9},
	 ERROR_BUSY,
	 "--max-disk is reached, and nothing older is left to be deleted"},
	{{.max_disk = 1600, .disk_left = 99}, ERROR_NONE, ""}, /* nothing is stored yet */
	{{.max_disk = 1600, .disk_left = UINT64_MAX, .disk = 1}, ERROR_NONE, ""},
	{{.unfolded = 11, .most_unfolded = 10}, ERROR_BUSY, "too much is waiting to be folded"},
	{{.unfolded = 11, .most_unfolded = 10, .fold_error = &disk_gone},
	 ERROR_SYSTEM,
	 "samples cannot be written: the disk is gone"},
	{{.unfolded = 10, .most_unfolded = 10, .fold_error = &disk_gone}, ERROR_NONE, ""},
};

/* --- who waits --- */

static unsigned told;

static void tell(void *context, bool is_accepted, const struct error *err)
{
	told += *(unsigned *)context;
	CHECK(!is_accepted && err->kind == ERROR_BUSY);
}

static void all_are_answered(void)
{
	struct pending_reports pending = {0};
	struct error err = {ERROR_BUSY, 0, ""};
	unsigned numbers[40];

	for (unsigned i = 0; i < 40; i++) {
		numbers[i] = i;
		CHECK(pending_reports_add(&pending, i % 4 ? tell : NULL, &numbers[i]));
	}
	CHECK_NUMBER(pending.count, 40);
	pending_reports_answer(&pending, false, &err);
	CHECK_NUMBER(told, 39 * 40 / 2 - 4 * (9 * 10 / 2));
	pending_reports_release(&pending);
	CHECK_NUMBER(pending.count, 0);
}

int main(void)
{
	for (size_t i = 0; i < sizeof repeat_cases / sizeof *repeat_cases; i++)
		check_repeats(i);
	run_has_its_ids();
	for (size_t i = 0; i < sizeof series_cases / sizeof *series_cases; i++)
		CHECK_NUMBER(series_limit_judge(&series_cases[i].asked), series_cases[i].verdict);
	others_have_a_series();
	sender_is_told_once();
	for (size_t i = 0; i < sizeof time_cases / sizeof *time_cases; i++)
		check_time(i);
	times_share_a_value();
	untimely_count_once();
	for (size_t i = 0; i < sizeof load_cases / sizeof *load_cases; i++) {
		struct error err = {0};

		CHECK(store_is_overloaded(&load_cases[i].load, &err) == (err.kind != ERROR_NONE));
		CHECK_NUMBER(err.kind, load_cases[i].kind);
		CHECK_TEXT(err.message, load_cases[i].sentence);
	}
	all_are_answered();
	return checks_done();
}
