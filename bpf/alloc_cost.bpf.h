/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What probes in allocators cost each process, and what keeps them from taking what is others'. */
#ifndef BPF_ALLOC_COST_BPF_H
#define BPF_ALLOC_COST_BPF_H

#include "bpf/alloc.h"
#include "bpf/sample_stack.bpf.h"
#include "bpf/stack_rate.bpf.h"

const volatile __u32 alloc_budget_ns = 1000000; /* of a process, for samples of a library */

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, ALLOC_COSTS);
	__type(key, __u32); /* tgid */
	__type(value, struct alloc_cost);
} alloc_costs SEC(".maps");

static const struct alloc_cost no_cost; /* not on the stack, of which the walk needs all */

static __always_inline struct alloc_cost *cost_of(__u32 tgid)
{
	struct alloc_cost *cost = bpf_map_lookup_elem(&alloc_costs, &tgid);

	if (cost)
		return cost;
	bpf_map_update_elem(&alloc_costs, &tgid, &no_cost, BPF_NOEXIST);
	return bpf_map_lookup_elem(&alloc_costs, &tgid);
}

static __always_inline void cost_add(struct alloc_cost *cost, __u64 began)
{
	__sync_fetch_and_add(&cost->hits, 1);
	__sync_fetch_and_add(&cost->ns, bpf_ktime_get_ns() - began);
}

/* The ring is everybody's: who allocates fast leaves room for the others' samples, and more for
 * what is given back, without which much would be wrong for long. */
static __always_inline int ring_is_beyond(__u64 eighths)
{
	return bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA) >
	       bpf_ringbuf_query(&samples, BPF_RB_RING_SIZE) / 8 * eighths;
}

static __always_inline int is_filtered(__u32 tgid)
{
	return only_filtered_pids && !bpf_map_lookup_elem(&filter_pids, &tgid);
}

#endif
