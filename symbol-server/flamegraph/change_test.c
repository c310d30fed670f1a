/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/flamegraph/change_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "symbol-server/flamegraph/distributions.h"

enum {
	LARGE_MIN = 20, /* rows that tell how all vary */
	LARGE_MAX = 100,
	FLAT_PARTS = 12,        /* of series whose trend can be told from their correlation */
	EXCESS_ROWS = 5,        /* needed to tell of excess and degrees */
	CORRELATION_PAIRS = 50, /* of neighbours, needed to tell of correlation */
	WEIGHT_DEGREES = 10,    /* what all rows say of one's values */
	EXACT_COUNT = 15,       /* of a side; below it intervals are exact */
};
#define NULL_LOG_RATIO     0.048790164169432 /* ln 1.05: no change */
#define DEGREES_MAX        40.0
#define DEGREES_MIN        2.0
#define OUTLIER            0.02 /* p of a row whose dispersion is not that of others */
#define CORRELATION_MAX    0.9
#define CORRELATION_MARGIN 0.6 /* times √n: what the estimate may lack */
#define CLEAR_EXCESS       1.2 /* dispersion of rows that tell of correlation */

/* --- effective numbers of samples --- */

void change_weight_add(struct change_weight *weight, double value, double samples)
{
	if (samples <= 0)
		return;
	weight->samples += samples;
	weight->value += value;
	weight->squares += value * value / samples;
	weight->single += 2 * value * value / (samples + 1);
}

void change_weight_side(struct change_weight *weight, double value, double samples, double squares,
			double parts)
{
	if (samples <= 0)
		return;
	weight->means += value * value / samples;
	weight->spread += fmax(squares - value * value / samples, 0);
	weight->df += parts - 1;
}

/* Σ w² by what sums show of it. */
static double weight_ratio(const struct change_weight *weight)
{
	return (weight->samples * weight->spread / weight->df + weight->means) / weight->squares;
}

double change_weights_fit(const struct change_weight *weights, size_t count)
{
	double sum = 0, df = 0, squares = 0, single = 0, means = 0;

	for (size_t i = 0; i < count; i++) {
		const struct change_weight *weight = &weights[i];

		squares += weight->squares;
		single += weight->single;
		means += weight->means;
		if (weight->df <= 0 || weight->squares <= 0 || weight->samples < CHANGE_SAMPLES_MIN)
			continue;
		sum += weight->df * weight_ratio(weight);
		df += weight->df;
	}
	if (df >= WEIGHT_DEGREES)
		return fmax(sum / df, 1);
	return squares > means * 1.1 ? single / squares : 1;
}

bool change_weight_differs(const struct change_weight *weight)
{
	return weight->squares * weight->samples > 1.1 * weight->value * weight->value;
}

double change_weight_of(const struct change_weight *weight, double fitted)
{
	double ratio = fitted;

	if (weight->value <= 0 || weight->squares <= 0)
		return 1;
	if (weight->df > 0)
		ratio = (WEIGHT_DEGREES * fitted + weight->df * weight_ratio(weight)) /
			(WEIGHT_DEGREES + weight->df);
	return weight->squares * fmax(ratio, 1) / weight->value;
}

/* --- how rows vary by themselves --- */

/* Variance of a sum of n parts by that of n independent ones. */
static double sum_inflation(double correlation, double n)
{
	double rest = 1 - correlation;

	return n < 2 ? 1
		     : 1 + 2 * (correlation / rest -
				correlation * (1 - pow(correlation, n)) / (n * rest * rest));
}

/* What the lag correlation of n values around their mean is by expectation. */
static double seen_correlation(double correlation, double n)
{
	double inflation = sum_inflation(correlation, n);

	return (n - 1) * (correlation - inflation / n) / (n * (1 - inflation / n));
}

static double true_correlation(double seen, double n)
{
	double low = 0, high = CORRELATION_MAX;

	if (seen <= seen_correlation(low, n))
		return low;
	if (seen >= seen_correlation(high, n))
		return high;
	for (int i = 0; i < 30; i++) {
		double middle = (low + high) / 2;

		if (seen_correlation(middle, n) < seen)
			low = middle;
		else
			high = middle;
	}
	return high;
}

