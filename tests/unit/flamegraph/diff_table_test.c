/* SPDX-License-Identifier: Apache-2.0 */
/* Sides whose truth is known (simulated_load.h: 200 functions in 10 processes, 3 hosts of 2 000
 * samples a minute each), and rates at which verdicts on them are right. REPETITIONS=400 for a
 * longer form. */
#include "symbol-server/flamegraph/diff_table.h"

#include <stdlib.h>

#include "tests/check.h"
#include "tests/unit/flamegraph/simulated_load.h"

enum { PROCESSES = 10, PERIOD = 10000000, HOST_RATE = 2000, PAIR = 2 * SIM_MINUTES };

static unsigned repetitions = 100;
static char names[SIM_FUNCTIONS][24], processes[PROCESSES + 1][24];
static uint64_t hashes[SIM_FUNCTIONS];
static double expected[PAIR][SIM_FUNCTIONS];

struct truth {
	unsigned minutes; /* of a side */
	struct sim_load load;
	double ratio[SIM_FUNCTIONS]; /* of the second side; 0: as the first; < 0: gone */
	unsigned burst_functions; /* the first ones: nothing but a share of the second side … */
	double burst_share;
	unsigned burst_minutes;
	unsigned joined; /* hosts of the second side only */
	bool weighted;   /* values of lognormal(1.5) waits */
};

static const struct sim_load plain = {3 * HOST_RATE, 0, 0, 0},
			     varying = {3 * HOST_RATE, 0.15, 0, 0},
			     correlated = {3 * HOST_RATE, 0.15, 0.2, 0.7};

static uint64_t value_of(const struct truth *truth, uint64_t samples)
{
	double value = 0;

	if (!truth->weighted)
		return samples * PERIOD;
	for (uint64_t i = 0; i < samples; i++)
		value += exp(1.5 * sim_gauss()) * 1e6;
	return (uint64_t)value;
}

static void add(struct diff_table *table, const struct truth *truth, unsigned function,
		bool is_common, uint64_t samples)
{
	struct flame_frame frame = {.name = names[function],
				    .name_hash = hashes[function],
				    .file = "",
				    .kind = FRAME_native};
	struct diff_stack stack = {
		.frames = &frame,
		.depth = 1,
		.process = function < truth->burst_functions ? processes[PROCESSES]
							     : processes[function % PROCESSES],
		.is_common = is_common,
		.samples = samples,
	};

	stack.value = value_of(truth, samples);
	if (samples && !diff_table_add(table, &stack))
		abort();
}

static void set_truth(const struct truth *truth)
{
	unsigned n = truth->minutes, first = 0;
	double all = 0, weights = 0;

	sim_expect(&truth->load, 2 * n, expected);
	for (unsigned m = n; m < 2 * n; m++)
		for (unsigned f = 0; f < SIM_FUNCTIONS; f++)
			expected[m][f] *= truth->ratio[f] > 0   ? truth->ratio[f]
					  : truth->ratio[f] < 0 ? 0
								: 1;
	if (!truth->burst_functions)
		return;
	for (unsigned m = 0; m < 2 * n; m++)
		for (unsigned f = 0; f < SIM_FUNCTIONS; f++) {
			if (f < truth->burst_functions)
				expected[m][f] = 0;
			all += m >= n ? expected[m][f] : 0;
		}
	for (unsigned f = 0; f < truth->burst_functions; f++)
		weights += 1.0 / (f + 1);
	all *= truth->burst_share / (1 - truth->burst_share) / truth->burst_minutes;
	first = n + (unsigned)(sim_uniform() * (n - truth->burst_minutes + 1));
	for (unsigned m = first; m < first + truth->burst_minutes; m++)
		for (unsigned f = 0; f < truth->burst_functions; f++)
			expected[m][f] = all / (f + 1) / weights;
}

/* Hosts are alike, so that what they have together is drawn at once; those that joined apart. */
static struct diff_table *compare(const struct truth *truth)
{
	struct diff_table *table = diff_table_new(DIFF_PER_SECOND, false, 100000);
	unsigned n = truth->minutes;

