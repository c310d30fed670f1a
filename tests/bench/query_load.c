/* SPDX-License-Identifier: Apache-2.0 */
/* A fleet's day for measurements of queries, written through the store's own door:
 *
 *	query_load DIR FUNCTIONS DAY-START-MS [SERIES STACKS BUCKETS PAIRS DAYS TIMES]
 *
 * FUNCTIONS: lines "build-id name address size" (hexadecimal numbers) of real programs, so that
 *names can be looked up. Services have Zipf's sizes, stacks of a service share their callers; a day
 *of a series has BUCKETS reports, evenly spread, of about PAIRS stacks. TIMES 1: with the time of
 *each sample, in the report's ten seconds. Prints an exact tally: lines "service samples value" and
 *a last one of the total, "* samples value". */
#include <err.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hash_table.h"
#include "symbol-server/store/samples.h"
#include "tests/bench/load_memory.h"

enum { SERVICES = 100, DEPTH = 30, BUCKET_MS = 600000, DAY_MS = 86400000 };
enum { MODULES_MAX = 256, FUNCTIONS_MAX = 1 << 20, SAMPLES_MOST = 10, SPREAD_NS = 1000000000 };

struct function {
	uint32_t module;
	uint64_t address, size;
};

struct service {
	char name[24];
	uint32_t first_series, series;
	uint32_t first_stack, stacks;
	uint64_t samples, value;
};

struct load {
	struct samples_store *store;
	struct sample_batch batch;
	struct function *functions;
	uint32_t function_count;
	struct service services[SERVICES];
	uint32_t series, stacks, buckets, pairs, days;
	uint64_t random, profiles;
	uint32_t *drawn; /* the draw that took the stack last */
	uint32_t draws;
	bool has_times;
};

static uint32_t draw(struct load *load, uint32_t below)
{
	load->random = load->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((load->random >> 33) % below);
}

/* --- the world --- */

static uint32_t module_of(struct sample_batch *batch, const char *id, const char *name)
{
	struct batch_module *module = &batch->modules[batch->module_count];
	struct build_id parsed;

	if (!build_id_parse(&parsed, id, strlen(id)))
		errx(1, "'%s' is no build-id", id);
	for (uint32_t i = 0; i < batch->module_count; i++)
		if (build_id_equal(&batch->modules[i].id, &parsed))
			return i;
	if (batch->module_count == MODULES_MAX)
		errx(1, "more than %d modules", MODULES_MAX);
	module->id = parsed;
	module->name = text_of(strdup(name));
	module->go_id = text_of("");
	return batch->module_count++;
}

static void read_functions(struct load *load, const char *path)
{
	FILE *file = fopen(path, "r");
	char id[80], name[200];
	unsigned long long address, size;

	if (!file)
		err(1, "%s", path);
	load->functions = take(FUNCTIONS_MAX, sizeof *load->functions);
	load->batch.modules = take(MODULES_MAX, sizeof *load->batch.modules);
	while (load->function_count < FUNCTIONS_MAX &&
	       fscanf(file, "%79s %199s %llx %llx", id, name, &address, &size) == 4)
		load->functions[load->function_count++] = (struct function){
			module_of(&load->batch, id, name), address, size ? size : 1};
	fclose(file);
	if (!load->function_count)
		errx(1, "no functions in %s", path);
}

static uint32_t new_location(struct load *load)
{
	const struct function *function = &load->functions[draw(load, load->function_count)];
	struct batch_location *location = &load->batch.locations[load->batch.location_count];

	*location = (struct batch_location){.kind = LOCATION_NATIVE, .module = function->module};
	location->address = function->address + draw(load, (uint32_t)function->size) + 1;
	location->function = location->file = location->type = text_of("");
	return load->batch.location_count++;
}

/* Its callers are those of an earlier stack of the service. Leaf first. */
static void new_stack(struct load *load, const struct service *service, uint32_t number)
{
	struct sample_batch *batch = &load->batch;
	struct batch_stack *stack = &batch->stacks[number];
	uint32_t *own = &batch->location_indices[batch->location_index_count];
	uint32_t depth = 0, fresh = DEPTH;

	if (number > service->first_stack) {
		const struct batch_stack *other =
			&batch->stacks[service->first_stack +
				       draw(load, number - service->first_stack)];
		uint32_t dropped = 1 + draw(load, 6);

		if (dropped > other->depth)
			dropped = other->depth;
		fresh = 1 + draw(load, 6);
		depth = other->depth - dropped;
		memcpy(own + fresh, &batch->location_indices[other->first_index + dropped],
		       depth * sizeof *own);
	}
	for (uint32_t i = 0; i < fresh; i++)
		own[i] = new_location(load);
	stack->first_index = batch->location_index_count;
	stack->depth = depth + fresh;
	stack->hash[0] = hash_word(number, 77);
	stack->hash[1] = hash_word(78, number);
	batch->location_index_count += stack->depth;
}