/* The same of values around their trend (Orcutt and Winokur 1969). */
static double flat_correlation(double seen, double n)
{
	return fmax((seen * n * n / (n - 1) + 2) / (n - 4), 0);
}

static double smaller_parts(const struct change_range *ranges)
{
	if (!ranges[0].parts || !ranges[1].parts)
		return ranges[0].parts + ranges[1].parts;
	return ranges[0].parts < ranges[1].parts ? ranges[0].parts : ranges[1].parts;
}

struct dispersion {
	double chi, df;
	double reach; /* what an excess of 1 adds to chi, by expectation */
	double mean;  /* of a part */
};

static struct dispersion dispersion_of(const struct change_range *ranges,
				       const struct change_row *row, double correlation)
{
	struct dispersion out = {0};

	for (unsigned s = 0; s < CHANGE_SIDES; s++) {
		double n = ranges[s].parts, count = row->side[s].count;

		out.mean += count;
		if (count <= 0 || n < 2)
			continue;
		out.chi += fmax(row->side[s].squares * ranges[s].exposure / count - count, 0);
		out.df += n - 1;
		out.reach += n - sum_inflation(correlation, n);
	}
	out.mean /= (double)ranges[0].parts + ranges[1].parts;
	return out;
}

static double phi_of(const struct dispersion *of)
{
	return of->df > 0 ? of->chi / of->df : 1;
}

struct large { /* one of the rows that tell of all */
	size_t row;
	struct dispersion dispersion;
};

struct fit_data {
	const struct change_range *ranges;
	const struct change_row *rows;
	change_series_fn *series;
	void *context;
	struct large large[LARGE_MAX];
	unsigned count;
	double *counts, *expected;
	bool is_flat; /* series are without their trend */
};

