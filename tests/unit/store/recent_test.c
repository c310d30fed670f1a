/* SPDX-License-Identifier: Apache-2.0 */
/* The newest minutes by the second, beside a tally that the test keeps while it adds; whole minutes
 * are the same to the unit, however they are asked for. */
#include "tests/check.h"

#include <time.h>

#include "symbol-server/store/sqlite/samples_store.h"
#include "tests/unit/store/batches.h"

enum { HOSTS = 3, SECONDS = 12 * 60, AHEAD = 4 * 60 };

static const int64_t minute = 60000;
static int64_t start_ms; /* a whole minute, twelve before this one */
static uint64_t tally[HOSTS][SECONDS + AHEAD];
static uint32_t reports = 1;

static int64_t now_ms(void)
{
	return (int64_t)time(NULL) * 1000;
}

static void add(struct samples_store *store, int host, int second, uint32_t count)
{
	char name[8];

	snprintf(name, sizeof name, "h%d", host);
	tally[host][second] += count;
	CHECK(add_report(store, name, "p", start_ms + second * 1000 + (37 * second) % 1000,
			 reports++, (uint32_t)second % 7, count));
}

/* Reports each five seconds, hosts at different times; of one a burst of 20 s. */
static void add_some(struct samples_store *store)
{
	for (int second = 0; second < SECONDS; second += 5)
		for (int host = 0; host < HOSTS; host++) {
			bool is_burst = host == 1 && second >= 300 && second < 320;

			add(store, host, second + host, is_burst ? 40 : 1);
		}
}

static bool is_h1(void *context, const struct series_labels *labels)
{
	(void)context;
	for (uint32_t i = 0; i < labels->count; i++)
		if (!strcmp(labels->names[i], "host"))
			return !strcmp(labels->values[i], "h1");
	return false;
}

static uint64_t wanted(int host, int64_t from_ms, int64_t until_ms)
{
	uint64_t sum = 0;

	for (int h = 0; h < HOSTS; h++)
		for (int at = 0; at < SECONDS + AHEAD; at++)
			if ((host < 0 || h == host) && start_ms + at * 1000ll >= from_ms &&
			    start_ms + at * 1000ll < until_ms)
				sum += tally[h][at];
	return sum;
}

static struct samples_query query_of(int host, int64_t from_ms, int64_t until_ms, int64_t step_ms)
{
	return (struct samples_query){.tenant = 1,
				      .from_ms = from_ms,
				      .until_ms = until_ms,
				      .by_second = true,
				      .type = "on-cpu",
				      .series_wanted = host == 1 ? is_h1 : NULL,
				      .by_bucket = step_ms,
				      .step_ms = step_ms};
}

static void check_line(struct samples_store *store, int host, int64_t from_ms, int64_t until_ms,
		       int64_t step_ms, int64_t resolution_ms)
{
	struct samples_query query = query_of(host, from_ms, until_ms, step_ms);
	struct error err = {0};
	struct samples_timeline *line = samples_timeline(store, &query, &err);
	uint64_t samples = 0, of_hosts = 0;
	bool equal = true;

	if (!CHECK(line)) {
		printf("# %s\n", err.message);
		return;
	}
	CHECK_NUMBER(line->resolution_ms, resolution_ms);
	for (size_t i = 0; resolution_ms == 1000 && i < line->point_count; i++) {
		int64_t at = line->points[i].time_ms;
		int64_t first = at < line->from_ms ? line->from_ms : at;
		int64_t last = at + step_ms > line->until_ms ? line->until_ms : at + step_ms;
		int of = line->series[line->points[i].series].values[0][1] - '0';

		equal &= at % step_ms == 0 && line->points[i].samples == wanted(of, first, last) &&
			 line->points[i].value == line->points[i].samples * 10000000;
	}
	for (size_t i = 0; i < line->point_count; i++)
		samples += line->points[i].samples;
	CHECK(equal);
	CHECK_NUMBER(samples, wanted(host, line->from_ms, line->until_ms));
	for (uint32_t i = 0; i < line->host_count; i++)
		of_hosts += line->hosts[i].samples;
	CHECK_NUMBER(of_hosts, samples);
	samples_timeline_free(line);
}

