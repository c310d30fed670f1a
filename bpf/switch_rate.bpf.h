/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Which threads that leave their CPU are worth a stack: within a budget of time, those that usually
 * wait for long rather than the others. As bpf/stack_rate.bpf.h, but each CPU has its own. */
#ifndef BPF_SWITCH_RATE_BPF_H
#define BPF_SWITCH_RATE_BPF_H

#include "bpf/kernel_types.h"
#include "bpf/off_cpu.h"

const volatile __u64 budget_ns = 100000; /* for stacks, in SWITCH_WINDOW_MS of each CPU */

struct switch_rate {
	__u64 window_ns; /* began then */
	__u64 spent_ns;
	__u32 level;  /* a stack stands for 2^level × 1024 ns: the longer a thread's blocks usually
			 are, the likelier each is taken */
	__u32 chance; /* xorshift's state: a call at each switch costs more */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct switch_rate);
} switch_rates SEC(".maps");

enum {
	USUAL_FIRST = 1 << 28, /* of a thread that nothing is known of: 16 ms */
	USUAL_MAX = 1 << 18,   /* longer ones are swept in any case */
	LEVEL_FIRST = 14,      /* until it is known what a stack costs */
	LEVEL_BACK_OFF = 18,
	LEVEL_MAX = 44,
	BACK_OFF_NS = 10000000,
	/* of half a CPU and more: no careful start */
	BUDGET_AMPLE_NS = SWITCH_WINDOW_MS * 1000000 / 4,
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

/* Xorshift with 32 bits (Marsaglia, Journal of Statistical Software 8, 2003, 14). */
static __always_inline __u32 rate_chance(struct switch_rate *rate)
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
static __always_inline int rate_allows(struct switch_rate *rate, __u64 usual, __u64 now,
				       __u8 *weight_log2)
{
	__u32 length = log2_of(usual) / 2, log2 = 0;
	__u64 windows;

	if (now - rate->window_ns > SWITCH_WINDOW_MS * 1000000ULL) {
		windows = (now - rate->window_ns) / (SWITCH_WINDOW_MS * 1000000ULL);
		if (!rate->window_ns)
			rate->level = budget_ns < BUDGET_AMPLE_NS ? LEVEL_FIRST : 0;
		else if (rate->spent_ns < budget_ns / 2)
			/* more than one: nobody switched meanwhile */
			rate->level -= windows < rate->level ? windows : rate->level;
		rate->window_ns = now;
		rate->spent_ns = 0;
	}
	if (rate->level > length)
		log2 = rate->level - length;
	if (log2 > SWITCH_WEIGHT_LOG2_MAX)
		log2 = SWITCH_WEIGHT_LOG2_MAX;
	*weight_log2 = log2;
	return !(rate_chance(rate) >> 7 & ((1U << log2) - 1));
}

/* Nobody has time for those that there are: half as many, and after BACK_OFF_NS again. It ends at a
 * level from which the way down, one step in a window, is short. */
static __always_inline void rate_back_off(struct switch_rate *rate, __u64 now)
{
	if (now - rate->window_ns < BACK_OFF_NS || rate->level >= LEVEL_BACK_OFF)
		return;
	rate->level++;
	rate->window_ns = now;
	rate->spent_ns = 0;
}

/* What follows a stack in user space costs about as much again. */
static __always_inline void rate_spend(struct switch_rate *rate, __u64 began)
{
	__u64 now = bpf_ktime_get_ns();

	rate->spent_ns += 2 * (now - began);
	if (rate->spent_ns <= budget_ns)
		return;
	if (rate->level < LEVEL_MAX)
		rate->level++;
	rate->window_ns = now;
	rate->spent_ns = 0;
}

#endif
