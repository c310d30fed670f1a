/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/check.h"

#include "node-agent/ship/back_off.h"

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
	return checks_done();
}
