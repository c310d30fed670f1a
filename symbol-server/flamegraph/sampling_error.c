/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/flamegraph/sampling_error.h"

#include <math.h>

enum { DEGREES_MIN = 10 };
#define ROUNDING  1e-6 /* of values that are whole numbers */
/* Student's square by that of a normal one, of the efficiency of successive differences (2/3) */
#define FEW_WINDOWS 3.6

void sampling_series_add(struct sampling_series *series, uint64_t value, uint64_t samples)
{
	double v = (double)value, n = (double)samples;

	if (!samples)
		return;
	series->value += v;
	series->samples += n;
	series->squares += v * v / n;
	series->rows++;
}

double sampling_spread(const struct sampling_series *series, size_t count, double unknown,
		       double most)
{
	double between = 0, degrees = 0, spread;

	for (size_t i = 0; i < count; i++) {
		double v = series[i].value, n = series[i].samples;

		if (v <= 0 || series[i].rows < 2)
			continue;
		between += (series[i].squares * n / v / v - 1) * n;
		degrees += series[i].rows - 1;
	}
	if (degrees < DEGREES_MIN)
		return fmin(unknown, most);
	spread = between / degrees;
	return spread > ROUNDING ? fmin(spread, most) : 0;
}

double sampling_windows(double within, double between, double windows)
{
	if (!(within > 0))
		return 0;
	return between / within * (1 + FEW_WINDOWS / fmax(windows, 1));
}

double sampling_squares(uint64_t value, uint64_t samples, const struct sampling *sampling)
{
	double v = (double)value, n = samples ? (double)samples : 1, c = sampling->spread;

	return v * v * (1 + c) / (n + c) * (1 + sampling->windows);
}

uint64_t sampling_error(uint64_t value, double squares)
{
	double one = value ? squares / (double)value : 0; /* effective sample */

	return squares > 0 ? (uint64_t)llround(NORMAL_95 * sqrt(squares + one * one)) : 0;
}
