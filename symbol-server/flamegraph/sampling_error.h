/* SPDX-License-Identifier: Apache-2.0 */
/* How far a figure that was summed up from samples may be from what would be found by sampling for
 * ever: half of its 95 % interval. Pure.
 *
 * The variance of a sum of independent samples is Σ w², w the value that one of them stands for
 * (Horvitz and Thompson 1952, of small probabilities). Of what a store sums up only the value v
 * and the number n of samples are left: Σ w² is v² (1 + c) / (n + c), c the squared coefficient of
 * variation of samples that were summed up together. 0: all weigh the same (the variance of a
 * count); 1: exponential values. c follows from how far the means of rows of one series differ
 * (mean square between rows); where rows differ in kind it is too large, never too small, so a
 * bound is set. One effective sample more (Agresti and Coull 1998) keeps the interval of a few
 * samples what it says.
 *
 * Samples of one window (of memory, where programs are looked at for moments) are alike: the sum
 * varies as windows do. How much more that is than of independent samples is the design effect
 * (Kish 1965), which agents tell by their windows; it multiplies Σ w². Of a part of what windows
 * have, the effect is less than that of all: a bound. */
#ifndef SYMBOL_SERVER_FLAMEGRAPH_SAMPLING_ERROR_H
#define SYMBOL_SERVER_FLAMEGRAPH_SAMPLING_ERROR_H

#include <stddef.h>
#include <stdint.h>

#define NORMAL_95        1.959964
#define SPREAD_OF_STACKS 1.0  /* at most, of samples of one stack: */
#define SPREAD_OF_SUMS   10.0 /* and of those of many */

struct sampling_series {                /* rows of one series; zero to begin with */
	double value, samples, squares; /* squares: Σ over rows of value² / samples */
	double rows;
};

void sampling_series_add(struct sampling_series *series, uint64_t value, uint64_t samples);
/* c: 0 … most. unknown: what it is taken for where there are too few rows. */
double sampling_spread(const struct sampling_series *series, size_t count, double unknown,
		       double most);

struct sampling { /* zero: independent samples of one weight */
	double spread;  /* c */
	double windows; /* the design effect, less 1 */
};

/* Of the two variances that agents tell, and of how many windows. */
double sampling_windows(double within, double between, double windows);

/* Σ w² of one row; those of disjoint rows add up. */
double sampling_squares(uint64_t value, uint64_t samples, const struct sampling *sampling);
/* ± of a value, in its unit; 0: nothing was sampled. */
uint64_t sampling_error(uint64_t value, double squares);

#endif
