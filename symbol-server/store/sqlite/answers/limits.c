/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/answers/limits.h"

#include <time.h>

int64_t limits_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool limits_allow(const struct samples_query *query, int64_t started_ms, uint64_t rows,
		  uint64_t bytes, struct error *err)
{
	const struct samples_limits *limits = &query->limits;

	if (limits->time_ms && limits_now_ms() - started_ms > limits->time_ms)
		return error_set(err, ERROR_LIMIT,
				 "the query took longer than --query-time allows (%lld ms): narrow "
				 "the time range or the selection",
				 (long long)limits->time_ms);
	if (limits->rows && rows > limits->rows)
		return error_set(err, ERROR_LIMIT,
				 "the query reads more rows than --query-rows allows (%llu): "
				 "narrow the time range or the selection",
				 (unsigned long long)limits->rows);
	if (limits->bytes && bytes > limits->bytes)
		return error_set(err, ERROR_LIMIT,
				 "the query takes more memory than --query-memory allows (%llu "
				 "MiB): narrow the time range or the selection",
				 (unsigned long long)(limits->bytes >> 20));
	if (query->is_cancelled && query->is_cancelled(query->context))
		return error_set(err, ERROR_BUSY, "the query was cancelled");
	return true;
}
