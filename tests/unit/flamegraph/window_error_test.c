/* SPDX-License-Identifier: Apache-2.0 */
/* Sums made of windows: how often what a program really took lies within ±, by what the agent tells
 * of its windows and the server makes of it. Fixed seed. */
#include "symbol-server/flamegraph/sampling_error.h"

#include <stdio.h>

#include "node-agent/allocations/window_spread.h"
#include "tests/check.h"
#include "tests/unit/flamegraph/simulated_load.h"

enum { DRAWS = 400, FUNCTIONS = 4, STACKS = 3, SLOTS = 20, WINDOWS_MAX = 64 };

#define SLOT_NS       5e6
#define BYTES_A_SLOT  4e6
#define SAMPLES_WANTED 64

/* What differs from one slot of time to the next: all of the program, and each of its functions. */
struct program {
	unsigned windows; /* each sees one slot of SLOTS, and stands for all */
	double all_cv, own_cv, rho;
};

static const double part_of[FUNCTIONS] = {0.5, 0.3, 0.15, 0.05};

struct sum { /* of a function's stacks */
	double truth;
	uint64_t value[STACKS], samples[STACKS];
};

/* What the agent draws of the slot that it sees. */
static void see(const double *bytes, struct sum *functions, struct window_spread *spread,
		struct window_rate *rate)
{
	struct window_sum sum = {.open_ns = SLOT_NS, .stands_ns = SLOT_NS * SLOTS};
	double mean;

	for (unsigned i = 0; i < FUNCTIONS; i++)
		sum.bytes += bytes[i];
	mean = BYTES_A_SLOT / SAMPLES_WANTED;
	for (unsigned i = 0; i < FUNCTIONS; i++)
		for (unsigned k = 0; k < STACKS; k++) {
			uint64_t count = sim_poisson(bytes[i] / STACKS / mean);

			functions[i].samples[k] += count;
			functions[i].value[k] += (uint64_t)(mean * SLOTS) * count;
			sum.squares += (double)count * mean * mean * SLOTS * SLOTS;
		}
	window_spread_add(spread, rate, &sum);
}

static void run(const struct program *program, struct sum *functions, struct window_spread *spread)
{
	static double factors[FUNCTIONS + 1][WINDOWS_MAX * SLOTS];
	struct window_rate rate = {0};
	const unsigned slots = program->windows * SLOTS;

	for (unsigned i = 0; i <= FUNCTIONS; i++) {
		for (unsigned slot = 0; slot < slots; slot++)
			factors[i][slot] = 1;
		sim_vary(factors[i], slots, 1, i < FUNCTIONS ? program->own_cv : program->all_cv,
			 program->rho);
	}
	for (unsigned slot = 0; slot < slots; slot++) {
		double bytes[FUNCTIONS];

		for (unsigned i = 0; i < FUNCTIONS; i++) {
			bytes[i] = BYTES_A_SLOT * part_of[i] * factors[i][slot] *
				   factors[FUNCTIONS][slot];
			functions[i].truth += bytes[i];
		}
		if (slot % SLOTS == SLOTS / 2)
			see(bytes, functions, spread, &rate);
	}
}

struct covered {
	unsigned all, functions, alone; /* alone: all, by single samples alone */
};

static void look(const struct program *program, struct covered *covered)
{
	struct sum functions[FUNCTIONS] = {0};
	struct window_spread spread = {0};
	struct sampling sampling = {0};
	double all = 0, truth = 0, squares = 0;
	uint64_t within, between;

	run(program, functions, &spread);
	within = window_spread_units(spread.within);
	between = window_spread_units(spread.between);
	sampling.windows =
		sampling_windows((double)within, (double)between, (double)program->windows);
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		double value = 0, own = 0;

		for (unsigned k = 0; k < STACKS; k++) {
			value += (double)functions[i].value[k];
			own += sampling_squares(functions[i].value[k], functions[i].samples[k],
						&sampling);
		}
		covered->functions += fabs(value - functions[i].truth) <=
				      (double)sampling_error((uint64_t)value, own);
		all += value;
		truth += functions[i].truth;
		squares += own;
	}
	covered->all += fabs(all - truth) <= (double)sampling_error((uint64_t)all, squares);
	covered->alone += fabs(all - truth) <= (double)sampling_error((uint64_t)all,
								      squares / (1 + sampling.windows));
}

/* Of a few windows nobody knows well how they differ. What they see of a program that changes
 * slowly is more alike than what differs by itself. */
static void test_draws(void)
{
	static const struct program programs[] = {
		{15, 0, 0, 0},	 {60, 0, 0, 0},	    {6, 0.2, 0.1, 0},	{15, 0.2, 0.1, 0},
		{60, 0.2, 0, 0}, {15, 0.5, 0.3, 0}, {60, 0.5, 0.5, 0}, {15, 0.3, 0.3, 0.7},
		{60, 0.3, 0.3, 0.95},
	};

	for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
		const struct program *at = &programs[i];
		struct covered covered = {0};
		double all, functions, alone;

		for (unsigned k = 0; k < DRAWS; k++)
			look(at, &covered);
		all = covered.all / (double)DRAWS;
		functions = covered.functions / (double)(DRAWS * FUNCTIONS);
		alone = covered.alone / (double)DRAWS;
		printf("# %u windows that differ by %g, functions by %g, correlated %g: %.3f of "
		       "sums (%.3f by samples alone), %.3f of functions lie within\n",
		       at->windows, at->all_cv, at->own_cv, at->rho, all, alone, functions);
		CHECK(all >= 0.90 && functions >= 0.90);
		CHECK(at->all_cv < 0.2 || alone < 0.85);
	}
}

static void test_single(void)
{
	struct window_spread spread = {0};
	struct window_rate rate = {0};
	const struct window_sum one = {.bytes = 100, .open_ns = 10, .stands_ns = 20, .squares = 7},
				other = {.bytes = 140, .open_ns = 10, .stands_ns = 30, .squares = 5};

	window_spread_stretch(&spread, &rate, 10, 3);
	window_spread_add(&spread, &rate, &one); /* nothing to compare it with */
	window_spread_stretch(&spread, &rate, 10, 3);
	CHECK(spread.within < 1e-9 && spread.between < 1e-9);
	window_spread_add(&spread, &rate, &other); /* 4² / 2 · 30² */
	CHECK(fabs(spread.within - 5) < 1e-9 && fabs(spread.between - 7200) < 1e-9);
	window_spread_stretch(&spread, &rate, 10, 3); /* as if it had stood for 40 */
	CHECK(fabs(spread.within - 8) < 1e-9 && fabs(spread.between - 12800) < 1e-9);
	CHECK_NUMBER(window_spread_units(3.5 * WINDOW_SPREAD_UNIT), 3);
	CHECK_NUMBER(window_spread_units(1e300), UINT64_C(1) << 63);
	CHECK(sampling_windows(0, 100, 5) < 1e-9); /* not known */
	CHECK(sampling_windows(100, 0, 5) < 1e-9);
}

int main(void)
{
	test_single();
	test_draws();
	return checks_done();
}
