/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated sides whose truth is known: the same load twice, and one with a function made slower.
 * The generator is seeded: what it finds is the same at each run. */
#include "symbol-server/flamegraph/diff_table.h"

#include <math.h>
#include <stdlib.h>

#include "tests/check.h"

enum { FUNCTIONS = 100, TRIALS = 100, PERIOD = 10000000 };

static uint64_t state;

static double uniform(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (double)(state >> 11) / 9007199254740992.0;
}

/* Knuth's product for small means, sums of it for larger ones. */
static uint64_t poisson(double mean)
{
	uint64_t count = 0;

	while (mean > 0) {
		double step = mean < 20 ? mean : 20, limit = exp(-step), product = uniform();

		for (; product > limit; product *= uniform())
			count++;
		mean -= step;
	}
	return count;
}

struct load {
	unsigned clusters;
	double seconds; /* of each */
	double rate;    /* samples per second of all functions */
	double slower;  /* function SLOW takes so many times as long */
	double wobble;  /* each wobbly function's rate varies by so much from cluster to cluster */
	double busier;  /* the whole load */
	uint64_t period;
	int wobbly; /* every how manieth does; 0: all */
};

enum { SLOW = 3 };

/* Zipf over functions, each below main and a caller of its own. */
static void add_load(struct diff_table *table, enum diff_side side, const struct load *load)
{
	double all = 0;

	for (int i = 1; i <= FUNCTIONS; i++)
		all += 1.0 / i;
	for (unsigned c = 0; c < load->clusters; c++) {
		diff_table_cluster(table, side, load->seconds);
		for (int i = 0; i < FUNCTIONS; i++) {
			static char names[FUNCTIONS][24], callers[FUNCTIONS][24];
			struct flame_frame frames[3] = {
				{.name = "main", .file = "", .kind = FRAME_native},
				{.name = callers[i / 10], .file = "", .kind = FRAME_native},
				{.name = names[i], .file = "", .kind = FRAME_native}};
			double mean = load->rate * load->seconds * load->busier / (i + 1) / all;
			uint64_t samples;

			snprintf(names[i], sizeof(names[i]), "f%d", i);
			snprintf(callers[i / 10], sizeof(callers[i]), "caller%d", i / 10);
			mean *= i == SLOW ? load->slower : 1;
			if (!load->wobbly || i % load->wobbly == 0)
				mean *= 1 + load->wobble * (2 * uniform() - 1);
			samples = poisson(mean);
			if (samples)
				diff_table_add(table, frames, 3, samples * load->period, samples);
		}
	}
}

static struct diff_table *compare(enum diff_norm norm, bool by_total, const struct load *base,
				  const struct load *other)
{
	struct diff_table *table = diff_table_new(norm, 100000);

	add_load(table, DIFF_BASE, base);
	add_load(table, DIFF_COMPARE, other);
	CHECK(diff_table_test(table, by_total));
	return table;
}

struct tally {
	unsigned tables_with, tested, low; /* low: p ≤ 0.05, before correction */
};

static struct tally same_load(enum diff_norm norm, bool by_total, const struct load *base,
			      const struct load *other)
{
	struct tally tally = {0};

	state = 88172645463325252u;
	for (int trial = 0; trial < TRIALS; trial++) {
		struct diff_table *table = diff_table_new(norm, 100000);

		add_load(table, DIFF_BASE, base);
		add_load(table, DIFF_COMPARE, other);
		if (!diff_table_test(table, by_total))
			abort();
		tally.tables_with += table->significant > 0;
		tally.tested += (unsigned)table->tested;
		for (size_t i = 0; i < table->count; i++)
			tally.low += table->functions[i].p <= 0.05;
		diff_table_free(table);
	}
	return tally;
}

/* Where nothing changed, at most 5 % of comparisons show any change, and at most 5 % of functions
 * have p ≤ 0.05. 100 trials at 5 %: 5 expected, more than 12 once in 700. */
static void test_no_change(void)
{
	static const struct load plain = {10, 60, 19, 1, 0, 1, PERIOD, 0},
				 few = {1, 600, 19, 1, 0, 1, PERIOD, 0},
				 sparse = {10, 60, 1, 1, 0, 1, PERIOD, 0},
				 varying = {30, 60, 19, 1, 0.8, 1, PERIOD, 0},
				 wild = {10, 60, 97, 1, 0.8, 1, PERIOD, 0},
				 some = {10, 60, 97, 1, 0.8, 1, PERIOD, 4},
				 longer = {24, 60, 19, 1, 0, 1, PERIOD, 0},
				 faster = {10, 60, 97, 1, 0, 1, PERIOD * 19 / 97, 0},
				 busier = {10, 60, 19, 1, 0, 3, PERIOD, 0};
	static const struct {
		const char *name;
		enum diff_norm norm;
		bool by_total;
		const struct load *base, *other;
	} rows[] = {
		{"independent samples, per second", DIFF_PER_SECOND, false, &plain, &plain},
		{"independent samples, shares", DIFF_SHARE, false, &plain, &plain},
		{"independent samples, raw", DIFF_RAW, false, &plain, &plain},
		{"totals, shares", DIFF_SHARE, true, &plain, &plain},
		{"totals, per second", DIFF_PER_SECOND, true, &plain, &plain},
		{"one cluster", DIFF_SHARE, false, &few, &few},
		{"few samples", DIFF_SHARE, false, &sparse, &sparse},
		{"few samples, per second", DIFF_PER_SECOND, false, &sparse, &sparse},
		{"functions that vary", DIFF_PER_SECOND, false, &varying, &varying},
		{"functions that vary, shares", DIFF_SHARE, false, &varying, &varying},
		{"functions that vary much, totals", DIFF_SHARE, true, &wild, &wild},
		{"functions that vary much", DIFF_SHARE, false, &wild, &wild},
		{"one function in four varies", DIFF_SHARE, false, &some, &some},
		{"one function in four varies, per second", DIFF_PER_SECOND, false, &some, &some},
		{"another length", DIFF_PER_SECOND, false, &plain, &longer},
		{"another rate", DIFF_PER_SECOND, false, &plain, &faster},
		{"three times the load, shares", DIFF_SHARE, false, &plain, &busier},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct tally tally = same_load(rows[i].norm, rows[i].by_total, rows[i].base,
					       rows[i].other);
		double low = (double)tally.low / tally.tested;

		printf("# %s: %u of %d comparisons show a change, %.2f %% of p ≤ 5 %%\n",
		       rows[i].name, tally.tables_with, TRIALS, 100 * low);
		CHECK(tally.tested > 10 * TRIALS);
		CHECK(tally.tables_with <= 12);
		CHECK(low <= 0.055);
	}
}