	set_truth(truth);
	for (unsigned m = 0; m < 2 * n; m++) {
		diff_table_part(table, m < n ? DIFF_BASE : DIFF_COMPARE, 60);
		for (unsigned f = 0; f < SIM_FUNCTIONS; f++) {
			add(table, truth, f, true, sim_poisson(expected[m][f]));
			if (m >= n && truth->joined)
				add(table, truth, f, false,
				    sim_poisson(expected[m][f] * truth->joined / 3));
		}
	}
	if (!diff_table_test(table, SIM_FUNCTIONS))
		abort();
	return table;
}

static unsigned number_of(const struct diff_row *row)
{
	return (unsigned)strtoul(row->frame.name + 1, NULL, 10);
}

/* By what the minutes really were. */
static double log_ratio(const struct truth *truth, unsigned function)
{
	double before = 0, after = 0;

	for (unsigned m = 0; m < truth->minutes; m++) {
		before += expected[m][function];
		after += expected[m + truth->minutes][function];
	}
	return log(after / before);
}

struct tally {
	double false_recorded, recorded_count;
	double any_sustained; /* of comparisons: a function or process that did not change */
	double cover;         /* of intervals; wrong: NAN of what is on both sides */
	unsigned wrong;
	double recorded[SIM_FUNCTIONS], sustained[SIM_FUNCTIONS]; /* of comparisons, by function */
	double process_recorded, process_sustained;               /* the burst's */
};

static void count_function(const struct truth *truth, const struct diff_row *row,
			   struct tally *tally, double *recorded, double *intervals, bool *any)
{
	unsigned f = number_of(row);
	double ratio = truth->ratio[f] != 0 ? truth->ratio[f] : 1;
	bool has_changed = ratio != 1 || f < truth->burst_functions;

	tally->recorded[f] += row->is_recorded;
	tally->sustained[f] += row->sustained == DIFF_SUSTAINED;
	*recorded += row->is_recorded;
	tally->false_recorded += row->is_recorded && fabs(log_ratio(truth, f)) <= log(1.05);
	*any |= row->sustained == DIFF_SUSTAINED && !has_changed;
	if (f < truth->burst_functions || ratio < 0 || !row->self[0].samples ||
	    !row->self[1].samples)
		return;
	tally->wrong += isnan(row->change_low) || isnan(row->change_high);
	tally->cover += row->change_low <= ratio - 1 && ratio - 1 <= row->change_high;
	++*intervals;
}

static bool process_changed(const struct truth *truth, const struct diff_row *row)
{
	unsigned process = (unsigned)strtoul(row->frame.name + strlen("process "), NULL, 10);

	if (process == PROCESSES)
		return true;
	for (unsigned f = process; f < SIM_FUNCTIONS; f += PROCESSES)
		if (truth->ratio[f] != 0)
			return true;
	return false;
}

static struct tally try(const struct truth *truth, uint64_t seed)
{
	double recorded = 0, intervals = 0;
	struct tally tally = {0};

	sim_state = 88172645463325252u ^ (seed * 0x9e3779b97f4a7c15u);
	for (unsigned i = 0; i < repetitions; i++) {
		struct diff_table *table = compare(truth);
		bool any = false;

		for (size_t k = 0; k < table->function_count; k++)
			count_function(truth, &table->functions[k], &tally, &recorded, &intervals,
				       &any);
		for (size_t k = 0; k < table->process_count; k++) {
			const struct diff_row *row = &table->processes[k];
			bool is_burst = !strcmp(row->frame.name, processes[PROCESSES]);

			tally.process_recorded += is_burst && row->is_recorded;
			tally.process_sustained += is_burst && row->sustained == DIFF_SUSTAINED;
			any |= row->sustained == DIFF_SUSTAINED && !process_changed(truth, row);
		}
		tally.any_sustained += any;
		diff_table_free(table);
	}
	for (unsigned f = 0; f < SIM_FUNCTIONS; f++) {
		tally.recorded[f] /= repetitions;
		tally.sustained[f] /= repetitions;
	}
	tally.process_recorded /= repetitions;
	tally.process_sustained /= repetitions;
	tally.any_sustained /= repetitions;
	tally.recorded_count = recorded;
	tally.cover /= intervals > 0 ? intervals : 1;
	return tally;
}

/* What a rate may be by chance, four standard errors of it. */
static double margin(double rate)
{
	return 4 * sqrt(rate * (1 - rate) / repetitions);
}

/* Whether no more than that share of what is recorded is none; by chance one or two. */
static bool is_rare(const struct tally *tally, double share)
{
	double most = share * tally->recorded_count;

	return tally->false_recorded <= most + 3 * sqrt(most) + 1;
}

