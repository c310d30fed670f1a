/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Records that cross from the kernel to user space. Included by both sides: fixed-width types only,
 * 8-byte aligned, no padding that is not named. */
#ifndef BPF_EVENTS_H
#define BPF_EVENTS_H

#include <linux/types.h>

#include "bpf/unwind_rows.h"

enum {
	COMM_LENGTH = 16,
	KERNEL_FRAMES_MAX = 127,   /* perf_event_max_stack's default */
	USER_FRAMES_DEFAULT = 512, /* of programs in the kernel that are told nothing else */
	USER_FRAMES_MAX = 1024,
};

/* Who makes samples; each counts its own in sample_event.cpu_taken, one after the other on each
 * CPU. In copies their CPU is cpu | source << SOURCE_SHIFT. */
enum sample_source {
	SOURCE_TICKS = 0,
	SOURCE_FAULTS = 1,
	SOURCE_ALLOCS = 2,
	SOURCE_ALLOCS_NESTED = 3, /* those that came while one of their CPU was being made */
	SOURCE_SWITCHES = 4,
	SOURCE_COUNT = 5, /* also of records that are no samples */
	SOURCE_SHIFT = 28,
};

/* EVENT(name, number, who makes it, if it is a sample) */
#define EVENTS(EVENT)                                                                             \
	EVENT(SAMPLE_CPU, 1, SOURCE_TICKS)                                                        \
	EVENT(STACK_COPY, 2, SOURCE_COUNT)                                                        \
	EVENT(SAMPLE_SWITCH, 3, SOURCE_SWITCHES) /* a thread leaves its CPU */                    \
	EVENT(SAMPLE_WAKER, 4, SOURCE_SWITCHES)  /* a thread wakes one whose stack was taken */   \
	EVENT(SWITCH_IN, 5, SOURCE_COUNT)        /* a thread whose stack was taken runs again */  \
	EVENT(SAMPLE_FAULT, 6, SOURCE_FAULTS)    /* a thread touched a page that was not there */ \
	EVENT(SAMPLE_ALLOC, 7, SOURCE_ALLOCS)    /* memory is taken, bpf/alloc.h */               \
	EVENT(ALLOC_FREE, 8, SOURCE_COUNT)       /* and given back */                             \
	EVENT(ALLOC_BATCH, 9, SOURCE_COUNT)      /* many pieces, bpf/alloc_batch.h */             \
	EVENT(RUNTIME_CODE, 10, SOURCE_COUNT)    /* bpf/runtime_frames.h */

#define EVENT_ENUM(name_, number_, source_) EVENT_##name_ = (number_),
enum event_type { EVENTS(EVENT_ENUM) };

enum { STACK_RATE_WINDOW_MS = 100 }; /* a budget of stacks is for so long */

struct stack_rate {      /* bpf/stack_rate.bpf.h's own: how a budget of stacks is used */
	__u64 window_ns; /* began then */
	__u64 spent_ns;
	__u32 level;  /* how seldom: one in 2^level, or as its source has it */
	__u32 chance; /* of a source with dice of its own */
};

enum sample_flags {
	SAMPLE_IN_KERNEL = 1 << 0,     /* the tick interrupted kernel code */
	SAMPLE_KERNEL_THREAD = 1 << 1, /* there is no user part */
	SAMPLE_FRAME_GUESSED =
		1 << 2,             /* a rung below unwind rows was used: frame pointer or leaf */
	SAMPLE_KERNEL_CUT = 1 << 3, /* the kernel part has more frames than are taken */
	/* result is WALK_not_loaded, and the stack from there on is in the ring of copies, written
	 * before this record: struct stack_copy_event of the same cpu and cpu_taken */
	SAMPLE_HAS_COPY = 1 << 4,
	SAMPLE_END_GUESSED = 1 << 5, /* complete, but only a frame pointer of 0 says so */
	SAMPLE_HAS_CONTEXT = 1 << 6, /* behind the frames: bpf/thread_context.h */
};

/* What samples have beside who, when and where. */
enum { SAMPLE_OWN_WORDS = 3 };

struct tick_sample { /* EVENT_SAMPLE_CPU */
	__u64 period_ns;
	/* this CPU's counter COUNT_ring_full: with cpu_taken, which is COUNT_taken, a report's
	 * counts are exact without a stop */
	__u64 cpu_ring_full;
	__u64 reserved;
};

struct fault_sample { /* EVENT_SAMPLE_FAULT */
	__u64 bytes;  /* that it stands for */
	__u32 is_major, reserved;
	__u64 nothing;
};

