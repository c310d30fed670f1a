/* SPDX-License-Identifier: Apache-2.0 */
/* Tails beside exact sums (Python's fractions) and numerical integration (Simpson, 400 000 steps).
 */
#include "symbol-server/flamegraph/distributions.h"

#include <math.h>
#include <stdbool.h>

#include "tests/check.h"

static bool is_near(double got, double want, double share)
{
	if (fabs(got - want) <= share * want)
		return true;
	printf("#  got: %.12g\n# want: %.12g\n", got, want);
	return false;
}

/* Both tails of count of n successes: twice the smaller one. */
static double binomial(double count, double n, double share)
{
	double above = count > 0 ? log_incomplete_beta(count, n - count + 1, share, 1 - share) : 0;
	double below = count < n ? log_incomplete_beta(n - count, count + 1, 1 - share, share) : 0;

	return fmin(2 * exp(fmin(above, below)), 1);
}

static void test_binomial(void)
{
	static const struct {
		double count, n, share, p;
	} rows[] = {
		{0, 10, 0.5, 0.001953125},
		{9, 10, 0.5, 0.021484375},
		{5, 10, 0.5, 1},
		{60, 100, 0.5, 0.056887933641},
		{3, 150, 0.1, 0.000249654755199},
		{7, 7, 0.25, 0.0001220703125},
		{130, 200, 0.6, 0.168795564082},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		CHECK(is_near(binomial(rows[i].count, rows[i].n, rows[i].share), rows[i].p, 1e-9));
	/* far out: P(X = 20000 of 20000) at a third */
	CHECK(is_near(-log_incomplete_beta(20000, 1, 1.0 / 3, 2.0 / 3), 20000 * log(3), 1e-9));
	CHECK(is_near(binomial(500600, 1000000, 0.5), 0.2305, 0.001));
}

static void test_student(void)
{
	static const struct {
		double t, df, p;
	} rows[] = {
		{2.22814, 10, 0.0499999875}, {3.5, 18.4, 0.00248935822},
		{1, 3, 0.391002219},         {6, 58, 1.3629579e-07},
		{0.1, 22, 0.921250012},      {1.959963985, 1e6, 0.05}, /* the normal distribution */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		CHECK(is_near(exp(log_f_tail(rows[i].t * rows[i].t, 1, rows[i].df)), rows[i].p,
			      1e-4));
	for (double df = 1; df < 2000; df *= 1.5)
		CHECK(is_near(exp(log_f_tail(pow(student_95(df), 2), 1, df)), 0.05, 2e-3));
	CHECK(is_near(exp(log_f_tail(2.5, 4, 9)), 0.116714942717, 1e-6));
	CHECK(is_near(beta_odds(1, 3, 0.975), 0.7076 / 0.2924, 1e-3)); /* 1 - 0.025^(1/3) */
}

static void test_gamma(void)
{
	CHECK(is_near(-digamma(1), 0.577215664902, 1e-9));
	CHECK(is_near(trigamma(1), 1.644934066848, 1e-9));
	CHECK(is_near(trigamma(0.5), 4.934802200545, 1e-9));
	for (double x = 0.3; x < 100; x *= 1.7)
		CHECK(is_near(trigamma_inverse(trigamma(x)), x, 1e-6));
}

/* The example of Benjamini and Hochberg (1995), section 4: 15 hypotheses, four are rejected at
 * 0.05 where Bonferroni rejects three. */
static void test_false_discovery(void)
{
	static const double p[15] = {0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
				     0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.000};
	double log_p[15];

	for (int i = 0; i < 15; i++)
		log_p[i] = log(p[i]);
	CHECK_NUMBER(false_discovery(log_p, 15, 0.05), 4);
	CHECK_NUMBER(false_discovery(log_p, 0, 0.05), 0);
	CHECK(is_near(exp(log_simes(log_p, 15)), 0.0015, 1e-9));
}

int main(void)
{
	test_binomial();
	test_student();
	test_gamma();
	test_false_discovery();
	return checks_done();
}
