/* SPDX-License-Identifier: Apache-2.0 */
/* Where only sums are left there are no threads: a query for threads says from when on it knows them. */
#include <time.h>

#include "tests/check.h"
#include "tests/unit/store/batches.h"

static const int64_t day = 86400000, hour = 3600000;

static bool is_worker(void *context, const char *thread)
{
	(void)context;
	return !strcmp(thread, "worker");
}

static int64_t threads_from(struct samples_store *store, int64_t from_ms, int64_t until_ms,
			    bool by_thread, bool wanted, uint64_t samples)
{
	const struct samples_query query = {.tenant = 1,
					    .type = "on-cpu",
					    .from_ms = from_ms,
					    .until_ms = until_ms,
					    .by_thread = by_thread,
					    .thread_wanted = wanted ? is_worker : NULL};
	struct error err = {0};
	struct samples_result *result = samples_query(store, &query, &err);
	int64_t found = -1;
	uint64_t sum = 0;

	if (CHECK(result)) {
		for (size_t i = 0; i < result->stack_count; i++)
			sum += result->stacks[i].samples;
		CHECK_NUMBER(sum, samples);
		found = result->threads_from_ms;
	}
	samples_result_free(result);
	return found;
}

static void report_at(struct samples_store *store, int64_t time_ms, unsigned id, uint64_t samples)
{
	struct batch_maker maker;

	batch_report(&maker, "h1", "a", time_ms, id, 1, 1);
	maker.batch.samples[0].thread = text_from("worker");
	maker.batch.samples[0].samples = samples;
	CHECK(add_and_wait(store, &maker, NULL, NULL));
	arena_release(&maker.arena);
}

static bool has_part(struct samples_store *store, int64_t from_ms, int64_t until_ms, uint64_t want)
{
	const struct samples_query query = {
		.tenant = 1, .from_ms = from_ms, .until_ms = until_ms};
	struct label_count *labels;
	struct value_count *values;
	struct arena arena;
	bool is_part = false;
	uint64_t threads = 0;
	size_t count;

	arena_init(&arena, 1 << 20);
	CHECK(samples_labels(store, &query, &arena, &labels, &count, NULL));
	for (size_t i = 0; i < count; i++)
		if (!strcmp(labels[i].name, "thread")) {
			threads = labels[i].values;
			is_part = labels[i].is_part;
		}
	CHECK_NUMBER(threads, want);
	CHECK(samples_label_values(store, &query, "thread", &arena, &values, &count, NULL));
	CHECK_NUMBER(count, want);
	arena_release(&arena);
	return is_part;
}

static void test_limits(struct samples_store *store, int64_t from_ms, int64_t until_ms)
{
	struct samples_query query = {
		.tenant = 1, .from_ms = from_ms, .until_ms = until_ms, .limits = {.rows = 1}};
	struct label_count *labels;
	struct value_count *values;
	struct type_count *types;
	struct error err = {0};
	struct arena arena;
	size_t count;

	arena_init(&arena, 1 << 20);
	CHECK(!samples_label_values(store, &query, "thread", &arena, &values, &count, &err));
	CHECK(err.kind == ERROR_LIMIT && strstr(err.message, "--query-rows"));
	err = (struct error){0};
	CHECK(!samples_labels(store, &query, &arena, &labels, &count, &err));
	CHECK(err.kind == ERROR_LIMIT);
	err = (struct error){0};
	CHECK(!samples_types(store, &query, &arena, &types, &count, &err));
	CHECK(err.kind == ERROR_LIMIT);
	query.limits.rows = 2;
	CHECK(samples_types(store, &query, &arena, &types, &count, NULL));
	arena_release(&arena);
}

int main(void)
{
	const char *directory = make_directory();
	int64_t now = (int64_t)time(NULL) * 1000, late = now - hour, early = now - 4 * day;
	struct samples_store_options options = {.directory = directory};
	struct samples_store *store = samples_open(&options, NULL);
	int64_t from;

	if (!CHECK(store))
		return checks_done();
	report_at(store, early, 1, 5);
	report_at(store, late, 2, 7);
	CHECK(samples_fold(store, NULL));
	samples_close(store);

	options.keep_ms[SAMPLES_RAW] = 2 * day;
	options.keep_ms[SAMPLES_10M] = 30 * day;
	store = samples_open(&options, NULL);
	if (!CHECK(store && samples_fold(store, NULL)))
		return checks_done();
	from = threads_from(store, early, now, true, false, 12);
	CHECK(from > early && from <= early + 600000);
	CHECK_NUMBER(threads_from(store, early, now, false, true, 7), from);
	CHECK_NUMBER(threads_from(store, early, now, false, false, 12), 0);
	CHECK_NUMBER(threads_from(store, late, now, true, true, 7), 0);
	CHECK(!has_part(store, early, now, 1));
	test_limits(store, early, now);
	samples_close(store);
	remove_directory(directory);
	return checks_done();
}
