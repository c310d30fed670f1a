/* SPDX-License-Identifier: Apache-2.0 */
/* Batches as ingest makes them, and a store in a directory of its own, for the tests of the store.
 */
#ifndef TESTS_UNIT_STORE_BATCHES_H
#define TESTS_UNIT_STORE_BATCHES_H

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hash_table.h"
#include "symbol-server/store/samples.h"

#define TEST __attribute__((unused)) static

static const int64_t noon = 1795262400000; /* 2026-11-21 12:00:00 UTC */

struct batch_maker {
	struct arena arena;
	struct sample_batch batch;
};

TEST struct text text_from(const char *text)
{
	return (struct text){text, (uint32_t)strlen(text)};
}

TEST void batch_start(struct batch_maker *maker)
{
	memset(maker, 0, sizeof *maker);
	arena_init(&maker->arena, 256 << 20);
	maker->batch.tenant = 1;
	maker->batch.sender = text_from("192.0.2.1");
	maker->batch.modules = arena_array(&maker->arena, 4, sizeof(struct batch_module));
	maker->batch.locations = arena_array(&maker->arena, 4096, sizeof(struct batch_location));
	maker->batch.location_indices = arena_array(&maker->arena, 65536, sizeof(uint32_t));
	maker->batch.stacks = arena_array(&maker->arena, 4096, sizeof(struct batch_stack));
	maker->batch.series = arena_array(&maker->arena, 256, sizeof(struct batch_series));
	maker->batch.samples = arena_array(&maker->arena, 65536, sizeof(struct batch_sample));
	maker->batch.profiles = arena_array(&maker->arena, 256, sizeof(struct batch_profile));
	maker->batch.counters = arena_array(&maker->arena, 4, sizeof(struct batch_counters));
	build_id_parse(&maker->batch.modules[0].id, "00112233445566778899aabbccddeeff00112233", 40);
	maker->batch.modules[0].name = text_from("libtest.so");
	maker->batch.modules[0].go_id = text_from("");
	maker->batch.module_count = 1;
}

/* A stack of depth frames whose addresses follow from its number. */
TEST uint32_t batch_stack(struct batch_maker *maker, uint32_t number, uint32_t depth)
{
	struct sample_batch *batch = &maker->batch;
	struct batch_stack *stack = &batch->stacks[batch->stack_count];

	stack->first_index = batch->location_index_count;
	stack->depth = depth;
	stack->hash[0] = hash_word(number, depth);
	stack->hash[1] = hash_word(depth, number);
	for (uint32_t i = 0; i < depth; i++) {
		struct batch_location *location = &batch->locations[batch->location_count];

		*location = (struct batch_location){.kind = LOCATION_NATIVE,
						    .address = 0x1000 + number * 64ull + i};
		location->function = location->file = location->type = text_from("");
		batch->location_indices[batch->location_index_count++] = batch->location_count++;
	}
	return batch->stack_count++;
}

TEST uint32_t batch_series(struct batch_maker *maker, const char *host, const char *process)
{
	struct batch_series *series = &maker->batch.series[maker->batch.series_count];

	series->labels = arena_array(&maker->arena, 3, sizeof *series->labels);
	series->labels[0] = (struct batch_label){text_from("host"), text_from(host)};
	series->labels[1] = (struct batch_label){text_from("process"), text_from(process)};
	series->labels[2] = (struct batch_label){text_from("service"), text_from(process)};
	series->label_count = 3;
	return maker->batch.series_count++;
}

/* Starts a profile; samples are added to the last one. id 0: none; else the id's last bytes count
 * from it. */
TEST struct batch_profile *batch_profile(struct batch_maker *maker, uint32_t series,
					 int64_t time_ms, uint32_t report, uint32_t number)
{
	struct batch_profile *profile = &maker->batch.profiles[maker->batch.profile_count++];

	*profile = (struct batch_profile){.type = "on-cpu", .time_ms = time_ms, .series = series};
	profile->first_sample = maker->batch.sample_count;
	if (report) {
		memcpy(profile->id, &report, sizeof report);
		profile->id[14] = (uint8_t)(number >> 8);
		profile->id[15] = (uint8_t)number;
	}
	return profile;
}

TEST void batch_sample(struct batch_maker *maker, uint32_t stack, const char *thread,
		       uint64_t samples, uint64_t value)
{
	struct batch_sample *sample = &maker->batch.samples[maker->batch.sample_count++];

	*sample = (struct batch_sample){
		.stack = stack, .thread = text_from(thread), .samples = samples, .value = value};
	maker->batch.profiles[maker->batch.profile_count - 1].sample_count++;
}

/* The last sample is of that request: all bytes of its trace and span are derived from the number.
 */
TEST void batch_link(struct batch_maker *maker, uint32_t number)
{
	uint64_t ids[3] = {hash_word(number, 1), hash_word(number, 2), hash_word(number, 3)};

	maker->batch.samples[maker->batch.sample_count - 1].link = arena_copy(&maker->arena, ids,
									      sizeof ids);
}

