/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/flamegraph/distributions.h"

#include <math.h>

enum { FRACTION_STEPS = 20000, HALVINGS = 30 };

/* The continued fraction of the incomplete beta function, by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300, enough = 1e-13;
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

double log_incomplete_beta(double a, double b, double x, double rest)
{
	double front;

	if (x <= 0 || rest <= 0)
		return x <= 0 ? -INFINITY : 0;
	front = log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log(rest);
	if (x < (a + 1) / (a + b + 2))
		return fmin(front + log(beta_fraction(a, b, x) / a), 0);
	front = exp(front) * beta_fraction(b, a, rest) / b;
	return front < 1 ? log1p(-front) : -INFINITY;
}

double log_f_tail(double f, double df1, double df2)
{
	double all = df2 + df1 * f;

	return f > 0 ? log_incomplete_beta(df2 / 2, df1 / 2, df2 / all, df1 * f / all) : 0;
}

double student_95(double df)
{
	const double z = 1.959964;
	double low = 1.9, high = 13; /* of many and of one degree */

	if (df >= 6)
		return z + (z * z * z + z) / (4 * df) +
		       (5 * pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * df * df) +
		       (3 * pow(z, 7) + 19 * pow(z, 5) + 17 * z * z * z - 15 * z) /
			       (384 * df * df * df);
	for (int i = 0; i < HALVINGS; i++) {
		double middle = (low + high) / 2;

		if (log_f_tail(middle * middle, 1, df) > log(0.05))
			low = middle;
		else
			high = middle;
	}
	return high;
}

double beta_odds(double a, double b, double share)
{
	double low = -40, high = 40; /* ln odds */

	for (int i = 0; i < HALVINGS; i++) {
		double middle = (low + high) / 2, odds = exp(middle);

		if (log_incomplete_beta(a, b, odds / (1 + odds), 1 / (1 + odds)) < log(share))
			low = middle;
		else
			high = middle;
	}
	return exp(high);
}

/* Recurrences up to where the asymptotic series holds (Abramowitz and Stegun, 6.3.18, 6.4.11). */
double digamma(double x)
{
	double sum = 0, inverse;

	for (; x < 10; x++)
		sum -= 1 / x;
	inverse = 1 / (x * x);
	return sum + log(x) - 0.5 / x -
	       inverse * (1.0 / 12 - inverse * (1.0 / 120 - inverse / 252));
}

double trigamma(double x)
{
	double sum = 0, inverse;

	for (; x < 10; x++)
		sum += 1 / (x * x);
	inverse = 1 / (x * x);
	return sum + 1 / x + inverse / 2 +
	       inverse / x * (1.0 / 6 - inverse * (1.0 / 30 - inverse / 42));
}

static double tetragamma(double x)
{
	double sum = 0, inverse;

	for (; x < 10; x++)
		sum -= 2 / (x * x * x);
	inverse = 1 / (x * x);
	return sum - inverse - inverse / x -
	       inverse * inverse * (0.5 - inverse * (1.0 / 6 - inverse / 6));
}

double trigamma_inverse(double value)
{
	double x = 0.5 + 1 / value;

	if (value > 1e7)
		return 1 / sqrt(value);
	for (int i = 0; i < 50; i++) {
		double at = trigamma(x), step = at * (1 - at / value) / tetragamma(x);

		x += step;
		if (-step / x < 1e-8)
			break;
	}
	return x;
}

size_t false_discovery(const double *log_p, size_t count, double level)
{
	for (size_t i = count; i; i--)
		if (log_p[i - 1] + log((double)count / (double)i) <= log(level))
			return i;
	return 0;
}

double log_simes(const double *log_p, size_t count)
{
	double least = 0;

	for (size_t i = 0; i < count; i++)
		least = fmin(least, log_p[i] + log((double)count / (double)(i + 1)));
	return least;
}