static void name_series(struct load *load, const struct service *service, uint32_t number)
{
	struct batch_series *series = &load->batch.series[service->first_series + number];
	struct batch_label *labels = take(4, sizeof *labels);
	char text[40];

	snprintf(text, sizeof text, "host-%04u", service->first_series + number);
	labels[0] = (struct batch_label){text_of("host"), text_of(strdup(text))};
	snprintf(text, sizeof text, "%.20s-%u", service->name, number % 4);
	labels[1] = (struct batch_label){text_of("process"), text_of(strdup(text))};
	labels[2] = (struct batch_label){text_of("service"), text_of(service->name)};
	*series = (struct batch_series){labels, 3};
}

static void make_services(struct load *load)
{
	uint32_t series = 0, stacks = 0;
	double sum = 0;

	for (unsigned i = 0; i < SERVICES; i++)
		sum += 1.0 / (i + 1);
	for (unsigned i = 0; i < SERVICES; i++) {
		struct service *service = &load->services[i];
		double share = 1.0 / (i + 1) / sum;

		snprintf(service->name, sizeof service->name, "service-%02u", i);
		service->first_series = series;
		service->first_stack = stacks;
		service->series = 1 + (uint32_t)(share * (load->series - SERVICES));
		service->stacks = 1 + (uint32_t)(share * (load->stacks - SERVICES));
		series += service->series;
		stacks += service->stacks;
		for (uint32_t k = 0; k < service->series; k++)
			name_series(load, service, k);
		for (uint32_t k = 0; k < service->stacks; k++)
			new_stack(load, service, service->first_stack + k);
	}
	load->batch.series_count = series;
	load->batch.stack_count = stacks;
}

static void make_world(struct load *load)
{
	struct sample_batch *batch = &load->batch;
	uint64_t frames = (uint64_t)load->stacks * (DEPTH * 2 + 40);

	batch->tenant = 1;
	batch->sender = text_of("192.0.2.1");
	batch->locations = take((size_t)load->stacks * 7 + DEPTH * SERVICES,
				sizeof *batch->locations);
	batch->location_indices = take(frames, sizeof *batch->location_indices);
	batch->stacks = take(load->stacks, sizeof *batch->stacks);
	batch->series = take(load->series, sizeof *batch->series);
	batch->profiles = take(load->series, sizeof *batch->profiles);
	batch->samples = take((size_t)load->series * load->pairs, sizeof *batch->samples);
	if (load->has_times)
		batch->times = take((size_t)load->series * load->pairs * SAMPLES_MOST,
				    sizeof *batch->times);
	load->drawn = take(load->stacks, sizeof *load->drawn);
	make_services(load);
}

/* --- its samples --- */

/* Low numbers are drawn most. */
static uint32_t skewed(struct load *load, uint32_t below)
{
	double u = (draw(load, 1 << 24) + 1) / (double)(1 << 24);

	return (uint32_t)(u * u * u * (below - 1));
}

static void put_times(struct load *load, struct batch_sample *sample, int64_t time_ms)
{
	struct sample_batch *batch = &load->batch;

	sample->first_time = batch->time_count;
	sample->time_count = (uint32_t)sample->samples;
	for (uint32_t i = 0; i < sample->time_count; i++)
		batch->times[batch->time_count++] = (uint64_t)time_ms * 1000000 +
						    10 * (uint64_t)draw(load, SPREAD_NS);
}

