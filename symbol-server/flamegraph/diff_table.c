/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/flamegraph/diff_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash_table.h"
#include "symbol-server/flamegraph/noise.h"

struct diff_index { /* (name, module) → function */
	struct hash_table table;
};

enum {
	DISPERSION_SAMPLES = 30,  /* of a function that tells of dispersion */
	DISPERSION_FUNCTIONS = 5, /* needed to tell */
	MANY = 1000000,           /* degrees of freedom of what is known */
};
#define SAME_WEIGHT 0.01 /* samples of two sides that differ by less weigh the same */

struct diff_table *diff_table_new(enum diff_norm norm, size_t limit_functions)
{
	struct diff_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->norm = norm;
	table->limit = limit_functions;
	table->index = calloc(1, sizeof(*table->index));
	if (!table->index) {
		diff_table_free(table);
		return NULL;
	}
	hash_table_init(&table->index->table, (uint32_t)limit_functions);
	return table;
}

/* --- adding up --- */

static double exposure_now(const struct diff_table *table)
{
	return table->norm == DIFF_SHARE ? (double)table->whole[table->side].now : table->seconds;
}

static void end_sum(struct diff_sum *sum, double exposure)
{
	double value = (double)sum->now;

	sum->squares += value * value;
	sum->cross += value * exposure;
	sum->value += sum->now;
	sum->now = 0;
}

static void end_cluster(struct diff_table *table)
{
	struct diff_whole *whole = &table->whole[table->side];
	double exposure = exposure_now(table);

	if (!table->in_cluster)
		return;
	for (size_t i = 0; i < table->touched_count; i++) {
		struct diff_function *function = &table->functions[table->touched[i]];

		end_sum(&function->self[table->side], exposure);
		end_sum(&function->total[table->side], exposure);
		function->is_touched = false;
	}
	table->touched_count = 0;
	whole->value += whole->now;
	whole->now = 0;
	whole->seconds += table->seconds;
	whole->exposure += exposure;
	whole->squares += exposure * exposure;
	whole->clusters++;
	table->in_cluster = false;
}

void diff_table_cluster(struct diff_table *table, enum diff_side side, double seconds)
{
	end_cluster(table);
	table->side = side;
	table->seconds = seconds;
	table->in_cluster = true;
}

static bool grow(struct diff_table *table)
{
	size_t capacity = table->capacity ? table->capacity * 2 : 256;
	struct diff_function *functions;
	uint32_t *touched;

	if (table->count < table->capacity)
		return true;
	if (table->count >= table->limit)
		return false;
	functions = realloc(table->functions, capacity * sizeof(*functions));
	if (!functions)
		return false;
	table->functions = functions;
	touched = realloc(table->touched, capacity * sizeof(*touched));
	if (!touched)
		return false;
	table->touched = touched;
	table->capacity = capacity;
	return true;
}

static struct diff_function *function_take(struct diff_table *table,
					   const struct flame_frame *frame)
{
	uint64_t name_hash = frame->name_hash ? frame->name_hash : frame_name_hash(frame->name);
	uint64_t hash = hash_word(name_hash, frame->module);
	uint32_t probe, at;

	for (at = hash_table_first(&table->index->table, hash, &probe); at != HASH_TABLE_NONE;
	     at = hash_table_next(&table->index->table, hash, &probe))
		if (table->functions[at].frame.module == frame->module &&
		    !strcmp(table->functions[at].frame.name, frame->name))
			break;
	if (at == HASH_TABLE_NONE) {
		at = (uint32_t)table->count;
		if (!grow(table) || !hash_table_add(&table->index->table, hash, at))
			return NULL;
		table->functions[table->count++] = (struct diff_function){.frame = *frame};
	}
	if (!table->functions[at].is_touched)
		table->touched[table->touched_count++] = at;
	table->functions[at].is_touched = true;
	return &table->functions[at];
}