static int compare_doubles(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static double count_of(const struct change_row *row)
{
	return row->side[0].count + row->side[1].count;
}

/* The largest rows, found by the count that so many have at least. false: no memory. */
static bool find_large(struct fit_data *data, size_t count)
{
	size_t most = count / 4 < LARGE_MIN ? LARGE_MIN : count / 4;
	double *sorted = calloc(count + 1, sizeof(*sorted)), least;

	if (!sorted)
		return false;
	most = most > LARGE_MAX ? LARGE_MAX : most;
	for (size_t i = 0; i < count; i++)
		sorted[i] = count_of(&data->rows[i]);
	qsort(sorted, count, sizeof(*sorted), compare_doubles);
	least = count > most ? sorted[count - most] : 0;
	free(sorted);
	for (size_t i = 0; i < count && data->count < most; i++) {
		struct large large = {i, dispersion_of(data->ranges, &data->rows[i], 0)};

		if (count_of(&data->rows[i]) >= least && large.dispersion.df > 0 &&
		    large.dispersion.mean >= 1)
			data->large[data->count++] = large;
	}
	return true;
}

static double clip(double value)
{
	return value > 4 ? 4 : value < -4 ? -4 : value;
}

/* Takes their mean and, of long series, their trend from values: a drift is no correlation. */
static void flatten(double *values, uint32_t count)
{
	double middle = (count - 1) / 2.0, mean = 0, slope = 0;

	for (uint32_t i = 0; i < count; i++) {
		mean += values[i] / count;
		slope += (i - middle) * values[i];
	}
	slope /= count * ((double)count * count - 1) / 12;
	for (uint32_t i = 0; i < count; i++)
		values[i] -= mean + (i - middle) * slope;
}

static void add_neighbours(struct fit_data *data, const struct large *large, double *products,
			   double *squares)
{
	double phi = phi_of(&large->dispersion);

	for (unsigned s = 0; s < CHANGE_SIDES; s++) {
		uint32_t parts = data->ranges[s].parts;
		double *values = data->counts;

		if (parts < 2 || data->rows[large->row].side[s].count <= 0)
			continue;
		data->series(data->context, large->row, s, values, data->expected);
		for (uint32_t i = 0; i < parts; i++) {
			double expected = data->expected[i];

			values[i] = expected > 0 ? (values[i] - expected) / sqrt(expected * phi)
						 : 0;
		}
		if (data->is_flat)
			flatten(values, parts);
		for (uint32_t i = 0; i < parts; i++) {
			*squares += clip(values[i] * values[i]) * (1 - 1 / phi);
			*products += i ? clip(values[i - 1] * values[i]) : 0;
		}
	}
}

static bool is_outlier(const struct change_model *model, const struct dispersion *of)
{
	double expected = 1 + model->excess * of->mean * of->reach / of->df;

	return of->reach > 0 &&
	       log_f_tail(phi_of(of) / expected, of->df, model->degrees) < log(OUTLIER);
}

/* model: its excess and degrees, were neighbours independent; a row that drifts says nothing of how
 * all vary. */
static double fit_correlation(struct fit_data *data, const struct change_model *model)
{
	double n = smaller_parts(data->ranges), products = 0, squares = 0;

	if (n < CHANGE_PARTS_MIN || data->count * (n - 1) < CORRELATION_PAIRS)
		return 0;
	data->is_flat = n >= FLAT_PARTS;
	for (unsigned i = 0; i < data->count; i++)
		if (phi_of(&data->large[i].dispersion) > CLEAR_EXCESS &&
		    (data->count < EXCESS_ROWS || !is_outlier(model, &data->large[i].dispersion)))
			add_neighbours(data, &data->large[i], &products, &squares);
	if (squares <= 5)
		return 0;
	return fmin((data->is_flat ? flat_correlation(products / squares, n)
				   : true_correlation(products / squares, n)) +
			    CORRELATION_MARGIN / sqrt(n),
		    CORRELATION_MAX);
}

/* Of values in ascending order. */
static double quantile(const double *sorted, unsigned count, double share)
{
	double at = share * (count - 1);
	unsigned below = (unsigned)at;

	return below + 1 < count
		       ? sorted[below] + (at - below) * (sorted[below + 1] - sorted[below])
		       : sorted[below];
}

/* That nineteen in twenty have of independent samples (Wilson and Hilferty 1931): a row that varies
 * less, as one with all of the samples, is not judged by it. */
static double least_phi(double df)
{
	double root = 1 - 2 / (9 * df) - 1.645 * sqrt(2 / (9 * df));

	return fmax(root * root * root, 1e-3);
}

/* The excess by mean that half of the large rows exceed, and how far rows' dispersions lie around
 * that, as degrees of freedom. */
static void fit_excess(struct fit_data *data, struct change_model *model)
{
	double values[LARGE_MAX], chance = 0, wide;
	unsigned count = data->count;

	model->degrees = DEGREES_MAX;
	if (count < EXCESS_ROWS)
		return;
	for (unsigned i = 0; i < count; i++) {
		struct dispersion *of = &data->large[i].dispersion;
		double half = 1 - 2 / (9 * of->df); /* of chi square by df, cubed */

		*of = dispersion_of(data->ranges, &data->rows[data->large[i].row],
				    model->correlation);
		values[i] = (phi_of(of) / (half * half * half) - 1) * of->df / of->reach / of->mean;
	}
	qsort(values, count, sizeof(*values), compare_doubles);
	model->excess = fmax(quantile(values, count, 0.5), 0);
	for (unsigned i = 0; i < count; i++) {
		const struct dispersion *of = &data->large[i].dispersion;
		double expected = 1 + model->excess * of->mean * of->reach / of->df;

		values[i] = log(fmax(phi_of(of), least_phi(of->df)) / expected) -
			    digamma(of->df / 2) + log(of->df / 2);
		chance += trigamma(of->df / 2) / count;
	}
	qsort(values, count, sizeof(*values), compare_doubles);
	wide = (quantile(values, count, 0.9) - quantile(values, count, 0.1)) / 2.563;
	if (wide * wide - chance > 1e-3)
		model->degrees = fmax(fmin(2 * trigamma_inverse(wide * wide - chance), DEGREES_MAX),
				      DEGREES_MIN);
}

bool change_model_fit(struct change_model *model, const struct change_range ranges[CHANGE_SIDES],
		      const struct change_row *rows, size_t count, change_series_fn *series,
		      void *context)
{
	size_t parts = ranges[0].parts > ranges[1].parts ? ranges[0].parts : ranges[1].parts;
	struct fit_data *data = calloc(1, sizeof(*data));
	double *room = calloc(2 * parts + 2, sizeof(*room));
	bool ok = false;

	*model = (struct change_model){.degrees = DEGREES_MAX};
	if (!data || !room)
		goto out;
	data->ranges = ranges;
	data->rows = rows;
	data->series = series;
	data->context = context;
	data->counts = room;
	data->expected = room + parts + 1;
	ok = find_large(data, count);
	if (!ok)
		goto out;
	fit_excess(data, model);
	model->correlation = fit_correlation(data, model);
	fit_excess(data, model);
out:
	free(data);
	free(room);
	return ok;
}

/* --- one row --- */

struct counts { /* whose variance is that of independent samples */
	double side[CHANGE_SIDES];
	double odds; /* of the second side, were both the same */
	double df;   /* of what is known of their variance */
};

static double plain_odds(const struct change_range *ranges)
{
	return ranges[0].exposure > 0 ? ranges[1].exposure / ranges[0].exposure : INFINITY;
}

static struct counts deflate(const struct change_model *model, const struct change_range *ranges,
			     const struct change_row *row, double excess)
{
	struct counts out = {.odds = plain_odds(ranges)};

	for (unsigned s = 0; s < CHANGE_SIDES; s++) {
		double inflation = 1 + excess * sum_inflation(model->correlation, ranges[s].parts);

		out.side[s] = row->side[s].count / inflation;
		out.odds = s ? out.odds / inflation : out.odds * inflation;
	}
	return out;
}

static double own_excess(const struct dispersion *of)
{
	return of->reach > 0 ? fmax((of->chi - of->df) / of->reach, 0) : 0;
}

static struct counts deflated(const struct change_model *model, const struct change_range *ranges,
			      const struct change_row *row)
{
	struct dispersion of = dispersion_of(ranges, row, model->correlation);
	double degrees = model->degrees, prior = model->excess * of.mean, df;
	struct counts out;

	if (is_outlier(model, &of))
		degrees = 0;
	df = fmax(degrees + of.df, 1);
	out = deflate(model, ranges, row, (degrees * prior + of.df * own_excess(&of)) / df);
	out.df = df;
	return out;
}

/* ln p, two-sided, of ratios up to exp(shift) being none. */
static double log_binomial(const double *counts, double odds, double shift)
{
	double up = odds * exp(shift), down = odds * exp(-shift), above, below;

	if (counts[1] <= counts[0] * up && counts[1] >= counts[0] * down)
		return 0;
	if (counts[1] > counts[0] * up) {
		above = log_incomplete_beta(counts[1], counts[0] + 1, up / (1 + up), 1 / (1 + up));
		return fmin(above + log(2), 0);
	}
	below = log_incomplete_beta(counts[0], counts[1] + 1, 1 / (1 + down), down / (1 + down));
	return fmin(below + log(2), 0);
}

static double part_of_deviance(double count, double expected)
{
	return count > 0 ? 2 * count * log(count / expected) : 0;
}

static double deviance_of(const struct counts *counts)
{
	double all = counts->side[0] + counts->side[1];

	return part_of_deviance(counts->side[0], all / (1 + counts->odds)) +
	       part_of_deviance(counts->side[1], all * counts->odds / (1 + counts->odds));
}

double change_deviance_most(const struct change_model *model,
			    const struct change_range ranges[CHANGE_SIDES],
			    const struct change_row *row)
{
	struct dispersion of = dispersion_of(ranges, row, model->correlation);
	double own = own_excess(&of), prior = model->excess * of.mean;
	double shrunk = (model->degrees * prior + of.df * own) / (model->degrees + of.df);
	struct counts most = deflate(model, ranges, row, fmin(own, shrunk));

	return deviance_of(&most);
}

/* The tail of chi square, which that of F is never below. */
double change_deviance_score(double deviance)
{
	return deviance / 2 + log(2 + deviance) / 2 + 1;
}

struct change_verdict change_test(const struct change_model *model,
				  const struct change_range ranges[CHANGE_SIDES],
				  const struct change_row *row)
{
	double counts[CHANGE_SIDES] = {row->side[0].count, row->side[1].count};
	double odds = plain_odds(ranges);
	struct change_verdict verdict = {0, 0, 0};
	struct counts less;

	if (counts[0] + counts[1] <= 0 || odds <= 0 || isinf(odds))
		return verdict;
	verdict.recorded = log_binomial(counts, odds, NULL_LOG_RATIO);
	less = deflated(model, ranges, row);
	verdict.deviance = deviance_of(&less);
	verdict.sustained = fmax(log_f_tail(verdict.deviance, 1, less.df),
				 log_binomial(less.side, less.odds, 0));
	return verdict;
}

void change_interval(const struct change_model *model,
		     const struct change_range ranges[CHANGE_SIDES], const struct change_row *row,
		     double *low, double *high)
{
	struct counts less = deflated(model, ranges, row);
	double first = less.side[0], second = less.side[1], ratio, width;

	*low = *high = NAN;
	if (first + second <= 0 || less.odds <= 0 || isinf(less.odds))
		return;
	if (fmin(first, second) < EXACT_COUNT) {
		*low = second > 0 ? beta_odds(second, first + 1, 0.025) / less.odds - 1 : -1;
		*high = first > 0 ? beta_odds(second + 1, first, 0.975) / less.odds - 1 : INFINITY;
		return;
	}
	ratio = second / first / less.odds;
	width = student_95(less.df) * sqrt(1 / first + 1 / second);
	*low = ratio * exp(-width) - 1;
	*high = ratio * exp(width) - 1;
}

/* --- many rows --- */

struct member {
	double log_p;
	size_t row;
	uint32_t family;
};

static int compare_members(const void *left, const void *right)
{
	const struct member *a = left, *b = right;

	if (a->family != b->family)
		return a->family < b->family ? -1 : 1;
	return (a->log_p > b->log_p) - (a->log_p < b->log_p);
}

static size_t collect(struct member *members, const double *log_p, const uint32_t *family,
		      size_t count)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++)
		if (!isnan(log_p[i]))
			members[found++] = (struct member){log_p[i], i, family ? family[i] : 0};
	if (found)
		qsort(members, found, sizeof(*members), compare_members);
	return found;
}

