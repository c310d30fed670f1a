/* SPDX-License-Identifier: Apache-2.0 */
/* Wherever a process dies that makes roll-ups or deletes out of them, what is answered is right. */
#include "tests/unit/store/rollup_world.h"

/* ---- killed while roll-ups are made, minutes go and days go ---- */

static void run_turns(const char *directory, const int64_t *keep_ms)
{
	struct samples_store *store = open_keeping(directory, keep_ms[0], keep_ms[1], keep_ms[2]);

	for (unsigned i = 0; i < 3; i++)
		if (!store || !samples_fold(store, NULL))
			_exit(2);
	samples_close(store);
	_exit(0);
}

static const struct choice *deleting; /* what run_turns() does instead of waiting; NULL: nothing */

static void run_deletion(const char *directory, const int64_t *keep_ms)
{
	struct samples_store *store = open_keeping(directory, keep_ms[0], keep_ms[1], keep_ms[2]);
	struct samples_deleted deleted;

	if (!store || !delete (store, deleting, &deleted, NULL))
		_exit(2);
	samples_close(store);
	_exit(0);
}

/* False: it came to its end before that point. */
static bool kill_run(const char *directory, const int64_t *keep_ms, unsigned at)
{
	pid_t child = fork();
	int status;

	if (!child) {
		points = 0;
		kill_at = at;
		if (deleting)
			run_deletion(directory, keep_ms);
		run_turns(directory, keep_ms);
	}
	waitpid(child, &status, 0);
	if (WIFEXITED(status))
		CHECK_NUMBER(WEXITSTATUS(status), 0);
	return WIFSIGNALED(status);
}

static bool is_all_there(struct samples_store *store, bool is_hours)
{
	static const int minutes[] = {-30, 0, 35, 120, 240};
	bool ok = true;

	for (unsigned i = 0; i < 4; i++)
		ok = is_right_as_widened(
			     store,
			     (struct question){.host = i % 2 ? host_names[1] : NULL,
					       .service = i > 1 ? service_names[1] : NULL,
					       .from_ms = start_ms + minutes[i] * minute_ms,
					       .until_ms = start_ms + minutes[i + 1] * minute_ms},
			     is_hours ? hour_ms : ROLLUP_BUCKET_MS) &&
		     ok;
	return ok;
}

/* Wherever it ended: taken is what was sent, and what is stored is what is shown. */
static bool is_closed(struct samples_store *store)
{
	struct question all = {.from_ms = start_ms - hour_ms, .until_ms = start_ms + day_ms / 2};
	struct answer answer = ask(store, all), truth = tally(&all);

	return answer.taken == truth.taken && answer.stored == answer.samples &&
	       answer.samples >= truth.samples;
}

static bool recovers(const char *directory, const int64_t *keep_ms)
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (!child) {
		struct error err = {0};
		struct samples_store *store = open_keeping(directory, keep_ms[0], keep_ms[1],
							   keep_ms[2]);
		struct samples_deleted deleted;
		bool ok = store &&
			  (deleting ? is_closed(store) && delete (store, deleting, &deleted, &err)
				    : true);

		ok = ok && is_all_there(store, keep_ms[2]) && samples_fold(store, &err) &&
		     is_all_there(store, keep_ms[2]) && samples_fold(store, &err) &&
		     is_all_there(store, keep_ms[2]);
		samples_close(store);
		if (!ok)
			printf("# %s\n", store ? err.message : "not opened");
		fflush(stdout);
		_exit(!ok);
	}
	waitpid(child, &status, 0);
	if (WIFSIGNALED(status))
		printf("# signal %d\n", WTERMSIG(status));
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static unsigned count_damaged(const char *sent_directory, const int64_t *keep_ms)
{
	static unsigned first; /* before things, then after them */
	const unsigned step = deleting ? 3 * POINT_STEP : POINT_STEP;
	unsigned at = first++ % step, count = 0, wrong = 0;
	bool is_over = false;

	while (!is_over && at < 1000) {
		char command[256], directory[] = "/tmp/farflame-kill-XXXXXX";

		if (!mkdtemp(directory))
			return UINT32_MAX;
		snprintf(command, sizeof command, "cp -r %s/. %s", sent_directory, directory);
		if (system(command))
			return UINT32_MAX;
		at += step;
		count++;
		is_over = !kill_run(directory, keep_ms, at);
		if (!recovers(directory, keep_ms)) {
			printf("# killed at point %u: wrong\n", at);
			wrong++;
		}
		remove_directory(directory);
	}
	printf("# %u points\n", count);
	CHECK(is_over && at > (deleting ? 6 : 12));
	return wrong;
}

static void test_kill_points(void)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);

	sent_count = 0;
	sqlite_samples_of(store)->no_rollups = true;
	CHECK(store && send_all(store));
	samples_close(store);
	CHECK_NUMBER(count_damaged(directory, reduced_ms), 0);
	CHECK_NUMBER(count_damaged(directory, deleted_ms), 0);
	remove_directory(directory);
}

/* The same while rows go out of sums that cannot be made again, late ones among them. */
static void test_kill_points_of_deletion(const int64_t *keep_ms)
{
	const struct choice choice = {NULL, service_names[0], start_ms + 33 * minute_ms,
				      start_ms + 95 * minute_ms, false};
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);

	sent_count = 0;
	CHECK(store && send_all(store) && samples_fold(store, NULL));
	samples_close(store);
	store = open_keeping(directory, keep_ms[0], keep_ms[1], keep_ms[2]);
	CHECK(samples_fold(store, NULL) && samples_fold(store, NULL));
	sqlite_samples_of(store)->rollup_late_pause_ms = hour_ms;
	CHECK(late_reports(store, 37, 50000) && samples_fold(store, NULL));
	CHECK(late_reports(store, 37, 60000) && samples_fold(store, NULL));
	samples_close(store);
	forget(&choice, keep_ms[2] ? hour_ms : ROLLUP_BUCKET_MS);
	deleting = &choice;
	CHECK_NUMBER(count_damaged(directory, keep_ms), 0);
	deleting = NULL;
	remove_directory(directory);
}

int main(void)
{
	make_world();
	test_kill_points();
	test_kill_points_of_deletion(reduced_ms);
	test_kill_points_of_deletion(deleted_ms);
	return checks_done();
}
