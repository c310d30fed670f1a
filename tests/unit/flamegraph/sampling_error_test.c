/* SPDX-License-Identifier: Apache-2.0 */
/* How often the truth lies within ±: of draws whose truth is known, fixed seed. */
#include "symbol-server/flamegraph/sampling_error.h"

#include <stdio.h>

#include "tests/check.h"
#include "tests/unit/flamegraph/simulated_load.h"

enum { DRAWS = 500, STACKS = 20, FUNCTIONS = 4 };

enum weights { EQUAL, EXPONENTIAL, BY_LENGTH, WEIGHTS };

static const char *const names[WEIGHTS] = {"equal", "exponential", "lognormal, chosen by length"};

/* A program: stacks of falling rates, whose samples are worth what kind says, some ten times as
 * much as others where they differ. A function has every fourth stack. */
struct program {
	enum weights kind;
	double rate;    /* samples of the largest stack */
	double longest; /* of BY_LENGTH: that long and longer ones are all taken */
};

static double scale_of(const struct program *program, unsigned stack)
{
	return program->kind == EQUAL ? 1 : stack % 3 ? 1 : 10;
}

/* What an event is worth, and the samples of it that are taken. */
static double draw_event(const struct program *program, double scale, double *taken)
{
	double length = 1;

	if (program->kind == EXPONENTIAL)
		length = -log(sim_uniform());
	else if (program->kind != EQUAL)
		length = exp(1.0 * sim_gauss() - 0.5);
	length *= scale * 1000;
	*taken = length;
	if (program->kind == BY_LENGTH && length < program->longest)
		*taken = sim_uniform() < length / program->longest ? program->longest : 0;
	return length;
}

struct sums {
	double truth; /* what would be found by sampling for ever */
	uint64_t value, samples;
};

static struct sums draw_stack(const struct program *program, unsigned stack)
{
	double scale = scale_of(program, stack), rate = program->rate / (stack + 1), taken;
	uint64_t events = sim_poisson(rate);
	struct sums sums = {.truth = rate * scale * 1000};

	while (events--) {
		draw_event(program, scale, &taken);
		if (taken > 0) {
			sums.value += (uint64_t)llround(taken);
			sums.samples++;
		}
	}
	return sums;
}

struct covered {
	unsigned values, shares, tries;
};

static void look(struct covered *covered, const struct sums *function, double squares,
		 const struct sums *all, double all_squares)
{
	double error = (double)sampling_error(function->value, squares);
	double whole = (double)sampling_error(all->value, all_squares);
	double share = (double)function->value / (double)all->value;
	/* As the page has it. */
	double of_share =
		sqrt(fmax(0, error * error * (1 - 2 * share) + share * share * whole * whole)) /
		(double)all->value;

	covered->tries++;
	covered->values += fabs((double)function->value - function->truth) <= error;
	covered->shares += fabs(share - function->truth / all->truth) <= of_share;
}

static void draw(const struct program *program, struct covered *covered)
{
	struct sums stacks[STACKS], all = {0}, functions[FUNCTIONS] = {{0}};
	struct sampling_series series = {0};
	struct sampling sampling = {0};
	double squares[FUNCTIONS] = {0}, all_squares = 0;

	for (unsigned i = 0; i < STACKS; i++) {
		stacks[i] = draw_stack(program, i);
		sampling_series_add(&series, stacks[i].value, stacks[i].samples);
	}
	sampling.spread = sampling_spread(&series, 1, 1, SPREAD_OF_STACKS);
	for (unsigned i = 0; i < STACKS; i++) {
		struct sums *function = &functions[i % FUNCTIONS];
		double here = stacks[i].value
				      ? sampling_squares(stacks[i].value, stacks[i].samples, &sampling)
				      : 0;

		squares[i % FUNCTIONS] += here;
		all_squares += here;
		function->value += stacks[i].value;
		function->truth += stacks[i].truth;
		all.value += stacks[i].value;
		all.truth += stacks[i].truth;
	}
	for (unsigned i = 0; i < FUNCTIONS; i++)
		if (functions[i].value)
			look(covered, &functions[i], squares[i], &all, all_squares);
}

/* Of a few samples of different weights, whose heaviest ones may not have been met, nobody knows.
 */
static void test_draws(void)
{
	static const double rates[] = {100, 1000, 3, 10};

	for (enum weights kind = 0; kind < WEIGHTS; kind++)
		for (size_t i = 0; i < (kind == EQUAL ? 4 : 2); i++) {
			struct program program = {kind, rates[i], 5000};
			struct covered covered = {0};
			double value, share;

			for (unsigned k = 0; k < DRAWS; k++)
				draw(&program, &covered);
			value = covered.values / (double)covered.tries;
			share = covered.shares / (double)covered.tries;
			printf("# %s, %g samples: %.3f of values, %.3f of shares lie within\n",
			       names[kind], rates[i], value, share);
			CHECK(value >= (kind ? 0.90 : 0.93) && value <= 0.985);
			CHECK(share >= (kind ? 0.90 : 0.93) && share <= 0.985);
		}
}

static double spread_of(const uint64_t (*rows)[2], size_t count, double unknown)
{
	struct sampling_series series = {0};

	for (size_t i = 0; i < count; i++)
		sampling_series_add(&series, rows[i][0], rows[i][1]);
	return sampling_spread(&series, 1, unknown, SPREAD_OF_STACKS);
}

static void test_single(void)
{
	static const uint64_t equal[12][2] = {{10, 1}, {20, 2}, {30, 3}, {10, 1}, {50, 5}, {10, 1},
					      {10, 1}, {20, 2}, {30, 3}, {10, 1}, {50, 5}, {10, 1}};
	static const uint64_t apart[12][2] = {{1, 1},  {900, 2}, {3, 3}, {1, 1}, {5, 5}, {100, 1},
					      {10, 1}, {20, 2},  {3, 3}, {1, 1}, {5, 5}, {1, 1}};

	CHECK(spread_of(equal, 12, 1) < 1e-9);
	CHECK(fabs(spread_of(apart, 12, 0) - 1) < 1e-9);
	CHECK(fabs(spread_of(equal, 3, 1) - 1) < 1e-9); /* too few to tell */
	CHECK(spread_of(apart, 3, 0) < 1e-9);
	/* 1.96 · √(100 + 1) samples of 7 */
	CHECK_NUMBER(sampling_error(700, sampling_squares(700, 100, &(struct sampling){0})), 138);
	CHECK_NUMBER(sampling_error(0, 0), 0);
	/* A mean over time rounded down to no sample is one. */
	CHECK(fabs(sampling_squares(5, 0, &(struct sampling){0}) - 25) < 1e-9);
}

int main(void)
{
	test_single();
	test_draws();
	return checks_done();
}
