/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/malloc/poisson.h"

#include <math.h>
#include <stdbool.h>

#include "tests/check.h"

static bool is_near(double got, double want, double share)
{
	return fabs(got - want) <= share * want;
}

static void test_weight_is_the_inverse_of_the_chance(void)
{
	static const uint64_t rates[] = {1, 3, 4096, POISSON_RATE_DEFAULT, UINT64_C(1) << 32};

	for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
		double worst = 0;

		for (uint64_t size = 1; size < UINT64_C(1) << 50; size = size * 5 / 4 + 1) {
			const double weight = (double)poisson_weight(size, rates[i]),
				     want = (double)size / -expm1(-(double)size / (double)rates[i]);
			const double error = fabs(weight - want);

			/* less than one byte is cut off */
			if (error > 1 && error / want > worst)
				worst = error / want;
		}
		printf("# rate %" PRIu64 ": worst %g\n", rates[i], worst);
		CHECK(worst < 1e-8);
	}
	CHECK_NUMBER(poisson_weight(UINT64_MAX, 1), UINT64_MAX);
	CHECK(is_near((double)poisson_weight(1, UINT64_MAX), 0x1p64, 1e-9));
}

static void test_distances_are_exponential(void)
{
	enum { DRAWS = 1000000 };
	const uint64_t rate = POISSON_RATE_DEFAULT;
	uint64_t state = 88172645463325252, below[4] = {0};
	double sum = 0, squares = 0;

	for (int i = 0; i < DRAWS; i++) {
		const uint64_t distance = poisson_distance(poisson_random(&state), rate);

		sum += (double)distance;
		squares += (double)distance * (double)distance;
		for (int size = 0; size < 4; size++)
			below[size] += distance < rate >> (3 * size);
	}
	sum /= DRAWS;
	CHECK(is_near(sum, (double)rate, 0.006));
	CHECK(is_near(sqrt(squares / DRAWS - sum * sum), (double)rate, 0.01));
	for (int size = 0; size < 4; size++) {
		const double chance = -expm1(-1.0 / (double)(1 << (3 * size)));

		CHECK(is_near((double)below[size], chance * DRAWS, 6 / sqrt(chance * DRAWS)));
	}
}

static void test_ends_of_the_range(void)
{
	CHECK_NUMBER(poisson_distance(UINT64_MAX, POISSON_RATE_DEFAULT), 0);
	CHECK(is_near((double)poisson_distance(1, 1 << 20), 64 * M_LN2 * (1 << 20), 1e-6));
	CHECK_NUMBER(poisson_distance(0, 1 << 20), poisson_distance(1, 1 << 20));
	CHECK_NUMBER(poisson_distance(1, UINT64_MAX), INT64_MAX);
}

int main(void)
{
	test_weight_is_the_inverse_of_the_chance();
	test_distances_are_exponential();
	test_ends_of_the_range();
	return checks_done();
}
