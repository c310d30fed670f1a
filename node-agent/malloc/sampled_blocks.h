/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of this process' sampled blocks that are in use. Of every block that is given back
 * it must be known at once whether it is one of them: sampled_blocks_may_have() is a byte's look.
 * No locks, nothing allocated: for any thread, signal handler and child of fork() at any time.
 * Bounded; what there is no room for is refused. */
#ifndef NODE_AGENT_MALLOC_SAMPLED_BLOCKS_H
#define NODE_AGENT_MALLOC_SAMPLED_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

enum {
	SAMPLED_FILTER_SIZE = 1 << 16,
	SAMPLED_BLOCKS_LEAST = 1 << 14, /* that there is always room for, nearly */
	SAMPLED_TAG_BITS = 16,
};

/* How many blocks fall on it; from 255 on it stays. */
extern uint8_t sampled_filter[SAMPLED_FILTER_SIZE];

static inline unsigned sampled_filter_place(uintptr_t address)
{
	return (uint16_t)(address >> 4);
}

/* False: it is none of them. */
static inline bool sampled_blocks_may_have(uintptr_t address)
{
	return __atomic_load_n(&sampled_filter[sampled_filter_place(address)], __ATOMIC_RELAXED);
}

/* Lets sampled_blocks_may_have() say yes for good. */
void sampled_blocks_mark(uintptr_t address);

/* A block that is not told yet has the tag of what waits to be told, of SAMPLED_TAG_BITS; 0: it is.
 *
 * Before anybody else gets to know the address, which is not 0. False: no room, or the end of the
 * one that was there before is still to be told. */
bool sampled_blocks_add(uintptr_t address, unsigned tag);

/* Before the address can be anybody's again. False: it was not there. */
bool sampled_blocks_remove(uintptr_t address, unsigned *tag);

/* Before what may give it back, or may not: until it is settled nobody adds or removes the address.
 * False: it was not there. */
bool sampled_blocks_hold(uintptr_t address, unsigned *tag);
void sampled_blocks_settle(uintptr_t address, bool has_ended);

/* Whether the block still waits to be told with that tag, and is held by nobody. */
bool sampled_blocks_waits(uintptr_t address, unsigned tag);
/* It is told. False: it did not wait any more. */
bool sampled_blocks_told(uintptr_t address, unsigned tag);

#endif