/* Before, at 2 and 3 minutes 92 and 88 % of comparisons named a function, at 10, 15 and 30
 * correlated ones 44, 55 and 70 %, and intervals covered 87, 83 and 79 %. */
static void test_equal(void)
{
	static const unsigned minutes[] = {2, 6, 30};

	for (size_t i = 0; i < sizeof(minutes) / sizeof(*minutes); i++) {
		struct truth truth = {.minutes = minutes[i], .load = varying};
		struct tally tally = try(&truth, 1 + i);

		printf("# equal, %u minutes: %.0f of %.0f recorded are none, any sustained %.2f, "
		       "cover %.3f\n",
		       truth.minutes, tally.false_recorded, tally.recorded_count,
		       tally.any_sustained, tally.cover);
		CHECK(is_rare(&tally, 0.02));
		CHECK(tally.any_sustained <= 0.05 + margin(0.05));
		CHECK(tally.cover >= 0.94 && tally.cover <= 0.99);
		if (truth.minutes < CHANGE_PARTS_MIN)
			continue;
		truth.load = correlated;
		tally = try(&truth, 11 + i);
		printf("# correlated, %u minutes: %.0f of %.0f recorded are none, any sustained "
		       "%.2f, cover "
		       "%.3f\n",
		       truth.minutes, tally.false_recorded, tally.recorded_count,
		       tally.any_sustained, tally.cover);
		CHECK(is_rare(&tally, 0.01));
		CHECK(tally.any_sustained <= 0.10 + margin(0.1));
		CHECK(tally.cover >= 0.925);
	}
}

/* Before, the largest one was found in 100, 15 and 72 % at 3, 4 and 6 minutes. */
static void test_doubled(void)
{
	static const struct {
		unsigned minutes;
		double recorded[3];
	} rows[] = {{2, {0.97, 0.97, 0.40}}, {4, {1, 1, 0.88}}, {10, {1, 1, 1}}};
	static const unsigned functions[] = {0, 9, 49};
	double recorded[3] = {0}, sustained[3] = {0};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct truth truth = {.minutes = rows[i].minutes, .load = varying};
		struct tally tally;

		for (unsigned k = 0; k < 3; k++)
			truth.ratio[functions[k]] = 2;
		tally = try(&truth, 20 + i);
		for (unsigned k = 0; k < 3; k++) {
			double found = tally.recorded[functions[k]];

			printf("# doubled function %u, %u minutes: recorded %.2f, sustained %.2f\n",
			       functions[k] + 1, truth.minutes, found,
			       tally.sustained[functions[k]]);
			CHECK(found >= rows[i].recorded[k] - margin(rows[i].recorded[k]));
			CHECK(found >= recorded[k] - 0.03);
			CHECK(tally.sustained[functions[k]] >= sustained[k] - 0.03);
			recorded[k] = found;
			sustained[k] = tally.sustained[functions[k]];
			if (truth.minutes == 10)
				CHECK(tally.sustained[functions[k]] >= 0.98);
		}
	}
}

static void test_new_and_gone(void)
{
	static const unsigned minutes[] = {2, 6}, sizes[] = {1, 5, 10, 20, 40, 79};

	for (size_t i = 0; i < 2 * sizeof(minutes) / sizeof(*minutes); i++) {
		struct truth truth = {.minutes = minutes[i / 2], .load = varying};
		struct tally tally;
		double recorded = 1, sustained = 1;

		for (unsigned k = 0; k < 6; k++)
			truth.ratio[sizes[k]] = -1;
		if (i % 2) { /* the same the other way round */
			for (unsigned k = 0; k < 6; k++)
				truth.ratio[sizes[k]] = 1e9;
			truth.load = varying;
		}
		tally = try(&truth, 30 + i);
		for (unsigned k = 0; k < 6; k++) {
			recorded = fmin(recorded, tally.recorded[sizes[k]]);
			sustained = fmin(sustained, tally.sustained[sizes[k]]);
		}
		printf("# %s, %u minutes: recorded %.2f, sustained %.2f at least\n",
		       i % 2 ? "new" : "gone", truth.minutes, recorded, sustained);
		CHECK(recorded >= 0.99 - margin(0.99));
		if (truth.minutes >= CHANGE_PARTS_MIN)
			CHECK(sustained >= 0.95 - margin(0.95));
	}
}

