/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Many samples of a library in one trap: the bytes go up as they are. */
#ifndef BPF_ALLOC_BATCH_BPF_H
#define BPF_ALLOC_BATCH_BPF_H

#include "bpf/alloc_batch.h"
#include "bpf/alloc_cost.bpf.h"

enum { FINISH_NS = 1000 }; /* what the agent does for each: it walks the copied stacks itself */

/* 0: they are there. Always inlined: bytes is a constant, a multiple of the chunk. */
static __always_inline int records_read(__u8 *to, __u64 from, __u64 used, __u32 bytes)
{
	for (__u32 at = 0; at < bytes; at += ALLOC_BATCH_CHUNK)
		if (at < used &&
		    bpf_probe_read_user(to + at, ALLOC_BATCH_CHUNK, (const void *)(from + at)))
			return 1;
	return 0;
}

/* 0, or enum kernel_counter: why not. */
static __always_inline __u32 batch_send(__u64 from, __u64 used, __u32 number, __u32 weight_log2)
{
	struct sample_event *event;
	__u64 flags = BPF_RB_NO_WAKEUP;

	if (ring_is_beyond(5))
		return COUNT_alloc_ring_full;
		/* Unrolled: the sizes are constants then. */
#pragma unroll
	for (__u32 bytes = ALLOC_BATCH_CHUNK; bytes <= ALLOC_BATCH_BYTES; bytes *= 2) {
		if (bytes < used)
			continue;
		event = bpf_ringbuf_reserve(&samples, sizeof(*event) + bytes, 0);
		if (!event)
			return COUNT_alloc_ring_full;
		sample_describe(event, EVENT_ALLOC_BATCH, 0, bpf_ktime_get_ns(), 0);
		event->batch.bytes = used;
		event->result = WALK_not_loaded;
		event->weight_log2 = weight_log2;
		event->batch.number = number;
		event->size = sizeof(*event) + bytes;
		if (records_read((__u8 *)event->frames, from, used, bytes)) {
			bpf_ringbuf_discard(event, BPF_RB_NO_WAKEUP);
			return COUNT_alloc_unreadable;
		}
		if (bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA) >= wakeup_bytes)
			flags = BPF_RB_FORCE_WAKEUP;
		bpf_ringbuf_submit(event, flags);
		return 0;
	}
	return COUNT_alloc_unreadable;
}

static __always_inline void records_take(struct alloc_cost *cost, __u64 from, __u64 used,
					 __u32 number)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 samples_of = number & ALLOC_BATCH_COUNT, weight_log2, lost;

	if (!stack_rate_allows(&cost->rate, now, alloc_budget_ns, &weight_log2)) {
		count_more(COUNT_allocs_thinned, samples_of);
		return;
	}
	count_more(COUNT_allocs, samples_of);
	lost = batch_send(from, used, number, weight_log2);
	if (lost)
		count_more(lost, samples_of);
	stack_rate_spend(&cost->rate, now - (__u64)samples_of * FINISH_NS, alloc_budget_ns,
			 STACK_RATE_LOG2_MAX);
}

SEC("uprobe")
int library_batch(user_registers *registers)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	__u64 began = bpf_ktime_get_ns(), used = PT_REGS_PARM2(registers);
	struct alloc_cost *cost;

	if (is_filtered(tgid))
		return 0;
	cost = cost_of(tgid);
	if (!cost)
		return 0;
	count(COUNT_alloc_batches);
	if (used && used <= ALLOC_BATCH_BYTES)
		records_take(cost, PT_REGS_PARM1(registers), used, (__u32)PT_REGS_PARM3(registers));
	cost_add(cost, began);
	return 0;
}

#endif
