/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up reports on both sides of midnight, partly folded, against a tally kept beside them: the
 * sum of every stack, for several ways to look. */
#include "tests/check.h"
#include "tests/unit/store/batches.h"

enum { HOSTS = 4, PROCESSES = 3, STACKS = 40, REPORTS = 100, MINUTES = 40 };

static const char *const hosts[HOSTS] = {"h0", "h1", "h2", "h3"};
static const char *const processes[PROCESSES] = {"p0", "p1", "p2"};
static uint64_t tally[MINUTES][HOSTS][PROCESSES][STACKS];
static uint32_t state = 7;

static uint32_t draw(uint32_t below)
{
	state = state * 1664525 + 1013904223;
	return (state >> 8) % below;
}

static int64_t minute_ms(unsigned minute)
{
	return noon + 12 * 3600000ll + ((int64_t)minute - MINUTES / 2) * SAMPLES_BUCKET_MS;
}

static void add_random(struct samples_store *store, uint32_t report)
{
	unsigned minute = draw(MINUTES), host = draw(HOSTS), process = draw(PROCESSES);
	struct batch_maker maker;

	batch_start(&maker);
	batch_profile(&maker, batch_series(&maker, hosts[host], processes[process]),
		      minute_ms(minute), report, 0);
	for (unsigned i = 0; i < 20; i++) {
		uint32_t stack = draw(STACKS);
		uint64_t samples = 1 + draw(50);

		batch_sample(&maker, batch_stack(&maker, stack, 5), draw(2) ? "a" : "b", samples,
			     samples * 3);
		tally[minute][host][process][stack] += samples;
	}
	CHECK(add_and_wait(store, &maker, NULL, NULL));
	arena_release(&maker.arena);
}

static bool is_second_host(void *context, const struct series_labels *labels)
{
	(void)context;
	for (uint32_t i = 0; i < labels->count; i++)
		if (!strcmp(labels->names[i], "host"))
			return !strcmp(labels->values[i], hosts[1]);
	return false;
}

/* What the tally has of a stack, of all hosts and processes or those given. */
static uint64_t expected(unsigned from, unsigned until, int host, int process, uint32_t stack)
{
	uint64_t samples = 0;

	for (unsigned m = from; m < until; m++)
		for (int h = 0; h < HOSTS; h++)
			for (int p = 0; p < PROCESSES; p++)
				if ((host < 0 || h == host) && (process < 0 || p == process))
					samples += tally[m][h][p][stack];
	return samples;
}

/* The leaf of stack n is at 0x1000 + 64 n, as batch_stack() makes it. */
static uint32_t number_of(const struct samples_result *result, const struct result_stack *stack)
{
	uint32_t leaf = stack->locations ? stack->locations[0]
					 : result->nodes[stack->node].location;

	return (uint32_t)((result->locations[leaf].address - 0x1000) / 64);
}

static int process_of(const struct samples_result *result, const struct result_stack *stack)
{
	const struct series_labels *labels = &result->series[stack->series];

	for (uint32_t i = 0; i < labels->count; i++)
		if (!strcmp(labels->names[i], "process"))
			return labels->values[i][1] - '0';
	return -1;
}

static void compare(struct samples_store *store, struct samples_query *query, int host)
{
	static uint64_t got[PROCESSES + 1][STACKS];
	unsigned from = draw(MINUTES / 2), until = MINUTES / 2 + draw(MINUTES / 2) + 1, wrong = 0;
	bool by_process = !query->labels || query->label_count;
	struct samples_result *result;
	struct error err = {0};

	query->from_ms = minute_ms(from);
	query->until_ms = minute_ms(until);
	result = samples_query(store, query, &err);
	if (!CHECK(result)) {
		printf("# %s\n", err.message);
		return;
	}
	memset(got, 0, sizeof got);
	for (size_t i = 0; i < result->stack_count; i++) {
		const struct result_stack *stack = &result->stacks[i];
		int process = process_of(result, stack);

		wrong += stack->depth != 5 || stack->value != stack->samples * 3;
		got[process < 0 ? PROCESSES : process][number_of(result, stack)] += stack->samples;
	}
	for (int p = 0; p <= PROCESSES; p++)
		for (uint32_t s = 0; s < STACKS; s++)
			wrong += got[p][s] !=
				 (by_process == (p < PROCESSES)
					  ? expected(from, until, host, p < PROCESSES ? p : -1, s)
					  : 0);
	CHECK_NUMBER(wrong, 0);
	if (query->labels)
		CHECK(result->series_count <= (query->label_count ? PROCESSES : 1));
	samples_result_free(result);
}

static void compare_all(struct samples_store *store)
{
	static const char *const process_only[] = {"process"};
	static const char *const none[1];

	for (unsigned i = 0; i < 32; i++) {
		struct samples_query query = {.tenant = 1, .type = "on-cpu"};

		query.labels = i % 4 == 1 ? process_only : i % 4 == 2 ? none : NULL;
		query.label_count = i % 4 == 1;
		query.only_nodes = i & 4;
		query.by_thread = i & 8;
		query.by_bucket = i & 16;
		query.series_wanted = i % 4 == 3 ? is_second_host : NULL;
		compare(store, &query, i % 4 == 3 ? 1 : -1);
	}
}

int main(void)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);

	for (uint32_t report = 1; report <= REPORTS; report++) {
		add_random(store, report);
		if (report == REPORTS / 2)
			CHECK(samples_fold(store, NULL));
	}
	compare_all(store); /* a part in memory */
	CHECK(samples_fold(store, NULL));
	compare_all(store);
	samples_close(store);
	store = open_store(directory, NULL); /* dictionaries are read back */
	compare_all(store);
	samples_close(store);
	remove_directory(directory);
	return checks_done();
}
