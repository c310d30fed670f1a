/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/http/http_latency.h"

const unsigned http_latency_bounds_ms[HTTP_LATENCY_BOUNDS] = {
	5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000,
};

void http_latency_add(struct http_latency *latency, int64_t ms)
{
	unsigned bucket = 0;

	if (ms < 0)
		ms = 0;
	while (bucket < HTTP_LATENCY_BOUNDS && ms > http_latency_bounds_ms[bucket])
		bucket++;
	latency->counts[bucket]++;
	latency->sum_ms += (uint64_t)ms;
}
