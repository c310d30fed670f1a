/* SPDX-License-Identifier: Apache-2.0 */
/* Tails of the distributions that tell a change from sampling noise. Pure. */
#ifndef SYMBOL_SERVER_FLAMEGRAPH_NOISE_H
#define SYMBOL_SERVER_FLAMEGRAPH_NOISE_H

#include <stddef.h>
#include <stdint.h>

/* Both tails of Student's t: P(|T| ≥ |t|), df > 0 degrees of freedom, which may be broken. By the
 * incomplete beta function (Abramowitz and Stegun, 26.7.1 and 26.5.8). */
double noise_student(double t, double df);
/* t with noise_student(t, df) = 0.05, to 1 % for df ≥ 3 (Abramowitz and Stegun, 26.7.5). */
double noise_student_95(double df);

/* Exact two-sided test of count successes of n, each with probability share: twice the smaller
 * tail, at most 1. */
double noise_binomial(uint64_t count, uint64_t n, double share);

/* Benjamini and Hochberg (1995): p[] sorted ascending → q[], the smallest false discovery rate at
 * which each is found; p and q may be the same. */
void noise_false_discovery(const double *p, double *q, size_t count);

#endif
