/* SPDX-License-Identifier: Apache-2.0 */
/* Tails beside exact sums (Python's fractions) and numerical integration (Simpson, 400 000 steps).
 */
#include "symbol-server/flamegraph/noise.h"

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

static void test_binomial(void)
{
	static const struct {
		uint64_t count, n;
		double share, p;
	} rows[] = {
		{0, 0, 0.5, 1},
		{0, 10, 0.5, 0.001953125},
		{9, 10, 0.5, 0.021484375},
		{5, 10, 0.5, 1},
		{60, 100, 0.5, 0.056887933641},
		{3, 150, 0.1, 0.000249654755199},
		{7, 7, 0.25, 0.0001220703125},
		{130, 200, 0.6, 0.168795564082},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		CHECK(is_near(noise_binomial(rows[i].count, rows[i].n, rows[i].share), rows[i].p,
			      1e-9));
}

static void test_student(void)
{
	static const struct {
		double t, df, p;
	} rows[] = {
		{0, 5, 1},
		{2.22814, 10, 0.0499999875},
		{3.5, 18.4, 0.00248935822},
		{1, 3, 0.391002219},
		{6, 58, 1.3629579e-07},
		{0.1, 22, 0.921250012},
		{1.959963985, 1e6, 0.05}, /* the normal distribution */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		CHECK(is_near(noise_student(rows[i].t, rows[i].df), rows[i].p, 1e-4));
	for (double df = 3; df < 2000; df *= 1.5)
		CHECK(is_near(noise_student(noise_student_95(df), df), 0.05, 0.05));
}

/* The example of Benjamini and Hochberg (1995), section 4: 15 hypotheses, four are rejected at
 * 0.05 where Bonferroni rejects three. */
static void test_false_discovery(void)
{
	static const double p[15] = {0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
				     0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.000};
	double q[15];
	int found = 0;

	noise_false_discovery(p, q, 15);
	for (int i = 0; i < 15; i++) {
		found += q[i] <= 0.05;
		CHECK(!i || q[i] >= q[i - 1]);
	}
	CHECK_NUMBER(found, 4);
	CHECK(is_near(q[3], 0.0095 * 15 / 4, 1e-12));
}

int main(void)
{
	test_binomial();
	test_student();
	test_false_discovery();
	return checks_done();
}
