/* SPDX-License-Identifier: Apache-2.0 */
/* A day takes so many series of a tenant: when most are taken, a host that has its share gets one
 * for all its further ones, so that totals stay true and others have room; where there is none for
 * that either it is told and accounted for. After a crash and a restart too. */
#include "tests/check.h"

#include <sys/wait.h>

#include "tests/unit/store/batches.h"

enum { LIMIT = 8, OWN = 6 /* of a host that is alone */ };

static struct samples_store *open_limited(const char *directory)
{
	struct samples_store_options options = {.directory = directory, .series_max = LIMIT};

	return samples_open(&options, NULL);
}

/* One report with a profile of three samples for each process from first to first + count − 1. */
static bool add_processes(struct samples_store *store, const char *host, int64_t time_ms,
			  uint32_t report, uint32_t first, uint32_t count, bool is_counted,
			  struct batch_refusals *refusals)
{
	struct batch_maker maker;
	char names[32][16];
	bool ok;

	batch_start(&maker);
	maker.batch.refusals = refusals;
	for (uint32_t i = 0; i < count; i++) {
		snprintf(names[i], sizeof names[i], "p%u", first + i);
		batch_profile(&maker, batch_series(&maker, host, names[i]), time_ms, report, i)
			->is_counted = is_counted;
		batch_sample(&maker, batch_stack(&maker, first + i, 5), "worker", 3, 30);
	}
	*refusals = (struct batch_refusals){0};
	ok = add_and_wait(store, &maker, NULL, NULL);
	arena_release(&maker.arena);
	return ok;
}

/* Samples of each host that are in its "other". */
static uint64_t folded(struct samples_store *store)
{
	struct samples_query query = {
		.tenant = 1, .from_ms = noon - 1, .until_ms = noon + 60000, .type = "on-cpu"};
	struct samples_result *result = samples_query(store, &query, NULL);
	uint64_t sum = 0, in_other = 0;

	for (uint32_t i = 0; result && i < result->host_count; i++)
		sum += result->hosts[i].folded_series;
	for (size_t i = 0; result && i < result->stack_count; i++)
		for (uint32_t k = 0; k < result->series[result->stacks[i].series].count; k++)
			if (!strcmp(result->series[result->stacks[i].series].names[k], "process") &&
			    !strcmp(result->series[result->stacks[i].series].values[k], "other"))
				in_other += result->stacks[i].samples;
	CHECK_NUMBER(in_other, sum);
	samples_result_free(result);
	return sum;
}

static void check_whole(struct samples_store *store, uint64_t samples, uint64_t in_other,
			uint64_t lost, unsigned series, const char *when)
{
	struct totals totals = query_totals(store, noon - 1, noon + 60000);

	printf("# %s\n", when);
	CHECK_NUMBER(totals.samples, samples);
	CHECK_NUMBER(totals.stored, samples);
	CHECK_NUMBER(totals.lost, lost);
	CHECK_NUMBER(totals.taken, samples + lost);
	CHECK_NUMBER(totals.series, series);
	CHECK_NUMBER(folded(store), in_other);
}

/* Dies without closing anything. */
static void add_and_die(const char *directory)
{
	pid_t child = fork();
	int status;

	if (!child) {
		struct samples_store *store = open_limited(directory);
		struct batch_refusals refusals;

		_exit(!add_processes(store, "h1", noon, 1, 1, 8, false, &refusals) ||
		      refusals.profiles != 0);
	}
	waitpid(child, &status, 0);
	CHECK_NUMBER(WEXITSTATUS(status), 0);
}

static void test_share(void)
{
	const char *directory = make_directory();
	struct samples_counters counters;
	struct batch_refusals refusals;
	struct samples_store *store;
	uint64_t samples = 24;
	char host[8];

	add_and_die(directory);
	store = open_limited(directory);
	check_whole(store, samples, 6, 0, OWN + 1, "replayed after a crash");
	CHECK(add_processes(store, "h1", noon, 1, 1, 8, false, &refusals));
	check_whole(store, samples, 6, 0, OWN + 1, "the same again");
	CHECK(add_processes(store, "h1", noon, 2, 3, 5, false, &refusals));
	samples += 15;
	check_whole(store, samples, 9, 0, OWN + 1,
		    "known series go on, the seventh is in \"other\"");
	CHECK(add_processes(store, "h2", noon, 3, 20, 1, false, &refusals));
	samples += 3;
	check_whole(store, samples, 9, 0, OWN + 2, "another host has room");
	for (unsigned i = 3; i < 6; i++) {
		snprintf(host, sizeof host, "h%u", i);
		CHECK(add_processes(store, host, noon, i + 1, 20, 2, false, &refusals));
		CHECK_NUMBER(refusals.profiles, 0);
	}
	samples += 18;
	check_whole(store, samples, 27, 0, OWN + 5, "when it is full, each host has its \"other\"");
	CHECK(add_processes(store, "h6", noon, 9, 20, 2, false, &refusals));
	CHECK_NUMBER(refusals.profiles, 2);
	CHECK(strstr(refusals.sentence, "8 series") != NULL);
	check_whole(store, samples, 27, 6, OWN + 5, "there is an end to that too");
	samples_counters(store, &counters);
	CHECK_NUMBER(counters.series_refused_profiles, 2);
	CHECK_NUMBER(counters.series_refused_samples, 6);
	CHECK_NUMBER(counters.series_folded_profiles, 1 + 6);
	CHECK_NUMBER(counters.series_folded_samples, 3 + 18);
	CHECK(add_processes(store, "h6", noon + 86400000, 10, 20, 2, false, &refusals));
	CHECK_NUMBER(refusals.profiles, 0); /* another day has room of its own */
	samples_close(store);

	store = open_limited(directory);
	check_whole(store, samples, 27, 6, OWN + 5, "after a restart");
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

	CHECK(add_processes(store, "h1", noon, 1, 1, 8, true, &refusals));
	totals = query_totals(store, noon - 1, noon + 60000);
	CHECK_NUMBER(totals.taken, 0);
	CHECK_NUMBER(totals.lost, 0);
	CHECK_NUMBER(totals.stored, 24);
	samples_close(store);
	remove_directory(directory);
}

int main(void)
{
	test_share();
	test_counted();
	return checks_done();
}
