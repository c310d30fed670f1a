/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/limits.h"

#include "common/clock.h"

enum { LOOK_STEPS = 256 };

void limit_watch_start(struct limit_watch *watch, const struct samples_query *query)
{
	*watch = (struct limit_watch){
		.limits = query->limits,
		.started_ms = query->limits.started_ms ? query->limits.started_ms : monotonic_ms(),
		.is_cancelled = query->is_cancelled,
		.context = query->context,
	};
}

static bool has_time(const struct limit_watch *watch, struct error *err)
{
	const struct samples_limits *limits = &watch->limits;

	return !limits->time_ms || monotonic_ms() - watch->started_ms <= limits->time_ms ||
	       error_set(err, ERROR_LIMIT,
			 "the query took longer than --query-time allows (%lld ms): narrow the "
			 "time range or the selection",
			 (long long)limits->time_ms);
}

static bool has_rows(const struct limit_watch *watch, struct error *err)
{
	const struct samples_limits *limits = &watch->limits;
	uint64_t rows = limits->rows_read ? *limits->rows_read : watch->rows;

	return !limits->rows || rows <= limits->rows ||
	       error_set(err, ERROR_LIMIT,
			 "the query reads more rows than --query-rows allows (%llu): narrow the "
			 "time range or the selection",
			 (unsigned long long)limits->rows);
}

static bool has_bytes(const struct limit_watch *watch, uint64_t bytes, struct error *err)
{
	const struct samples_limits *limits = &watch->limits;

	return !limits->bytes || bytes <= limits->bytes ||
	       error_set(err, ERROR_LIMIT,
			 "the query takes more memory than --query-memory allows (%llu MiB): "
			 "narrow the time range or the selection",
			 (unsigned long long)(limits->bytes >> 20));
}

bool limit_watch_allows(struct limit_watch *watch, uint64_t bytes, struct error *err)
{
	struct error *why = &watch->why;

	if (why->kind == ERROR_NONE && has_time(watch, why) && has_rows(watch, why) &&
	    has_bytes(watch, bytes, why) && watch->is_cancelled &&
	    watch->is_cancelled(watch->context))
		error_set(why, ERROR_BUSY, "the query was cancelled");
	if (why->kind != ERROR_NONE && err)
		*err = *why;
	return why->kind == ERROR_NONE;
}

bool limit_watch_goes_on(struct limit_watch *watch, struct error *err)
{
	return watch->steps++ % LOOK_STEPS ? true : limit_watch_allows(watch, 0, err);
}

bool limit_watch_row(struct limit_watch *watch, struct error *err)
{
	watch->rows++;
	if (watch->limits.rows_read)
		++*watch->limits.rows_read;
	return has_rows(watch, &watch->why) ? limit_watch_goes_on(watch, err)
					    : limit_watch_allows(watch, 0, err);
}
