/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Where a walk over a user stack stands, and what it has found: the ground of both the walk by rows
 * (stack_walk.bpf.h) and the rungs below it (stack_guess.bpf.h). */
#ifndef BPF_STACK_FRAME_BPF_H
#define BPF_STACK_FRAME_BPF_H

#include <linux/types.h>

#include "bpf/frames.h"
#include "bpf/results.h"
#include "bpf/unwind_rows.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#if defined(__TARGET_ARCH_x86) || (!defined(__bpf__) && defined(__x86_64__))
#define STACK_WALK_X86 1
#else
#define STACK_WALK_X86 0
#endif

#ifndef STACK_FRAMES_ROOM /* where a source takes fewer */
#define STACK_FRAMES_ROOM (KERNEL_FRAMES_MAX + USER_FRAMES_MAX)
#endif

enum {
	/* A frame pointer farther from the stack pointer is none; a frame that lies less far below
	 * its callee's is none either, a farther one may lie on another stack. */
	STACK_FRAME_BYTES_MAX = 1 << 20,
	/* The first frame of a stack that a program makes lies so near to the stack's end, which is
	 * the end of some mapping. */
	STACK_TOP_BYTES = 256,
	STACK_PAGE_BYTES = 4096,
	USER_ADDRESS_MIN = 4096,
#if STACK_WALK_X86
	/* Five-level page tables; what is too high here lies in no mapping. */
	USER_ADDRESS_BITS = 56,
#else
	/* Above lies a return address's signature. Where addresses have 52 bits, mmap(2) goes that
	 * high only for who asks. */
	USER_ADDRESS_BITS = 48,
#endif
};

struct stack_walk {
	__u64 ip, sp, fp;    /* of the frame whose caller comes next; fp as far as known says */
	__u64 known;         /* bit n: the register with DWARF number n is known; sp always is */
	__u64 kept_at;       /* where UNWIND_REGISTER_KEPT lies when it is not known; 0: nowhere */
	__u32 first;         /* index in frames where the user part begins */
	__u32 count;         /* frames found, the leaf included */
	__u32 limit;         /* most frames wanted, 1 to USER_FRAMES_MAX */
	__u8 result;         /* enum walk_result, once the walk has ended */
	__u8 is_interrupted; /* ip is an instruction, not a return address */
	__u8 is_guessed;     /* some caller was found without an unwind row */
	__u8 is_end_guessed; /* complete, but only a frame pointer of 0 says so */
	__u8 lacks;          /* enum walk_result when the lower rungs fail: why they were needed */
	__u8 is_goroutine;   /* the thread's goroutine was gone on with; it has no other */
	struct unwind_rule rule;           /* what STACK_WALK_RULE() found */
	__u64 registers[UNWIND_REGISTERS]; /* fp and sp are above */
};

/* The functions that step: 0 to go on, 1 when the walk has ended. */
static __always_inline int stack_walk_end(struct stack_walk *walk, enum walk_result result)
{
	walk->result = result;
	return 1;
}

static __always_inline int stack_walk_is_code(__u64 address)
{
	return address >= USER_ADDRESS_MIN && !(address >> USER_ADDRESS_BITS);
}

/* As events.h has it: an exact address that is not the leaf's is stored one higher. */
static __always_inline int stack_walk_add(struct stack_walk *walk, __u64 *frames, __u64 address,
					  int is_exact)
{
	__u64 at = (__u64)walk->first + walk->count; /* 64 bits: a check of 32 is lost on 5.10 */

	if (walk->count >= walk->limit || at >= STACK_FRAMES_ROOM)
		return stack_walk_end(walk, WALK_too_deep);
	frames[at] = stack_frame_native(address + (is_exact && walk->count));
	walk->count++;
	return 0;
}

/* The last frame was stored as a return address and is an exact one. */
static __always_inline void stack_walk_correct(struct stack_walk *walk, __u64 *frames)
{
	__u64 at = (__u64)walk->first + walk->count - 1;

	if (at < STACK_FRAMES_ROOM && !walk->is_interrupted)
		frames[at] = stack_frame_native(walk->ip + 1);
}

/* Stores one caller and stands there. Of its registers the walk restores three. */
static __always_inline int stack_walk_caller(struct stack_walk *walk, __u64 *frames, __u64 address,
					     __u64 sp, int is_exact)
{
	walk->ip = address;
	walk->sp = sp;
	walk->known &= 1ULL << UNWIND_REGISTER_FP | 1ULL << UNWIND_REGISTER_KEPT;
	walk->is_interrupted = is_exact;
	return stack_walk_add(walk, frames, address, is_exact);
}

static __always_inline int stack_walk_knows(const struct stack_walk *walk, __u32 number)
{
	return number < UNWIND_REGISTERS && walk->known >> number & 1;
}

/* Where the caller has its own: noted, and read by whoever needs it. */
static __always_inline void stack_walk_keep(struct stack_walk *walk, __u64 at)
{
	walk->known &= ~(1ULL << UNWIND_REGISTER_KEPT);
	walk->kept_at = at;
}

#endif
