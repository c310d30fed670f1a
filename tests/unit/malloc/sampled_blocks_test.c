/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/malloc/sampled_blocks.h"

#include <pthread.h>
#include <stddef.h>

#include "tests/check.h"

enum { THREADS = 4, ROUNDS = 200000, BLOCKS = 64 };

static _Thread_local unsigned tag;

/* As a heap's addresses are. */
static uintptr_t address_of(size_t number)
{
	return 0x7f0000001010 + number * 208;
}

static void test_what_is_added_is_there_until_removed(void)
{
	size_t added = 0, removed = 0, again = 0, left = 0;

	for (size_t i = 0; i < SAMPLED_BLOCKS_LEAST; i++)
		added += sampled_blocks_add(address_of(i), 0);
	CHECK_NUMBER(added, SAMPLED_BLOCKS_LEAST);
	CHECK(!sampled_blocks_remove(0, &tag));
	CHECK(!sampled_blocks_remove(address_of(SAMPLED_BLOCKS_LEAST), &tag));
	for (size_t i = 0; i < SAMPLED_BLOCKS_LEAST; i++)
		removed += sampled_blocks_may_have(address_of(i)) &&
			   sampled_blocks_remove(address_of(i), &tag);
	CHECK_NUMBER(removed, SAMPLED_BLOCKS_LEAST);
	for (size_t i = 0; i < SAMPLED_BLOCKS_LEAST; i++)
		again += sampled_blocks_remove(address_of(i), &tag);
	CHECK_NUMBER(again, 0);
	for (size_t i = 0; i < SAMPLED_FILTER_SIZE; i++)
		left += sampled_filter[i] != 0;
	CHECK_NUMBER(left, 0);
}

static void test_one_that_is_added_twice_is_there_once(void)
{
	CHECK(sampled_blocks_add(address_of(7), 0));
	CHECK(sampled_blocks_add(address_of(7), 0));
	CHECK(sampled_blocks_remove(address_of(7), &tag));
	CHECK(!sampled_blocks_remove(address_of(7), &tag));
	CHECK(!sampled_blocks_may_have(address_of(7)));
}

static void test_one_that_is_held_is_nobody_elses(void)
{
	const uintptr_t address = address_of(9);

	CHECK(!sampled_blocks_hold(address, &tag));
	CHECK(sampled_blocks_add(address, 0) && sampled_blocks_hold(address, &tag));
	CHECK(sampled_blocks_may_have(address));
	CHECK(!sampled_blocks_remove(address, &tag) && !sampled_blocks_hold(address, &tag));
	CHECK(!sampled_blocks_add(address, 0));
	sampled_blocks_settle(address, false); /* it has not ended */
	CHECK(sampled_blocks_hold(address, &tag));
	sampled_blocks_settle(address, true);
	CHECK(!sampled_blocks_remove(address, &tag) && !sampled_blocks_may_have(address));
	CHECK(sampled_blocks_add(address, 0) && sampled_blocks_remove(address, &tag));
	CHECK(!sampled_blocks_hold(0, &tag));
}

/* Until it is told; who ends it meanwhile learns that nobody has heard of it. */
static void test_one_that_waits(void)
{
	const uintptr_t address = address_of(11);

	CHECK(sampled_blocks_add(address, 0x8003) && sampled_blocks_waits(address, 0x8003));
	CHECK(!sampled_blocks_waits(address, 0x8004) && !sampled_blocks_told(address, 0x8004));
	CHECK(sampled_blocks_hold(address, &tag) && tag == 0x8003);
	CHECK(!sampled_blocks_waits(address, 0x8003) && !sampled_blocks_told(address, 0x8003));
	sampled_blocks_settle(address, false);
	CHECK(sampled_blocks_remove(address, &tag) && tag == 0x8003);
	CHECK(!sampled_blocks_told(address, 0x8003));
	/* Of the next one of that address what waited for the first knows nothing. */
	CHECK(sampled_blocks_add(address, 0x8005) && !sampled_blocks_told(address, 0x8003));
	CHECK(sampled_blocks_told(address, 0x8005) && !sampled_blocks_told(address, 0x8005));
	CHECK(sampled_blocks_remove(address, &tag) && tag == 0);
	CHECK(!sampled_blocks_add(UINT64_C(1) << 48, 0));
}

static void test_there_is_an_end(void)
{
	enum { MORE = 1 << 17 };
	size_t added = 0, removed = 0;

	for (size_t i = 0; i < MORE; i++)
		added += sampled_blocks_add(address_of(i), 0);
	printf("# room for %zu of %d\n", added, (int)MORE);
	CHECK(added >= SAMPLED_BLOCKS_LEAST && added < MORE);
	for (size_t i = 0; i < MORE; i++)
		removed += sampled_blocks_remove(address_of(i), &tag);
	CHECK_NUMBER(removed, added);
}

/* Each its own addresses, which share places: none is lost, none is found twice. */
static void *add_and_remove(void *argument)
{
	const size_t first = (size_t)(uintptr_t)argument * BLOCKS;
	size_t bad = 0;

	for (size_t i = 0; i < ROUNDS; i++) {
		const uintptr_t address = address_of(first + i % BLOCKS);

		bad += !sampled_blocks_add(address, 0);
		bad += !sampled_blocks_may_have(address);
		bad += !sampled_blocks_remove(address, &tag);
		bad += sampled_blocks_remove(address, &tag);
	}
	return (void *)(uintptr_t)bad;
}

static void test_threads(void)
{
	pthread_t threads[THREADS];
	size_t bad = 0;

	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, add_and_remove, (void *)i);
	for (size_t i = 0; i < THREADS; i++) {
		void *result;

		pthread_join(threads[i], &result);
		bad += (size_t)(uintptr_t)result;
	}
	CHECK_NUMBER(bad, 0);
}

static void test_a_mark_stays(void)
{
	sampled_blocks_mark(address_of(1));
	CHECK(sampled_blocks_add(address_of(1), 0));
	CHECK(sampled_blocks_remove(address_of(1), &tag));
	CHECK(sampled_blocks_may_have(address_of(1)));
	CHECK(!sampled_blocks_remove(address_of(1), &tag));
}

int main(void)
{
	test_what_is_added_is_there_until_removed();
	test_one_that_is_added_twice_is_there_once();
	test_one_that_is_held_is_nobody_elses();
	test_one_that_waits();
	test_there_is_an_end();
	test_threads();
	test_a_mark_stays();
	return checks_done();
}
