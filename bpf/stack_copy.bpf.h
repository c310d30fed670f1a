/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What could not be walked goes up: registers and the stack from there on, into a ring of its own,
 * so that samples never wait for room behind them. */
#ifndef BPF_STACK_COPY_BPF_H
#define BPF_STACK_COPY_BPF_H

#include "bpf/counters.h"
#include "bpf/events.h"
#include "bpf/kernel_types.h"
#include "bpf/stack_registers.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 19);
} copies SEC(".maps");

/* Tokens of a bucket, as the time at which it would be full again. */
struct stack_copy_rate {
	__u64 full_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stack_copy_rate);
} copy_rate SEC(".maps");

enum {
	STACK_COPY_INTERVAL_NS = 1000000000 / 50, /* so many a second on each CPU, */
	STACK_COPY_BURST = 100,                   /* so many at once */
	STACK_COPY_CHUNK = 4096,
	STACK_RED_ZONE = 128, /* System V ABI for x86-64, 3.2.2 */
};

/* Takes a token. 0: there is none. */
static __always_inline int stack_copy_allowed(__u64 now_ns)
{
	__u32 key = 0;
	struct stack_copy_rate *rate = bpf_map_lookup_elem(&copy_rate, &key);

	if (!rate)
		return 0;
	if (rate->full_ns < now_ns)
		rate->full_ns = now_ns;
	if (rate->full_ns - now_ns > (__u64)STACK_COPY_INTERVAL_NS * (STACK_COPY_BURST - 1))
		return 0;
	rate->full_ns += STACK_COPY_INTERVAL_NS;
	return 1;
}

static __always_inline int stack_copy_is_there(__u64 address)
{
	__u8 byte;

	return !bpf_probe_read_user(&byte, sizeof(byte), (const void *)address);
}

/* From the stack pointer to the lowest byte that is wanted and there. Leaf functions use the red
 * zone below; one that needs much touches it, or calls, only after it has moved the stack pointer.
 */
static __always_inline __s32 stack_copy_gap(__u64 sp)
{
	const __u32 rest = -sp % STACK_COPY_CHUNK;

	if (stack_copy_is_there(sp - STACK_RED_ZONE))
		return -STACK_RED_ZONE;
	if (!stack_copy_is_there(sp))
		for (__u32 gap = 0; gap < STACK_COPY_BYTES_MAX; gap += STACK_COPY_CHUNK)
			if (stack_copy_is_there(sp + gap + rest))
				return (__s32)(gap + rest);
	return 0;
}

/* Chunk by chunk, since one read is all or nothing. The chunk that fails is good up to the next
 * boundary of a page, or not at all. Always inlined: bytes is a constant. */
static __always_inline void stack_copy_fill(struct stack_copy_event *copy, __u64 start, __u32 bytes)
{
	__u32 rest = -start % STACK_COPY_CHUNK, done = 0;

	for (__u32 at = 0; at < bytes; at += STACK_COPY_CHUNK) {
		const void *from = (const void *)(start + at);

		if (!bpf_probe_read_user(copy->stack + at, STACK_COPY_CHUNK, from)) {
			done = at + STACK_COPY_CHUNK;
			continue;
		}
		if (!bpf_probe_read_user(copy->stack + at, rest, from))
			done = at + rest;
		break;
	}
	copy->stack_bytes = done;
}

/* What the walk has only noted: the place may lie below the part that is copied. */
static __always_inline void stack_copy_registers(struct stack_copy_event *copy,
						 const struct stack_walk *walk)
{
	copy->known = walk->known;
	for (int i = 0; i < UNWIND_REGISTERS; i++)
		copy->registers[i] = walk->registers[i];
	if (!stack_walk_register(walk, UNWIND_REGISTER_KEPT,
				 &copy->registers[UNWIND_REGISTER_KEPT]))
		copy->known |= 1ULL << UNWIND_REGISTER_KEPT;
}

static __always_inline void stack_copy_describe(struct stack_copy_event *copy,
						const struct stack_walk *walk, __s32 gap,
						__u32 bytes)
{
	copy->type = EVENT_STACK_COPY;
	copy->is_interrupted = walk->is_interrupted;
	copy->is_guessed = walk->is_guessed;
	copy->size = sizeof(*copy) + bytes;
	copy->stack_gap = gap;
	copy->reserved = 0;
	copy->tls = walk->is_goroutine ? 0 : STACK_WALK_TLS(walk);
	copy->ip = walk->ip;
	copy->sp = walk->sp;
	copy->fp = walk->fp;
	stack_copy_registers(copy, walk);
	stack_copy_fill(copy, walk->sp + (__s64)gap, bytes);
}

/* The most bytes that may be taken now: where the reader does not come by, more of the short stacks
 * are worth more than a few of the long ones. */
static __always_inline __u32 stack_copy_most(void)
{
	__u64 held = bpf_ringbuf_query(&copies, BPF_RB_AVAIL_DATA);
	__u64 size = bpf_ringbuf_query(&copies, BPF_RB_RING_SIZE);

	if (held > size / 4 * 3)
		return STACK_COPY_BYTES_MIN;
	return held > size / 2 ? STACK_COPY_BYTES_MIN * 4 : STACK_COPY_BYTES_MAX;
}

/* limit: bytes, as above. 0, or enum kernel_counter: why not. The reader is woken by the sample
 * that follows. */
static __always_inline int stack_copy_send(const struct stack_walk *walk, __u32 cpu,
					   __u64 cpu_taken, __u64 now_ns, __u32 limit)
{
	struct stack_copy_event *copy;
	__u32 bytes, most;
	__s32 gap;

	if (!stack_copy_allowed(now_ns))
		return COUNT_copies_rate;
	gap = stack_copy_gap(walk->sp);
	most = stack_copy_most();
	if (most > limit)
		most = limit;
		/* Unrolled: the sizes are constants then. */
#pragma unroll
	for (bytes = STACK_COPY_BYTES_MIN; bytes <= STACK_COPY_BYTES_MAX; bytes *= 2) {
		if (bytes < STACK_COPY_BYTES_MAX && bytes < most &&
		    stack_copy_is_there(walk->sp + (__s64)gap + bytes))
			continue;
		copy = bpf_ringbuf_reserve(&copies, sizeof(*copy) + bytes, 0);
		if (!copy)
			return COUNT_copies_ring;
		stack_copy_describe(copy, walk, gap, bytes);
		copy->cpu = cpu;
		copy->cpu_taken = cpu_taken;
		bpf_ringbuf_submit(copy, BPF_RB_NO_WAKEUP);
		return 0;
	}
	return COUNT_copies_ring;
}

#endif
