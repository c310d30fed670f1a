/* SPDX-License-Identifier: Apache-2.0 */
/* The clock that reports are stamped with, against clocks that are set. */
#include "tests/check.h"

#include <time.h>

#include "node-agent/report/wall_clock.h"

static const int64_t second = 1000000000, epoch = 1700000000ll * 1000000000, day = 86400000000000;

static struct wall_clock wall;
static int64_t boot, host; /* the clocks */
static uint64_t start, length, last_end;

/* One interval of ten seconds in which the host's clock is set by so much. */
static int64_t pass(int64_t set)
{
	int64_t seen;

	boot += 10 * second;
	host += 10 * second + set;
	last_end = start + length;
	seen = wall_clock_close_at(&wall, boot, host, &start, &length);
	return seen;
}

static void begin(void)
{
	boot = 5 * second;
	host = epoch;
	wall_clock_start_at(&wall, boot, host);
	start = epoch;
	length = 0;
}

static void check_even(void)
{
	begin();
	for (int i = 0; i < 5; i++) {
		CHECK_NUMBER(pass(i % 2 ? 300000 : -200000), 0); /* as NTP leads it */
		CHECK_NUMBER(start, last_end);
		CHECK_NUMBER(start + length, host);
	}
	CHECK_NUMBER(wall.jumps, 0);
}

static void check_ahead(void)
{
	begin();
	pass(0);
	CHECK_NUMBER(pass(3600 * second), 3600 * second);
	CHECK_NUMBER(start, host - 10 * second); /* right at once, and a gap */
	CHECK_NUMBER(length, 10 * second);
	CHECK_NUMBER(start - last_end, 3600 * second);
	CHECK_NUMBER(pass(0), 0);
	CHECK_NUMBER(start, last_end);
	CHECK_NUMBER(wall.jumps, 1);
}

static void check_back(void)
{
	int intervals = 0;

	begin();
	pass(0);
	CHECK_NUMBER(pass(-3600 * second), -3600 * second);
	CHECK_NUMBER(start, last_end);
	CHECK_NUMBER(length, 10 * second / 8);
	while ((int64_t)(start + length) != host && intervals++ < 1000) {
		pass(0);
		if (start != last_end || length < 1250000000)
			CHECK_NUMBER(start, last_end);
	}
	CHECK_NUMBER(intervals, 411); /* 8.75 s of 3600 each time */
	pass(0);
	CHECK_NUMBER(start, last_end);
	CHECK_NUMBER(length, 10 * second);
	CHECK_NUMBER(wall.jumps, 1);
	/* And there and back again. */
	pass(-100 * second);
	CHECK_NUMBER(start, last_end);
	CHECK_NUMBER(pass(100 * second), 100 * second);
	CHECK(start >= last_end);
	CHECK_NUMBER(start + length, host);
	CHECK_NUMBER(wall.jumps, 3);
}

static void check_nonsense(void)
{
	begin();
	pass(20 * 365 * day);
	CHECK_NUMBER(pass(-20 * 365 * day), -20 * 365 * day);
	CHECK_NUMBER(start + length, host);
	CHECK_NUMBER(length, 10 * second);
	CHECK_NUMBER(wall.jumps, 2);
}

static void check_real(void)
{
	struct wall_clock now;
	uint64_t from, took;

	wall_clock_start(&now);
	CHECK_NUMBER(wall_clock_close(&now, 0, &from, &took), 0);
	CHECK(from > (uint64_t)epoch && took < (uint64_t)second);
	CHECK(wall_clock_now_ns(&now) >= from + took);
}

/* What ends earlier leaves the rest to the next, and nothing lies between them. */
static void check_ago(void)
{
	const struct timespec pause = {.tv_nsec = 30000000};
	const uint64_t ago = 20000000;
	struct wall_clock now;
	uint64_t from, took, then, rest;

	wall_clock_start(&now);
	nanosleep(&pause, NULL);
	CHECK_NUMBER(wall_clock_close(&now, ago, &from, &took), 0);
	CHECK(took >= 10000000);
	CHECK_NUMBER(wall_clock_close(&now, 0, &then, &rest), 0);
	CHECK_NUMBER(then, from + took);
	CHECK(rest >= ago);
	CHECK(wall_clock_now_ns(&now) >= then + rest);
}

int main(void)
{
	check_even();
	check_ahead();
	check_back();
	check_nonsense();
	check_ago();
	check_real();
	return checks_done();
}
