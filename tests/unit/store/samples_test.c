/* SPDX-License-Identifier: Apache-2.0 */
/* The store of samples as its callers see it: what went in comes out, once, whatever is folded. */
#include "tests/check.h"

#include "symbol-server/store/sqlite/samples_store.h"
#include "tests/unit/store/batches.h"

static const int64_t minute = 60000;

static void test_round_trip(void)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	struct samples_query query = {.tenant = 1,
				      .from_ms = noon,
				      .until_ms = noon + 1,
				      .type = "on-cpu",
				      .by_thread = true};
	struct samples_result *result;
	struct batch_maker maker;
	struct totals totals;

	CHECK(store);
	batch_start(&maker);
	batch_profile(&maker, batch_series(&maker, "h1", "app"), noon + 1000, 7, 0);
	batch_sample(&maker, batch_stack(&maker, 1, 3), "main", 2, 20);
	batch_sample(&maker, batch_stack(&maker, 2, 1), "main", 3, 31);
	batch_sample(&maker, 0, "helper", 5, 50);
	batch_sample(&maker, 0, "main", 1, 10);
	CHECK(add_and_wait(store, &maker, NULL, NULL));
	for (int folded = 0; folded < 2; folded++) {
		result = samples_query(store, &query, NULL);
		CHECK(result);
		CHECK_NUMBER(result->stack_count, 3); /* main 1, main 2, helper 1 */
		CHECK_NUMBER(result->module_count, 1);
		CHECK_TEXT(result->modules[0].name, "libtest.so");
		CHECK_NUMBER(result->location_count, 4);
		CHECK_NUMBER(result->from_ms, noon);
		CHECK_NUMBER(result->until_ms, noon + minute);
		CHECK_NUMBER(result->series_count, 1);
		CHECK_TEXT(result->series[0].values[1], "app");
		CHECK_TEXT(result->unit, "nanoseconds");
		for (size_t i = 0; i < result->stack_count; i++) {
			const struct result_stack *stack = &result->stacks[i];

			if (!strcmp(stack->thread, "helper")) {
				CHECK_NUMBER(stack->samples, 5);
				CHECK_NUMBER(stack->depth, 3);
				CHECK_NUMBER(result->locations[stack->locations[0]].address,
					     0x1000 + 64);
				CHECK_NUMBER(result->locations[stack->locations[2]].address,
					     0x1000 + 64 + 2);
			} else if (stack->depth == 3) {
				CHECK_NUMBER(stack->samples, 3);
				CHECK_NUMBER(stack->value, 30);
			} else {
				CHECK_NUMBER(stack->samples, 3);
				CHECK_NUMBER(stack->value, 31);
			}
		}
		samples_result_free(result);
		if (!folded)
			CHECK(samples_fold(store, NULL));
	}
	totals = query_totals(store, noon, noon + minute);
	CHECK_NUMBER(totals.samples, 11);
	CHECK_NUMBER(totals.taken, 11); /* a sender without counters took what it sent */
	CHECK_NUMBER(totals.stored, 11);
	CHECK_NUMBER(totals.lost, 0);
	CHECK_NUMBER(query_totals(store, noon + minute, noon + 2 * minute).samples, 0);
	CHECK_NUMBER(query_totals(store, noon - minute, noon).samples, 0);
	samples_close(store);

	store = open_store(directory, NULL);
	CHECK_NUMBER(query_totals(store, noon, noon + minute).samples, 11);
	CHECK_NUMBER(query_totals(store, noon, noon + minute).value, 111);
	samples_close(store);
	arena_release(&maker.arena);
	remove_directory(directory);
}

static void test_duplicates(void)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	struct batch_maker maker;
	unsigned duplicates = 0;

	batch_start(&maker);
	for (uint32_t i = 0; i < 10; i++) {
		batch_profile(&maker, batch_series(&maker, "h1", "p"), noon, 99, i);
		batch_sample(&maker, batch_stack(&maker, i, 2), "", 1, 10);
	}
	CHECK(add_and_wait(store, &maker, &duplicates, NULL));
	CHECK_NUMBER(duplicates, 0);
	CHECK(add_and_wait(store, &maker, &duplicates, NULL));
	CHECK_NUMBER(duplicates, 10);
	CHECK_NUMBER(query_totals(store, noon, noon + 1).samples, 10);
	samples_close(store); /* folded */

	store = open_store(directory, NULL);
	maker.batch.profiles[9].id[15] = 200; /* nine old ones and a new one */
	CHECK(add_and_wait(store, &maker, &duplicates, NULL));
	CHECK_NUMBER(duplicates, 9);
	CHECK_NUMBER(query_totals(store, noon, noon + 1).samples, 11);
	/* the same id twice in one request */
	maker.batch.profiles[8].id[15] = maker.batch.profiles[9].id[15] = 201;
	CHECK(add_and_wait(store, &maker, &duplicates, NULL));
	CHECK_NUMBER(duplicates, 9);
	CHECK_NUMBER(query_totals(store, noon, noon + 1).samples, 12);
	/* no id: nothing to recognize it by */
	memset(maker.batch.profiles[0].id, 0, 16);
	CHECK(add_and_wait(store, &maker, &duplicates, NULL));
	CHECK(add_and_wait(store, &maker, &duplicates, NULL));
	CHECK_NUMBER(query_totals(store, noon, noon + 1).samples, 14);
	samples_close(store);
	arena_release(&maker.arena);
	remove_directory(directory);
}

