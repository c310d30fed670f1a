/* SPDX-License-Identifier: Apache-2.0 */
/* A server that is killed just before or just after any of its commits, and again while it
 * recovers, has every acknowledged report once. The points are found by standing in for the calls
 * below. */
#include "tests/check.h"

#include <sched.h>
#include <sys/wait.h>
#include <time.h>

#include "symbol-server/store/sqlite/journal/journal.h"
#include "symbol-server/store/sqlite/samples_store.h"
#include "tests/unit/store/batches.h"

/* A journal segment that is released becomes a spare one. */
#define KILL_AT_RENAME(from) strstr(from, ".journal")
#include "tests/unit/store/kill_shims.h"

enum { REPORTS = 12, SAMPLES = 10 };

/* All pairs of points take a minute: of the second ones every nineteenth, another one each time. */
#ifndef PAIR_STEP
#define PAIR_STEP 19
#endif

/* Nobody has to wait for company; but SQLite waits for locks, and counts the time it asked
 * for.
 */
int usleep(useconds_t us)
{
	const struct timespec time = {.tv_nsec = us * 1000l};

	return us < 10000 ? sched_yield() : nanosleep(&time, NULL);
}

/* ---- the reports ---- */

struct report { /* small, so that the processes that are made by the hundred are */
	struct batch_maker maker;
	struct batch_module module;
	struct batch_location locations[SAMPLES * 5];
	uint32_t location_indices[SAMPLES * 5];
	struct batch_stack stacks[SAMPLES];
	struct batch_series series[2];
	struct batch_sample samples[SAMPLES];
	struct batch_profile profiles[2];
	struct batch_counters counters;
};
static struct report reports[REPORTS + 1]; /* from 1 */

static void start_report(struct report *report)
{
	memset(report, 0, sizeof *report);
	arena_init(&report->maker.arena, 1 << 20);
	build_id_parse(&report->module.id, "00112233445566778899aabbccddeeff00112233", 40);
	report->module.name = text_from("libtest.so");
	report->module.go_id = text_from("");
	report->maker.batch = (struct sample_batch){
		.tenant = 1,
		.sender = text_from("192.0.2.1"),
		.modules = &report->module,
		.module_count = 1,
		.locations = report->locations,
		.location_indices = report->location_indices,
		.stacks = report->stacks,
		.series = report->series,
		.samples = report->samples,
		.profiles = report->profiles,
		.counters = &report->counters,
	};
}

/* On one day, on the other, or on both. */
static void make_report(uint32_t number, bool with_counters)
{
	struct batch_maker *maker = &reports[number].maker;
	int64_t days[] = {noon, noon + day_ms};
	uint32_t parts = number % 3 ? 1 : 2;
	struct batch_counters *counters;

	start_report(&reports[number]);
	for (uint32_t part = 0; part < parts; part++) {
		batch_profile(maker, batch_series(maker, "h1", number % 2 ? "a" : "b"),
			      days[(number + part) % 2] + number, number, part)
			->is_counted = with_counters;
		for (uint32_t i = 0; i < SAMPLES / parts; i++) {
			batch_sample(maker, batch_stack(maker, number * 3 + i, 5), "worker", 1, 10);
			batch_link(maker, number * 100 + i / 2);
		}
	}
	if (!with_counters)
		return;
	counters = &maker->batch.counters[maker->batch.counters_count++];
	counters->agent_id[0] = 1;
	counters->host = text_from("h1");
	counters->agent_version = counters->kernel_release = text_from("1");
	counters->numbers.seq = number;
	counters->numbers.acknowledged = number - 1;
	counters->numbers.taken = (uint64_t)number * SAMPLES;
	counters->numbers.time_ms = days[number % 2] + number;
	counters->numbers.received_ms = counters->numbers.time_ms + 1;
}

static struct totals both_days(struct samples_store *store)
{
	return query_totals(store, noon - 1, noon + day_ms + 1);
}

/* ---- processes that are killed ---- */

/* Sends everything, folding now and then. Each acknowledged number goes to the pipe. */
static void run_sending(const char *directory, int pipe_fd)
{
	struct samples_store *store = open_store(directory, NULL);

	for (uint32_t number = 1; store && number <= REPORTS; number++) {
		if (!add_and_wait(store, &reports[number].maker, NULL, NULL) ||
		    write(pipe_fd, &number, sizeof number) != sizeof number)
			_exit(2);
		if (number % 4 == 0 && !samples_fold(store, NULL))
			_exit(3);
	}
	samples_close(store);
	_exit(store ? 0 : 4);
}

/* Replays, folds, closes. */
static void run_recovering(const char *directory)
{
	struct samples_store *store = open_store(directory, NULL);

	if (!store || !samples_fold(store, NULL))
		_exit(2);
	samples_close(store);
	_exit(0);
}

