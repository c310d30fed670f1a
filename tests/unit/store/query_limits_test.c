/* SPDX-License-Identifier: Apache-2.0 */
/* Questions at their limits: time and rows hold over several calls, a value is asked for once, what
 * does not fit is cut from its light end and counted. */
#include "common/clock.h"
#include "tests/check.h"
#include "tests/unit/store/batches.h"

#include "symbol-server/store/limits.h"

enum { REPORTS = 60, PER_REPORT = 400, DEPTH = 10, HEAVY = 100, SERIES = 200 };

static uint64_t all_samples, all_value;

static uint64_t value_of(uint32_t stack)
{
	return stack % HEAVY ? 10 + stack % 7 : 1000000 + stack;
}

/* Each stack twice: on this day and the next one. */
static void fill(struct samples_store *store)
{
	char process[16], thread[16];

	for (uint32_t report = 0; report < 2 * REPORTS; report++) {
		uint32_t first = report % REPORTS * PER_REPORT;
		struct batch_maker maker;

		batch_start(&maker);
		snprintf(process, sizeof process, "p%u", report % SERIES);
		batch_profile(&maker, batch_series(&maker, "h", process),
			      noon + report / REPORTS * 86400000ll + report % 7 * 60000, report + 1,
			      0);
		for (uint32_t i = 0; i < PER_REPORT; i++) {
			char *name = arena_alloc(&maker.arena, sizeof thread);

			snprintf(name, sizeof thread, "t%u", i % 3);
			batch_sample(&maker, batch_stack(&maker, first + i, DEPTH), name, 1,
				     value_of(first + i));
			all_samples++;
			all_value += value_of(first + i);
		}
		CHECK(add_and_wait(store, &maker, NULL, NULL));
		arena_release(&maker.arena);
	}
}

static struct samples_query question(void)
{
	return (struct samples_query){.tenant = 1,
				      .type = "on-cpu",
				      .from_ms = noon,
				      .until_ms = noon + 2 * 86400000ll,
				      .labels = (const char *const[]){""},
				      .only_nodes = true};
}

/* How many of the heavy stacks are there with all they have. */
static uint32_t heavy_in(const struct samples_result *result, uint64_t *samples, uint64_t *value)
{
	uint64_t *sums = calloc(REPORTS * PER_REPORT, sizeof *sums);
	uint32_t found = 0;

	*samples = *value = 0;
	for (size_t i = 0; i < result->stack_count; i++) {
		const struct result_stack *stack = &result->stacks[i];
		uint32_t leaf = result->nodes[stack->node].location;
		uint64_t number = (result->locations[leaf].address - 0x1000) / 64;

		sums[number] += stack->value;
		*samples += stack->samples;
		*value += stack->value;
	}
	for (uint32_t i = 0; i < REPORTS * PER_REPORT; i += HEAVY)
		found += sums[i] == 2 * value_of(i);
	free(sums);
	return found;
}

static void check_cut(struct samples_store *store, struct samples_query query, uint64_t bytes,
		      bool is_short)
{
	struct samples_result *result;
	struct error err = {0};
	uint64_t samples, value;
	bool is_cut = false;

	query.limits.bytes = bytes;
	query.limits.is_cut = &is_cut;
	result = samples_query(store, &query, &err);
	if (!CHECK(result)) {
		printf("# %llu bytes: %s\n", (unsigned long long)bytes, err.message);
		return;
	}
	CHECK_NUMBER(is_cut, is_short);
	CHECK_NUMBER(heavy_in(result, &samples, &value), REPORTS * PER_REPORT / HEAVY);
	CHECK_NUMBER(samples + result->cut.samples, all_samples);
	CHECK_NUMBER(value + result->cut.value, all_value);
	CHECK((result->cut.value > 0) == is_short && result->cut.value < all_value / 2);
	samples_result_free(result);
}

static void test_memory(struct samples_store *store)
{
	struct samples_query query = question();
	struct error err = {0};

	check_cut(store, query, 0, false);
	check_cut(store, query, 256 << 20, false);
	for (uint64_t bytes = 2 << 20; bytes <= 8 << 20; bytes *= 2)
		check_cut(store, query, bytes, true);
	query.labels = NULL; /* series apart */
	check_cut(store, query, 4 << 20, true);
	query.by_thread = true;
	check_cut(store, query, 4 << 20, true);
	query = question();
	query.by_bucket = true;
	check_cut(store, query, 4 << 20, true);
	query.limits.bytes = 4 << 20; /* nobody hears that it is a part */
	CHECK(!samples_query(store, &query, &err) && err.kind == ERROR_LIMIT);
}

/* --- rows, time --- */

static void test_rows_and_time(struct samples_store *store)
{
	struct samples_query query = question();
	struct samples_result *result;
	struct error err = {0};
	uint64_t rows = 0, of_one;

	query.limits.rows_read = &rows;
	samples_result_free(samples_query(store, &query, NULL));
	of_one = rows;
	CHECK(of_one > 0);
	query.limits.rows = 2 * of_one - 1;
	CHECK(!samples_query(store, &query, &err) && err.kind == ERROR_LIMIT);
	CHECK(strstr(err.message, "--query-rows"));
	rows = 0;
	result = samples_query(store, &query, NULL);
	CHECK(result);
	samples_result_free(result);
	query = question();
	query.limits.time_ms = 1000;
	query.limits.started_ms = monotonic_ms() - 1001; /* by what was asked before */
	err = (struct error){0};
	CHECK(!samples_query(store, &query, &err) && err.kind == ERROR_LIMIT);
	CHECK(strstr(err.message, "(1000 ms)"));
}

