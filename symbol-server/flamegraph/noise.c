/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/flamegraph/noise.h"

#include <math.h>

enum { FRACTION_STEPS = 300 };

/* The continued fraction of the incomplete beta function, by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300, enough = 1e-14;
	double c = 1, d = 1 - (a + b) * x / (a + 1), result;

	d = 1 / (fabs(d) < tiny ? tiny : d);
	result = d;
	for (int m = 1; m < FRACTION_STEPS; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		double step;

		d = 1 + even * d;
		c = 1 + even / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = fabs(c) < tiny ? tiny : c;
		result *= d * c;
		d = 1 + odd * d;
		c = 1 + odd / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = fabs(c) < tiny ? tiny : c;
		step = d * c;
		result *= step;
		if (fabs(step - 1) < enough)
			break;
	}
	return result;
}

static double log_gamma(double x)
{
	int sign;

	return lgamma_r(x, &sign); /* lgamma() writes a global */
}

/* I_x(a, b) */
static double incomplete_beta(double a, double b, double x)
{
	double front;

	if (x <= 0 || x >= 1)
		return x >= 1;
	front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double noise_student(double t, double df)
{
	return incomplete_beta(df / 2, 0.5, df / (df + t * t));
}

double noise_student_95(double df)
{
	const double z = 1.959964;

	return z + (z * z * z + z) / (4 * df) +
	       (5 * pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * df * df) +
	       (3 * pow(z, 7) + 19 * pow(z, 5) + 17 * z * z * z - 15 * z) / (384 * df * df * df);
}

double noise_binomial(uint64_t count, uint64_t n, double share)
{
	double below, above, smaller;

	if (!n)
		return 1;
	/* P(X ≤ count) and P(X ≥ count) */
	below = count == n ? 1 : 1 - incomplete_beta((double)count + 1, (double)(n - count), share);
	above = count ? incomplete_beta((double)count, (double)(n - count) + 1, share) : 1;
	smaller = below < above ? below : above;
	return 2 * smaller < 1 ? 2 * smaller : 1;
}

void noise_false_discovery(const double *p, double *q, size_t count)
{
	double least = 1;

	for (size_t i = count; i--;) {
		double here = p[i] * (double)count / (double)(i + 1);

		least = here < least ? here : least;
		q[i] = least;
	}
}
