/* SPDX-License-Identifier: Apache-2.0 */
/* Which times a single sample may have: a sample is kept with the minute in which its report
 * begins, and its own time may lie outside of it, for a report covers ten minutes at most, and
 * a stack may be finished after its interval. Times further away do not count, the samples do. */
#ifndef SYMBOL_SERVER_STORE_RULES_MOMENT_TIMES_H
#define SYMBOL_SERVER_STORE_RULES_MOMENT_TIMES_H

#include "symbol-server/store/samples.h"

enum {
	MOMENT_BEFORE_MS = 600 * 1000,
	MOMENT_SPAN_MS = MOMENT_BEFORE_MS + 60 * 1000 + 600 * 1000, /* from so long before it */
};

/* The first one, of a profile that begins then. */
static inline int64_t moments_from_ms(int64_t profile_ms)
{
	return profile_ms / SAMPLES_BUCKET_MS * SAMPLES_BUCKET_MS - MOMENT_BEFORE_MS;
}

struct moment_time {
	int64_t time_ms; /* unix */
	uint64_t
		value; /* its part of the counted sample's: the first ones have what is left over */
};

/* The sample's time of that number. False: it cannot be of a report with times from from_ms on. */
static inline bool moment_time_get(const struct sample_batch *batch,
				   const struct batch_sample *sample, uint32_t number,
				   int64_t from_ms, struct moment_time *to)
{
	*to = (struct moment_time){
		.time_ms = (int64_t)(batch->times[sample->first_time + number] / 1000000),
		.value = sample->value / sample->time_count +
			 (number < sample->value % sample->time_count),
	};
	return to->time_ms >= from_ms && to->time_ms < from_ms + MOMENT_SPAN_MS;
}

#endif