struct wait_sample {      /* EVENT_SAMPLE_SWITCH and …_WAKER, bpf/off_cpu.h */
	__u64 since_ns;   /* it is off its CPU; of a waker: now */
	__u32 tid, block; /* whose, of a waker's the one that it woke, and which of its blocks */
	__u64 state : 8;    /* enum switch_state */
	__u64 is_swept : 8; /* not at the switch: later, from outside */
	__u64 futex : 48;   /* the address that it waits at; 0: it waits for something else */
};

struct alloc_sample { /* EVENT_SAMPLE_ALLOC, bpf/alloc.h */
	union {
		__u64 key;    /* of the piece, as in struct alloc_free_event */
		__u64 window; /* of ALLOC_WINDOW: its number */
	};
	__u64 bytes;  /* as enum alloc_source says */
	__u32 size;   /* of ALLOC_LIBRARY: the piece's own; 0: 4 GiB and more */
	__u32 source; /* enum alloc_source */
};

struct batch_sample { /* EVENT_ALLOC_BATCH, bpf/alloc_batch.h */
	__u64 bytes;  /* of records, where other samples have their frames */
	__u32 number; /* as the probe has it */
	__u32 reserved;
	__u64 nothing;
};

/* One timer tick, or one thread that leaves its CPU or wakes another. Variable length:
 * frames[kernel_count] then [user_count] then [runtime_count], leaf first each. Kernel frames are
 * run-time addresses (KASLR included; they never leave the host). User frames are run-time
 * addresses; the leaf is the instruction the thread is at, exactly: the interrupted one, or inside
 * a system call the one that made it. Every other one is a *return address*: who resolves it
 * subtracts one, once. (A signal's trampoline and what it interrupted are given as address + 1, so
 * that this holds.) The counts are of words: bpf/frames.h. */
struct sample_event {
	__u16 type; /* enum event_type */
	__u16 flags;
	__u32 size;          /* of the whole record in bytes */
	__u64 time_ns;       /* CLOCK_MONOTONIC */
	__u64 start_time_ns; /* the process' start, with tgid and exec_id its identity */
	__u32 tgid;
	__u32 tid;
	__u32 exec_id; /* task->self_exec_id, counts execve; lower 32 bits */
	__u32 cpu;
	__u64 cpu_taken; /* its source's count on this CPU, itself included: gaps are losses */
	union {          /* by type */
		struct tick_sample tick;
		struct fault_sample fault;
		struct wait_sample wait;
		struct alloc_sample alloc;
		struct batch_sample batch;
		__u64 words[SAMPLE_OWN_WORDS];
	};
	__u64 cgroup_id;
	__u64 runtime_thread; /* what its interpreter calls the thread, pthread_self(); 0: not known */
	/* How many classes its JVM had unloaded, and one; 0: not known. As long as it is the same, no
	 * Method has another one's address. */
	__u64 java_unloads;
	char comm[COMM_LENGTH];         /* the thread's */
	char process_comm[COMM_LENGTH]; /* the main thread's */
	__u32 generation; /* of the struct process_head that the walk went by; 0: there was none */
	__u16 kernel_count, user_count;
	__u8 result;         /* enum walk_result, bpf/results.h */
	__u8 weight_log2;    /* it was taken with a probability of 1 in 2^this */
	__u16 runtime_count; /* of words: bpf/runtime_frames.h */
	__u64 frames[];
};

/* Where a walk stopped for want of rows, and the stack from there on: user space goes on with it
 * once the rows are loaded. Of the smallest size that takes the rest of the stack, from the first
 * to the last in steps of two, since the kernel reserves fixed sizes only. 256 KiB made no more
 * stacks whole: clang's fit into 64, and rustc's driver has one frame of 540. */
enum { STACK_COPY_BYTES_MIN = 4096, STACK_COPY_BYTES_MAX = 65536 };

struct stack_copy_event {
	__u16 type;          /* EVENT_STACK_COPY */
	__u8 is_interrupted; /* ip is an instruction, and registers are the thread's */
	__u8 is_guessed;     /* as struct stack_walk has it, for the frames so far */
	__u32 size;          /* of the whole record */
	__u32 cpu;
	__u32 stack_bytes; /* readable from sp + stack_gap on; the rest of the record is undefined
			    */
	/* below 0: the red zone is there too; above: the code has just moved the stack pointer to
	 * memory that is not there yet */
	__s32 stack_gap;
	__u32 reserved;
	__u64 cpu_taken;  /* with cpu: which sample */
	__u64 tls;        /* the thread pointer; 0: not known, or the walk needs it no more */
	__u64 known;      /* bit n: registers[n] is known */
	__u64 ip, sp, fp; /* of the frame whose caller is wanted: the last one of the sample */
	__u64 registers[UNWIND_REGISTERS];
	__u8 stack[];
};

#endif
