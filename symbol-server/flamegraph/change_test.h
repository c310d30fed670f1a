/* SPDX-License-Identifier: Apache-2.0 */
/* Is something different on two sides of counted samples? Two questions, asked by /diff of two
 * ranges and by /hotspots of a part of a range and what lies around it. Pure.
 *
 * Recorded: is what was recorded different by more than 5 %, sampling alone considered? Given the
 * sum of both counts, that of one side is binomial (Przyborowski and Wilenski 1940); the hypothesis
 * is |ln ratio| ≤ ln 1.05.
 *
 * Sustained: does it stand out from how parts of time (minutes) vary by themselves, too? The
 * dispersion of a row's parts is Pearson's chi square by its degrees of freedom. What it has over
 * that of independent samples is shrunk towards the row's mean times a factor that half of the
 * large rows exceed, with a weight that follows from how much rows differ (Smyth 2004); a row that
 * varies far more than others is its own judge (after Phipson et al. 2016). Neighbouring parts are
 * alike: one correlation of the excess for all rows, with the bias of short series removed and a
 * margin, says how much more a sum of parts varies than one part. Counts are divided by that
 * inflation; the larger p counts of the F test of the deviance (McCullagh and Nelder 1989, 2.3)
 * and of the conditional binomial.
 *
 * Samples of different weight count as their effective number, (Σ w)² / Σ w² (Kish 1965). Of many
 * rows in families (functions in processes), families are tested first, and rows in those found
 * (Benjamini and Bogomolov 2014), each by Benjamini and Hochberg. */
#ifndef SYMBOL_SERVER_FLAMEGRAPH_CHANGE_TEST_H
#define SYMBOL_SERVER_FLAMEGRAPH_CHANGE_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CHANGE_SIDES = 2 };
enum {
	CHANGE_PARTS_MIN = 6, /* of a side; with fewer it cannot be seen how neighbours are alike */
	CHANGE_SAMPLES_MIN = 10, /* of both sides together; fewer are not tested */
};
#define CHANGE_SHARE_MIN 0.0005 /* of the larger side; less is not tested */
#define CHANGE_LEVEL     0.05   /* of false ones among those found */

/* --- effective numbers of samples --- */

struct change_weight { /* of one row; only sums of samples' values are known */
	double samples, value;
	double squares, single;   /* over sums: value² / samples; the same of exponential values */
	double spread, means, df; /* within sides: of parts' mean values; of sides' ones */
};

/* Sums of samples that are stored as one. */
void change_weight_add(struct change_weight *weight, double value, double samples);
/* A side is complete: its sums, and of its parts with samples value² / samples and their number. */
void change_weight_side(struct change_weight *weight, double value, double samples, double squares,
			double parts);
/* By how much Σ w² is more than sums show, as parts' means tell of all rows together: ≥ 1. */
double change_weights_fit(const struct change_weight *weights, size_t count);
/* Whether single samples have different values. */
bool change_weight_differs(const struct change_weight *weight);
/* Value of one effective sample. */
double change_weight_of(const struct change_weight *weight, double fitted);

/* --- two sides --- */

struct change_range { /* one side: its parts and what they were exposed to, in any unit */
	uint32_t parts;
	double exposure;
};

struct change_sums {    /* of one row on one side */
	double count;   /* effective samples */
	double squares; /* Σ over parts of count² / exposure */
};

struct change_row {
	struct change_sums side[CHANGE_SIDES];
};

struct change_model {       /* how rows vary by themselves */
	double excess;      /* of the dispersion, by a part's mean */
	double degrees;     /* of freedom that this is worth; 0: nothing is known */
	double correlation; /* of the excess of neighbouring parts */
};

/* Puts the row's counts by part and those expected, count × exposure / whole exposure. */
typedef void change_series_fn(void *context, size_t row, unsigned side, double *counts,
			      double *expected);

/* From rows that are not parts of each other. false: no memory. */
bool change_model_fit(struct change_model *model, const struct change_range ranges[CHANGE_SIDES],
		      const struct change_row *rows, size_t count, change_series_fn *series,
		      void *context);

struct change_verdict { /* natural logarithms of p */
	double recorded, sustained;
	double deviance; /* of counts divided by their inflation: orders what is far out */
};

/* sustained: of ranges with fewer than CHANGE_PARTS_MIN parts it leans on the model alone. */
struct change_verdict change_test(const struct change_model *model,
				  const struct change_range ranges[CHANGE_SIDES],
				  const struct change_row *row);

/* What the verdict's deviance can be at most: a bound that takes no time. −ln of sustained's p is
 * at most change_deviance_score() of it. */
double change_deviance_most(const struct change_model *model,
			    const struct change_range ranges[CHANGE_SIDES],
			    const struct change_row *row);
double change_deviance_score(double deviance);

/* 95 % interval of the second side's rate by the first one's, less 1: from −1 to INFINITY. Exact
 * where a side has few samples, one-sided where it has none; NAN where both have none. */
void change_interval(const struct change_model *model,
		     const struct change_range ranges[CHANGE_SIDES], const struct change_row *row,
		     double *low, double *high);

/* --- many rows --- */

/* Sets found[] of members: log_p, NAN: not tested; family of each, below families. log_p of the
 * families by themselves, NAN: not tested; their found[] come from these alone. false: no memory.
 */
bool change_families(const double *log_p, const uint32_t *family, size_t count, bool *found,
		     const double *family_log_p, size_t families, bool *family_found);

#endif