/* resolution_ms 0: coarser than seconds, as long ago as it is. */
static void check_stacks(struct samples_store *store, int host, int64_t from_ms, int64_t until_ms,
			 int64_t resolution_ms)
{
	struct samples_query query = query_of(host, from_ms, until_ms, 0);
	struct error err = {0};
	struct samples_result *result = samples_query(store, &query, &err);
	uint64_t samples = 0;

	if (!CHECK(result)) {
		printf("# %s\n", err.message);
		return;
	}
	if (!resolution_ms) {
		CHECK(result->resolution_ms >= minute);
	} else {
		CHECK_NUMBER(result->resolution_ms, resolution_ms);
		CHECK_NUMBER(result->from_ms, from_ms / resolution_ms * resolution_ms);
	}
	for (size_t i = 0; i < result->stack_count; i++)
		samples += result->stacks[i].samples;
	CHECK_NUMBER(samples, wanted(host, result->from_ms, result->until_ms));
	samples_result_free(result);
}

static void check_all(struct samples_store *store)
{
	const int64_t burst_ms = start_ms + 301000;

	check_line(store, -1, start_ms, start_ms + 12 * minute, 1000, 1000);
	check_line(store, -1, start_ms, start_ms + 12 * minute, 10000, 1000);
	check_line(store, -1, start_ms + 7000, start_ms + 133000, 10000, 1000);
	check_line(store, -1, start_ms + 7000, start_ms + 133000, minute, 1000);
	check_line(store, 1, burst_ms - 3000, burst_ms + 23000, 1000, 1000);
	for (int at = 0; at < 12; at++) { /* the minutes' own sums, and by the second */
		check_line(store, -1, start_ms + at * minute, start_ms + (at + 1) * minute, minute,
			   minute);
		check_line(store, -1, start_ms + at * minute, start_ms + (at + 1) * minute, 1000,
			   1000);
	}
	check_stacks(store, 1, burst_ms, burst_ms + 20000, 1000);
	check_stacks(store, -1, burst_ms, burst_ms + 20000, 1000);
	check_stacks(store, -1, burst_ms + 499, burst_ms + 19999, 1000);
	check_stacks(store, -1, start_ms, start_ms + 12 * minute, 0);
	check_stacks(store, -1, start_ms - 30 * minute + 1, start_ms + 12 * minute, 0);
	CHECK_NUMBER(wanted(1, burst_ms, burst_ms + 20000), 160);
}

/* Nothing of before is known by the second any more; what comes later is. */
static void check_anew(struct samples_store *store, int second)
{
	int64_t at_ms = start_ms + second * 1000ll;

	check_line(store, -1, start_ms + 1000, start_ms + 3 * minute, minute, minute);
	check_line(store, -1, start_ms, start_ms + 3 * minute, 1000, minute);
	add(store, 1, second, 3);
	check_line(store, -1, at_ms - 1000, at_ms + 1000, 1000, 1000);
	check_stacks(store, -1, at_ms, at_ms + 1000, 1000);
}

static void delete_minute(struct samples_store *store)
{
	struct samples_query query = query_of(-1, start_ms, start_ms + minute, 0);
	struct samples_deleted deleted;

	query.by_second = false;
	CHECK(samples_delete(store, &query, &deleted, NULL));
	CHECK_NUMBER(deleted.samples, wanted(-1, start_ms, start_ms + minute));
	for (int host = 0; host < HOSTS; host++)
		memset(tally[host], 0, 60 * sizeof tally[host][0]);
}

