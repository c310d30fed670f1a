/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Stacks within a budget of time: events are chosen by chance, and how seldom follows what the last
 * stacks have cost. What is chosen stands for 2^weight_log2 events, so that sums stay true whatever
 * the rate was. */
#ifndef BPF_STACK_RATE_BPF_H
#define BPF_STACK_RATE_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "bpf/events.h"

enum { STACK_RATE_LOG2_MAX = 15 }; /* a mask too */

/* Chance decides, with what was before; never what this event is like. *weight_log2: what it then
 * stands for. Where other CPUs use the same rate they may have changed it in between. */
static __always_inline int stack_rate_allows(struct stack_rate *rate, __u64 now, __u64 budget_ns,
					     __u32 *weight_log2)
{
	__u32 log2 = *(volatile __u32 *)&rate->weight_log2 & STACK_RATE_LOG2_MAX;

	if (now - rate->window_ns > STACK_RATE_WINDOW_MS * 1000000ULL) {
		if (rate->spent_ns < budget_ns / 2 && log2)
			rate->weight_log2 = --log2;
		rate->window_ns = now;
		rate->spent_ns = 0;
	}
	*weight_log2 = log2;
	return !(bpf_get_prandom_u32() & ((1U << log2) - 1));
}

/* What follows a stack in user space costs about as much again. */
static __always_inline void stack_rate_spend(struct stack_rate *rate, __u64 began, __u64 budget_ns)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 log2;

	rate->spent_ns += 2 * (now - began);
	if (rate->spent_ns <= budget_ns)
		return;
	log2 = *(volatile __u32 *)&rate->weight_log2;
	if (log2 < STACK_RATE_LOG2_MAX)
		rate->weight_log2 = log2 + 1;
	rate->window_ns = now;
	rate->spent_ns = 0;
}

#endif