/* Marks those of one family that Benjamini and Hochberg find. values: room. */
static void mark(const struct member *members, size_t count, double level, double *values,
		 bool *found)
{
	for (size_t i = 0; i < count; i++)
		values[i] = members[i].log_p;
	count = false_discovery(values, count, level);
	for (size_t i = 0; i < count; i++)
		found[members[i].row] = true;
}

static size_t family_length(const struct member *members, size_t count)
{
	size_t length = 1;

	while (length < count && members[length].family == members->family)
		length++;
	return length;
}

/* A family by its members (Simes) and by itself, the smaller one twice. */
static size_t test_families(const struct member *members, size_t count, const double *family_log_p,
			    double *values, struct member *families)
{
	size_t found = 0;

	for (size_t i = 0; i < count;) {
		size_t length = family_length(members + i, count - i);
		double own = family_log_p[members[i].family], log_p;

		for (size_t k = 0; k < length; k++)
			values[k] = members[i + k].log_p;
		log_p = log_simes(values, length);
		if (!isnan(own))
			log_p = fmin(fmin(log_p, own) + log(2), 0);
		families[found++] = (struct member){log_p, members[i].family, 0};
		i += length;
	}
	if (found)
		qsort(families, found, sizeof(*families), compare_members);
	return found;
}

