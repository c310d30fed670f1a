/* SPDX-License-Identifier: Apache-2.0 */
/* --max-disk while today's samples alone reach it: the directory, as du counts it, stays within the
 * limit after each fold; reports are refused with a sentence; older days go before that; with a
 * larger limit all goes on, and every acknowledged sample is there. */
#define _XOPEN_SOURCE 700
#include "tests/check.h"

#include <ftw.h>
#include <sys/stat.h>

#include "symbol-server/store/sqlite/samples_store.h"
#include "tests/unit/store/batches.h"

enum { LIMIT = 32 << 20, STACKS = 120, DEPTH = 30, REPORTS_MAX = 20000 };

static uint64_t du_bytes;

static int add_blocks(const char *path, const struct stat *status, int type, struct FTW *at)
{
	(void)type;
	if (!strcmp(path + at->base, "reserve")) /* room, not samples */
		return 0;
	du_bytes += (uint64_t)status->st_blocks * 512;
	return 0;
}

static uint64_t du(const char *directory)
{
	du_bytes = 0;
	return nftw(directory, add_blocks, 8, FTW_PHYS) ? UINT64_MAX : du_bytes;
}

static struct samples_store *open_limited(const char *directory, uint64_t limit)
{
	struct samples_store_options options = {.directory = directory, .max_disk_bytes = limit};

	return samples_open(&options, NULL);
}

/* False: refused as long as it was tried; *why says so. */
static bool send(struct samples_store *store, uint32_t number, int64_t time_ms, struct error *why)
{
	struct waiter waiter = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, {0}};
	struct batch_maker maker;
	bool is_taken = false;

	batch_start(&maker);
	batch_profile(&maker, batch_series(&maker, "h1", "p1"), time_ms, number, 0);
	for (uint32_t i = 0; i < STACKS; i++)
		batch_sample(&maker, batch_stack(&maker, number * STACKS + i, DEPTH), "t", 1, 10);
	for (unsigned i = 0; !is_taken && i < 3; i++) {
		is_taken = samples_add(store, &maker.batch, waiter_done, &waiter, NULL, why);
		if (!is_taken && why->kind == ERROR_BUSY)
			samples_fold(store, NULL);
	}
	pthread_mutex_lock(&waiter.lock);
	while (is_taken && !waiter.done)
		pthread_cond_wait(&waiter.wake, &waiter.lock);
	pthread_mutex_unlock(&waiter.lock);
	arena_release(&maker.arena);
	return is_taken;
}

int main(void)
{
	const char *directory = make_directory();
	struct samples_store *store = open_limited(directory, LIMIT);
	int64_t now_ms = store_now_ms(), old_ms = now_ms - 3 * day_ms;
	uint64_t largest = 0, size;
	uint32_t number = 0, old = 0;
	struct samples_counters counters;
	struct totals totals;
	struct error why = {0};

	CHECK(store != NULL);
	while (old < 20 && send(store, ++number, old_ms, &why))
		old++;
	CHECK_NUMBER(old, 20);
	CHECK(samples_fold(store, NULL));
	samples_close(store); /* nobody writes to that day any more */
	store = open_limited(directory, LIMIT);
	now_ms = store_now_ms();
	while (number < REPORTS_MAX && send(store, number + 1, now_ms, &why)) {
		if (++number % 20)
			continue;
		CHECK(samples_fold(store, NULL));
		size = du(directory);
		largest = size > largest ? size : largest;
	}
	CHECK(samples_fold(store, NULL));
	size = du(directory);
	largest = size > largest ? size : largest;
	printf("# %u reports, at most %llu of %d bytes, then: %s\n", number,
	       (unsigned long long)largest, LIMIT, why.message);
	CHECK(number < REPORTS_MAX);
	CHECK_NUMBER(why.kind, ERROR_BUSY);
	CHECK(strstr(why.message, "--max-disk") != NULL);
	CHECK(largest <= LIMIT);
	CHECK(largest > LIMIT / 2); /* not refused for nothing */
	samples_counters(store, &counters);
	CHECK_NUMBER(counters.days, 1);
	CHECK_NUMBER(counters.days_deleted, 1);
	samples_close(store);

	store = open_limited(directory, 4 * LIMIT);
	CHECK(samples_fold(store, NULL));
	CHECK(send(store, number + 1, now_ms, &why));
	totals = query_totals(store, now_ms - 60000, now_ms + 60000);
	CHECK_NUMBER(totals.samples, (number + 1 - old) * (uint64_t)STACKS);
	samples_close(store);
	remove_directory(directory);
	return checks_done();
}