static bool is_function(const struct flame_frame *frame)
{
	return frame->kind != FRAME_root && frame->kind != FRAME_group &&
	       frame->kind != FRAME_incomplete && frame->kind != FRAME_cut;
}

bool diff_table_add(struct diff_table *table, const struct flame_frame *frames, size_t depth,
		    uint64_t value, uint64_t samples)
{
	uint64_t stack = ++table->stacks;
	enum diff_side side = table->side;

	table->whole[side].now += value;
	table->whole[side].samples += samples;
	for (size_t i = 0; i < depth; i++) {
		struct diff_function *function;

		if (!is_function(&frames[i]))
			continue;
		function = function_take(table, &frames[i]);
		if (!function)
			return false;
		if (function->last_stack != stack) {
			function->last_stack = stack;
			function->total[side].now += value;
			function->total[side].samples += samples;
		}
		if (i + 1 == depth) {
			function->self[side].now += value;
			function->self[side].samples += samples;
		}
	}
	return true;
}

/* --- testing --- */

struct estimate {        /* of one side of one function */
	double rate;     /* value by exposure */
	double variance; /* of the rate, as clusters show it; NAN: too few */
	double floor;    /* of the rate, were samples independent and both sides the same */
	double df;
};

static double weight_of(uint64_t value, uint64_t samples)
{
	return samples ? (double)value / (double)samples : 0;
}

/* Σ(value − rate × exposure)² over clusters, as Cochran has it. */
static double cluster_variance(const struct diff_whole *whole, const struct diff_sum *sum,
			       double rate)
{
	double n = whole->clusters, residual;

	if (whole->clusters < DIFF_CLUSTERS_MIN)
		return NAN;
	residual = sum->squares - 2 * rate * sum->cross + rate * rate * whole->squares;
	return residual < 0 ? 0 : n / (n - 1) * residual / (whole->exposure * whole->exposure);
}

/* both: the rate that both sides would have, were they the same. */
static struct estimate estimate_of(const struct diff_table *table, enum diff_side side,
				   const struct diff_sum *sum, double both, double weight)
{
	const struct diff_whole *whole = &table->whole[side];
	double exposure = whole->exposure > 0 ? whole->exposure : 1;
	struct estimate estimate = {.rate = (double)sum->value / exposure};

	estimate.variance = cluster_variance(whole, sum, estimate.rate);
	estimate.floor = weight * both / exposure;
	if (table->norm == DIFF_SHARE)
		estimate.floor *= 1 - both;
	estimate.df = isnan(estimate.variance) ? MANY : whole->clusters - 1;
	return estimate;
}

/* Were both sides the same: the rate of both, or for raw values half of their sum on each. */
static void estimate_both(const struct diff_table *table, const struct diff_sum *sums,
			  struct estimate out[DIFF_SIDES])
{
	const struct diff_whole *whole = table->whole;
	double exposure = whole[DIFF_BASE].exposure + whole[DIFF_COMPARE].exposure;
	uint64_t value = sums[DIFF_BASE].value + sums[DIFF_COMPARE].value;
	double weight = weight_of(value, sums[DIFF_BASE].samples + sums[DIFF_COMPARE].samples);

	for (enum diff_side side = DIFF_BASE; side < DIFF_SIDES; side++) {
		double of = table->norm == DIFF_RAW ? 2 * whole[side].exposure : exposure;

		out[side] = estimate_of(table, side, &sums[side], of > 0 ? (double)value / of : 0,
					weight);
	}
}

