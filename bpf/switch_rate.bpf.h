/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Which threads that leave their CPU are worth a stack: within a budget of time, those that usually
 * wait for long rather than the others. A stack stands for 2^level × 1024 ns: the longer a thread's
 * blocks usually are, the likelier each is taken. */
#ifndef BPF_SWITCH_RATE_BPF_H
#define BPF_SWITCH_RATE_BPF_H

#include "bpf/kernel_types.h"
#include "bpf/off_cpu.h"
#include "bpf/stack_rate.bpf.h"

const volatile __u64 budget_ns = 100000; /* for stacks, in STACK_RATE_WINDOW_MS of each CPU */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stack_rate);
} switch_rates SEC(".maps");

enum {
	USUAL_FIRST = 1 << 28, /* of a thread that nothing is known of: 16 ms */
	USUAL_MAX = 1 << 18,   /* longer ones are swept in any case */
	LEVEL_FIRST = 14,      /* until it is known what a stack costs */
	LEVEL_BACK_OFF = 18,
	LEVEL_MAX = 44,
	BACK_OFF_NS = 10000000,
	/* of half a CPU and more: no careful start */
	BUDGET_AMPLE_NS = STACK_RATE_WINDOW_MS * 1000000 / 4,
};

static __always_inline __u32 log2_of(__u64 value)
{
	__u32 log2 = 0;

	if (value >> 32)
		value >>= 32, log2 += 32;
	if (value >> 16)
		value >>= 16, log2 += 16;
	if (value >> 8)
		value >>= 8, log2 += 8;
	if (value >> 4)
		value >>= 4, log2 += 4;
	if (value >> 2)
		value >>= 2, log2 += 2;
	return log2 + (value >> 1 & 1);
}

/* block: the first ones count for more. */
static __always_inline void usual_add(__u64 *usual, __u32 block, __u64 ns)
{
	__u32 part = block < 4 ? 1 : block < 16 ? 2 : block < 64 ? 4 : 6;
	__u64 length = ns >> 10;

	if (length > USUAL_MAX)
		length = USUAL_MAX;
	*usual += (length * length >> part) - (*usual >> part);
}

/* Xorshift with 32 bits (Marsaglia, Journal of Statistical Software 8, 2003, 14): a call at each
 * switch costs more. */
static __always_inline __u32 rate_chance(struct stack_rate *rate)
{
	__u32 x = rate->chance;

	if (!x)
		x = bpf_get_prandom_u32() | 1;
	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	rate->chance = x;
	return x;
}

/* Chance decides, with what the last stacks have cost and how long this thread's last blocks were;
 * never what this block is like. Weights are whole powers of two. */
static __always_inline int rate_allows(struct stack_rate *rate, __u64 usual, __u64 now,
				       __u8 *weight_log2)
{
	__u32 length = log2_of(usual) / 2, level, log2 = 0;

	if (!rate->window_ns) {
		rate->level = budget_ns < BUDGET_AMPLE_NS ? LEVEL_FIRST : 0;
		rate->window_ns = now;
	}
	level = stack_rate_level(rate, now, budget_ns, LEVEL_MAX);
	if (level > length)
		log2 = level - length;
	if (log2 > SWITCH_WEIGHT_LOG2_MAX)
		log2 = SWITCH_WEIGHT_LOG2_MAX;
	*weight_log2 = log2;
	return stack_rate_hits(rate_chance(rate) >> 7, log2);
}

/* Nobody has time for those that there are: half as many, and after BACK_OFF_NS again. It ends at a
 * level from which the way down, one step in a window, is short. */
static __always_inline void rate_back_off(struct stack_rate *rate, __u64 now)
{
	if (now - rate->window_ns < BACK_OFF_NS || rate->level >= LEVEL_BACK_OFF)
		return;
	rate->level++;
	rate->window_ns = now;
	rate->spent_ns = 0;
}

#endif
