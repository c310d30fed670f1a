/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Threads that are off their CPU, as the kernel side keeps them and says so. A *block* is one time
 * that a thread is not running: because it waits (it left its CPU interruptibly or
 * uninterruptibly, and was not preempted), or, where the run queue is profiled, because another
 * was preferred. */
#ifndef BPF_OFF_CPU_H
#define BPF_OFF_CPU_H

#include <linux/types.h>

enum {
	SWITCH_FRAMES_MAX = 128, /* of the user part: the walk holds the run queue's lock */
	SWITCH_KERNEL_FRAMES_MAX = 64,
	SWITCH_COPY_BYTES = 16384,
	SWITCH_COPY_CONTEXT = 1 << 30, /* in stack_copy_event.cpu */
	SWITCH_WEIGHT_LOG2_MAX = 16,
	SWITCH_SWEEP_MS = 50,   /* after which a sweep looks, and how often it does */
	SWITCH_WINDOW_MS = 100, /* the budget is for so long, on each CPU */
};

#define SWITCH_WAIT_LIMIT_NS 3600000000000ULL /* longer ones are counted and left out */

enum switch_state {
	SWITCH_RUNNABLE, /* preempted, or it has given way */
	SWITCH_INTERRUPTIBLE,
	SWITCH_UNINTERRUPTIBLE,
};

struct thread_switch {      /* by tid */
	__u64 since_ns;     /* off its CPU since, CLOCK_MONOTONIC; 0: it runs, or does not count */
	__u64 runnable_ns;  /* since; 0: not yet, or nobody asks */
	__u64 waited_ns[2]; /* interruptibly, uninterruptibly: exact, without the current block */
	__u32 block;        /* how many there were, the current one included */
	__u32 taken;        /* the last one whose stack went up */
	__u32 tgid;
	__u8 state; /* enum switch_state */
	__u8 weight_log2;
	__u16 reserved;
};

/* The end of a block whose stack went up. */
struct switch_in_event {
	__u16 type; /* EVENT_SWITCH_IN */
	__u8 state;
	__u8 weight_log2;
	__u32 size;
	__u64 time_ns;
	__u64 since_ns, runnable_ns; /* as above; runnable_ns 0: not known */
	__u32 tid, block;
	__u32 tgid, cpu;
};

/* What a sweep says of a thread that waits without a stack: its registers, for who reads its memory
 * from outside. */
struct switch_sweep_record {
	__u64 since_ns;
	__u64 start_time_ns, known, ip, sp, fp, tls;
	__u64 registers[32];
	__u64 kernel_frames[SWITCH_KERNEL_FRAMES_MAX];
	__u32 tid, tgid, exec_id, block;
	__u32 kernel_count;
	__u8 state, is_32bit, is_system_call;
	__u8 reserved;
	char comm[16], process_comm[16];
};

#endif