/* Before, never found between 4 and 15 minutes. */
static void test_burst(void)
{
	static const unsigned minutes[] = {2, 6, 15};

	for (size_t i = 0; i < 2 * sizeof(minutes) / sizeof(*minutes); i++) {
		unsigned n = minutes[i / 2];
		struct truth truth = {.minutes = n,
				      .load = varying,
				      .burst_functions = 5,
				      .burst_share = 0.18,
				      .burst_minutes = i % 2 ? n : (n + 2) / 3};
		struct tally tally = try(&truth, 40 + i);

		printf("# 18 %% from nothing in %u of %u minutes: recorded %.2f, sustained %.2f\n",
		       truth.burst_minutes, n, tally.process_recorded, tally.process_sustained);
		CHECK(tally.process_recorded == 1);
		for (unsigned f = 0; f < 5; f++)
			CHECK(tally.recorded[f] == 1);
		if (truth.burst_minutes == n && n >= CHANGE_PARTS_MIN)
			CHECK(tally.process_sustained == 1);
	}
}

/* Before, 49 and 170 of 200 functions "changed". */
static void test_host_joins(void)
{
	static const unsigned minutes[] = {3, 10};

	for (size_t i = 0; i < sizeof(minutes) / sizeof(*minutes); i++) {
		struct truth truth = {.minutes = minutes[i], .load = varying, .joined = 1};
		struct tally tally = try(&truth, 50 + i);

		printf("# a host joins, %u minutes: %.0f of %.0f recorded are none, any sustained "
		       "%.2f\n",
		       truth.minutes, tally.false_recorded, tally.recorded_count,
		       tally.any_sustained);
		CHECK(is_rare(&tally, 0.02));
		CHECK(tally.any_sustained <= 0.05 + margin(0.05));
	}
}

static void test_intervals(void)
{
	static const double ratios[] = {0.1, 1.2, 2, 10};
	static const unsigned minutes[] = {3, 10};

	for (size_t i = 0; i < 8; i++) {
		struct truth truth = {.minutes = minutes[i / 4], .load = varying};
		struct tally tally;

		for (unsigned f = 0; f < SIM_FUNCTIONS; f += 4)
			truth.ratio[f] = ratios[i % 4];
		tally = try(&truth, 60 + i);
		printf("# ratio %g, %u minutes: cover %.3f\n", ratios[i % 4], truth.minutes,
		       tally.cover);
		CHECK(tally.cover >= 0.93 && tally.cover <= 0.99);
		CHECK_NUMBER(tally.wrong, 0);
	}
}

/* The page asks the same of frames. */
static void check_effective(bool weighted, double least, double most)
{
	struct truth truth = {.minutes = 6, .load = plain, .weighted = weighted};
	struct diff_table *table = compare(&truth);

	printf("# one sample counts for %.3f\n", table->effective);
	CHECK(table->effective >= least && table->effective <= most);
	diff_table_free(table);
}

/* Waits of very different lengths, of which only sums are known. Before, 96 % of comparisons of two
 * minutes named one, and 0.3 % of p were up to 5 % from six minutes on. */
static void test_weights(void)
{
	static const unsigned minutes[] = {2, 6};

	for (size_t i = 0; i < sizeof(minutes) / sizeof(*minutes); i++) {
		struct truth truth = {.minutes = minutes[i], .load = plain, .weighted = true};
		double recorded = 0;
		struct tally tally;

		truth.ratio[0] = 4;
		truth.load.rate /= 10;
		tally = try(&truth, 80 + i);
		for (unsigned f = 1; f < SIM_FUNCTIONS; f++)
			recorded += tally.recorded[f];
		printf("# waits, %u minutes: others recorded %.2f, any sustained %.2f, four times "
		       "as long: %.2f, %.2f, cover %.3f\n",
		       truth.minutes, recorded, tally.any_sustained, tally.recorded[0],
		       tally.sustained[0], tally.cover);
		CHECK(recorded <= 0.1);
		CHECK(tally.any_sustained <= 0.05 + margin(0.05));
		CHECK(truth.minutes < 6 || tally.recorded[0] >= 0.9);
	}
	check_effective(true, 0.05, 0.5);
	check_effective(false, 0.99, 1);
}

/* --- what single tables say --- */

static void add_one(struct diff_table *table, const struct flame_frame *frames, size_t depth,
		    uint64_t value)
{
	struct diff_stack stack = {frames, depth, "p", true, value, value};

	CHECK(diff_table_add(table, &stack));
}

