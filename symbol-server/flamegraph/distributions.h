/* SPDX-License-Identifier: Apache-2.0 */
/* Tails and quantiles of the distributions that tell a change from chance. Pure. Tails are natural
 * logarithms, so that what is far out can still be compared. */
#ifndef SYMBOL_SERVER_FLAMEGRAPH_DISTRIBUTIONS_H
#define SYMBOL_SERVER_FLAMEGRAPH_DISTRIBUTIONS_H

#include <stddef.h>

/* ln I_x(a, b), the incomplete beta function, a, b > 0, by its continued fraction (Abramowitz and
 * Stegun, 26.5.8). rest: 1 − x, which may be too small to be left of x. */
double log_incomplete_beta(double a, double b, double x, double rest);

/* ln P(F ≥ f) of the F distribution with df1 and df2 degrees of freedom, which may be broken. */
double log_f_tail(double f, double df1, double df2);

/* t with P(|T| ≥ t) = 0.05 of Student's distribution, df ≥ 1 degrees of freedom, to a thousandth
 * (Abramowitz and Stegun, 26.7.5, where these are many). */
double student_95(double df);

/* Odds x / (1 − x) at which I_x(a, b) is share. */
double beta_odds(double a, double b, double share);

/* ψ and its derivatives at x > 0, and the inverse of ψ′ (Smyth 2004, appendix). */
double digamma(double x);
double trigamma(double x);
double trigamma_inverse(double value);

/* Benjamini and Hochberg (1995), of ln p in ascending order: how many are found at that level. */
size_t false_discovery(const double *log_p, size_t count, double level);

/* ln of Simes' p (1986) of all, likewise sorted; 0 of none. */
double log_simes(const double *log_p, size_t count);

#endif
