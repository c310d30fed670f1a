/* SPDX-License-Identifier: Apache-2.0 */
/* The time that an answer's values are of: that in which the chosen hosts reported. Pure. */
#ifndef SYMBOL_SERVER_API_REPORTED_H
#define SYMBOL_SERVER_API_REPORTED_H

#include "symbol-server/store/samples.h"

/* Calls fn for each step of time with the longest time that one of the hosts reported, and with
 * what all of them lost. */
typedef void reported_fn(void *context, int64_t time_ms, uint64_t reported_ms, uint64_t lost);
void reported_each(const struct host_step *steps, uint32_t count, reported_fn *fn, void *context);

/* In each minute the longest time that one host reported, summed up; 0: not known. */
uint64_t reported_sum(const struct host_step *steps, uint32_t count);

#endif
