/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/malloc/sampled_blocks.h"

#include <stddef.h>

enum {
	BUCKET_SLOTS = 8, /* a cache line */
	LEVELS = 3,
	BUCKETS_FIRST = 256, /* 16 KiB: most programs touch no more */
	BUCKETS_SECOND = 2048,
	BUCKETS_THIRD = 4096,
	FILTER_STAYS = UINT8_MAX,
	HELD = 1, /* in a slot, beside its address: those of blocks are even */
};

/* A bucket that was full once sends to the next level, for good. */
struct bucket {
	uintptr_t slots[BUCKET_SLOTS]; /* 0: free */
};

struct level {
	struct bucket *buckets;
	uint8_t *overflowed;
	uint32_t count; /* a power of two */
};

static struct bucket first[BUCKETS_FIRST] __attribute__((aligned(64)));
static struct bucket second[BUCKETS_SECOND] __attribute__((aligned(64)));
static struct bucket third[BUCKETS_THIRD] __attribute__((aligned(64)));
static uint8_t first_overflowed[BUCKETS_FIRST], second_overflowed[BUCKETS_SECOND],
	third_overflowed[BUCKETS_THIRD];
static const struct level levels[LEVELS] = {
	{first, first_overflowed, BUCKETS_FIRST},
	{second, second_overflowed, BUCKETS_SECOND},
	{third, third_overflowed, BUCKETS_THIRD},
};

uint8_t sampled_filter[SAMPLED_FILTER_SIZE];

static void filter_add(uintptr_t address, int more)
{
	uint8_t *count = &sampled_filter[sampled_filter_place(address)];
	uint8_t now = __atomic_load_n(count, __ATOMIC_RELAXED);

	while (now != FILTER_STAYS &&
	       !__atomic_compare_exchange_n(count, &now, (uint8_t)(now + more), true,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
}

void sampled_blocks_mark(uintptr_t address)
{
	__atomic_store_n(&sampled_filter[sampled_filter_place(address)], FILTER_STAYS,
			 __ATOMIC_SEQ_CST);
}

/* Fibonacci hashing; each level takes other bits. */
static uint32_t bucket_of(const struct level *level, uintptr_t address)
{
	const uint64_t hash = (uint64_t)address * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(hash >> 40) & (level->count - 1);
}

/* From what to what, in the first slot that has it. */
static bool bucket_exchange(struct bucket *bucket, uintptr_t from, uintptr_t to)
{
	for (size_t i = 0; i < BUCKET_SLOTS; i++) {
		uintptr_t expected = from;

		if (__atomic_load_n(&bucket->slots[i], __ATOMIC_RELAXED) == from &&
		    __atomic_compare_exchange_n(&bucket->slots[i], &expected, to, false,
						__ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

/* What is there of an address. False: it is not. */
static bool exchange(uintptr_t address, uintptr_t from, uintptr_t to)
{
	for (size_t i = 0; i < LEVELS; i++) {
		const uint32_t at = bucket_of(&levels[i], address);

		if (bucket_exchange(&levels[i].buckets[at], from, to))
			return true;
		if (!__atomic_load_n(&levels[i].overflowed[at], __ATOMIC_SEQ_CST))
			return false;
	}
	return false;
}

static bool remove_as(uintptr_t address, uintptr_t from)
{
	if (!address || !sampled_blocks_may_have(address) || !exchange(address, from, 0))
		return false;
	filter_add(address, -1);
	return true;
}

bool sampled_blocks_add(uintptr_t address)
{
	/* One that somebody gave back behind our back may be there still. */
	sampled_blocks_remove(address);
	if (sampled_blocks_may_have(address) && exchange(address, address | HELD, address | HELD))
		return false;
	filter_add(address, 1);
	for (size_t i = 0; i < LEVELS; i++) {
		const uint32_t at = bucket_of(&levels[i], address);

		if (bucket_exchange(&levels[i].buckets[at], 0, address))
			return true;
		__atomic_store_n(&levels[i].overflowed[at], 1, __ATOMIC_SEQ_CST);
	}
	filter_add(address, -1);
	return false;
}

bool sampled_blocks_remove(uintptr_t address)
{
	return remove_as(address, address);
}

bool sampled_blocks_hold(uintptr_t address)
{
	return address && sampled_blocks_may_have(address) &&
	       exchange(address, address, address | HELD);
}

void sampled_blocks_settle(uintptr_t address, bool has_ended)
{
	if (has_ended)
		remove_as(address, address | HELD);
	else
		exchange(address, address | HELD, address);
}
