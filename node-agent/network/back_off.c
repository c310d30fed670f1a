/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/network/back_off.h"

#include <sys/random.h>

static uint32_t random_below(uint32_t bound)
{
	uint32_t number = 0;

	/* Without randomness everybody waits the same time, which still works. */
	if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)
		number = 0;
	return number % bound;
}

int64_t back_off_next_ms(struct back_off *back_off, int64_t retry_after_s)
{
	unsigned doublings = back_off->failures < 6 ? back_off->failures : 6;
	uint32_t ms = (uint32_t)BACK_OFF_FIRST_MS << doublings;
	int64_t asked_ms = retry_after_s > RETRY_AFTER_MOST_S ? RETRY_AFTER_MOST_S * 1000
							      : retry_after_s * 1000;

	back_off->failures++;
	if (ms > BACK_OFF_MOST_MS)
		ms = BACK_OFF_MOST_MS;
	ms -= random_below(ms / 2);
	/* Not before the server said; a little of our own spread on top of its even number. */
	return asked_ms > 0 ? asked_ms + random_below(BACK_OFF_FIRST_MS) : ms;
}

int64_t pace_next_ms(struct pace *pace, int64_t took_ms)
{
	if (!pace->gap_ms)
		pace->gap_ms = PACE_FIRST_MS;
	else if (took_ms <= PACE_QUICK_MS)
		pace->gap_ms -= pace->gap_ms / 4;
	else if (took_ms >= PACE_SLOW_MS)
		pace->gap_ms *= 2;
	if (pace->gap_ms < PACE_LEAST_MS)
		pace->gap_ms = PACE_LEAST_MS;
	if (pace->gap_ms > PACE_MOST_MS)
		pace->gap_ms = PACE_MOST_MS;
	return pace->gap_ms / 2 + random_below((uint32_t)pace->gap_ms);
}
