/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Stacks within a budget of time: events are chosen by chance, and how seldom, the level, follows
 * what the last stacks have cost. What is chosen stands for 2^weight_log2 events, so that sums stay
 * true whatever the rate was. Where several CPUs use one rate they may change it in between. */
#ifndef BPF_STACK_RATE_BPF_H
#define BPF_STACK_RATE_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "bpf/events.h"

enum { STACK_RATE_LOG2_MAX = 15 }; /* a mask too */

#define STACK_RATE_WINDOW_NS (STACK_RATE_WINDOW_MS * 1000000ULL)

/* After a window in which little was spent it is lower: by one, or by as many as windows have gone
 * by, but steps at most. */
static __always_inline __u32 stack_rate_level(struct stack_rate *rate, __u64 now, __u64 budget_ns,
					      __u64 steps)
{
	__u32 level = *(volatile __u32 *)&rate->level;
	__u64 windows;

	if (now - rate->window_ns <= STACK_RATE_WINDOW_NS)
		return level;
	if (rate->spent_ns < budget_ns / 2) {
		windows = (now - rate->window_ns) / STACK_RATE_WINDOW_NS;
		if (windows > steps)
			windows = steps;
		level -= windows < level ? windows : level;
		rate->level = level;
	}
	rate->window_ns = now;
	rate->spent_ns = 0;
	return level;
}

/* The dice, of chance: so many bits and more. */
static __always_inline int stack_rate_hits(__u32 chance, __u32 weight_log2)
{
	return !(chance & ((1U << weight_log2) - 1));
}

/* Chance decides, with what was before; never what this event is like. *weight_log2: what it then
 * stands for. */
static __always_inline int stack_rate_allows(struct stack_rate *rate, __u64 now, __u64 budget_ns,
					     __u32 *weight_log2)
{
	*weight_log2 = stack_rate_level(rate, now, budget_ns, 1) & STACK_RATE_LOG2_MAX;
	return stack_rate_hits(bpf_get_prandom_u32(), *weight_log2);
}

/* What follows a stack in user space costs about as much again. */
static __always_inline void stack_rate_spend(struct stack_rate *rate, __u64 began, __u64 budget_ns,
					     __u32 level_max)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 level;

	rate->spent_ns += 2 * (now - began);
	if (rate->spent_ns <= budget_ns)
		return;
	level = *(volatile __u32 *)&rate->level;
	if (level < level_max)
		rate->level = level + 1;
	rate->window_ns = now;
	rate->spent_ns = 0;
}

#endif
