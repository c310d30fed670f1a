/* SPDX-License-Identifier: Apache-2.0 */
/* Whether reports wait for work on days' files: day_load DIR MIB makes a day whose dictionary takes
 * so many MiB of memory and some older ones, then adds a small report of today each 2 ms, first
 * alone, then while a day is read for a late report, after a question had it too, days are deleted,
 * minutes reduced, a dictionary is dropped. One line each: what, how many reports, milliseconds
 * until a report was taken (median, p99, worst) and until it was acknowledged (p99), counted from
 * when it was due, and how long the work took. */
#include <err.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/hash_table.h"
#include "symbol-server/store/samples.h"
#include "tests/bench/load_memory.h"

enum {
	DEPTH = 64,
	STACKS = 2000,    /* of one filling report */
	LOCATIONS = 4000, /* of all */
	OLD_DAYS = 4,     /* that retention deletes, each an eighth of the large one */
	DUE_US = 2000,    /* between two reports */
	QUIET_MS = 6000,
	LEAST_MS = 500, /* a phase lasts, however fast the work is */
	REPORTS_MAX = 1 << 17,
	PROBE_STACKS = 10,
};
static const int64_t day_of_ms = 86400000;

static int64_t now_us(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

/* --- reports --- */

struct report {
	struct sample_batch batch;
	struct batch_module module;
	struct batch_series series;
	struct batch_label labels[2];
	struct batch_profile profile;
};

static struct report *report_new(const char *host, uint32_t locations, uint32_t stacks,
				 uint32_t depth)
{
	struct report *report = take(1, sizeof *report);
	struct sample_batch *batch = &report->batch;

	build_id_parse(&report->module.id, "00112233445566778899aabbccddeeff00112233", 40);
	report->module.name = text_of("program");
	report->module.go_id = text_of("");
	report->labels[0] = (struct batch_label){text_of("host"), text_of(host), false};
	report->labels[1] = (struct batch_label){text_of("process"), text_of("program"), false};
	report->series = (struct batch_series){report->labels, 2};
	report->profile = (struct batch_profile){.type = "on-cpu", .sample_count = stacks};
	*batch = (struct sample_batch){.tenant = 1,
				       .sender = text_of("192.0.2.1"),
				       .modules = &report->module,
				       .module_count = 1,
				       .series = &report->series,
				       .series_count = 1,
				       .profiles = &report->profile,
				       .profile_count = 1,
				       .location_count = locations,
				       .location_index_count = stacks * depth,
				       .stack_count = stacks,
				       .sample_count = stacks};
	batch->locations = take(locations, sizeof *batch->locations);
	batch->location_indices = take((size_t)stacks * depth, sizeof *batch->location_indices);
	batch->stacks = take(stacks, sizeof *batch->stacks);
	batch->samples = take(stacks, sizeof *batch->samples);
	for (uint32_t i = 0; i < locations; i++) {
		batch->locations[i].kind = LOCATION_NATIVE;
		batch->locations[i].address = 0x1000 + i * UINT64_C(16);
		batch->locations[i].function = batch->locations[i].file = batch->locations[i].type =
			text_of("");
	}
	for (uint32_t i = 0; i < stacks; i++) {
		batch->stacks[i].first_index = i * depth;
		batch->stacks[i].depth = depth;
		batch->samples[i] = (struct batch_sample){
			.stack = i, .thread = text_of("t"), .samples = 1, .value = 10000000};
	}
	return report;
}

/* Stacks number … of which none is like another; equal numbers are equal stacks. */
static void report_draw(struct report *report, int64_t time_ms, uint64_t number)
{
	struct sample_batch *batch = &report->batch;

	report->profile.time_ms = time_ms;
	for (uint32_t i = 0; i < batch->stack_count; i++) {
		uint64_t state = hash_word(number + i, 1);

		batch->stacks[i].hash[0] = hash_word(state, 2);
		batch->stacks[i].hash[1] = hash_word(state, 3);
		for (uint32_t k = 0; k < batch->stacks[i].depth; k++) {
			state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
			batch->location_indices[batch->stacks[i].first_index + k] =
				(uint32_t)(state >> 33) % batch->location_count;
		}
	}
}

struct answer {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool is_done, is_accepted;
};

static void answered(void *context, bool accepted, const struct error *why)
{
	struct answer *answer = context;

	(void)why;
	pthread_mutex_lock(&answer->lock);
	answer->is_done = true;
	answer->is_accepted = accepted;
	pthread_cond_signal(&answer->wake);
	pthread_mutex_unlock(&answer->lock);
}

static void add_and_wait(struct samples_store *store, const struct report *report)
{
	struct answer answer = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false};
	struct error why = {0};

	while (!samples_add(store, &report->batch, answered, &answer, NULL, &why)) {
		if (why.kind != ERROR_BUSY)
			errx(1, "not added: %s", why.message);
		usleep(20000);
	}
	pthread_mutex_lock(&answer.lock);
	while (!answer.is_done)
		pthread_cond_wait(&answer.wake, &answer.lock);
	pthread_mutex_unlock(&answer.lock);
	if (!answer.is_accepted)
		errx(1, "a report was not stored");
}

