/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/allocations/window_spread.h"

void window_spread_add(struct window_spread *spread, struct window_rate *rate,
		       const struct window_sum *sum)
{
	const double bytes_by_ns = sum->bytes / sum->open_ns;
	const double difference = bytes_by_ns - rate->bytes_by_ns;

	rate->bytes_by_ns = bytes_by_ns;
	rate->stood_ns = sum->stands_ns;
	if (!rate->count) {
		rate->count = 1;
		return;
	}
	rate->count = 2;
	rate->square = difference * difference / 2;
	spread->within += sum->squares;
	spread->between += rate->square * sum->stands_ns * sum->stands_ns;
}

/* (a + b)² − a²: it is the same window, off the same way. */
void window_spread_stretch(struct window_spread *spread, struct window_rate *rate,
			   double stands_ns, double squares)
{
	if (rate->count < 2)
		return;
	spread->within += squares;
	spread->between += rate->square * stands_ns * (2 * rate->stood_ns + stands_ns);
	rate->stood_ns += stands_ns;
}

uint64_t window_spread_units(double squares)
{
	const double units = squares / WINDOW_SPREAD_UNIT;

	return units < 9.2e18 ? (uint64_t)units : UINT64_C(1) << 63;
}