static void test_days_and_buckets(void)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	int64_t midnight = noon + 12 * 3600000;
	struct samples_query query = {.tenant = 1,
				      .from_ms = midnight - 2 * minute,
				      .until_ms = midnight + 2 * minute,
				      .type = "on-cpu",
				      .by_bucket = true};
	struct samples_result *result;
	struct batch_maker maker;

	/* one request with both sides of midnight, the same stack */
	batch_start(&maker);
	batch_profile(&maker, batch_series(&maker, "h1", "p"), midnight - 1, 1, 0);
	batch_sample(&maker, batch_stack(&maker, 1, 4), "", 1, 10);
	batch_profile(&maker, 0, midnight, 1, 1);
	batch_sample(&maker, 0, "", 2, 20);
	batch_profile(&maker, 0, midnight + minute, 1, 2);
	batch_sample(&maker, 0, "", 4, 40);
	CHECK(add_and_wait(store, &maker, NULL, NULL));
	for (int folded = 0; folded < 2; folded++) {
		result = samples_query(store, &query, NULL);
		CHECK_NUMBER(result->stack_count, 3);
		CHECK_NUMBER(result->series_count, 1);
		CHECK_NUMBER(result->stacks[0].bucket_ms, midnight - minute);
		CHECK_NUMBER(result->stacks[2].bucket_ms, midnight + minute);
		CHECK_NUMBER(result->stacks[2].samples, 4);
		samples_result_free(result);
		CHECK_NUMBER(query_totals(store, midnight - minute, midnight + 2 * minute).stacks,
			     1);
		CHECK_NUMBER(query_totals(store, midnight - minute, midnight + 2 * minute).samples,
			     7);
		CHECK_NUMBER(query_totals(store, midnight, midnight + minute).samples, 2);
		CHECK(samples_fold(store, NULL));
	}
	samples_close(store);
	store = open_store(directory, NULL);
	CHECK_NUMBER(query_totals(store, midnight - minute, midnight + 2 * minute).stacks, 1);
	samples_close(store);
	arena_release(&maker.arena);
	remove_directory(directory);
}

static bool only_app2(void *context, const struct series_labels *labels)
{
	(void)context;
	for (uint32_t i = 0; i < labels->count; i++)
		if (!strcmp(labels->names[i], "process"))
			return !strcmp(labels->values[i], "app2");
	return false;
}

static bool only_helper(void *context, const char *thread)
{
	(void)context;
	return !strcmp(thread, "helper");
}

static bool only_main(void *context, const char *thread)
{
	(void)context;
	return !strcmp(thread, "main");
}

/* Listings are of the samples that are wanted: app0 to app6 on the CPU, app7 off it. */
static void check_chosen_listings(struct samples_store *store, struct samples_query query,
				  struct arena *arena)
{
	struct label_count *labels;
	struct value_count *values;
	struct type_count *types;
	size_t count;

	query.thread_wanted = only_helper;
	CHECK(samples_types(store, &query, arena, &types, &count, NULL));
	CHECK_NUMBER(count, 2);
	CHECK_NUMBER(types[0].samples, 7);
	CHECK_NUMBER(types[0].value, 70);
	CHECK_NUMBER(types[1].samples, 1);
	CHECK(samples_labels(store, &query, arena, &labels, &count, NULL));
	CHECK_NUMBER(count, 4);
	CHECK_TEXT(labels[1].name, "process");
	CHECK_NUMBER(labels[1].values, 8);
	CHECK_TEXT(labels[3].name, "thread");
	CHECK_NUMBER(labels[3].values, 1);
	CHECK(samples_label_values(store, &query, "thread", arena, &values, &count, NULL));
	CHECK_NUMBER(count, 1);
	CHECK_TEXT(values[0].value, "helper");
	CHECK_NUMBER(values[0].samples, 8);
	query.series_wanted = only_app2;
	query.thread_wanted = only_main;
	CHECK(samples_label_values(store, &query, "host", arena, &values, &count, NULL));
	CHECK_NUMBER(count, 1);
	CHECK_TEXT(values[0].value, "host2");
	CHECK_NUMBER(values[0].samples, 3);
}