/* --- the store --- */

static const char *directory;
static struct samples_store *store;
static int64_t began_ms;
static uint64_t drawn;

static void open_keeping(int64_t raw_days, int64_t sums_days, uint64_t dictionaries)
{
	struct samples_store_options options = {
		.directory = directory,
		.keep_ms = {raw_days * day_of_ms, sums_days * day_of_ms},
		.dictionary_bytes = dictionaries};
	struct error why = {0};

	store = samples_open(&options, &why);
	if (!store)
		errx(1, "%s", why.message);
}

static struct samples_counters counters(void)
{
	struct samples_counters counters;

	samples_counters(store, &counters);
	return counters;
}

/* Adds stacks that are new to the day until all dictionaries take so much more. */
static void fill(struct report *report, int64_t time_ms, uint64_t bytes)
{
	uint64_t until = counters().dictionary_bytes + bytes;

	while (counters().dictionary_bytes < until) {
		report_draw(report, time_ms, drawn);
		drawn += STACKS;
		add_and_wait(store, report);
	}
	if (!samples_fold(store, NULL))
		errx(1, "not folded");
}

/* --- reports of today, each when it is due --- */

static struct probe {
	int64_t due_us, taken_us;
	atomic_llong answered_us;
} probes[REPORTS_MAX];
static unsigned probe_count;
static atomic_bool is_over;

static void probe_answered(void *context, bool accepted, const struct error *why)
{
	struct probe *probe = context;

	if (!accepted)
		errx(1, "a report was not stored: %s", why ? why->message : "");
	probe->answered_us = now_us(CLOCK_MONOTONIC);
}

