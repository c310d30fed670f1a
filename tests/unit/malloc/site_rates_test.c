/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/malloc/site_rates.h"

#include <string.h>

#include "tests/check.h"

enum { PLACES = 60, FAST = 40, COST_NS = 4000 };

/* A program whose clock is its own: its places, so many hits of each a second. */
struct program {
	struct site_rates rates;
	uint64_t hits[PLACES], told[PLACES], counts[PLACES], all_told, cpu_ns;
};

static uintptr_t place(unsigned i)
{
	return 0x555555554000 + 32 * (uintptr_t)i;
}

static void hit(struct program *program, unsigned i)
{
	const uint32_t stands_for = site_sample(&program->rates, place(i));

	program->hits[i]++;
	if (!stands_for)
		return;
	program->counts[i] += stands_for;
	program->told[i]++;
	program->all_told++;
	if (site_rates_told(&program->rates, COST_NS * 2 / 3))
		site_rates_settle(&program->rates, 0, 10000000);
}

/* A second, of which the process uses the share of a CPU; evenly mixed. */
static void run(struct program *program, const unsigned per_second[PLACES], double share)
{
	for (unsigned tick = 0; tick < 10; tick++) {
		for (unsigned i = 0; i < PLACES; i++)
			for (unsigned k = 0; k < per_second[i] / 10; k++)
				hit(program, i);
		program->cpu_ns += (uint64_t)(share * SITE_TICK_NS);
		site_rates_settle(&program->rates, (uint64_t)(share * SITE_TICK_NS), SITE_TICK_NS);
	}
}

static struct program program;

static void begin(void)
{
	memset(&program, 0, sizeof program);
	site_rates_init(&program.rates);
}

static void test_each_place_has_its_sum(void)
{
	unsigned per_second[PLACES];
	uint64_t before, most = 0, least = UINT64_MAX;

	begin();
	for (unsigned i = 0; i < PLACES; i++)
		per_second[i] = i < FAST ? 100 * (i + 1) : 2;
	for (unsigned i = 0; i < 30; i++)
		run(&program, per_second, 0.5);
	before = program.all_told;
	for (unsigned i = 0; i < 120; i++)
		run(&program, per_second, 0.5);
	printf("# told %" PRIu64 " at first, %.1f a second then\n", before,
	       (double)(program.all_told - before) / 120);
	for (unsigned i = 0; i < FAST; i++) {
		const uint64_t run_now = program.hits[i] - program.counts[i];

		most = program.told[i] > most ? program.told[i] : most;
		least = program.told[i] < least ? program.told[i] : least;
		CHECK(program.counts[i] <= program.hits[i] && run_now <= 10 * per_second[i]);
	}
	CHECK(most < 2 * least); /* whatever they take */
	/* CPU time of telling, when the start is paid for */
	CHECK((double)(program.all_told - before) * COST_NS < 1.2 * 120 * 0.5e9 / SITE_TOLD_SHARE);
	CHECK((double)(program.all_told - before) * COST_NS > 0.4 * 120 * 0.5e9 / SITE_TOLD_SHARE);
}

/* Places that come by turns, in a program that has next to no CPU time. */
static void test_start_is_bounded(void)
{
	unsigned per_second[PLACES];
	uint64_t before;

	begin();
	for (unsigned i = 0; i < PLACES; i++)
		per_second[i] = 2000;
	for (unsigned i = 0; i < 10; i++)
		run(&program, per_second, 0.01);
	before = program.all_told;
	for (unsigned i = 0; i < 10; i++)
		run(&program, per_second, 0.01);
	printf("# told %" PRIu64 " in ten seconds, %" PRIu64 " in ten more\n", before,
	       program.all_told - before);
	/* what may be spent at once */
	CHECK(before * COST_NS < 3 * (uint64_t)SITE_CREDIT_NS);
	/* and of each place less than one a second */
	CHECK(program.all_told - before < 10 * PLACES);
}

/* What is held: taken slowly beside much churn, or at once when that is known already. */
static void test_new_places_are_told_in_full(void)
{
	unsigned per_second[PLACES] = {0};

	begin();
	for (unsigned i = 0; i < FAST; i++)
		per_second[i] = 1000;
	for (unsigned i = 0; i < 60; i++)
		run(&program, per_second, 0.5);
	per_second[FAST] = 10;
	per_second[FAST + 1] = SITE_SEEN_ALL;
	run(&program, per_second, 0.5);
	CHECK_NUMBER(program.told[FAST], program.hits[FAST]);
	CHECK_NUMBER(program.told[FAST + 1], program.hits[FAST + 1]);
}

static void test_samples_have_their_share(void)
{
	unsigned per_second[PLACES] = {40000};

	begin();
	CHECK_NUMBER(program.rates.rate, SITE_RATE_LEAST);
	run(&program, per_second, 0.1); /* 1 ms of 100 ms is twice the share */
	CHECK(program.rates.rate > 3 * SITE_RATE_LEAST / 2);
	per_second[0] = 100;
	for (unsigned i = 0; i < 10; i++)
		run(&program, per_second, 0.1);
	CHECK_NUMBER(program.rates.rate, SITE_RATE_LEAST);
	per_second[0] = 4000000;
	for (unsigned i = 0; i < 3; i++)
		run(&program, per_second, 0);
	CHECK_NUMBER(program.rates.rate, SITE_RATE_MOST);
}

int main(void)
{
	test_each_place_has_its_sum();
	test_start_is_bounded();
	test_new_places_are_told_in_full();
	test_samples_have_their_share();
	return checks_done();
}
