/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/api/reported.h"

void reported_each(const struct host_step *steps, uint32_t count, reported_fn *fn, void *context)
{
	for (uint32_t i = 0; i < count;) {
		const int64_t time_ms = steps[i].time_ms;
		uint64_t reported_ms = 0, lost = 0;

		for (; i < count && steps[i].time_ms == time_ms; i++) {
			if (steps[i].reported_ms > reported_ms)
				reported_ms = steps[i].reported_ms;
			lost += steps[i].lost;
		}
		fn(context, time_ms, reported_ms, lost);
	}
}

static void add(void *context, int64_t time_ms, uint64_t reported_ms, uint64_t lost)
{
	(void)time_ms, (void)lost;
	*(uint64_t *)context += reported_ms;
}

uint64_t reported_sum(const struct host_step *steps, uint32_t count)
{
	uint64_t sum_ms = 0;

	reported_each(steps, count, add, &sum_ms);
	return sum_ms;
}
