/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up counters of CPUs that come and go; /proc/stat is the real one. */
#include "node-agent/capture/tick_account.h"

#include "tests/check.h"

enum { MS = 1000000 };

int main(void)
{
	struct tick_account *account = tick_account_new(3, 10 * MS, NULL);
	struct tick_totals totals;

	tick_account_free(NULL);
	tick_account_look(account);
	tick_account_total(account, &totals);
	CHECK_NUMBER(totals.seen + totals.idle + totals.missed + totals.counted_ns, 0);

	/* the counters of CPU 0 ran before: that is not ours */
	tick_account_begin(account, 0, 1000, 400);
	tick_account_begin(account, 1, 0, 0);
	CHECK(tick_account_count(account, 0, 1000 * MS));
	CHECK(!tick_account_count(account, 0, 1000 * MS)); /* stands still */
	CHECK(tick_account_count(account, 1, 500 * MS));
	tick_account_ticks(account, 0, 1000 + 90, 400 + 20);
	tick_account_ticks(account, 1, 50, 0);
	tick_account_total(account, &totals);
	CHECK_NUMBER(totals.seen, 90 + 50);
	CHECK_NUMBER(totals.idle_seen, 20);
	CHECK_NUMBER(totals.counted_ns, 1500 * MS);
	/* ten ticks of CPU 0 did not come; nothing says that it was idle */
	CHECK_NUMBER(totals.idle, 20);
	CHECK_NUMBER(totals.missed, 10);

	/* a CPU goes, and comes again with a timer that counts from nothing */
	tick_account_end(account, 0);
	tick_account_end(account, 0);
	tick_account_begin(account, 0, 1090, 420);
	tick_account_total(account, &totals);
	CHECK_NUMBER(totals.seen, 140);
	CHECK_NUMBER(totals.counted_ns, 1500 * MS);
	CHECK(tick_account_count(account, 0, 100 * MS));
	tick_account_ticks(account, 0, 1100, 420);
	tick_account_total(account, &totals);
	CHECK_NUMBER(totals.seen, 150);
	CHECK_NUMBER(totals.missed, 10);

	/* ticks that come late do not lower what was shown */
	tick_account_ticks(account, 0, 1120, 420);
	tick_account_total(account, &totals);
	CHECK_NUMBER(totals.seen, 170);
	CHECK_NUMBER(totals.missed, 10);
	tick_account_free(account);
	return checks_done();
}
