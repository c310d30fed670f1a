/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/api/reported.h"

#include <stdlib.h>

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

/* Of one host, and of one minute, at a time: hosts begin their reports in different seconds of it.
 */
uint64_t reported_sum(const struct host_step *steps, uint32_t count)
{
	uint64_t *of_hosts, sum_ms = 0;
	uint32_t hosts = 0;

	for (uint32_t i = 0; i < count; i++)
		hosts = steps[i].host >= hosts ? steps[i].host + 1 : hosts;
	of_hosts = calloc((size_t)hosts + 1, sizeof(*of_hosts));
	for (uint32_t i = 0; of_hosts && i < count;) {
		const int64_t minute = steps[i].time_ms / SAMPLES_BUCKET_MS;
		const uint32_t first = i;
		uint64_t most_ms = 0;

		for (; i < count && steps[i].time_ms / SAMPLES_BUCKET_MS == minute; i++) {
			uint64_t *ms = &of_hosts[steps[i].host];

			*ms += steps[i].reported_ms;
			most_ms = *ms > most_ms ? *ms : most_ms;
		}
		sum_ms += most_ms;
		for (uint32_t k = first; k < i; k++)
			of_hosts[steps[k].host] = 0;
	}
	free(of_hosts);
	return sum_ms;
}