/* False: it came to its end before that point. *acknowledged: the last report that was; NULL: a
 * run that only recovers. */
static bool kill_run(const char *directory, unsigned at, uint32_t *acknowledged)
{
	uint32_t number;
	int fds[2], status;
	pid_t child;

	if (pipe(fds))
		return false;
	child = fork();
	if (!child) {
		points = 0;
		kill_at = at;
		if (acknowledged)
			run_sending(directory, fds[1]);
		run_recovering(directory);
	}
	close(fds[1]);
	while (read(fds[0], &number, sizeof number) == sizeof number)
		if (acknowledged)
			*acknowledged = number;
	close(fds[0]);
	waitpid(child, &status, 0);
	if (WIFEXITED(status))
		CHECK_NUMBER(WEXITSTATUS(status), 0);
	return WIFSIGNALED(status);
}

/* ---- what is there afterwards ---- */

/* A crash damages nothing. */
static bool has_damaged_file(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	bool has = false;

	while (directory && (entry = readdir(directory)))
		has = has || strstr(entry->d_name, ".damaged");
	if (directory)
		closedir(directory);
	return has;
}

static bool is_whole(struct samples_store *store, bool with_counters)
{
	struct totals totals = both_days(store);
	uint64_t all = REPORTS * SAMPLES;

	return totals.samples == all && totals.stored == all && totals.taken == all &&
	       query_spans(store, noon - 1, noon + day_ms + 1) == all && !totals.lost &&
	       (!with_counters || agent_taken(store) == all);
}

/* A start and a clean stop that nothing happens between, then everything again, as from somebody
 * who heard no answer; and once more after another start. */
static bool recovers(const char *directory, bool with_counters, uint32_t acknowledged)
{
	struct samples_store *store = open_store(directory, NULL);
	uint64_t samples = store ? both_days(store).samples : 0;
	bool ok = samples >= (uint64_t)acknowledged * SAMPLES &&
		  samples <= (acknowledged + 1ull) * SAMPLES;

	samples_close(store);
	for (unsigned again = 0; ok && again < 2; again++) {
		unsigned duplicates, all = 0;

		store = open_store(directory, NULL);
		ok = store && (!again || is_whole(store, with_counters));
		for (uint32_t number = 1; ok && number <= REPORTS; number++) {
			ok = add_and_wait(store, &reports[number].maker, &duplicates, NULL);
			all += duplicates;
		}
		ok = ok && is_whole(store, with_counters) &&
		     (!again || all == REPORTS + REPORTS / 3);
		samples_close(store);
	}
	return ok && !has_damaged_file(directory);
}

/* In a process of its own, so that this one stays small. */
static bool check_recovery(const char *directory, bool with_counters, uint32_t acknowledged)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(!recovers(directory, with_counters, acknowledged));
	waitpid(child, &status, 0);
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

/* Killed at one point while it worked, and at another, unless that is 0, while it recovered. Only
 * what goes wrong is a line of its own. *is_over: the points, first or second, are used up. */
static bool survives(unsigned first, unsigned second, bool with_counters, bool *is_over)
{
	const char *directory = make_directory();
	uint32_t acknowledged = 0;
	bool ok;

	*is_over = !kill_run(directory, first, &acknowledged);
	if (second)
		*is_over = !kill_run(directory, second, NULL);
	ok = check_recovery(directory, with_counters, acknowledged);
	if (!ok)
		printf("# killed at point %u, then at %u: wrong\n", first, second);
	remove_directory(directory);
	return ok;
}

static void test_kill_points(bool with_counters)
{
	unsigned first = 0, pairs = 0, wrong = 0;
	bool is_over = false;

	for (uint32_t number = 1; number <= REPORTS; number++)
		make_report(number, with_counters);
	while (!is_over && first < 1000) {
		wrong += !survives(++first, 0, with_counters, &is_over);
		for (unsigned second = 1 + first % PAIR_STEP; !is_over && second < 1000;
		     second += PAIR_STEP, pairs++) {
			bool is_second_over;

			wrong += !survives(first, second, with_counters, &is_second_over);
			if (is_second_over)
				break;
		}
	}
	printf("# %u points, %u pairs\n", first - 1, pairs);
	CHECK_NUMBER(wrong, 0);
	CHECK(is_over && first > 18); /* three folds of three files, before and after */
	CHECK(pairs > first);         /* one fold and the close */
	for (uint32_t number = 1; number <= REPORTS; number++)
		arena_release(&reports[number].maker.arena);
}

int main(void)
{
	test_kill_points(false);
	test_kill_points(true);
	return checks_done();
}
