/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/check.h"

#include "node-agent/network/back_off.h"

/* Slow at first, faster while answers are quick, slower while they are not, within bounds. */
static void check_pace(void)
{
	struct pace pace = {0};
	int64_t wait_ms = pace_next_ms(&pace, 5000);

	CHECK(wait_ms >= PACE_FIRST_MS / 2 && wait_ms < PACE_FIRST_MS * 3 / 2);
	for (int i = 0; i < 30; i++)
		pace_next_ms(&pace, 20);
	CHECK_NUMBER(pace.gap_ms, PACE_LEAST_MS);
	CHECK(pace_next_ms(&pace, 300) < PACE_LEAST_MS * 3 / 2); /* neither quick nor slow */
	for (int i = 0; i < 30; i++)
		wait_ms = pace_next_ms(&pace, 600);
	CHECK_NUMBER(pace.gap_ms, PACE_MOST_MS);
	CHECK(wait_ms >= PACE_MOST_MS / 2 && wait_ms < PACE_MOST_MS * 3 / 2);
}

int main(void)
{
	struct back_off back_off = {0};
	int64_t limit = BACK_OFF_FIRST_MS, distinct = 0, before = 0;

	for (int i = 0; i < 20; i++) {
		int64_t ms = back_off_next_ms(&back_off, -1);

		if (!CHECK(ms > limit / 2 - 1 && ms <= limit))
			printf("# failure %d: %d ms\n", i, (int)ms);
		distinct += ms != before;
		before = ms;
		limit = limit * 2 > BACK_OFF_MOST_MS ? BACK_OFF_MOST_MS : limit * 2;
	}
	CHECK(distinct > 15); /* jitter */
	back_off.failures = 0;
	CHECK(back_off_next_ms(&back_off, -1) <= BACK_OFF_FIRST_MS);
	limit = back_off_next_ms(&back_off, 7);
	CHECK(limit >= 7000 && limit < 8000);
	limit = back_off_next_ms(&back_off, 86400);
	CHECK(limit >= 300000 && limit < 301000);
	check_pace();
	return checks_done();
}
