/* SPDX-License-Identifier: Apache-2.0 */
/* The best of many traces, found in a table that has room for a few of them: against the sender's
 * own sums, from memory and from files, of all stacks and of one. Ids that were chosen to fall
 * together cost nothing; all passes have the time of one question. */
#include "symbol-server/api/top_traces.h"

#include "symbol-server/http/http_private.h"
#include "symbol-server/store/samples_engine.h"
#include "tests/check.h"
#include "tests/unit/store/batches.h"

enum { TRACES = 5000, REPORTS = 21, STACKS = 4, LIMIT = 40 };

static struct told {
	uint8_t id[TOP_TRACE_BYTES];
	uint64_t value[2]; /* all, of the one stack */
} told[TRACES];
static uint64_t sum[2], samples_sum[2], one_stack;

static void tell(const struct batch_sample *sample, uint32_t number, bool is_one)
{
	memcpy(told[number].id, sample->link, sizeof told[number].id);
	for (unsigned one = 0; one < 1u + is_one; one++) {
		told[number].value[one] += sample->value;
		sum[one] += sample->value;
		samples_sum[one] += sample->samples;
	}
}

/* A seventh of the traces each. */
static void send_report(struct samples_store *store, uint32_t report)
{
	struct batch_maker maker;
	uint32_t stacks[STACKS];

	batch_start(&maker);
	batch_profile(&maker, batch_series(&maker, report % 2 ? "h1" : "h2", "a"),
		      noon + report * 20000, report + 1, 0);
	for (uint32_t i = 0; i < STACKS; i++)
		stacks[i] = batch_stack(&maker, i, 4);
	one_stack = maker.batch.stacks[1].hash[0];
	for (uint32_t i = report % 7; i < TRACES; i += 7) {
		uint64_t random = hash_word(i, report), samples = 1 + random % 5;
		uint32_t stack = (uint32_t)(random >> 32) % STACKS;

		batch_sample(&maker, stacks[stack], "t", samples, samples * (1 + random % 1000));
		batch_link(&maker, i);
		tell(&maker.batch.samples[maker.batch.sample_count - 1], i, stack == 1);
	}
	CHECK(add_and_wait(store, &maker, NULL, NULL));
	arena_release(&maker.arena);
}

static unsigned sorted_by; /* which value */

static int compare_told(const void *left, const void *right)
{
	const struct told *a = left, *b = right;

	if (a->value[sorted_by] != b->value[sorted_by])
		return a->value[sorted_by] > b->value[sorted_by] ? -1 : 1;
	return memcmp(a->id, b->id, sizeof a->id);
}

static bool is_the_one(void *context, uint64_t stack_id)
{
	(void)context;
	return stack_id == one_stack;
}

/* passes 0: many. */
static void check_best(struct samples_store *store, bool of_one, size_t bytes, unsigned passes)
{
	struct samples_query query = {
		.tenant = 1, .from_ms = noon, .until_ms = noon + 3600000, .type = "on-cpu"};
	uint32_t wrong = 0, count = 0;
	struct top_traces top;
	struct error err = {0};

	CHECK(top_traces_find(&top, store, &query, of_one ? is_the_one : NULL, NULL, LIMIT, bytes,
			      NULL, &err));
	sorted_by = of_one;
	qsort(told, TRACES, sizeof *told, compare_told);
	for (uint32_t i = 0; i < TRACES; i++) {
		count += told[i].value[of_one] != 0;
		wrong += top_traces_have(&top, told[i].id) != (i < LIMIT);
	}
	CHECK_NUMBER(wrong, 0);
	CHECK_NUMBER(top.best_count, LIMIT);
	CHECK_NUMBER(top.count, count);
	CHECK_NUMBER(top.value, sum[of_one]);
	CHECK_NUMBER(top.samples, samples_sum[of_one]);
	CHECK(passes ? top.passes == passes : top.passes >= 8);
	top_traces_release(&top);
}

/* Ids that hash_bytes() makes one number of: a sender can have as many as it likes. */
static void make_colliding(uint64_t ids[3], uint64_t number)
{
	uint64_t word = hash_word(number, 1);
	uint64_t hash = (0xcbf29ce484222325ull ^ TOP_TRACE_BYTES ^ word) * 0x100000001b3ull;

	ids[0] = word;
	ids[1] = hash ^ hash >> 29;
	ids[2] = 1;
}

