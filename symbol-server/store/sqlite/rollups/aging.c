/* SPDX-License-Identifier: Apache-2.0 */
/* How old samples are held to be. One wrong reading of the clock must not delete what is kept for a
 * year: at start the clock is believed up to BELIEVED_MS after the newest day, and a later moment,
 * also one that it jumps to, is come up with at FASTER times the speed of time. What is deleted too
 * late meanwhile, because a server really was away for long, is bounded by --max-disk. */
#include "symbol-server/store/sqlite/rollups/retention.h"

#include <time.h>

#include "common/log.h"

enum {
	FASTER = 24,
	BELIEVED_MS = 5 * 86400000,
	TOLD_MS = 86400000,
	/* A few days so far after the ones before them may be from a wrong clock. */
	FEW_DAYS = 7,
	ALONE_DAYS = 30,
};

int64_t store_kept_from_ms(const struct sqlite_samples *store, enum samples_resolution resolution,
			   int64_t now_ms)
{
	int64_t keep_ms = store->keep_ms[resolution], then_ms = now_ms - store->aging.behind_ms;

	/* Roll-ups without a time of their own are kept as long as what they were made of. */
	while (!keep_ms && resolution > SAMPLES_RAW)
		keep_ms = store->keep_ms[--resolution];
	return keep_ms && keep_ms < then_ms ? then_ms - keep_ms : 0;
}

/* End of the newest day that a right clock can have made; 0: there is none. */
static int64_t newest_ms(const struct sqlite_samples *store)
{
	unsigned count = store->day_count, newest = count;

	for (unsigned i = count; i > 1 && i + FEW_DAYS > count; i--)
		if (store->days[i - 1]->day - store->days[i - 2]->day > ALONE_DAYS)
			newest = i - 1;
	return count ? (store->days[newest - 1]->day + 1ll) * day_ms : 0;
}

static int64_t elapsed_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void retention_age(struct sqlite_samples *store, int64_t now_ms)
{
	struct aging *aging = &store->aging;
	int64_t elapsed_ms = elapsed_now_ms(), newest = newest_ms(store);

	if (aging->then_ms)
		aging->then_ms += (elapsed_ms - aging->elapsed_ms) * FASTER;
	else
		aging->then_ms = newest ? newest + BELIEVED_MS : now_ms;
	if (aging->then_ms > now_ms)
		aging->then_ms = now_ms;
	aging->elapsed_ms = elapsed_ms;
	aging->behind_ms = now_ms - aging->then_ms;
	if (aging->behind_ms >= TOLD_MS && !aging->is_told)
		log_warn("the clock is far after the newest samples, or jumped: their retention "
			 "comes up with it slowly",
			 "days=%lld days_to_come_up=%lld", (long long)(aging->behind_ms / day_ms),
			 (long long)(aging->behind_ms / day_ms / (FASTER - 1) + 1));
	aging->is_told = aging->behind_ms >= TOLD_MS;
}