/* A host with more than its share is seen by the minute, and the others by the second. */
static void check_share(struct samples_store *store, int second)
{
	int64_t at_ms = start_ms + second * 1000ll;
	struct batch_maker maker;

	add(store, 0, second, 3);
	for (int report = 0; report < 110; report++) {
		batch_start(&maker);
		batch_profile(&maker, batch_series(&maker, "h1", "p"), at_ms, reports++, 0);
		for (uint32_t i = 0; i < 4000; i++)
			batch_sample(&maker, batch_stack(&maker, i, 1), "worker", 1,
				     hash_word(i, (uint64_t)report) >> 14);
		CHECK(add_and_wait(store, &maker, NULL, NULL));
		arena_release(&maker.arena);
	}
	tally[1][second] += 110 * 4000;
	check_stacks(store, 1, at_ms, at_ms + 1000, minute);
	check_stacks(store, -1, at_ms, at_ms + 1000, minute);
	tally[1][second] -= 110 * 4000;
}

/* --- the room of all --- */

static void put(struct recent *recent, int64_t now, int64_t at, uint32_t host, size_t length)
{
	static uint8_t bytes[1 << 20];
	struct cell_key key = {(uint32_t)(at / 1440), (uint32_t)(at % 1440), 1, 0, .second = 7};
	struct recent_row row = {1, 1, 1, {bytes, length}};

	recent_add(recent, now * minute, &key, host, &row);
}

static void check_room(void)
{
	const int64_t now = noon / minute;
	struct recent recent;
	bool fits = true;

	recent_init(&recent);
	for (int64_t at = now - RECENT_MINUTES - 1; at <= now + 10; at++)
		put(&recent, now, at, 1, 100);
	CHECK(recent_has(&recent, now * minute, (now - RECENT_MINUTES) * minute, now * minute));
	CHECK(!recent_has(&recent, now * minute, (now - RECENT_MINUTES) * minute - 1,
			  now * minute));
	for (uint32_t host = 0; host < 360; host++) {
		put(&recent, now, now - 3 + host / 100, host, 1 << 20);
		fits &= recent.bytes <= RECENT_BYTES_MAX;
	}
	CHECK(fits);
	CHECK(!recent_has(&recent, now * minute, (now - 2) * minute, now * minute));
	CHECK(recent_has(&recent, now * minute, now * minute, (now + 1) * minute));
	recent_age(&recent, (now + 60) * minute);
	CHECK(!recent_has(&recent, (now + 60) * minute, now * minute, (now + 1) * minute));
	CHECK(recent_has(&recent, (now + 60) * minute, (now + 59) * minute, (now + 60) * minute));
	/* A clock that was set back an hour: what comes is by the minute, and the rest as it was.
	 */
	put(&recent, now + 60, now + 60, 1, 100);
	put(&recent, now, now, 1, 100);
	CHECK(!recent_has(&recent, now * minute, now * minute, (now + 1) * minute));
	CHECK(recent_has(&recent, (now + 60) * minute, (now + 60) * minute, (now + 61) * minute));
	recent_forget(&recent, now * minute);
	CHECK_NUMBER(recent.bytes, 0);
	recent_release(&recent);
}

int main(void)
{
	const char *directory = make_directory();
	struct samples_store_options options = {.directory = directory};
	struct samples_store *store = samples_open(&options, NULL);

	start_ms = now_ms() / minute * minute - 12 * minute;
	if (!CHECK(store))
		return checks_done();
	add_some(store);
	check_all(store);
	CHECK(samples_fold(store, NULL));
	check_all(store);
	delete_minute(store);
	check_anew(store, SECONDS + 61 + 60);
	check_share(store, SECONDS + 62 + 60);
	samples_close(store);
	store = samples_open(&options, NULL);
	if (CHECK(store))
		check_anew(store, SECONDS + 61 + 120);
	samples_close(store);
	remove_directory(directory);
	check_room();
	return checks_done();
}