static void *add_probes(void *context)
{
	struct report *report = context;
	int64_t due_us = now_us(CLOCK_MONOTONIC);
	struct error why = {0};

	for (probe_count = 0; !is_over && probe_count < REPORTS_MAX; due_us += DUE_US) {
		struct probe *probe = &probes[probe_count++];
		int64_t wait_us = due_us - now_us(CLOCK_MONOTONIC);

		if (wait_us > 0)
			usleep((useconds_t)wait_us);
		*probe = (struct probe){.due_us = due_us};
		report_draw(report, now_us(CLOCK_REALTIME) / 1000, drawn - 1 - probe_count % 500);
		if (!samples_add(store, &report->batch, probe_answered, probe, NULL, &why))
			errx(1, "a report was not taken: %s", why.message);
		probe->taken_us = now_us(CLOCK_MONOTONIC);
	}
	for (unsigned i = 0; i < probe_count; i++)
		while (!probes[i].answered_us)
			usleep(1000);
	return NULL;
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void print_row(const char *what, double took_ms)
{
	double *taken = take(probe_count, sizeof *taken), *done = take(probe_count, sizeof *done);

	for (unsigned i = 0; i < probe_count; i++) {
		taken[i] = (double)(probes[i].taken_us - probes[i].due_us) / 1e3;
		done[i] = (double)(probes[i].answered_us - probes[i].due_us) / 1e3;
	}
	qsort(taken, probe_count, sizeof *taken, compare);
	qsort(done, probe_count, sizeof *done, compare);
	printf("%s\t%u\t%.2f\t%.2f\t%.2f\t%.1f\t%.0f\n", what, probe_count, taken[probe_count / 2],
	       taken[probe_count * 99 / 100], taken[probe_count - 1], done[probe_count * 99 / 100],
	       took_ms);
	fflush(stdout);
	free(taken);
	free(done);
}

/* The work in this thread, reports in another. */
static void beside(const char *what, void (*work)(void))
{
	static struct report *report;
	int64_t start_us, took_us;
	pthread_t thread;

	if (!report)
		report = report_new("probe", LOCATIONS, PROBE_STACKS, DEPTH);
	is_over = false;
	pthread_create(&thread, NULL, add_probes, report);
	start_us = now_us(CLOCK_MONOTONIC);
	work();
	took_us = now_us(CLOCK_MONOTONIC) - start_us;
	if (took_us < LEAST_MS * 1000)
		usleep((useconds_t)(LEAST_MS * 1000 - took_us));
	is_over = true;
	pthread_join(thread, NULL);
	print_row(what, (double)took_us / 1e3);
}

/* --- the work --- */

static void nothing(void)
{
	usleep(QUIET_MS * 1000);
}

static void add_late(void)
{
	static struct report *report;

	if (!report)
		report = report_new("late", LOCATIONS, PROBE_STACKS, DEPTH);
	report_draw(report, began_ms - 3 * day_of_ms, drawn);
	drawn += PROBE_STACKS;
	add_and_wait(store, report);
}

static void ask(void)
{
	struct samples_query query = {.tenant = 1,
				      .from_ms = began_ms - 3 * day_of_ms,
				      .until_ms = began_ms - 3 * day_of_ms + 60000,
				      .type = "on-cpu"};
	struct samples_result *result = samples_query(store, &query, NULL);

	if (!result)
		errx(1, "no answer");
	samples_result_free(result);
}

static void wait_dropped(void)
{
	ask();
	while (!counters().dictionaries_dropped)
		usleep(10000);
}

static void wait_deleted(void)
{
	while (counters().days_deleted < OLD_DAYS)
		usleep(10000);
}

static void wait_reduced(void)
{
	while (!counters().days_reduced)
		usleep(10000);
}

static void reopen(int64_t raw_days, int64_t sums_days, uint64_t dictionaries)
{
	samples_close(store);
	open_keeping(raw_days, sums_days, dictionaries);
}

int main(int count, char **arguments)
{
	struct report *large = report_new("large", LOCATIONS, STACKS, DEPTH);
	uint64_t bytes;

	if (count != 3)
		errx(1, "day_load DIR MIB");
	directory = arguments[1];
	bytes = strtoull(arguments[2], NULL, 10) << 20;
	began_ms = now_us(CLOCK_REALTIME) / 1000;
	open_keeping(0, 0, UINT64_MAX);
	for (int64_t i = 0; i < OLD_DAYS; i++)
		fill(large, began_ms - (20 + i) * day_of_ms, bytes / 8);
	fill(large, began_ms - 3 * day_of_ms, bytes);
	reopen(0, 0, UINT64_MAX);
	beside("alone", nothing);
	beside("a late report, its day in the file only", add_late);
	reopen(0, 0, UINT64_MAX);
	ask();
	beside("a late report, its day read by a question", add_late);
	samples_fold(store, NULL);
	reopen(0, 0, 1 << 20);
	beside("a question, and its dictionary is dropped", wait_dropped);
	reopen(15, 0, UINT64_MAX);
	beside("days are deleted", wait_deleted);
	reopen(2, 400, UINT64_MAX);
	ask();
	beside("minutes are reduced", wait_reduced);
	beside("alone again", nothing);
	samples_close(store);
	return 0;
}
