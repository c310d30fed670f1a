/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What a library that samples, node-agent/malloc/, tells of many pieces at once: records one behind
 * the other in its program's memory, where a probe finds them. The program may write there what it
 * likes. */
#ifndef BPF_ALLOC_BATCH_H
#define BPF_ALLOC_BATCH_H

#include <linux/types.h>

enum {
	ALLOC_BATCH_BYTES = 16384, /* of records, from the beginning of a page on */
	ALLOC_BATCH_CHUNK = 4096,
	ALLOC_STACK_WORDS = 1024, /* what is deeper is told by itself */
#if defined(__aarch64__) || defined(__TARGET_ARCH_arm64)
	ALLOC_SAVED = 10, /* x19 to x28 */
#else
	ALLOC_SAVED = 5, /* rbx, r12 to r15 */
#endif
	ALLOC_BATCH_COUNT = 0xffff,      /* of records, */
	ALLOC_BATCH_FOREIGN = 0x10000,   /* which are another thread's than the one that tells them */
	ALLOC_KEY_ENDED = 1, /* in place of an address: it is given back already */
};

/* One piece: what the probe alloc says of it, and the thread's stack at that time, so many words
 * from sp on to its end: those that may be addresses of code or of the stack, the others are said
 * to be 0. */
struct alloc_record {
	__u32 size; /* of the whole record, a multiple of 8 */
	__u32 words;
	__u64 time_ns;         /* CLOCK_MONOTONIC */
	__u64 key;             /* its address; 0: its end will not be told; or ALLOC_KEY_ENDED */
	__u64 bytes, weighted; /* its own, and what it stands for */
	__u64 tls;             /* the thread pointer */
	__u64 ip, sp, fp;      /* in the library, with the registers that a call leaves alone: */
	__u64 saved[ALLOC_SAVED];
	__u64 stack[]; /* one bit for each word, lowest first; then those whose bit is set */
};

/* EVENT_ALLOC_BATCH is a struct sample_event of the thread that told, without a stack: the records
 * begin at frames, batch.number is how many there are, with ALLOC_BATCH_FOREIGN. It is longer than
 * they are. */

#endif
