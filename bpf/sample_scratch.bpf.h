/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What is kept while a sample is made, on each CPU, and what is counted. A source whose programs
 * may preempt each other defines
 *
 *	SAMPLE_SCRATCH_SLOTS  how many may be at work on one CPU: scratch_claim() and …_release()
 *
 * and one that takes less of a stack than others
 *
 *	STACK_FRAMES_ROOM          most native frames, the kernel's included
 *	SAMPLE_RUNTIME_FRAMES_MAX  most frames of an interpreter's that there is time for */
#ifndef BPF_SAMPLE_SCRATCH_BPF_H
#define BPF_SAMPLE_SCRATCH_BPF_H

#include "bpf/counters.h"
#include "bpf/events.h"
#include "bpf/hotspot_code.bpf.h"
#include "bpf/kernel_types.h"
#include "bpf/process_map.bpf.h"
#include "bpf/runtime_frames.h"
#include "bpf/stack_frame.bpf.h"
#include "bpf/stack_window.bpf.h"
#include "bpf/thread_context.h"

#ifndef SAMPLE_SCRATCH_SLOTS
#define SAMPLE_SCRATCH_SLOTS 1
#endif
#ifndef SAMPLE_RUNTIME_FRAMES_MAX
#define SAMPLE_RUNTIME_FRAMES_MAX RUNTIME_FRAMES_MAX
#endif

/* An interpreter's list has the room that the native frames leave, which is all that it needs but
 * for the deepest stacks, and this at least: each CPU and slot has its scratch, used or not. */
enum {
	RUNTIME_FRAMES_LEAST = SAMPLE_RUNTIME_FRAMES_MAX < 64 ? SAMPLE_RUNTIME_FRAMES_MAX : 64,
	SCRATCH_WORDS = STACK_FRAMES_ROOM + 2 * RUNTIME_FRAMES_LEAST + 1,
};

#define RUNTIME_WORDS_ROOM SCRATCH_WORDS
#include "bpf/python_walk.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, KERNEL_COUNTER_COUNT);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

/* One sample while it is made. */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wgnu-variable-sized-type-not-at-end"
struct sample_scratch {
	struct sample_event event; /* its frames are the ones below */
	__u64 frames[SCRATCH_WORDS];
	__u64 context_room[THREAD_CONTEXT_MAX / sizeof(__u64)]; /* behind the last frame of all */
	struct stack_walk walk;
	union { /* one after the other: the native walk's, the list's, and then the context's */
		struct stack_window window;
		struct runtime_walk runtime;
	};
	user_registers registers; /* of a thread that is in the kernel */
	struct process_view process;
	struct hotspot_walk java;
	__u64 users, owner;   /* of a slot: who wants it and who has it, pid_tgid */
	__u64 slot, numbered; /* which it is, and its samples so far */
};
#pragma clang diagnostic pop

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SAMPLE_SCRATCH_SLOTS);
	__type(key, __u32);
	__type(value, struct sample_scratch);
} scratch SEC(".maps");

/* Returns what it has come to, where nobody else of its kind counts on the same CPU meanwhile. */
static __always_inline __u64 count_more(__u32 key, __u64 more)
{
	__u64 *value = bpf_map_lookup_elem(&counters, &key);

	if (!value)
		return 0;
#if SAMPLE_SCRATCH_SLOTS == 1
	return *value += more;
#else
	__sync_fetch_and_add(value, more);
	return 0;
#endif
}

static __always_inline __u64 count(__u32 key)
{
	return count_more(key, 1);
}

static __always_inline __u64 counted(__u32 key)
{
	__u64 *value = bpf_map_lookup_elem(&counters, &key);

	return value ? *value : 0;
}

#if SAMPLE_SCRATCH_SLOTS == 1
static __always_inline struct sample_scratch *scratch_find(void)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(&scratch, &key);
}
#else
/* The slot that this thread has claimed. */
static __always_inline struct sample_scratch *scratch_find(void)
{
	__u64 thread = bpf_get_current_pid_tgid();
	struct sample_scratch *s;

	for (__u32 i = 0; i < SAMPLE_SCRATCH_SLOTS; i++) {
		__u32 key = i;

		s = bpf_map_lookup_elem(&scratch, &key);
		if (s && s->owner == thread)
			return s;
	}
	return 0;
}

/* Whoever finds itself alone with a slot has it. (What adds and tells in one is known from 5.12
 * on; two that come at once may both go without.) The thread stays on its CPU meanwhile. */
static __always_inline struct sample_scratch *scratch_claim(void)
{
	struct sample_scratch *s;

	for (__u32 i = 0; i < SAMPLE_SCRATCH_SLOTS; i++) {
		__u32 key = i;

		s = bpf_map_lookup_elem(&scratch, &key);
		if (!s)
			return 0;
		__sync_fetch_and_add(&s->users, 1);
		if (*(volatile __u64 *)&s->users == 1) {
			s->owner = bpf_get_current_pid_tgid();
			s->slot = key;
			return s;
		}
		__sync_fetch_and_add(&s->users, -1);
	}
	return 0;
}

static __always_inline void scratch_release(struct sample_scratch *s)
{
	*(volatile __u64 *)&s->owner = 0;
	__sync_fetch_and_add(&s->users, -1);
}
#endif

#endif
