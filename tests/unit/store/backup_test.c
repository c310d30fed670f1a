/* SPDX-License-Identifier: Apache-2.0 */
/* A copy taken while reports come and folds run is one moment: all that was acknowledged before,
 * each report whole, its accounts and its agent's counts with it. */
#include "tests/check.h"

#include <sched.h>

#include "symbol-server/store/data_directory.h"
#include "tests/unit/store/batches.h"

enum { COPIES = 12, SAMPLES = 8, REPORTS_MAX = 100000 };

struct load {
	struct samples_store *store;
	_Atomic uint32_t sent, acknowledged;
	_Atomic bool is_over;
	bool ok;
};

/* Days in turn, with the agent's counters, a fold after every few. */
static bool send(struct load *load, uint32_t number)
{
	static const uint8_t request[24] = "a trace and a span of it";
	struct batch_counters *counters;
	struct batch_maker maker;
	bool ok;

	batch_report(&maker, "h1", number % 3 ? "a" : "b", noon + number % 2 * 86400000ll, number,
		     number % 500, SAMPLES);
	maker.batch.profiles[0].is_counted = true;
	for (unsigned i = 0; i < SAMPLES; i++)
		maker.batch.samples[i].link = request;
	counters = &maker.batch.counters[maker.batch.counters_count++];
	*counters = (struct batch_counters){.numbers.seq = number,
					    .numbers.acknowledged = number - 1,
					    .numbers.taken = (uint64_t)number * SAMPLES,
					    .numbers.time_ms = maker.batch.profiles[0].time_ms,
					    .numbers.received_ms = noon};
	counters->agent_id[0] = 1;
	counters->host = text_from("h1");
	counters->agent_version = counters->kernel_release = text_from("1");
	load->sent = number;
	ok = add_and_wait(load->store, &maker, NULL, NULL);
	arena_release(&maker.arena);
	load->acknowledged = number;
	return ok && (number % 5 || samples_fold(load->store, NULL));
}

static void *run_load(void *context)
{
	struct load *load = context;

	load->ok = true;
	for (uint32_t n = 1; load->ok && !load->is_over && n < REPORTS_MAX; n++)
		load->ok = send(load, n);
	return NULL;
}

static void check_copy(const char *path, uint32_t at_least, uint32_t at_most)
{
	struct samples_store *store = open_store(path, NULL);
	struct verify_report report;
	struct totals totals = {0};
	FILE *out = fopen("/dev/null", "w");

	CHECK(store != NULL);
	if (store) {
		totals = query_totals(store, noon - 1, noon + 86400001);
		CHECK_NUMBER(query_spans(store, noon - 1, noon + 86400001), totals.samples);
	}
	CHECK(totals.samples % SAMPLES == 0);
	CHECK(totals.samples >= (uint64_t)at_least * SAMPLES);
	CHECK(totals.samples <= (uint64_t)at_most * SAMPLES);
	CHECK_NUMBER(totals.stored, totals.samples);
	CHECK_NUMBER(totals.taken, totals.samples);
	CHECK_NUMBER(totals.lost, 0);
	CHECK_NUMBER(agent_taken(store), totals.samples);
	samples_close(store);
	CHECK(data_verify(path, out, &report, NULL));
	CHECK_NUMBER(report.damaged, 0);
	CHECK_NUMBER(report.samples, totals.samples);
	fclose(out);
}

int main(void)
{
	const char *directory = make_directory();
	struct load load = {.store = NULL};
	char data[100], copy[100];
	pthread_t thread;

	snprintf(data, sizeof data, "%s/data", directory);
	load.store = open_store(data, NULL);
	pthread_create(&thread, NULL, run_load, &load);
	while (load.acknowledged < 7)
		sched_yield();
	for (unsigned i = 0; i < COPIES; i++) {
		uint32_t before = load.acknowledged, next = before + 1 + i * 2;
		struct backup_report report;
		struct error err = {0};

		snprintf(copy, sizeof copy, "%s/copy-%u", directory, i);
		CHECK(data_backup(data, copy, NULL, &report, &err));
		if (err.message[0])
			printf("# %s\n", err.message);
		check_copy(copy, before, load.sent);
		while (load.acknowledged < next && load.ok)
			sched_yield();
	}
	load.is_over = true;
	pthread_join(thread, NULL);
	CHECK(load.ok);
	samples_close(load.store);
	remove_directory(directory);
	return checks_done();
}