static const struct diff_function *find(const struct diff_table *table, const char *name)
{
	for (size_t i = 0; i < table->count; i++)
		if (!strcmp(table->functions[i].frame.name, name))
			return &table->functions[i];
	return NULL;
}

/* 20 % slower, 19 Hz on four CPUs: found, first in the table, and nothing else is. */
static void test_slower(void)
{
	static const struct load before = {30, 60, 76, 1, 0, 1, PERIOD, 0},
				 after = {30, 60, 76, 1.2, 0, 1, PERIOD, 0};
	unsigned found = 0, others = 0, inside = 0;

	state = 362436069;
	for (int trial = 0; trial < 50; trial++) {
		struct diff_table *table = compare(DIFF_PER_SECOND, false, &before, &after);
		const struct diff_function *slow = find(table, "f3");

		found += slow->is_significant && slow == table->functions;
		others += (unsigned)table->significant - slow->is_significant;
		inside += slow->change_low <= 0.2 && 0.2 <= slow->change_high;
		diff_table_free(table);
	}
	printf("# found %u of 50, others %u, 20 %% inside the interval %u times\n", found, others,
	       inside);
	CHECK_NUMBER(found, 50);
	CHECK(others <= 5);
	CHECK(inside >= 43); /* 95 %: fewer once in 300 */
}

/* What is there on one side only. */
static void test_new(void)
{
	struct diff_table *table = diff_table_new(DIFF_SHARE, 100);
	struct flame_frame old = {.name = "old", .file = "", .kind = FRAME_native};
	struct flame_frame new = {.name = "new", .file = "", .kind = FRAME_native};
	struct flame_frame both[2] = {{.name = "both", .file = "", .kind = FRAME_native}};

	for (int c = 0; c < 8; c++) {
		diff_table_cluster(table, DIFF_BASE, 60);
		diff_table_add(table, &old, 1, 20, 20);
		diff_table_add(table, both, 1, 80, 80);
	}
	for (int c = 0; c < 8; c++) {
		diff_table_cluster(table, DIFF_COMPARE, 60);
		both[1] = new;
		diff_table_add(table, both, 2, 20, 20);
		diff_table_add(table, both, 1, 80, 80);
	}
	CHECK(diff_table_test(table, false));
	CHECK(find(table, "new")->is_significant);
	CHECK(isnan(find(table, "new")->change));
	CHECK(find(table, "old")->is_significant);
	CHECK(find(table, "old")->change == -1);
	CHECK(!find(table, "both")->is_significant);
	CHECK(fabs(find(table, "both")->before - 0.8) < 1e-12);
	CHECK_NUMBER(find(table, "both")->total[DIFF_COMPARE].value, 800);
	CHECK_NUMBER(find(table, "both")->self[DIFF_COMPARE].value, 640);
	CHECK_NUMBER(table->whole[DIFF_BASE].value, 800);
	CHECK_NUMBER(table->whole[DIFF_COMPARE].clusters, 8);
	diff_table_free(table);
}

/* A function in a stack twice counts once; nothing at all is no change. */
static void test_edges(void)
{
	struct diff_table *table = diff_table_new(DIFF_PER_SECOND, 2);
	struct flame_frame frames[3] = {{.name = "r", .file = "", .kind = FRAME_native},
					{.name = "r", .file = "", .kind = FRAME_native},
					{.name = "s", .file = "", .kind = FRAME_native}};

	diff_table_cluster(table, DIFF_BASE, 60);
	CHECK(diff_table_add(table, frames, 3, 5, 5));
	frames[0].name = "t";
	CHECK(!diff_table_add(table, frames, 1, 5, 5)); /* the limit */
	diff_table_free(table);
	table = diff_table_new(DIFF_SHARE, 2);
	CHECK(diff_table_test(table, false));
	CHECK_NUMBER(table->count, 0);
	diff_table_free(table);
	table = diff_table_new(DIFF_RAW, 2);
	diff_table_cluster(table, DIFF_BASE, 60);
	CHECK(diff_table_add(table, frames, 1, 5, 5));
	CHECK(diff_table_test(table, true));
	CHECK_NUMBER(table->functions[0].total[DIFF_BASE].value, 5);
	CHECK(!table->significant);
	diff_table_free(table);
	diff_table_free(NULL);
}

int main(void)
{
	test_no_change();
	test_slower();
	test_new();
	test_edges();
	return checks_done();
}
