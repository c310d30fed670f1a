/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Where a walk over a user stack stands, and what it has found: the ground of both the walk by rows
 * (stack_walk.bpf.h) and the rungs below it (stack_guess.bpf.h). */
#ifndef BPF_STACK_FRAME_BPF_H
#define BPF_STACK_FRAME_BPF_H

#include <linux/types.h>

#include "bpf/events.h"
#include "bpf/results.h"
#include "bpf/unwind_rows.h"

#ifndef STACK_WALK_READ
#error "define STACK_WALK_READ(to, bytes, from): 0, or what went wrong"
#endif
#ifndef STACK_WALK_TLS /* the thread pointer; 0: it is not known, or not wanted */
#define STACK_WALK_TLS(walk) 0ULL
#endif
#ifndef STACK_WALK_WORD /* the same of one word, which likely lies near the ones read before */
#define STACK_WALK_WORD(walk, to, from) STACK_WALK_READ(to, sizeof(__u64), from)
#endif
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#if defined(__TARGET_ARCH_x86) || (!defined(__bpf__) && defined(__x86_64__))
#define STACK_WALK_X86 1
#else
#define STACK_WALK_X86 0
#endif

enum {
	STACK_FRAMES_ROOM = KERNEL_FRAMES_MAX + USER_FRAMES_MAX,
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

/* What is known of the code at an address. */
enum stack_rule {
	STACK_RULE_FOUND,
	STACK_RULE_ABSENT, /* its rows, or its mapping, are not loaded: the walk stops here */
	/* Nothing that helps; the lower rungs may. */
	STACK_RULE_ANONYMOUS, /* no file's code */
	STACK_RULE_NO_TABLE,
	STACK_RULE_FAILED, /* there is a table, and it could not be used */
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
	frames[at] = address + (is_exact && walk->count);
	walk->count++;
	return 0;
}

/* The last frame was stored as a return address and is an exact one. */
static __always_inline void stack_walk_correct(struct stack_walk *walk, __u64 *frames)
{
	__u64 at = (__u64)walk->first + walk->count - 1;

	if (at < STACK_FRAMES_ROOM && !walk->is_interrupted)
		frames[at] = walk->ip + 1;
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

/* 0: it is known. */
static __always_inline int stack_walk_register(const struct stack_walk *walk, __u32 number,
					       __u64 *value)
{
	if (number == UNWIND_REGISTER_SP)
		*value = walk->sp;
	else if (!stack_walk_knows(walk, number))
		return number != UNWIND_REGISTER_KEPT || !walk->kept_at ||
		       STACK_WALK_WORD(walk, value, walk->kept_at);
	else if (number == UNWIND_REGISTER_FP)
		*value = walk->fp;
	else
		*value = walk->registers[number & (UNWIND_REGISTERS - 1)];
	return 0;
}

#if STACK_WALK_X86

/* The kernel saved every register for a signal: struct ucontext (arch/x86/include/uapi/asm) with
 * its struct sigcontext_64 at 40: r8 to r15, di, si, bp, bx, dx, ax, cx, sp, ip. Goes on where it
 * hit. */
static __always_inline int stack_walk_signal(struct stack_walk *walk, __u64 *frames, __u64 context)
{
	enum { CONTEXT_REGISTERS = 40 };
	struct {
		__u64 r8_to_r15[8], di, si, bp, bx, dx, ax, cx, sp, ip;
	} saved;

	stack_walk_correct(walk, frames);
	if (STACK_WALK_READ(&saved, sizeof(saved), context + CONTEXT_REGISTERS))
		return stack_walk_end(walk, WALK_read_fault);
	if (!stack_walk_is_code(saved.ip))
		return stack_walk_end(walk, WALK_bad_address);
	walk->registers[0] = saved.ax;
	walk->registers[1] = saved.dx;
	walk->registers[2] = saved.cx;
	walk->registers[3] = saved.bx;
	walk->registers[4] = saved.si;
	walk->registers[5] = saved.di;
	for (int i = 0; i < 8; i++)
		walk->registers[8 + i] = saved.r8_to_r15[i];
	walk->known = (1ULL << UNWIND_REGISTERS) - 1;
	walk->ip = saved.ip;
	walk->sp = saved.sp;
	walk->fp = saved.bp;
	walk->is_interrupted = 1;
	return stack_walk_add(walk, frames, saved.ip, 1);
}

#else

/* struct rt_sigframe's ucontext has its struct sigcontext at 176 (arch/arm64/include/uapi/asm): the
 * fault's address, x0 to x30, sp, pc. */
static __always_inline int stack_walk_signal(struct stack_walk *walk, __u64 *frames, __u64 context)
{
	enum { CONTEXT_REGISTERS = 176 + 8 };
	struct {
		__u64 sp, ip;
	} saved;

	stack_walk_correct(walk, frames);
	if (STACK_WALK_READ(walk->registers, 31 * sizeof(walk->registers[0]),
			    context + CONTEXT_REGISTERS) ||
	    STACK_WALK_READ(&saved, sizeof(saved), context + CONTEXT_REGISTERS + 31 * 8))
		return stack_walk_end(walk, WALK_read_fault);
	if (!stack_walk_is_code(saved.ip))
		return stack_walk_end(walk, WALK_bad_address);
	walk->known = (1ULL << UNWIND_REGISTERS) - 1;
	walk->ip = saved.ip;
	walk->sp = saved.sp;
	walk->fp = walk->registers[UNWIND_REGISTER_FP];
	walk->is_interrupted = 1;
	return stack_walk_add(walk, frames, saved.ip, 1);
}

#endif

#endif
