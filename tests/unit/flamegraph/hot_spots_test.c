/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up processes whose mix is known: the same all day (false alarms), or changed at a known
 * step. HOT_TRIALS=n for more days without any change. */
#include "symbol-server/flamegraph/hot_spots.h"

#include <math.h>
#include <stdlib.h>

#include "tests/check.h"
#include "tests/unit/flamegraph/simulated_load.h"

enum { PERIOD = 52631579, FUNCTIONS = 60, NEW = FUNCTIONS, HOSTS = 3 };

static char names[SIM_FUNCTIONS][16];

static struct flame_frame frame_of(unsigned function)
{
	return (struct flame_frame){
		.name = names[function], .file = "", .module = 0, .kind = FRAME_native};
}

static void add(struct hot_spots *spots, uint32_t process, uint32_t step, unsigned function,
		uint64_t value, uint64_t samples)
{
	struct flame_frame frames[] = {{.name = "p", .file = "", .kind = FRAME_group},
				       {.name = "main", .file = "", .kind = FRAME_native},
				       frame_of(function)};

	if (!hot_spots_add(spots, process, step, frames, 3, value, samples))
		CHECK(!"a sample is added");
}

/* Shares that fall like 1/rank, as those of real programs do. */
static unsigned draw(void)
{
	static double sums[FUNCTIONS];

	if (sums[0] == 0)
		for (unsigned i = 0; i < FUNCTIONS; i++)
			sums[i] = (i ? sums[i - 1] : 0) + 1.0 / (i + 1);
	for (unsigned i = 0;; i++) {
		static double at;

		if (!i)
			at = sim_uniform() * sums[FUNCTIONS - 1];
		if (at < sums[i] || i == FUNCTIONS - 1)
			return i;
	}
}

enum weights { ALIKE, EXPONENTIAL, HEAVY };

static uint64_t weigh(enum weights weights)
{
	double at = 1 - sim_uniform();

	if (weights == ALIKE)
		return PERIOD;
	if (weights == EXPONENTIAL)
		return 1 + (uint64_t)(-log(at) * 1e6);
	return 1 + (uint64_t)(1e5 * pow(at, -1 / 1.5)); /* Pareto without a variance */
}

/* As the store has them: a stack's samples of a step in one sum. */
static void add_drawn(struct hot_spots *spots, uint32_t process, uint32_t step, unsigned count,
		      enum weights weights)
{
	uint64_t values[FUNCTIONS] = {0}, samples[FUNCTIONS] = {0};

	for (unsigned i = 0; i < count; i++) {
		unsigned function = draw();

		values[function] += weigh(weights);
		samples[function]++;
	}
	for (unsigned i = 0; i < FUNCTIONS; i++)
		if (samples[i])
			add(spots, process, step, i, values[i], samples[i]);
}

/* A day of some processes with the same mix, about samples in each step. */
static struct hot_spots *day(uint32_t processes, uint32_t steps, unsigned samples,
			     enum weights weights, bool by_total)
{
	struct hot_spots *spots = hot_spots_new(steps, by_total, 1 << 24);

	for (uint32_t process = 0; process < processes; process++)
		for (uint32_t step = 0; step < steps; step++) {
			unsigned count = samples / 2 + (unsigned)(sim_uniform() * (samples + 1));

			add_drawn(spots, process, step, count, weights);
		}
	return spots;
}

static unsigned days_with_alarms(unsigned trials, enum weights weights, bool by_total)
{
	unsigned alarms = 0;

	for (unsigned i = 0; i < trials; i++) {
		struct hot_spots *spots = day(6, 96, 60, weights, by_total);

		if (!hot_spots_find(spots, 0, 100, SIZE_MAX, NULL, NULL))
			CHECK(!"changes are looked for");
		alarms += spots->change_count > 0;
		hot_spots_free(spots);
	}
	return alarms;
}

