/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/rules/aging.h"

#include "common/clock.h"
#include "common/log.h"

enum {
	FASTER = 24,
	TOLD_MS = 86400000,
	/* A few days so far after the ones before them may be from a wrong clock. */
	FEW_DAYS = 7,
	ALONE_DAYS = 30,
};

static const int64_t DAY_MS = 86400000;

int64_t aging_newest_ms(const uint32_t *days, unsigned count)
{
	unsigned newest = count;

	for (unsigned i = count; i > 1 && i + FEW_DAYS > count; i--)
		if (days[i - 1] - days[i - 2] > ALONE_DAYS)
			newest = i - 1;
	return count ? days[newest - 1] * DAY_MS : 0;
}

static int64_t elapsed_now_ms(void)
{
	return (int64_t)(boot_time_ns() / 1000000);
}

void aging_step(struct aging *aging, int64_t newest_ms, int64_t now_ms, int64_t elapsed_ms)
{
	if (aging->then_ms)
		aging->then_ms += (elapsed_ms - aging->elapsed_ms) * FASTER;
	else
		aging->then_ms = newest_ms ? newest_ms + DAY_MS + AGING_BELIEVED_MS : now_ms;
	if (aging->then_ms > now_ms)
		aging->then_ms = now_ms;
	aging->elapsed_ms = elapsed_ms;
	__atomic_store_n(&aging->behind_ms, now_ms - aging->then_ms, __ATOMIC_RELAXED);
}

void aging_turn(struct aging *aging, int64_t newest_ms, int64_t now_ms)
{
	aging_step(aging, newest_ms, now_ms, elapsed_now_ms());
	if (aging->behind_ms >= TOLD_MS && !aging->is_told)
		log_warn("the clock is far after the newest samples, or jumped: their retention "
			 "catches up slowly",
			 "days=%lld days_to_catch_up=%lld", (long long)(aging->behind_ms / DAY_MS),
			 (long long)(aging->behind_ms / DAY_MS / (FASTER - 1) + 1));
	aging->is_told = aging->behind_ms >= TOLD_MS;
}