/* --- values --- */

struct counted {
	unsigned calls;
	struct samples_store *store;
};

static bool is_odd(void *context, unsigned chooser, const char *value)
{
	struct counted *counted = context;

	counted->calls++;
	return chooser ? !*value : (value[strlen(value) - 1] & 1) != 0;
}

static void test_values(struct samples_store *store, struct arena *arena)
{
	static const char *const choosers[] = {"process", "no such label"};
	struct counted counted = {0, store};
	struct samples_query query = question();
	struct label_count *labels;
	struct value_count *values;
	struct type_count *types;
	bool is_cut = false;
	size_t count;

	query.type = NULL;
	query.labels = NULL;
	query.context = &counted;
	query.value_wanted = is_odd;
	query.choosers = choosers;
	query.chooser_count = 2;
	CHECK(samples_types(store, &query, arena, &types, &count, NULL));
	CHECK(count == 1 && types[0].samples == all_samples / 2);
	/* 120 values, and "", of one dictionary each, whatever the types. */
	CHECK_NUMBER(counted.calls, 2 * REPORTS + 2);
	CHECK(samples_labels(store, &query, arena, &labels, &count, NULL));
	CHECK_NUMBER(counted.calls, 2 * (2 * REPORTS + 2));
	query.chooser_count = 0;
	query.limits.bytes = 1 << 20;
	query.limits.is_cut = &is_cut;
	CHECK(samples_label_values(store, &query, "process", arena, &values, &count, NULL));
	CHECK(count == 2 * REPORTS && !is_cut);
}

/* A listing of more values than fit. */
static void test_listing(struct arena *arena)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	struct samples_query query = question();
	struct value_count *values;
	struct error err = {0};
	bool is_cut = false;
	char process[200];
	size_t count;

	for (uint32_t report = 0; report < 40; report++) {
		struct batch_maker maker;

		batch_start(&maker);
		for (uint32_t i = 0; i < 200; i++) {
			snprintf(process, sizeof process, "%0100u", report * 200 + i);
			batch_profile(
				&maker,
				batch_series(&maker, "h", arena_text(&maker.arena, process, 100)),
				noon, report + 1, i);
			batch_sample(&maker, batch_stack(&maker, 1, 2), "t", 1, 1);
		}
		CHECK(add_and_wait(store, &maker, NULL, NULL));
		arena_release(&maker.arena);
	}
	CHECK(samples_fold(store, NULL)); /* what is in memory still takes room of its own */
	query.labels = NULL;
	query.limits.bytes = 700 << 10;
	CHECK(!samples_label_values(store, &query, "process", arena, &values, &count, &err));
	CHECK_NUMBER(err.kind, ERROR_LIMIT);
	query.limits.is_cut = &is_cut;
	CHECK(samples_label_values(store, &query, "process", arena, &values, &count, NULL));
	CHECK(is_cut && count > 500 && count < 8000);
	query.limits.bytes = 64 << 20;
	is_cut = false;
	CHECK(samples_label_values(store, &query, "process", arena, &values, &count, NULL));
	CHECK(!is_cut && count == 8000);
	samples_close(store);
	remove_directory(directory);
}

enum { WEEK = 7, THREADS = 10000, MINUTES = 16 };

/* Room is taken once, not for each day and type: a week of threads, of whatever type, takes what a
 * day of them takes. The last type, in so many rows that room is looked at. */
static void test_week(struct arena *arena)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	struct samples_query query = question();
	struct value_count *values;
	struct error err = {0};
	size_t count = 0;
	char name[16];

	for (unsigned day = 0; day < WEEK; day++) {
		struct batch_maker maker;
		uint32_t stack, series;

		batch_start(&maker);
		stack = batch_stack(&maker, 1, 2);
		series = batch_series(&maker, "h", "p");
		for (unsigned i = 0; i < THREADS; i++) {
			if (i % (THREADS / MINUTES) == 0)
				batch_profile(&maker, series,
					      noon + day * 86400000ll +
						      i / (THREADS / MINUTES) * 60000ll,
					      day + 1, i)
					->type = "rdma";
			snprintf(name, sizeof name, "t%u", i);
			batch_sample(&maker, stack, arena_text(&maker.arena, name, strlen(name)), 1,
				     1);
		}
		CHECK(add_and_wait(store, &maker, NULL, NULL));
		arena_release(&maker.arena);
	}
	CHECK(samples_fold(store, NULL));
	query.type = NULL;
	query.labels = NULL;
	query.until_ms = noon + WEEK * 86400000ll;
	query.limits.bytes = 4 << 20; /* a number of 8 bytes for each is 6.7 MB */
	if (!CHECK(samples_label_values(store, &query, "thread", arena, &values, &count, &err)))
		printf("# %s\n", err.message);
	CHECK_NUMBER(count, THREADS);
	samples_close(store);
	remove_directory(directory);
}

int main(void)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	struct arena arena;

	arena_init(&arena, 64 << 20);
	if (!CHECK(store))
		return checks_done();
	fill(store);
	for (unsigned folded = 0; folded < 2; folded++) {
		test_memory(store);
		test_rows_and_time(store);
		test_values(store, &arena);
		CHECK(samples_fold(store, NULL));
	}
	samples_close(store);
	remove_directory(directory);
	test_listing(&arena);
	test_week(&arena);
	arena_release(&arena);
	return checks_done();
}