static void test_nothing_changes(void)
{
	const char *given = getenv("HOT_TRIALS");
	unsigned trials = given ? (unsigned)atoi(given) : 20;

	for (enum weights weights = ALIKE; weights <= HEAVY; weights++)
		for (int by_total = 0; by_total < 2; by_total++) {
			unsigned alarms = days_with_alarms(trials, weights, by_total);

			printf("# weights %d, by_total %d: %u of %u days with an alarm\n",
			       (int)weights, by_total, alarms, trials);
			/* 5 % and three standard deviations */
			CHECK(alarms <=
			      trials * HOT_FALSE_ALARMS + 3 * sqrt(trials * HOT_FALSE_ALARMS));
		}
}

static const struct hot_moved *moved(const struct hot_spots *spots, const struct hot_change *change,
				     const char *name)
{
	for (uint32_t i = 0; i < change->moved_count; i++)
		if (!strcmp(spots->functions[change->moved[i].function].name, name))
			return &change->moved[i];
	return NULL;
}

/* Minutes of three hosts that vary by 15 %, each like the one before. doubled: a function's ratio
 * in the last third. */
static struct hot_spots *varying_minutes(uint32_t minutes, double doubled)
{
	static double expected[SIM_MINUTES][SIM_FUNCTIONS];
	const struct sim_load load = {2000, 0.15, 0.2, 0.7};
	struct hot_spots *spots = hot_spots_new(minutes, false, 1 << 24);

	for (uint32_t host = 0; host < HOSTS; host++) {
		sim_expect(&load, minutes, expected);
		for (uint32_t m = 0; m < minutes; m++)
			for (unsigned f = 0; f < SIM_FUNCTIONS; f++) {
				double ratio = f == 4 && m >= minutes * 2 / 3 ? doubled : 1;
				uint64_t samples = sim_poisson(expected[m][f] * ratio);

				if (samples)
					add(spots, host, m, f, samples * PERIOD, samples);
			}
	}
	CHECK(hot_spots_find(spots, 0.002, 100, SIZE_MAX, NULL, NULL));
	return spots;
}

/* Before, every answer of an hour named a change (3.6 by the mean). */
static void test_varying_minutes(void)
{
	static const uint32_t minutes[] = {12, 30, 60};
	const char *given = getenv("HOT_TRIALS");
	unsigned trials = given ? (unsigned)atoi(given) : 20;

	for (size_t i = 0; i < 3; i++) {
		unsigned alarms = 0, found = 0, changes = 0;

		for (unsigned k = 0; k < trials; k++) {
			struct hot_spots *spots = varying_minutes(minutes[i], 1);

			alarms += spots->change_count > 0;
			changes += spots->change_count;
			hot_spots_free(spots);
			if (k % 4)
				continue;
			spots = varying_minutes(minutes[i], 3);
			found += spots->change_count > 0 &&
				 moved(spots, &spots->changes[0], names[4]);
			hot_spots_free(spots);
		}
		printf("# %u equal minutes: %u of %u answers name a change, %u in all; tripled: "
		       "%u of %u\n",
		       minutes[i], alarms, trials, changes, found, (trials + 3) / 4);
		CHECK(alarms <= trials * HOT_FALSE_ALARMS + 3 * sqrt(trials * HOT_FALSE_ALARMS));
		CHECK(minutes[i] < 60 || 4 * found >= trials);
	}
}

/* Three seconds of one minute in an hour of one of 50 processes. */
static void test_jitter(void)
{
	struct hot_spots *spots = day(50, 60, 300, ALIKE, false);
	const struct hot_moved *rose;

	for (int i = 0; i < 57; i++)
		add(spots, 31, 42, NEW, PERIOD, 1);
	CHECK(hot_spots_find(spots, 0.002, 100, SIZE_MAX, NULL, NULL));
	CHECK_NUMBER(spots->change_count, 1);
	if (spots->change_count != 1)
		return;
	CHECK_NUMBER(spots->changes[0].process, 31);
	CHECK_NUMBER(spots->changes[0].from_step, 42);
	CHECK_NUMBER(spots->changes[0].until_step, 43);
	CHECK(!spots->changes[0].is_lasting);
	CHECK(spots->changes[0].p < 1e-9);
	rose = moved(spots, &spots->changes[0], names[NEW]);
	CHECK(rose && rose->before == 0 && rose->after > 0.1 && rose->after < 0.3);
	hot_spots_free(spots);
}

