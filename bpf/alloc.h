/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Memory that processes take and give back, as probes in their allocators see it. A sample says
 * which piece it was (struct alloc_sample), an end says that it is given back. */
#ifndef BPF_ALLOC_H
#define BPF_ALLOC_H

#include <linux/types.h>

#include "bpf/events.h"

enum {
	ALLOC_FRAMES_MAX = 256, /* of the user part: the program waits for the walk */
	ALLOC_COPY_BYTES = 16384,
	/* of scratch memory on each CPU: these programs may be preempted. Each slot counts its own
	 * samples, so that those of one come in their order: cpu_taken is number * ALLOC_SLOTS +
	 * slot, their source SOURCE_ALLOCS + slot. */
	ALLOC_SLOTS = 2,
	ALLOC_COSTS = 1024,
	ALLOC_WINDOWS = 64,            /* open at a time, in all processes */
	ALLOC_FUNCTIONS = 24,          /* probed in one process */
	ALLOC_POOLS = 8,               /* that are remembered, a power of two */
	ALLOC_STACKS_THINNED = 128,    /* after so many stacks every second of them is enough */
	ALLOC_STACKS_THINNED_MAX = 20, /* so often */
};

/* Who said it; what a sample's bytes and key then are. */
enum alloc_source {
	/* Go's runtime has sampled it: bytes is the size, unweighted; key is its bucket, which all
	 * have that one stack took of that size */
	ALLOC_GO,
	/* A library that the process has loaded, node-agent/malloc/, has sampled it: bytes is
	 * weighted, key is the address (0: its end will not be told) */
	ALLOC_LIBRARY,
	/* A window of an allocator's own functions: bytes is weighted within the window */
	ALLOC_WINDOW,
	ALLOC_SOURCE_COUNT,
};

/* A piece is given back. */
struct alloc_free_event {
	__u16 type;   /* EVENT_ALLOC_FREE */
	__u16 source; /* enum alloc_source */
	__u32 size;   /* of the record */
	__u64 time_ns, start_time_ns;
	__u32 tgid, exec_id;
	__u64 key;
};

struct alloc_cost { /* by tgid: what the probes have cost a process */
	__u64 hits;
	__u64 ns;               /* of our programs; the traps come on top */
	__u64 frees_lost;       /* what it has in use is less than is known */
	struct stack_rate rate; /* of samples of a library */
};

/* By tgid: a window in a process' allocators. Written by the agent alone. */
struct alloc_window {
	__u64 number;
	__u32 is_open;          /* until then hits cost, and count for nothing else */
	__u32 mean;             /* bytes of which one is sampled */
	__u64 stepped;          /* bit n: of functions[n] the probed instruction is stepped over */
	struct alloc_function { /* addresses: who calls from there has been counted already */
		__u64 start, end, probe;
	} functions[ALLOC_FUNCTIONS];
	/* An interpreter's: a pool is worth so many bytes; a register has it, by where that is in
	 * the registers of a probe */
	__u32 pool_bytes, pool_register;
};

/* By tgid: what came of it. */
struct alloc_window_counts {
	__u64 hits, stepped;  /* stepped: of these those of such functions */
	__u64 counted, bytes; /* of those that are no part of another, while it was open */
	__u64 sampled;        /* bytes that the stacks stand for which were sent */
	__u64 stacks, ns;     /* ns: of our programs; the traps come on top */
	__u64 pool_count, pools[ALLOC_POOLS]; /* of interpreters, the last ones */
};

#endif
