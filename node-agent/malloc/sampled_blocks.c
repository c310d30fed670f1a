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
	HELD = 1, /* in a slot, beside its address: those of blocks are even, */
	ADDRESS_BITS = 48, /* and those of programs no higher; above is the tag */
};

#define ADDRESS_MASK (((UINT64_C(1) << ADDRESS_BITS) - 1) & ~(uint64_t)HELD)

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

static bool is_of(uintptr_t slot, uintptr_t address)
{
	return (slot & ADDRESS_MASK) == address;
}

/* The slot of an address, of which there is one at most. NULL: it is not there. */
static uintptr_t *slot_find(uintptr_t address)
{
	for (size_t i = 0; i < LEVELS; i++) {
		const uint32_t at = bucket_of(&levels[i], address);
		struct bucket *bucket = &levels[i].buckets[at];

		for (size_t n = 0; n < BUCKET_SLOTS; n++)
			if (is_of(__atomic_load_n(&bucket->slots[n], __ATOMIC_RELAXED), address))
				return &bucket->slots[n];
		if (!__atomic_load_n(&levels[i].overflowed[at], __ATOMIC_SEQ_CST))
			break;
	}
	return NULL;
}

/* What is in the slot, while that is of the address; whoever waits to tell it may do so meanwhile.
 * Becomes empty, or held, or not held any more. False: it is not as is_held says. */
enum change { REMOVE, HOLD, LET_GO };

static bool slot_change(uintptr_t address, bool is_held, enum change change, unsigned *tag)
{
	uintptr_t *slot = address && sampled_blocks_may_have(address) ? slot_find(address) : NULL;
	uintptr_t now, next;

	if (!slot)
		return false;
	now = __atomic_load_n(slot, __ATOMIC_RELAXED);
	do {
		if (!is_of(now, address) || (now & HELD) != (is_held ? HELD : 0))
			return false;
		next = change == REMOVE ? 0 : change == HOLD ? now | HELD : now & ~(uintptr_t)HELD;
	} while (!__atomic_compare_exchange_n(slot, &now, next, false, __ATOMIC_SEQ_CST,
					      __ATOMIC_RELAXED));
	*tag = (unsigned)(now >> ADDRESS_BITS);
	if (change == REMOVE)
		filter_add(address, -1);
	return true;
}

bool sampled_blocks_add(uintptr_t address, unsigned tag)
{
	const uintptr_t slot = address | (uintptr_t)tag << ADDRESS_BITS;
	unsigned before;

	if (!is_of(address, address))
		return false;
	/* One that somebody gave back behind our back may be there still. */
	if (sampled_blocks_may_have(address) && !sampled_blocks_remove(address, &before) &&
	    slot_find(address))
		return false;
	filter_add(address, 1);
	for (size_t i = 0; i < LEVELS; i++) {
		const uint32_t at = bucket_of(&levels[i], address);

		if (bucket_exchange(&levels[i].buckets[at], 0, slot))
			return true;
		__atomic_store_n(&levels[i].overflowed[at], 1, __ATOMIC_SEQ_CST);
	}
	filter_add(address, -1);
	return false;
}

bool sampled_blocks_remove(uintptr_t address, unsigned *tag)
{
	return slot_change(address, false, REMOVE, tag);
}

bool sampled_blocks_hold(uintptr_t address, unsigned *tag)
{
	return slot_change(address, false, HOLD, tag);
}

void sampled_blocks_settle(uintptr_t address, bool has_ended)
{
	unsigned tag;

	slot_change(address, true, has_ended ? REMOVE : LET_GO, &tag);
}

bool sampled_blocks_waits(uintptr_t address, unsigned tag)
{
	const uintptr_t *slot = address ? slot_find(address) : NULL;

	return slot && __atomic_load_n(slot, __ATOMIC_RELAXED) ==
			       (address | (uintptr_t)tag << ADDRESS_BITS);
}

bool sampled_blocks_told(uintptr_t address, unsigned tag)
{
	uintptr_t *slot = address ? slot_find(address) : NULL;
	uintptr_t expected = address | (uintptr_t)tag << ADDRESS_BITS;

	return slot && __atomic_compare_exchange_n(slot, &expected, address, false,
						   __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}
