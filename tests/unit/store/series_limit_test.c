/* SPDX-License-Identifier: Apache-2.0 */
/* A day takes so many series of a tenant and no more: what is beyond is told, counted and accounted
 * for, what is known goes on, also after a crash and a restart. */
#include "tests/check.h"

#include <sys/wait.h>

#include "tests/unit/store/batches.h"

enum { LIMIT = 5 };

static struct samples_store *open_limited(const char *directory)
{
	struct samples_store_options options = {.directory = directory, .series_max = LIMIT};

	return samples_open(&options, NULL);
}

/* One report with a profile of three samples for each process from first to first + count − 1. */
static bool add_processes(struct samples_store *store, int64_t time_ms, uint32_t tenant,
			  uint32_t report, uint32_t first, uint32_t count, bool is_counted,
			  struct batch_refusals *refusals)
{
	struct batch_maker maker;
	char names[32][16];
	bool ok;

	batch_start(&maker);
	maker.batch.tenant = tenant;
	maker.batch.refusals = refusals;
	for (uint32_t i = 0; i < count; i++) {
		snprintf(names[i], sizeof names[i], "p%u", first + i);
		batch_profile(&maker, batch_series(&maker, "h1", names[i]), time_ms, report, i)
			->is_counted = is_counted;
		batch_sample(&maker, batch_stack(&maker, first + i, 5), "worker", 3, 30);
	}
	*refusals = (struct batch_refusals){0};
	ok = add_and_wait(store, &maker, NULL, NULL);
	arena_release(&maker.arena);
	return ok;
}

static void check_whole(struct samples_store *store, uint64_t samples, uint64_t lost,
			const char *when)
{
	struct totals totals = query_totals(store, noon - 1, noon + 60000);

	printf("# %s\n", when);
	CHECK_NUMBER(totals.samples, samples);
	CHECK_NUMBER(totals.stored, samples);
	CHECK_NUMBER(totals.lost, lost);
	CHECK_NUMBER(totals.taken, samples + lost);
	CHECK_NUMBER(totals.series, LIMIT);
}

/* Dies without closing anything. */
static void add_and_die(const char *directory)
{
	pid_t child = fork();
	int status;

	if (!child) {
		struct samples_store *store = open_limited(directory);
		struct batch_refusals refusals;

		_exit(!add_processes(store, noon, 1, 1, 1, 8, false, &refusals) ||
		      refusals.profiles != 3);
	}
	waitpid(child, &status, 0);
	CHECK_NUMBER(WEXITSTATUS(status), 0);
}

static void test_limit(void)
{
	const char *directory = make_directory();
	struct samples_counters counters;
	struct batch_refusals refusals;
	struct samples_store *store;

	add_and_die(directory);
	store = open_limited(directory);
	check_whole(store, LIMIT * 3, 9, "replayed after a crash");
	CHECK(add_processes(store, noon, 1, 1, 1, 8, false, &refusals));
	CHECK_NUMBER(refusals.profiles, 0); /* seen before: neither stored nor lost again */
	check_whole(store, LIMIT * 3, 9, "the same again");
	CHECK(add_processes(store, noon, 1, 2, 3, 4, false, &refusals));
	CHECK_NUMBER(refusals.profiles, 1); /* 3, 4 and 5 are known, 6 is not */
	CHECK(strstr(refusals.sentence, "5 series") != NULL);
	check_whole(store, LIMIT * 3 + 9, 12, "known series go on");
	CHECK(add_processes(store, noon + 86400000, 1, 3, 20, 8, false, &refusals));
	CHECK_NUMBER(refusals.profiles, 3); /* another day has room of its own */
	CHECK(add_processes(store, noon, 2, 4, 20, 4, false, &refusals));
	CHECK_NUMBER(refusals.profiles, 0); /* so has another tenant */
	CHECK(add_processes(store, noon, 1, 5, 30, 2, false, &refusals));
	CHECK_NUMBER(refusals.profiles, 2);
	samples_counters(store, &counters);
	CHECK_NUMBER(counters.series_refused_profiles, 1 + 3 + 2);
	CHECK_NUMBER(counters.series_refused_samples, 3 * (1 + 3 + 2));
	samples_close(store);

	store = open_limited(directory);
	check_whole(store, LIMIT * 3 + 9, 18, "after a restart");
	samples_close(store);
	remove_directory(directory);
}

/* Of senders that count what they take, nothing is taken twice: their counters say it. */
static void test_counted(void)
{
	const char *directory = make_directory();
	struct samples_store *store = open_limited(directory);
	struct batch_refusals refusals;
	struct totals totals;

	CHECK(add_processes(store, noon, 1, 1, 1, 8, true, &refusals));
	totals = query_totals(store, noon - 1, noon + 60000);
	CHECK_NUMBER(totals.taken, 0);
	CHECK_NUMBER(totals.lost, 9);
	samples_close(store);
	remove_directory(directory);
}

int main(void)
{
	test_limit();
	test_counted();
	return checks_done();
}
