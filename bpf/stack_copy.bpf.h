/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What could not be walked goes up: registers and the stack from there on, into a ring of its own,
 * so that samples never wait for room behind them. */
#ifndef BPF_STACK_COPY_BPF_H
#define BPF_STACK_COPY_BPF_H

#include "bpf/counters.h"
#include "bpf/events.h"
#include "bpf/kernel_types.h"
#include "bpf/stack_frame.bpf.h"

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

/* Whether the stack goes on that far; what is not there cannot be copied. */
static __always_inline int stack_copy_reaches(__u64 sp, __u32 bytes)
{
	__u8 byte;

	return !bpf_probe_read_user(&byte, sizeof(byte), (const void *)(sp + bytes));
}

/* Chunk by chunk, since one read is all or nothing. The chunk that fails is good up to the next
 * boundary of a page, or not at all. Always inlined: bytes is a constant. */
static __always_inline void stack_copy_fill(struct stack_copy_event *copy, __u64 sp, __u32 bytes)
{
	__u32 rest = -sp % STACK_COPY_CHUNK, done = 0;

	for (__u32 at = 0; at < bytes; at += STACK_COPY_CHUNK) {
		const void *from = (const void *)(sp + at);

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
						const struct stack_walk *walk, __u32 bytes)
{
	copy->type = EVENT_STACK_COPY;
	copy->is_interrupted = walk->is_interrupted;
	copy->is_guessed = walk->is_guessed;
	copy->size = sizeof(*copy) + bytes;
	copy->ip = walk->ip;
	copy->sp = walk->sp;
	copy->fp = walk->fp;
	stack_copy_registers(copy, walk);
	stack_copy_fill(copy, walk->sp, bytes);
}

#define STACK_COPY_RESERVE(copy, walk, bytes)                                        \
	do {                                                                         \
		(copy) = bpf_ringbuf_reserve(&copies, sizeof(*(copy)) + (bytes), 0); \
		if (copy)                                                            \
			stack_copy_describe(copy, walk, bytes);                      \
	} while (0)

/* 0, or enum kernel_counter: why not. The reader is woken by the sample that follows. */
static __always_inline int stack_copy_send(const struct stack_walk *walk, __u32 cpu,
					   __u64 cpu_taken, __u64 now_ns)
{
	struct stack_copy_event *copy;

	if (!stack_copy_allowed(now_ns))
		return COUNT_copies_rate;
	if (!stack_copy_reaches(walk->sp, STACK_COPY_SMALL))
		STACK_COPY_RESERVE(copy, walk, STACK_COPY_SMALL);
	else if (!stack_copy_reaches(walk->sp, STACK_COPY_MIDDLE))
		STACK_COPY_RESERVE(copy, walk, STACK_COPY_MIDDLE);
	else
		STACK_COPY_RESERVE(copy, walk, STACK_COPY_LARGE);
	if (!copy)
		return COUNT_copies_ring;
	copy->cpu = cpu;
	copy->cpu_taken = cpu_taken;
	bpf_ringbuf_submit(copy, BPF_RB_NO_WAKEUP);
	return 0;
}

#endif
