/* SPDX-License-Identifier: Apache-2.0 */
/* Whose clock is wrong: one sender's against many, the server's against most, against what is
 * stored and against what cannot be. */
#include "symbol-server/api/server_clock.h"

#include <string.h>

#include "tests/check.h"

static const int64_t now = 1795262400000; /* 2026-11-21 */
static const int64_t day = 86400000, year = 400 * INT64_C(86400000);

/* So many senders said that at second 100. */
static void hear(struct server_clock *clock, unsigned first, unsigned count, enum clock_vote vote)
{
	for (unsigned i = 0; i < count; i++)
		server_clock_hear(clock, first + i, vote, 100);
}

static bool is_ahead_wrong(const struct server_clock *clock, int64_t now_ms, int64_t newest_ms)
{
	return server_clock_is_wrong(clock, CLOCK_AHEAD, now_ms + year, now_ms, newest_ms, 200);
}

static void test_one_against_many(void)
{
	struct server_clock clock = {0};

	hear(&clock, 1, 1, CLOCK_AHEAD);
	CHECK(!is_ahead_wrong(&clock, now, now - day));
	hear(&clock, 10, 3, CLOCK_AGREES);
	CHECK(!is_ahead_wrong(&clock, now, now + year)); /* stored under a wrong clock */
	hear(&clock, 20, 2, CLOCK_AHEAD);
	CHECK(!is_ahead_wrong(&clock, now, now - day)); /* three against three */
	hear(&clock, 30, 1, CLOCK_AHEAD);
	CHECK(is_ahead_wrong(&clock, now, now - day));
	CHECK(!server_clock_is_wrong(&clock, CLOCK_AGREES, now, now, now, 200));
	CHECK(!server_clock_is_wrong(&clock, CLOCK_BEHIND, now - year, now, now, 200));
	/* What was heard long ago does not count. */
	CHECK(!server_clock_is_wrong(&clock, CLOCK_AHEAD, now + year, now, 0, 101 + CLOCK_HEARD_S));
}

static void test_what_is_stored(void)
{
	struct server_clock clock = {0};

	hear(&clock, 1, 1, CLOCK_AHEAD);
	CHECK(is_ahead_wrong(&clock, now, now + day));
	CHECK(is_ahead_wrong(&clock, 0, 0)); /* 1970 */
	hear(&clock, 1, 1, CLOCK_BEHIND);
	/* The sender goes on where the store ends; a sender from before that does not. */
	CHECK(server_clock_is_wrong(&clock, CLOCK_BEHIND, now - year, now, now - year, 200));
	CHECK(!server_clock_is_wrong(&clock, CLOCK_BEHIND, now - year, now, now - 9 * day, 200));
	CHECK(!server_clock_is_wrong(&clock, CLOCK_BEHIND, now - year, now, now - day, 200));
	CHECK(!server_clock_is_wrong(&clock, CLOCK_BEHIND, now - year, now, 0, 200));
}

/* An agent's clock is what it says when it sends: an old report of its spool is not a vote. */
static void test_reading(void)
{
	struct batch_counters counters = {.numbers.sent_ms = now - 1000};
	struct sample_batch batch = {.counters = &counters, .counters_count = 1};
	struct ingest_rejects rejects = {.newest_ms = now - year, .untimely = 1};
	int64_t says;

	CHECK(server_clock_read(&batch, &rejects, now, &says) == CLOCK_AGREES);
	counters.numbers.sent_ms = now - day;
	CHECK(server_clock_read(&batch, &rejects, now, &says) == CLOCK_BEHIND);
	counters.numbers.sent_ms = now + day;
	CHECK(server_clock_read(&batch, &rejects, now, &says) == CLOCK_AHEAD);
	batch.counters_count = 0;
	CHECK(server_clock_read(&batch, &rejects, now, &says) == CLOCK_BEHIND);
	rejects.untimely = 0;
	CHECK(server_clock_read(&batch, &rejects, now, &says) == CLOCK_SILENT);
}

int main(void)
{
	test_one_against_many();
	test_what_is_stored();
	test_reading();
	return checks_done();
}