static void test_selection_and_listings(void)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	struct samples_query query = {
		.tenant = 1, .from_ms = noon, .until_ms = noon + minute, .type = "on-cpu"};
	struct samples_result *result;
	struct batch_maker maker;
	struct label_count *labels;
	struct value_count *values;
	struct type_count *types;
	struct arena arena;
	size_t count;

	arena_init(&arena, 1 << 20);
	batch_start(&maker);
	for (uint32_t i = 0; i < 8; i++) {
		char process[16], host[16];

		snprintf(process, sizeof process, "app%u", i);
		snprintf(host, sizeof host, "host%u", i % 4);
		batch_profile(&maker,
			      batch_series(&maker, arena_text(&arena, host, strlen(host)),
					   arena_text(&arena, process, strlen(process))),
			      noon, 5, i);
		batch_sample(&maker, batch_stack(&maker, 1, 4), "main", i + 1, 10);
		batch_sample(&maker, 0, "helper", 1, 10);
	}
	maker.batch.profiles[7].type = "off-cpu";
	CHECK(add_and_wait(store, &maker, NULL, NULL));
	for (int folded = 0; folded < 2; folded++) {
		query.type = "on-cpu";
		query.series_wanted = only_app2;
		result = samples_query(store, &query, NULL);
		CHECK_NUMBER(result->series_count, 1);
		CHECK_NUMBER(result->stack_count, 1);
		CHECK_NUMBER(result->stacks[0].samples, 4);
		CHECK_NUMBER(result->host_count, 1);
		CHECK_TEXT(result->hosts[0].host, "host2");
		CHECK_NUMBER(result->hosts[0].samples, 4 + 8); /* the whole host's */
		samples_result_free(result);
		query.thread_wanted = only_helper;
		result = samples_query(store, &query, NULL);
		CHECK_NUMBER(result->stack_count, 1);
		CHECK_NUMBER(result->stacks[0].samples, 1);
		samples_result_free(result);
		query.series_wanted = NULL;
		query.thread_wanted = NULL;
		query.type = NULL;
		CHECK(samples_types(store, &query, &arena, &types, &count, NULL));
		CHECK_NUMBER(count, 2);
		CHECK_TEXT(types[0].type, "on-cpu");
		CHECK_NUMBER(types[0].samples, 28 + 7);
		CHECK_TEXT(types[1].type, "off-cpu");
		CHECK_NUMBER(types[1].samples, 9);
		CHECK(samples_labels(store, &query, &arena, &labels, &count, NULL));
		CHECK_NUMBER(count, 4);
		CHECK_TEXT(labels[0].name, "host");
		CHECK_NUMBER(labels[0].values, 4);
		CHECK_TEXT(labels[1].name, "process");
		CHECK_NUMBER(labels[1].values, 8);
		CHECK_TEXT(labels[3].name, "thread");
		CHECK_NUMBER(labels[3].values, 2);
		CHECK(samples_label_values(store, &query, "host", &arena, &values, &count, NULL));
		CHECK_NUMBER(count, 4);
		CHECK_TEXT(values[3].value, "host3");
		CHECK_NUMBER(values[3].samples, 5 + 9);
		CHECK(samples_label_values(store, &query, "thread", &arena, &values, &count, NULL));
		CHECK_NUMBER(count, 2);
		CHECK_NUMBER(values[0].samples, 8);
		CHECK(samples_label_values(store, &query, "nothing", &arena, &values, &count,
					   NULL));
		CHECK_NUMBER(count, 0);
		check_chosen_listings(store, query, &arena);
		query.tenant = 2;
		CHECK(samples_types(store, &query, &arena, &types, &count, NULL));
		CHECK_NUMBER(count, 0);
		query.tenant = 1;
		CHECK(samples_fold(store, NULL));
	}
	query.type = "no-such";
	CHECK(!samples_query(store, &query, NULL));
	samples_close(store);
	arena_release(&arena);
	arena_release(&maker.arena);
	remove_directory(directory);
}

static bool is_cancelled(void *context)
{
	return ++*(int *)context > 0;
}

static void test_cancel(void)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	int asked = 0;
	struct samples_query query = {.tenant = 1,
				      .from_ms = noon,
				      .until_ms = noon + minute,
				      .type = "on-cpu",
				      .context = &asked,
				      .is_cancelled = is_cancelled};
	struct error err = {0};

	CHECK(add_report(store, "h", "p", noon, 1, 0, 10));
	CHECK(!samples_query(store, &query, &err));
	CHECK_TEXT(err.message, "the query was cancelled");
	CHECK(asked > 0);
	samples_close(store);
	remove_directory(directory);
}

int main(void)
{
	test_round_trip();
	test_duplicates();
	test_days_and_buckets();
	test_selection_and_listings();
	test_cancel();
	return checks_done();
}