static const struct diff_row *find(const struct diff_table *table, const char *name)
{
	for (size_t i = 0; i < table->function_count; i++)
		if (!strcmp(table->functions[i].frame.name, name))
			return &table->functions[i];
	return NULL;
}

static void test_states(void)
{
	struct diff_table *table = diff_table_new(DIFF_SHARE, false, 100);
	struct flame_frame old = {.name = "old", .file = "", .kind = FRAME_native};
	struct flame_frame new = {.name = "new", .file = "", .kind = FRAME_native};
	struct flame_frame both[2] = {{.name = "both", .file = "", .kind = FRAME_native}};

	for (int c = 0; c < 8; c++) {
		diff_table_part(table, DIFF_BASE, 60);
		add_one(table, &old, 1, 20);
		add_one(table, both, 1, 80);
	}
	for (int c = 0; c < 8; c++) {
		diff_table_part(table, DIFF_COMPARE, 60);
		both[1] = new;
		add_one(table, both, 2, 20);
		add_one(table, both, 1, 80);
	}
	CHECK(diff_table_test(table, 10));
	CHECK(find(table, "new")->is_recorded && find(table, "new")->state == DIFF_NEW);
	CHECK(isnan(find(table, "new")->change));
	CHECK(find(table, "old")->is_recorded && find(table, "old")->state == DIFF_GONE);
	CHECK(find(table, "old")->change == -1);
	CHECK(!find(table, "both")->is_recorded && find(table, "both")->state == DIFF_SAME);
	CHECK(fabs(find(table, "both")->before - 0.8) < 1e-12);
	CHECK_NUMBER(find(table, "both")->total[DIFF_COMPARE].value, 800);
	CHECK_NUMBER(find(table, "both")->self[DIFF_COMPARE].value, 640);
	CHECK_NUMBER(table->whole[DIFF_BASE].value, 800);
	CHECK_NUMBER(table->whole[DIFF_COMPARE].parts, 8);
	CHECK_NUMBER(table->process_count, 1);
	CHECK_TEXT(table->processes->frame.name, "p");
	CHECK(table->processes->state == DIFF_SAME);
	diff_table_free(table);
}

/* A function in a stack twice counts once; nothing at all is no change. */
static void test_edges(void)
{
	struct diff_table *table = diff_table_new(DIFF_PER_SECOND, false, 3);
	struct flame_frame frames[3] = {{.name = "r", .file = "", .kind = FRAME_native},
					{.name = "r", .file = "", .kind = FRAME_native},
					{.name = "s", .file = "", .kind = FRAME_native}};
	struct diff_stack stack = {frames, 1, "p", true, 5, 5};

	diff_table_part(table, DIFF_BASE, 60);
	add_one(table, frames, 3, 5);
	frames[0].name = "t";
	CHECK(!diff_table_add(table, &stack)); /* the limit */
	diff_table_free(table);
	table = diff_table_new(DIFF_SHARE, false, 2);
	CHECK(diff_table_test(table, 10));
	CHECK_NUMBER(table->function_count, 0);
	diff_table_free(table);
	table = diff_table_new(DIFF_RAW, true, 3);
	diff_table_part(table, DIFF_BASE, 60);
	add_one(table, frames, 1, 5);
	CHECK(diff_table_test(table, 10));
	CHECK_NUMBER(table->functions[0].total[DIFF_BASE].value, 5);
	CHECK(!table->recorded && table->is_too_short);
	CHECK(table->functions[0].state == DIFF_GONE);
	diff_table_free(table);
	diff_table_free(NULL);
}

int main(void)
{
	const char *asked = getenv("REPETITIONS");

	if (asked)
		repetitions = (unsigned)strtoul(asked, NULL, 10);
	for (unsigned f = 0; f < SIM_FUNCTIONS; f++) {
		snprintf(names[f], sizeof(names[f]), "f%u", f);
		hashes[f] = frame_name_hash(names[f]);
	}
	for (unsigned p = 0; p <= PROCESSES; p++)
		snprintf(processes[p], sizeof(processes[p]), "process %u", p);
	test_states();
	test_edges();
	test_equal();
	test_doubled();
	test_new_and_gone();
	test_burst();
	test_host_joins();
	test_intervals();
	test_weights();
	return checks_done();
}
