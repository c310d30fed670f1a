/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* A frame's registers, of which some lie in memory. In the kernel that is read by
 * bpf/stack_read.bpf.h; anybody else defines how before this is included, as bpf/stack_walk.bpf.h
 * says. */
#ifndef BPF_STACK_REGISTERS_BPF_H
#define BPF_STACK_REGISTERS_BPF_H

#include "bpf/stack_frame.bpf.h"
#if defined(__bpf__)
#include "bpf/stack_read.bpf.h"
#endif

#ifndef STACK_WALK_READ
#error "define STACK_WALK_READ(to, bytes, from): 0, or what went wrong"
#endif
#ifndef STACK_WALK_TLS /* the thread pointer; 0: it is not known, or not wanted */
#define STACK_WALK_TLS(walk) 0ULL
#endif
#ifndef STACK_WALK_WORD /* the same of one word, which likely lies near the ones read before */
#define STACK_WALK_WORD(walk, to, from) STACK_WALK_READ(to, sizeof(__u64), from)
#endif

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