static void put_profile(struct load *load, struct service *service, uint32_t series,
			int64_t time_ms)
{
	struct sample_batch *batch = &load->batch;
	struct batch_profile *profile = &batch->profiles[batch->profile_count++];

	*profile = (struct batch_profile){.type = "on-cpu", .time_ms = time_ms, .series = series};
	profile->first_sample = batch->sample_count;
	load->profiles++;
	memcpy(profile->id, &load->profiles, sizeof load->profiles);
	load->draws++;
	for (uint32_t i = 0; i < load->pairs; i++) {
		uint32_t stack = service->first_stack + skewed(load, service->stacks);
		uint64_t samples = 1 + draw(load, 4) * draw(load, 4);

		if (load->drawn[stack] == load->draws)
			continue;
		load->drawn[stack] = load->draws;
		batch->samples[batch->sample_count++] =
			(struct batch_sample){.stack = stack,
					      .thread = text_of("worker"),
					      .context = text_of("worker"),
					      .samples = samples,
					      .value = samples * 50000000};
		if (load->has_times)
			put_times(load, &batch->samples[batch->sample_count - 1], time_ms);
		service->samples += samples;
		service->value += samples * 50000000;
	}
	profile->sample_count = batch->sample_count - profile->first_sample;
}

struct waiter {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	int done;
};

static void wake(void *context, bool accepted, const struct error *why)
{
	struct waiter *waiter = context;

	if (!accepted)
		errx(1, "%s", why->message);
	pthread_mutex_lock(&waiter->lock);
	waiter->done = 1;
	pthread_cond_signal(&waiter->wake);
	pthread_mutex_unlock(&waiter->lock);
}

static void add(struct load *load)
{
	struct waiter waiter = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
	struct error why = {0};
	unsigned duplicates;

	while (!samples_add(load->store, &load->batch, wake, &waiter, &duplicates, &why)) {
		if (why.kind != ERROR_BUSY)
			errx(1, "%s", why.message);
		usleep(10000);
	}
	pthread_mutex_lock(&waiter.lock);
	while (!waiter.done)
		pthread_cond_wait(&waiter.wake, &waiter.lock);
	pthread_mutex_unlock(&waiter.lock);
	load->batch.profile_count = load->batch.sample_count = load->batch.time_count = 0;
}

static void write_bucket(struct load *load, int64_t time_ms)
{
	for (unsigned i = 0; i < SERVICES; i++)
		for (uint32_t k = 0; k < load->services[i].series; k++)
			put_profile(load, &load->services[i], load->services[i].first_series + k,
				    time_ms);
	add(load);
}

static void print_tally(const struct load *load)
{
	uint64_t samples = 0, value = 0;

	for (unsigned i = 0; i < SERVICES; i++) {
		const struct service *service = &load->services[i];

		samples += service->samples;
		value += service->value;
		printf("%s %llu %llu\n", service->name, (unsigned long long)service->samples,
		       (unsigned long long)service->value);
	}
	printf("* %llu %llu\n", (unsigned long long)samples, (unsigned long long)value);
}

static uint32_t number(char **arguments, int count, int at, uint32_t otherwise)
{
	return count > at ? (uint32_t)strtoul(arguments[at], NULL, 10) : otherwise;
}

int main(int count, char **arguments)
{
	struct load load = {.random = 1};
	struct samples_store_options options = {0};
	struct error why = {0};
	int64_t start_ms;

	if (count < 4)
		errx(2, "query_load DIR FUNCTIONS DAY-START-MS "
			"[SERIES STACKS BUCKETS PAIRS DAYS TIMES]");
	start_ms = strtoll(arguments[3], NULL, 10);
	load.series = number(arguments, count, 4, 2000);
	load.stacks = number(arguments, count, 5, 200000);
	load.buckets = number(arguments, count, 6, DAY_MS / BUCKET_MS);
	load.pairs = number(arguments, count, 7, 75);
	load.days = number(arguments, count, 8, 1);
	load.has_times = number(arguments, count, 9, 0);
	if (load.series <= SERVICES || load.stacks <= SERVICES || !load.buckets)
		errx(2, "more than %d series and stacks are needed, and a bucket", SERVICES);
	read_functions(&load, arguments[2]);
	make_world(&load);
	options.directory = arguments[1];
	load.store = samples_open(&options, &why);
	if (!load.store)
		errx(1, "%s", why.message);
	for (uint32_t day = 0; day < load.days; day++)
		for (uint32_t i = 0; i < load.buckets; i++) {
			write_bucket(&load, start_ms + day * (int64_t)DAY_MS +
						    i * (int64_t)(DAY_MS / load.buckets));
			if (i % 16 == 15 && !samples_fold(load.store, &why))
				errx(1, "%s", why.message);
		}
	if (!samples_fold(load.store, &why))
		errx(1, "%s", why.message);
	samples_close(load.store);
	print_tally(&load);
	return 0;
}