/* From step 200 of 288 on one sample in 20 is of a function that was not there before. */
static void test_new_function(void)
{
	struct hot_spots *spots = day(10, 288, 100, ALIKE, false);
	const struct hot_moved *rose;

	for (uint32_t step = 200; step < 288; step++)
		for (int i = 0; i < 5; i++)
			add(spots, 3, step, NEW, PERIOD, 1);
	CHECK(hot_spots_find(spots, 0.002, 100, SIZE_MAX, NULL, NULL));
	CHECK_NUMBER(spots->change_count, 1);
	CHECK_NUMBER(spots->changes[0].process, 3);
	CHECK_NUMBER(spots->changes[0].from_step, 200);
	CHECK_NUMBER(spots->changes[0].until_step, 288);
	CHECK(spots->changes[0].is_lasting);
	rose = moved(spots, &spots->changes[0], names[NEW]);
	CHECK(rose && rose->before == 0 && fabs(rose->after - 0.048) < 0.01);
	hot_spots_free(spots);
}

/* One function grows from nothing to a fifth of all over the day. */
static void test_drift(void)
{
	struct hot_spots *spots = day(5, 288, 100, ALIKE, false);
	const struct hot_change *first;

	for (uint32_t step = 0; step < 288; step++)
		for (unsigned i = 0; i < 25; i++)
			if (sim_uniform() * 288 < step)
				add(spots, 2, step, NEW, PERIOD, 1);
	CHECK(hot_spots_find(spots, 0.002, 100, SIZE_MAX, NULL, NULL));
	CHECK(spots->change_count >= 1);
	for (size_t i = 0; i < spots->change_count; i++)
		if (spots->changes[i].process != 2)
			CHECK(!"another process than the one that drifts");
	first = &spots->changes[0];
	CHECK(first->from_step > 72 && first->from_step < 216 && first->is_lasting);
	CHECK(moved(spots, first, names[NEW]));
	hot_spots_free(spots);
}

/* Half of one function's samples become another's, for two hours, twice. */
static void test_two_episodes(void)
{
	struct hot_spots *spots = hot_spots_new(288, true, 1 << 20);
	static const uint32_t at[2] = {50, 180};

	for (uint32_t step = 0; step < 288; step++)
		for (int i = 0; i < 40; i++) {
			bool is_other = (step >= at[0] && step < at[0] + 24) ||
					(step >= at[1] && step < at[1] + 24);

			add(spots, 0, step, is_other && i % 2 ? NEW : i % 5, PERIOD, 1);
		}
	CHECK(hot_spots_find(spots, 0.002, 100, SIZE_MAX, NULL, NULL));
	CHECK_NUMBER(spots->change_count, 2);
	for (size_t i = 0; i < spots->change_count && i < 2; i++) {
		uint32_t from = spots->changes[i].from_step;

		CHECK(from == at[0] || from == at[1]);
		CHECK_NUMBER(spots->changes[i].until_step, from + 24);
		CHECK(moved(spots, &spots->changes[i], names[NEW]));
		CHECK(moved(spots, &spots->changes[i], names[0])); /* fell */
		CHECK(!moved(spots, &spots->changes[i], "main"));
	}
	hot_spots_free(spots);
}

/* A function that comes and goes every other step is that program's habit; a quiet one that does
 * so once is not. */
static void test_habit(void)
{
	struct hot_spots *spots = hot_spots_new(200, false, 1 << 20);

	for (uint32_t step = 0; step < 200; step++)
		for (int i = 0; i < 100; i++)
			add(spots, 0, step, sim_uniform() < 0.5 && i < 60 && step % 2 ? 1 : 2,
			    PERIOD, 1);
	for (int i = 0; i < 60; i++)
		add(spots, 0, 77, 3, PERIOD, 1);
	CHECK(hot_spots_find(spots, 0.002, 100, SIZE_MAX, NULL, NULL));
	CHECK_NUMBER(spots->change_count, 1);
	CHECK_NUMBER(spots->changes[0].from_step, 77);
	hot_spots_free(spots);
}