/* One report of one process: stacks first … first + count − 1, one sample of 10 ms each. */
TEST void batch_report(struct batch_maker *maker, const char *host, const char *process,
		       int64_t time_ms, uint32_t report, uint32_t first, uint32_t count)
{
	batch_start(maker);
	batch_profile(maker, batch_series(maker, host, process), time_ms, report, 0);
	for (uint32_t i = 0; i < count; i++)
		batch_sample(maker, batch_stack(maker, first + i, 5), "worker", 1, 10000000);
}

/* --- adding --- */

struct waiter {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	int done; /* 1 accepted, -1 not */
	struct error err;
};

TEST void waiter_done(void *context, bool accepted, const struct error *err)
{
	struct waiter *waiter = context;

	pthread_mutex_lock(&waiter->lock);
	waiter->done = accepted ? 1 : -1;
	if (err)
		waiter->err = *err;
	pthread_cond_signal(&waiter->wake);
	pthread_mutex_unlock(&waiter->lock);
}

/* Adds and waits until it is durable, again while the store is busy. */
TEST bool add_and_wait(struct samples_store *store, struct batch_maker *maker, unsigned *duplicates,
		       struct error *err)
{
	struct waiter waiter = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, {0}};
	struct error why = {0};

	while (!samples_add(store, &maker->batch, waiter_done, &waiter, duplicates, &why)) {
		if (why.kind != ERROR_BUSY) {
			if (err)
				*err = why;
			return false;
		}
		usleep(2000);
	}
	pthread_mutex_lock(&waiter.lock);
	while (!waiter.done)
		pthread_cond_wait(&waiter.wake, &waiter.lock);
	pthread_mutex_unlock(&waiter.lock);
	if (err)
		*err = waiter.err;
	return waiter.done > 0;
}

TEST bool add_report(struct samples_store *store, const char *host, const char *process,
		     int64_t time_ms, uint32_t report, uint32_t first, uint32_t count)
{
	struct batch_maker maker;
	bool ok;

	batch_report(&maker, host, process, time_ms, report, first, count);
	ok = add_and_wait(store, &maker, NULL, NULL);
	arena_release(&maker.arena);
	return ok;
}

/* --- a directory --- */

TEST const char *make_directory(void)
{
	static char path[64];

	snprintf(path, sizeof path, "/tmp/farflame-test-XXXXXX");
	return mkdtemp(path);
}

TEST void remove_directory(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	char child[4096];

	while (directory && (entry = readdir(directory))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		snprintf(child, sizeof child, "%s/%s", path, entry->d_name);
		if (unlink(child))
			remove_directory(child);
	}
	if (directory)
		closedir(directory);
	rmdir(path);
}

TEST struct samples_store *open_store(const char *directory, struct error *err)
{
	struct samples_store_options options = {.directory = directory,
						.trace_keep_ms = 36500 * INT64_C(86400000)};

	return samples_open(&options, err);
}

struct totals {
	uint64_t samples, value, taken, idle, stored, lost;
	size_t stacks;
	uint32_t hosts, series;
};

TEST struct totals query_totals(struct samples_store *store, int64_t from_ms, int64_t until_ms)
{
	struct samples_query query = {
		.tenant = 1, .from_ms = from_ms, .until_ms = until_ms, .type = "on-cpu"};
	struct totals totals = {0};
	struct error err = {0};
	struct samples_result *result = samples_query(store, &query, &err);

	if (!result) {
		printf("# query failed: %s\n", err.message);
		totals.samples = UINT64_MAX;
		return totals;
	}
	for (size_t i = 0; i < result->stack_count; i++) {
		totals.samples += result->stacks[i].samples;
		totals.value += result->stacks[i].value;
	}
	for (uint32_t i = 0; i < result->host_count; i++) {
		totals.taken += result->hosts[i].taken;
		totals.idle += result->hosts[i].idle;
		totals.stored += result->hosts[i].samples;
		totals.lost += result->hosts[i].lost;
	}
	totals.stacks = result->stack_count;
	totals.hosts = result->host_count;
	totals.series = result->series_count;
	samples_result_free(result);
	return totals;
}

/* What the only agent says that it took; 0: there is not one. */
TEST uint64_t agent_taken(struct samples_store *store)
{
	struct agent_state *agents;
	struct arena arena;
	uint64_t taken = 0;
	size_t count = 0;

	arena_init(&arena, 1 << 20);
	if (samples_agents(store, 1, &arena, &agents, &count, NULL) && count == 1)
		taken = agents[0].taken;
	arena_release(&arena);
	return taken;
}

/* Samples that came with a request. */
TEST uint64_t query_spans(struct samples_store *store, int64_t from_ms, int64_t until_ms)
{
	struct samples_query query = {.tenant = 1,
				      .from_ms = from_ms,
				      .until_ms = until_ms,
				      .type = "on-cpu",
				      .by_span = true};
	struct samples_result *result = samples_query(store, &query, NULL);
	uint64_t samples = result ? 0 : UINT64_MAX;

	for (size_t i = 0; result && i < result->stack_count; i++)
		samples += result->stacks[i].samples;
	samples_result_free(result);
	return samples;
}

#endif
