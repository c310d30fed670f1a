/* SPDX-License-Identifier: Apache-2.0 */
/* What is deleted is in no roll-up, also where roll-ups are all that is left. */
#include "tests/unit/store/rollup_world.h"

/* What is deleted is in no roll-up, and what is left in all of them; accounts keep what was taken.
 */
static void test_deletion(void)
{
	const struct choice choice = {.service = service_names[0],
				      .until_ms = start_ms + 5 * day_ms};
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	struct question all = {.from_ms = start_ms / day_ms * day_ms - 4 * day_ms,
			       .until_ms = start_ms + day_ms};
	struct samples_deleted deleted;

	sent_count = 0;
	CHECK(store && send_all(store) && samples_fold(store, NULL));
	CHECK(delete (store, &choice, &deleted, NULL));
	CHECK_NUMBER(deleted.samples, forget(&choice, minute_ms));
	for (unsigned round = 0; round < 2; round++) {
		CHECK_NUMBER(ask(store, all).samples, all_sent());
		CHECK(samples_fold(store, NULL));
	}
	CHECK_NUMBER(ask(store, all).resolution_ms, hour_ms);
	CHECK_NUMBER(ask_sqlite(directory, "SELECT sum(samples) FROM rollups WHERE level = 2"),
		     all_sent());
	CHECK_NUMBER(ask_month(directory, "SELECT sum(samples) FROM rollups WHERE level = 3"),
		     all_sent());
	samples_close(store);
	remove_directory(directory);
}

/* The choice is deleted and is what the sender has forgotten, at once, after a fold and a start. */
static struct samples_store *check_deletion(const char *directory, struct samples_store *store,
					    const int64_t *keep_ms, const struct choice *choice)
{
	const int64_t step_ms = keep_ms[2] ? hour_ms : ROLLUP_BUCKET_MS;
	struct samples_deleted deleted;
	struct error err = {0};

	CHECK(delete (store, choice, &deleted, &err));
	if (err.kind)
		printf("# %s\n", err.message);
	CHECK_NUMBER(deleted.samples, forget(choice, step_ms));
	CHECK_NUMBER(deleted.from_ms, choice->from_ms / step_ms * step_ms);
	CHECK_NUMBER(deleted.until_ms, (choice->until_ms + step_ms - 1) / step_ms * step_ms);
	CHECK_NUMBER(count_wrong_as_widened(store, step_ms), 0);
	CHECK(samples_fold(store, NULL));
	CHECK_NUMBER(count_wrong_as_widened(store, step_ms), 0);
	CHECK(delete (store, choice, &deleted, NULL));
	CHECK_NUMBER(deleted.samples, 0);
	samples_close(store);
	store = open_keeping(directory, keep_ms[0], keep_ms[1], keep_ms[2]);
	CHECK(samples_fold(store, NULL));
	CHECK_NUMBER(count_wrong_as_widened(store, step_ms), 0);
	return store;
}

/* Days of which only ten minutes, or hours, are left; late samples that are in no roll-up yet go
 * with them, and later ones stay. */
static void test_deletion_of_sums(const int64_t *keep_ms)
{
	const struct choice choices[] = {
		{NULL, service_names[0], start_ms + 33 * minute_ms, start_ms + 95 * minute_ms,
		 false},
		{host_names[2], NULL, start_ms - 7 * minute_ms, start_ms + 61 * minute_ms, false},
		{host_names[1], service_names[1], 0, start_ms + day_ms / 2, false},
		{host_names[3], NULL, start_ms + 100 * minute_ms, start_ms + 101 * minute_ms,
		 false},
	};
	const struct choice threads = {NULL, NULL, start_ms, start_ms + hour_ms, true};
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	struct samples_deleted deleted;
	struct error err = {0};

	sent_count = 0;
	CHECK(store && send_all(store) && samples_fold(store, NULL));
	samples_close(store);
	store = open_keeping(directory, keep_ms[0], keep_ms[1], keep_ms[2]);
	CHECK(samples_fold(store, NULL) && samples_fold(store, NULL));
	CHECK_NUMBER(ask_sqlite(directory, "SELECT count(*) FROM samples") % UINT64_MAX, 0);
	CHECK(!delete (store, &threads, &deleted, &err));
	CHECK_NUMBER(err.kind, ERROR_OPTION);
	CHECK_NUMBER(deleted.samples, 0);
	CHECK_NUMBER(count_wrong_as_widened(store, keep_ms[2] ? hour_ms : ROLLUP_BUCKET_MS), 0);
	for (unsigned i = 0; i < sizeof choices / sizeof *choices; i++) {
		sqlite_samples_of(store)->rollup_late_pause_ms = i % 2 ? 0 : hour_ms;
		CHECK(late_reports(store, 37, 50000 + i * HOSTS));
		CHECK(i % 2 || samples_fold(store, NULL));
		CHECK(i % 2 || late_reports(store, 37, 60000 + i * HOSTS));
		store = check_deletion(directory, store, keep_ms, &choices[i]);
	}
	samples_close(store);
	remove_directory(directory);
}

int main(void)
{
	make_world();
	test_deletion();
	test_deletion_of_sums(reduced_ms);
	test_deletion_of_sums(deleted_ms);
	return checks_done();
}
