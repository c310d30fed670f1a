/* SPDX-License-Identifier: Apache-2.0 */
/* Writers, folds and queries at once: a query never sees a sample twice, and sees every one that
 * was acknowledged before it began. Also meant for -fsanitize=thread. */
#include "tests/check.h"

#include "symbol-server/store/sqlite/samples_store.h"
#include "tests/unit/store/batches.h"

enum { WRITERS = 3, READERS = 2, REPORTS = 60, SAMPLES = 10 };

static struct samples_store *store;
static uint64_t submitted, acknowledged; /* samples; atomic */
static int failures, queries, is_over;   /* atomic */

static void *write_reports(void *context)
{
	uint32_t writer = (uint32_t)(uintptr_t)context;

	for (uint32_t i = 0; i < REPORTS; i++) {
		char process[16];

		snprintf(process, sizeof process, "p%u", i % 5);
		__atomic_add_fetch(&submitted, SAMPLES, __ATOMIC_SEQ_CST);
		if (add_report(store, "h1", process, noon + i * 2000, writer * 1000 + i + 1, i % 20,
			       SAMPLES))
			__atomic_add_fetch(&acknowledged, SAMPLES, __ATOMIC_SEQ_CST);
		else
			__atomic_add_fetch(&failures, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void *ask(void *context)
{
	(void)context;
	while (!__atomic_load_n(&is_over, __ATOMIC_SEQ_CST)) {
		uint64_t least = __atomic_load_n(&acknowledged, __ATOMIC_SEQ_CST);
		struct totals totals = query_totals(store, noon, noon + 3600000);
		uint64_t most = __atomic_load_n(&submitted, __ATOMIC_SEQ_CST);

		if (totals.samples < least || totals.samples > most || totals.samples % SAMPLES) {
			__atomic_add_fetch(&failures, 1, __ATOMIC_SEQ_CST);
			printf("# %llu samples, between %llu and %llu were right\n",
			       (unsigned long long)totals.samples, (unsigned long long)least,
			       (unsigned long long)most);
		}
		if (totals.value != totals.samples * 10000000)
			__atomic_add_fetch(&failures, 1, __ATOMIC_SEQ_CST);
		__atomic_add_fetch(&queries, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void *fold(void *context)
{
	(void)context;
	while (!__atomic_load_n(&is_over, __ATOMIC_SEQ_CST)) {
		struct samples_counters counters;

		if (!samples_fold(store, NULL))
			__atomic_add_fetch(&failures, 1, __ATOMIC_SEQ_CST);
		samples_counters(store, &counters);
		usleep(3000);
	}
	return NULL;
}

int main(void)
{
	pthread_t writers[WRITERS], readers[READERS], folder;
	const char *directory = make_directory();
	struct samples_counters counters;

	store = open_store(directory, NULL);
	CHECK(store);
	for (uintptr_t i = 0; i < WRITERS; i++)
		pthread_create(&writers[i], NULL, write_reports, (void *)i);
	for (unsigned i = 0; i < READERS; i++)
		pthread_create(&readers[i], NULL, ask, NULL);
	pthread_create(&folder, NULL, fold, NULL);
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_join(writers[i], NULL);
	__atomic_store_n(&is_over, 1, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < READERS; i++)
		pthread_join(readers[i], NULL);
	pthread_join(folder, NULL);
	CHECK_NUMBER(failures, 0);
	CHECK(queries > 10);
	samples_counters(store, &counters);
	CHECK_NUMBER(counters.reports, WRITERS * REPORTS);
	CHECK_NUMBER(counters.samples, WRITERS * REPORTS * SAMPLES);
	CHECK(counters.folds > 3);
	CHECK_NUMBER(query_totals(store, noon, noon + 3600000).samples,
		     WRITERS * REPORTS * SAMPLES);
	CHECK_NUMBER(query_totals(store, noon, noon + 3600000).taken, WRITERS * REPORTS * SAMPLES);
	samples_close(store);
	remove_directory(directory);
	return checks_done();
}
