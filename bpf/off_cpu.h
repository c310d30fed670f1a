/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Threads that are off their CPU, as the kernel side keeps them and says so. A *block* is one time
 * that a thread is not running: because it waits (it left its CPU interruptibly or
 * uninterruptibly, and was not preempted), or, where the run queue is profiled, because another
 * was preferred. */
#ifndef BPF_OFF_CPU_H
#define BPF_OFF_CPU_H

#include <linux/types.h>

#include "bpf/events.h"

enum {
	SWITCH_FRAMES_MAX = 128, /* of the user part: the walk holds the run queue's lock */
	SWITCH_KERNEL_FRAMES_MAX = 64,
	SWITCH_RUNTIME_FRAMES_MAX = 32, /* as the user part */
	SWITCH_COPY_BYTES = 16384,
	/* Seldomer than one in so many would cost no less worth mentioning, and one long block
	 * among very many short ones would count for hours. */
	SWITCH_WEIGHT_LOG2_MAX = 11,
	SWITCH_SWEEP_MS = 50,  /* after which a sweep looks, and how often it does */
	SWITCH_LONG_MS = 100,  /* waits of so long or more that got no stack are counted */
	SWITCH_LOOK_MAX = 512, /* threads that one look takes from the queue */
	SWITCH_DUE_MAX = 16,   /* threads that a look names */
};

/* What a look says. */
enum {
	SWITCH_LOOK_DUE = 1 << 0,  /* some thread is due for a sweep */
	SWITCH_LOOK_MORE = 1 << 1, /* there are threads that it has not looked at */
	SWITCH_LOOK_LOST = 1 << 2, /* threads have found the queue full since the last one */
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
	__u64 usual[2];     /* waiting, runnable: mean square of how long, in units of 1024 ns */
	__u32 block;        /* how many there were, the current one included */
	__u32 taken;        /* the last one whose stack went up */
	__u32 done;         /* the last one that wants none any more: it has, or can have, none */
	__u32 looked;       /* the last look at it */
	__u32 tgid;
	__u8 state; /* enum switch_state */
	__u8 weight_log2;
	__u8 is_queued; /* for a look */
	__u8 reserved;
};

struct switch_look {  /* the only element of its map */
	__u32 number; /* of the look, which may take several runs */
	__u32 lost;   /* threads have found the queue full since the last one */
	__u32 due; /* threads that have waited for long without a stack, of which the first are: */
	__u32 is_over; /* the next one begins anew */
	__u32 tids[SWITCH_DUE_MAX];
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
	__u64 futex; /* as struct wait_sample has it */
	__u64 registers[32];
	__u64 kernel_frames[SWITCH_KERNEL_FRAMES_MAX];
	__u32 tid, tgid, exec_id, block;
	__u32 kernel_count;
	__u8 state, is_32bit, is_system_call;
	__u8 reserved;
	char comm[16], process_comm[16];
};

#endif