/* One sample of great weight among many small ones is no change; many are. */
static void test_weights(void)
{
	for (int many = 0; many < 2; many++) {
		struct hot_spots *spots = day(3, 100, 100, EXPONENTIAL, false);

		for (int i = 0; i < (many ? 100 : 1); i++)
			add(spots, 1, 50, 7, many ? 2000000 : 200000000, 1);
		CHECK(hot_spots_find(spots, 0.002, 100, SIZE_MAX, NULL, NULL));
		CHECK_NUMBER(spots->change_count, many);
		hot_spots_free(spots);
	}
}

static void test_counts(void)
{
	struct hot_spots *spots = hot_spots_new(3, false, 100);
	const struct hot_process *process;

	add(spots, 0, 0, 1, 10, 1);
	add(spots, 0, 2, 1, 10, 1);
	add(spots, 0, 2, 1, 5, 2);
	add(spots, 0, 2, 2, 20, 1);
	add(spots, 1, 1, 2, 7, 1);
	CHECK(hot_spots_find(spots, 0, 10, SIZE_MAX, NULL, NULL));
	process = &spots->processes[0];
	CHECK_NUMBER(process->value, 45);
	CHECK_NUMBER(process->samples, 5);
	CHECK_NUMBER(process->cell_count, 5);
	CHECK_NUMBER(spots->cells[2].value, 35);
	CHECK(spots->cells[2].function == HOT_ALL_FUNCTIONS);
	CHECK_TEXT(spots->functions[spots->cells[3].function].name, names[2]);
	CHECK_NUMBER(spots->cells[3].value, 20);
	CHECK_NUMBER(spots->cells[4].value, 15);
	CHECK_NUMBER(spots->cells[4].samples, 3);
	CHECK_NUMBER(spots->change_count, 0);
	hot_spots_free(spots);
}

static bool never(void *context)
{
	(void)context;
	return false;
}

static void test_limits(void)
{
	struct hot_spots *spots = hot_spots_new(300, false, 30);
	struct flame_frame frame = frame_of(0);
	uint32_t step = 0;

	while (step < 300 && hot_spots_add(spots, 0, step, &frame, 1, 1, 1))
		step++;
	CHECK_NUMBER(step, 15); /* of two cells each */
	hot_spots_free(spots);
	spots = day(1, 20, 100, ALIKE, false);
	CHECK(!hot_spots_find(spots, 0, 10, SIZE_MAX, never, NULL));
	hot_spots_free(spots);
	spots = day(1, 20, 100, ALIKE, false);
	CHECK(!hot_spots_find(spots, 0, 10, 4096, NULL, NULL)); /* it takes more bytes */
	hot_spots_free(spots);
	hot_spots_free(NULL);
	/* no more changes than asked for, the others counted */
	spots = hot_spots_new(100, false, 1 << 20);
	for (step = 0; step < 100; step++)
		for (int i = 0; i < 50; i++)
			add(spots, 0, step, step % 10 == 3 && step < 40 ? step / 10 : 5, PERIOD, 1);
	CHECK(hot_spots_find(spots, 0, 2, SIZE_MAX, NULL, NULL));
	CHECK_NUMBER(spots->change_count, 2);
	CHECK_NUMBER(spots->changes_left_out, 2);
	hot_spots_free(spots);
}

int main(void)
{
	for (unsigned i = 0; i < SIM_FUNCTIONS; i++)
		snprintf(names[i], sizeof(names[i]), "function_%u", i);
	test_counts();
	test_limits();
	test_jitter();
	test_new_function();
	test_drift();
	test_two_episodes();
	test_habit();
	test_weights();
	test_varying_minutes();
	test_nothing_changes();
	return checks_done();
}