static void check_colliding(struct samples_store *store)
{
	struct samples_query query = {
		.tenant = 1, .from_ms = noon, .until_ms = noon + 3600000, .type = "on-cpu"};
	struct batch_maker maker;
	struct top_traces top;
	struct error err = {0};
	uint64_t ids[3], first = 0;
	uint32_t stack, others = 0;

	batch_start(&maker);
	batch_profile(&maker, batch_series(&maker, "h1", "a"), noon, 1, 0);
	stack = batch_stack(&maker, 0, 4);
	for (uint32_t i = 0; i < 1000; i++) {
		make_colliding(ids, i);
		if (!i)
			first = hash_bytes(ids, TOP_TRACE_BYTES, 0);
		others += hash_bytes(ids, TOP_TRACE_BYTES, 0) != first;
		batch_sample(&maker, stack, "t", 1, 1000);
		maker.batch.samples[maker.batch.sample_count - 1].link =
			arena_copy(&maker.arena, ids, sizeof ids);
	}
	CHECK_NUMBER(others, 0);
	CHECK(add_and_wait(store, &maker, NULL, NULL));
	CHECK(top_traces_find(&top, store, &query, NULL, NULL, LIMIT, 0, NULL, &err));
	CHECK_NUMBER(top.count, 1000);
	top_traces_release(&top);
	arena_release(&maker.arena);
}

/* A store that takes its time over traces that need several passes. */
static int64_t given_ms[64], since_ms[64];
static unsigned passes;

static bool slow_spans(struct samples_store *store, const struct samples_query *query,
		       samples_span_fn *fn, void *context, struct error *err)
{
	(void)store;
	(void)err;
	since_ms[passes % 64] = query->limits.started_ms;
	given_ms[passes++ % 64] = query->limits.time_ms;
	usleep(20000);
	for (uint64_t i = 0; i < 1000; i++) {
		uint64_t ids[3] = {i, i, i};

		if (!fn(context, (const uint8_t *)ids, 1, 1, 1))
			break;
	}
	return true;
}

static bool find_slowly(struct http_request *request, int64_t time_ms, struct error *err)
{
	static const struct samples_engine engine = {.spans = slow_spans};
	struct samples_store store = {&engine};
	struct samples_limits limits = {.time_ms = time_ms};
	struct query asked = {.tenant = 1};
	struct query_life *life = query_life_start(request, &limits, &asked, err);
	struct samples_query query = {.tenant = 1, .limits = asked.limits};
	struct top_traces top;
	bool ok;

	passes = 0;
	ok = top_traces_find(&top, &store, &query, NULL, NULL, LIMIT, 0, life, err);
	top_traces_release(&top);
	return ok;
}

/* All passes are one question, and have its time together. */
static void check_time(void)
{
	struct http_server server = {0};
	struct http_request request = {.server = &server};
	struct error err = {0};
	uint32_t wrong = 0;

	arena_init(&request.arena, 1 << 20);
	CHECK(find_slowly(&request, 3600000, &err));
	CHECK(passes > 2);
	for (unsigned i = 1; i < passes; i++)
		wrong += !since_ms[i] || since_ms[i] != since_ms[0] || given_ms[i] != 3600000;
	CHECK_NUMBER(wrong, 0);
	CHECK(!find_slowly(&request, 10, &err) && err.kind == ERROR_LIMIT);
	CHECK(strstr(err.message, "(10 ms)"));
	CHECK_NUMBER(passes, 1);
	CHECK(find_slowly(&request, 0, &err) && !given_ms[passes - 1]);
	arena_release(&request.arena);
}

static void check_in(void (*check)(struct samples_store *store))
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);

	if (store)
		check(store);
	samples_close(store);
	remove_directory(directory);
}

int main(void)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);

	for (uint32_t report = 0; store && report < REPORTS; report++)
		send_report(store, report);
	for (unsigned files = 0; store && files < 2; files++) {
		for (unsigned of_one = 0; of_one < 2; of_one++) {
			check_best(store, of_one, 0, 0);
			check_best(store, of_one, 64 << 20, 1);
		}
		CHECK(samples_fold(store, NULL));
	}
	samples_close(store);
	remove_directory(directory);
	check_in(check_colliding);
	check_time();
	return checks_done();
}