static int compare_doubles(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static const struct diff_sum *measured(const struct diff_function *function, bool by_total)
{
	return by_total ? function->total : function->self;
}

static uint64_t samples_of(const struct diff_sum *sums)
{
	return sums[DIFF_BASE].samples + sums[DIFF_COMPARE].samples;
}

/* How much more than independent samples the median function varies. */
static double dispersion_of(const struct diff_table *table, bool by_total, double *room)
{
	size_t count = 0;

	for (size_t i = 0; i < table->count; i++) {
		const struct diff_sum *sums = measured(&table->functions[i], by_total);
		struct estimate sides[DIFF_SIDES];
		double seen = 0, expected = 0;

		if (samples_of(sums) < DISPERSION_SAMPLES)
			continue;
		estimate_both(table, sums, sides);
		for (enum diff_side side = DIFF_BASE; side < DIFF_SIDES; side++)
			if (!isnan(sides[side].variance)) {
				seen += sides[side].variance;
				expected += sides[side].floor;
			}
		if (expected > 0)
			room[count++] = seen / expected;
	}
	if (count < DISPERSION_FUNCTIONS)
		return NAN;
	qsort(room, count, sizeof(*room), compare_doubles);
	return room[count / 2] > 1 ? room[count / 2] : 1;
}

/* Of the samples of both sides each falls on the second one with a probability that follows from
 * exposures; of shares over a half the rest is looked at, which is the smaller one. 0: not asked.
 */
static double exact_p(const struct diff_table *table, const struct diff_sum *sums)
{
	const struct diff_whole *whole = table->whole;
	double weight[DIFF_SIDES], exposure[DIFF_SIDES];
	uint64_t count[DIFF_SIDES], n;

	for (enum diff_side side = DIFF_BASE; side < DIFF_SIDES; side++) {
		count[side] = sums[side].samples;
		weight[side] = weight_of(sums[side].value, sums[side].samples);
		exposure[side] = table->norm == DIFF_SHARE ? (double)whole[side].samples
				 : table->norm == DIFF_RAW ? 1
							   : whole[side].seconds;
		if (table->norm != DIFF_SHARE && whole[side].value)
			exposure[side] /= weight_of(whole[side].value, whole[side].samples);
	}
	if (count[DIFF_BASE] && count[DIFF_COMPARE] &&
	    fabs(weight[DIFF_BASE] - weight[DIFF_COMPARE]) > SAME_WEIGHT * weight[DIFF_BASE])
		return 0;
	if (table->norm == DIFF_SHARE &&
	    2 * samples_of(sums) > whole[DIFF_BASE].samples + whole[DIFF_COMPARE].samples)
		for (enum diff_side side = DIFF_BASE; side < DIFF_SIDES; side++)
			count[side] = whole[side].samples - count[side];
	n = count[DIFF_BASE] + count[DIFF_COMPARE];
	if (n > DIFF_EXACT_SAMPLES || exposure[DIFF_BASE] + exposure[DIFF_COMPARE] <= 0)
		return 0;
	return noise_binomial(count[DIFF_COMPARE], n,
			      exposure[DIFF_COMPARE] /
				      (exposure[DIFF_BASE] + exposure[DIFF_COMPARE]));
}

static double larger(double a, double b)
{
	return a > b || isnan(b) ? a : b;
}

/* Raw values are compared as they are, whatever the time they took. */
static double norm_factor(const struct diff_table *table, enum diff_side side)
{
	return table->norm == DIFF_RAW ? table->whole[side].exposure : 1;
}

static void set_change(struct diff_function *function, const double variance[DIFF_SIDES], double df)
{
	double width;

	function->change = function->change_low = function->change_high = NAN;
	if (function->before <= 0)
		return;
	function->change = function->after / function->before - 1;
	if (function->after <= 0)
		return;
	/* of the logarithm of the ratio */
	width = noise_student_95(df) *
		sqrt(variance[DIFF_BASE] / (function->before * function->before) +
		     variance[DIFF_COMPARE] / (function->after * function->after));
	function->change_low = exp(log(function->after / function->before) - width) - 1;
	function->change_high = exp(log(function->after / function->before) + width) - 1;
}

static void test_function(const struct diff_table *table, struct diff_function *function,
			  bool by_total)
{
	const struct diff_sum *sums = measured(function, by_total);
	double dispersion = isnan(table->dispersion) ? 1 : table->dispersion;
	struct estimate sides[DIFF_SIDES];
	double variance[DIFF_SIDES], sum, spread = 0, df, t;

	estimate_both(table, sums, sides);
	for (enum diff_side side = DIFF_BASE; side < DIFF_SIDES; side++) {
		double factor = norm_factor(table, side);

		sides[side].rate *= factor;
		variance[side] = factor * factor *
				 larger(dispersion * sides[side].floor, sides[side].variance);
		spread += variance[side] * variance[side] / sides[side].df;
	}
	function->before = sides[DIFF_BASE].rate;
	function->after = sides[DIFF_COMPARE].rate;
	sum = variance[DIFF_BASE] + variance[DIFF_COMPARE];
	df = spread > 0 ? sum * sum / spread : MANY;
	set_change(function, variance, df);
	function->p = function->q = NAN;
	if (samples_of(sums) < DIFF_SAMPLES_MIN)
		return;
	t = function->after - function->before;
	function->p = sum > 0 ? noise_student(t / sqrt(sum), df) : 1;
	function->p = larger(function->p, exact_p(table, sums));
}

static int compare_p(const void *left, const void *right)
{
	const struct diff_function *const *a = left, *const *b = right;

	return compare_doubles(&(*a)->p, &(*b)->p);
}

static bool correct_all(struct diff_table *table, double *room)
{
	struct diff_function **tested = calloc(table->count + 1, sizeof(*tested));

	if (!tested)
		return false;
	for (size_t i = 0; i < table->count; i++)
		if (!isnan(table->functions[i].p))
			tested[table->tested++] = &table->functions[i];
	if (table->tested)
		qsort(tested, table->tested, sizeof(*tested), compare_p);
	for (size_t i = 0; i < table->tested; i++)
		room[i] = tested[i]->p;
	noise_false_discovery(room, room, table->tested);
	for (size_t i = 0; i < table->tested; i++) {
		tested[i]->q = room[i];
		tested[i]->is_significant = room[i] <= DIFF_FALSE_SHARE;
		table->significant += tested[i]->is_significant;
	}
	free(tested);
	return true;
}

static int compare_change(const void *left, const void *right)
{
	const struct diff_function *a = left, *b = right;
	double x = fabs(a->after - a->before), y = fabs(b->after - b->before);
	int order;

	if (a->is_significant != b->is_significant)
		return a->is_significant ? -1 : 1;
	if (x != y)
		return x > y ? -1 : 1;
	order = strcmp(a->frame.name, b->frame.name);
	return order ? order
		     : (a->frame.module > b->frame.module) - (a->frame.module < b->frame.module);
}

static double scale_of(const struct diff_table *table)
{
	const struct diff_whole *base = &table->whole[DIFF_BASE];
	const struct diff_whole *compare = &table->whole[DIFF_COMPARE];

	if (table->norm == DIFF_RAW || base->exposure <= 0 || compare->exposure <= 0)
		return 1;
	return compare->exposure / base->exposure;
}

bool diff_table_test(struct diff_table *table, bool by_total)
{
	double *room = calloc(table->count + 1, sizeof(*room));
	bool ok;

	if (!room)
		return false;
	end_cluster(table);
	table->scale = scale_of(table);
	table->dispersion = dispersion_of(table, by_total, room);
	for (size_t i = 0; i < table->count; i++)
		test_function(table, &table->functions[i], by_total);
	ok = correct_all(table, room);
	free(room);
	if (table->count)
		qsort(table->functions, table->count, sizeof(*table->functions), compare_change);
	return ok;
}

void diff_table_free(struct diff_table *table)
{
	if (!table)
		return;
	if (table->index)
		hash_table_release(&table->index->table);
	free(table->index);
	free(table->functions);
	free(table->touched);
	free(table);
}