bool change_families(const double *log_p, const uint32_t *family, size_t count, bool *found,
		     const double *family_log_p, size_t families, bool *family_found)
{
	size_t most = count > families ? count : families, tested, all, chosen = 0;
	struct member *members = calloc(2 * most + 1, sizeof(*members)), *of = members + most;
	double *values = calloc(most + 1, sizeof(*values));
	bool *is_chosen = calloc(families + 1, sizeof(*is_chosen));
	bool ok = members && values && is_chosen;

	memset(found, 0, count * sizeof(*found));
	memset(family_found, 0, families * sizeof(*family_found));
	if (!ok)
		goto out;
	all = collect(members, family_log_p, NULL, families);
	mark(members, all, CHANGE_LEVEL, values, family_found);
	tested = collect(members, log_p, family, count);
	all = test_families(members, tested, family_log_p, values, of);
	mark(of, all, CHANGE_LEVEL, values, is_chosen);
	for (size_t i = 0; i < families; i++)
		chosen += is_chosen[i];
	for (size_t i = 0; i < tested;) {
		size_t length = family_length(members + i, tested - i);

		if (is_chosen[members[i].family])
			mark(members + i, length, CHANGE_LEVEL * (double)chosen / (double)all,
			     values, found);
		i += length;
	}
out:
	free(members);
	free(values);
	free(is_chosen);
	return ok;
}
