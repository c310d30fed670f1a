/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* One user stack, frame by frame. Memory and unwind rules come through two macros, which whoever
 * includes this defines: the programs in the kernel, and user space, which finishes copied stacks;
 * tests step through stacks and rules they made up.
 *
 *	STACK_WALK_READ(to, bytes, from)   0, or what went wrong
 *	STACK_WALK_RULE(walk, address)     enum stack_rule; the rule is then in walk->rule
 *
 *	struct stack_walk walk = { .ip = …, .sp = …, .fp = …, .limit = 512 };
 *	if (!stack_walk_begin(&walk, frames))
 *		while (!stack_walk_step(&walk, frames))
 *			;
 *	// walk.count frames, leaf first; walk.result says how it ended
 *
 * Frames are as bpf/events.h says: the leaf as it is, everything else a return address. A signal's
 * trampoline and what the signal hit are stored as address + 1, so that "subtract one" holds for
 * them too. */
#ifndef BPF_STACK_WALK_BPF_H
#define BPF_STACK_WALK_BPF_H

#include "bpf/stack_guess.bpf.h"
#include "bpf/stack_registers.bpf.h"

#ifndef STACK_WALK_RULE
#error "define STACK_WALK_RULE(walk, address): enum stack_rule, the rule in walk->rule"
#endif

/* Stores the leaf. known and registers say what is known of it besides ip, sp and fp. */
static __always_inline int stack_walk_begin(struct stack_walk *walk, __u64 *frames)
{
	walk->count = 0;
	walk->known |= 1ULL << UNWIND_REGISTER_FP;
	walk->kept_at = 0;
	walk->is_guessed = 0;
	walk->is_end_guessed = 0;
	walk->is_goroutine = 0;
	walk->is_interrupted = 1;
	walk->result = WALK_complete;
	if (!stack_walk_is_code(walk->ip))
		return stack_walk_end(walk, WALK_bad_address);
	return stack_walk_add(walk, frames, walk->ip, 1);
}

/* Go's asmcgocall runs on the system stack and keeps {depth, g} there: the goroutine's frame lies
 * depth below the top of g's stack. */
static __always_inline int stack_walk_go_switch(const struct stack_walk *walk, __u64 *cfa)
{
	struct {
		__u64 depth, g;
	} saved;
	__u64 top;

	if (STACK_WALK_READ(&saved, sizeof(saved), walk->sp + (__s64)walk->rule.cfa_offset) ||
	    STACK_WALK_READ(&top, sizeof(top), saved.g + 8))
		return 1;
	*cfa = top - saved.depth + (__s64)walk->rule.cfa_add;
	return 0;
}

/* runtime.g since Go 1.16, up to what is wanted of it. */
struct stack_walk_g {
	__u64 stack_lo, stack_hi, guards[2], panics, defers, m, sp, pc;
};

/* The goroutine that the thread had been running when it took to its system stack, as Go's own
 * traceback goes on with it. A thread has one at most, and it knows its thread: whatever the thread
 * pointer leads to without that is something else. */
static __always_inline int stack_walk_goroutine(struct stack_walk *walk, __u64 *frames)
{
	const __u64 tls = walk->is_goroutine ? 0 : STACK_WALK_TLS(walk);
	__u64 at = 0, m = 0, fp = 0;
	struct stack_walk_g g;

	if (!tls)
		return stack_walk_end(walk, WALK_no_table);
	if (STACK_WALK_READ(&at, sizeof(at), tls + (__s64)walk->rule.cfa_offset) ||
	    STACK_WALK_READ(&m, sizeof(m), at + __builtin_offsetof(struct stack_walk_g, m)) ||
	    STACK_WALK_READ(&at, sizeof(at), m + (__s64)walk->rule.cfa_add))
		return stack_walk_end(walk, WALK_read_fault);
	if (!at) /* left for good: it is the scheduler that goes on */
		return stack_walk_end(walk, WALK_complete);
	if (STACK_WALK_READ(&g, sizeof(g), at) ||
	    STACK_WALK_READ(&fp, sizeof(fp), at + (__s64)walk->rule.fp_offset))
		return stack_walk_end(walk, WALK_read_fault);
	if (g.m != m || g.sp & 7 || g.sp < g.stack_lo || g.sp >= g.stack_hi)
		return stack_walk_end(walk, WALK_bad_frame);
	if (walk->rule.ra_offset) {
		if (STACK_WALK_READ(&g.pc, sizeof(g.pc), g.sp))
			return stack_walk_end(walk, WALK_read_fault);
		g.sp += 8;
	}
	if (!stack_walk_is_code(g.pc))
		return stack_walk_end(walk, WALK_bad_address);
	walk->fp = fp;
	walk->known |= 1ULL << UNWIND_REGISTER_FP;
	walk->is_goroutine = 1;
	stack_walk_keep(walk, 0);
	return stack_walk_caller(walk, frames, g.pc, g.sp, 0);
}

/* The caller's stack pointer. 1: the walk has ended. */
static __always_inline int stack_walk_cfa(struct stack_walk *walk, __u64 *cfa)
{
	__s64 offset = walk->rule.cfa_offset;
	__u64 value = 0;

	if (walk->rule.cfa == UNWIND_CFA_PLT) {
		*cfa = walk->sp + 8 + ((walk->ip & 15) >= (__u64)offset ? 8 : 0);
		return 0;
	}
	if (walk->rule.cfa == UNWIND_CFA_GO_SWITCH)
		return stack_walk_go_switch(walk, cfa) ? stack_walk_end(walk, WALK_read_fault) : 0;
	if (stack_walk_register(walk, walk->rule.cfa_register, &value))
		return stack_walk_end(walk, WALK_register_unknown);
	value += offset;
	if (walk->rule.cfa == UNWIND_CFA_DEREF) {
		if (STACK_WALK_WORD(walk, &value, value))
			return stack_walk_end(walk, WALK_read_fault);
		value += (__s64)walk->rule.cfa_add;
	}
	*cfa = value;
	return 0;
}

/* A caller's frame lies above; where the code has just moved the stack pointer, or has switched
 * stacks, it may lie elsewhere. */
static __always_inline int stack_walk_is_frame(const struct stack_walk *walk, __u64 cfa)
{
	return !(cfa & 7) &&
	       (cfa > walk->sp || walk->is_interrupted || walk->rule.cfa == UNWIND_CFA_GO_SWITCH ||
		walk->rule.flags & UNWIND_RULE_OTHER_STACK ||
		walk->sp - cfa > STACK_FRAME_BYTES_MAX);
}

/* The frame pointer that the callee has saved, if it has; else it is unknown from there on. */
static __always_inline void stack_walk_restore_fp(struct stack_walk *walk, __u64 cfa)
{
	const __u64 fp_bit = 1ULL << UNWIND_REGISTER_FP;
	__u64 from = walk->rule.fp == UNWIND_FP_AT_FP ? walk->fp : cfa;

	if (walk->rule.fp == UNWIND_FP_SAME)
		return;
	from += (__s64)walk->rule.fp_offset;
	if ((walk->rule.fp == UNWIND_FP_AT_CFA ||
	     (walk->rule.fp == UNWIND_FP_AT_FP && walk->known & fp_bit)) &&
	    !STACK_WALK_WORD(walk, &walk->fp, from))
		walk->known |= fp_bit;
	else
		walk->known &= ~fp_bit;
}

/* The return address and the caller's frame pointer, which lies below it: of words near each other
 * the lowest is read first. 1: the walk has ended. */
static __always_inline int stack_walk_restore(struct stack_walk *walk, __u64 cfa, __u64 *address)
{
	if (walk->rule.ra == UNWIND_RA_IN_REGISTER) {
		if (stack_walk_register(walk, walk->rule.ra_offset, address))
			return stack_walk_end(walk, WALK_register_unknown);
		stack_walk_restore_fp(walk, cfa);
		return 0;
	}
	stack_walk_restore_fp(walk, cfa);
	if (STACK_WALK_WORD(walk, address, cfa + (__s64)walk->rule.ra_offset))
		return stack_walk_end(walk, WALK_read_fault);
	return 0;
}

/* Does memory end right above, or one page later: Ruby's fibers have that page for themselves? */
static __always_inline int stack_walk_is_top(__u64 cfa)
{
	const __u64 top = (cfa + STACK_PAGE_BYTES - 1) & ~(__u64)(STACK_PAGE_BYTES - 1);
	__u8 byte;

	return top - cfa <= STACK_TOP_BYTES &&
	       (STACK_WALK_READ(&byte, sizeof(byte), top) ||
		STACK_WALK_READ(&byte, sizeof(byte), top + STACK_PAGE_BYTES));
}

/* Steps as walk->rule says, which has an expression for the CFA. */
static __always_inline int stack_walk_by_cfa(struct stack_walk *walk, __u64 *frames, int is_signal)
{
	__u64 cfa = 0, address = 0;

	if (stack_walk_cfa(walk, &cfa))
		return 1;
	if (!stack_walk_is_frame(walk, cfa))
		return stack_walk_end(walk, WALK_bad_frame);
	if (stack_walk_restore(walk, cfa, &address))
		return 1;
#if !STACK_WALK_X86
	address &= (1ULL << USER_ADDRESS_BITS) - 1; /* pointer authentication code */
#endif
	/* Stacks that a program makes itself may begin like that, at their top; anywhere else it is
	 * what a table that does not fit has led to: memory is full of zeros. */
	if (address == 0)
		return stack_walk_end(walk, stack_walk_is_top(cfa) ? WALK_complete : WALK_no_start);
	if (!stack_walk_is_code(address))
		return stack_walk_end(walk, WALK_bad_address);
#if STACK_WALK_X86
	if (walk->rule.flags & UNWIND_RULE_GUESSED && !stack_guess_follows_call(address) &&
	    !stack_guess_is_sigreturn(address))
		return stack_walk_end(walk, WALK_no_table);
#endif
	if (walk->rule.kept == UNWIND_KEPT_UNDEFINED)
		stack_walk_keep(walk, 0);
	else if (walk->rule.kept)
		stack_walk_keep(walk, cfa - 8 * walk->rule.kept);
	return stack_walk_caller(walk, frames, address, cfa, is_signal != 0);
}

/* Steps as walk->rule says. */
static __always_inline int stack_walk_by_rule(struct stack_walk *walk, __u64 *frames)
{
	int is_signal = walk->rule.flags & UNWIND_RULE_SIGNAL;

	if (walk->rule.cfa == UNWIND_CFA_SIGNAL)
		return stack_walk_signal(walk, frames, walk->sp + (__s64)walk->rule.cfa_offset);
	if (is_signal)
		stack_walk_correct(walk, frames);
	if (walk->rule.cfa == UNWIND_CFA_END)
		return stack_walk_end(walk, WALK_complete);
	if (walk->rule.flags & UNWIND_RULE_GUESSED)
		walk->is_guessed = 1;
	if (walk->rule.cfa == UNWIND_CFA_GO_GOROUTINE)
		return stack_walk_goroutine(walk, frames);
	return stack_walk_by_cfa(walk, frames, is_signal);
}

/* Finds one caller by the first rung of the ladder that knows the way: the code's unwind row, which
 * is exact, or those of stack_guess.bpf.h. A return address is behind its call, which may be its
 * function's last instruction. */
static __always_inline int stack_walk_step(struct stack_walk *walk, __u64 *frames)
{
	int found = STACK_WALK_RULE(walk, walk->ip - !walk->is_interrupted);

	if (found == STACK_RULE_ABSENT)
		return stack_walk_end(walk, WALK_not_loaded);
	if (found == STACK_RULE_FOUND && walk->rule.cfa != UNWIND_CFA_NONE)
		return stack_walk_by_rule(walk, frames);
	return stack_guess(walk, frames,
			   found == STACK_RULE_ANONYMOUS ? WALK_no_frame_pointer
			   : found == STACK_RULE_FAILED  ? WALK_table_failed
							 : WALK_no_table);
}

#endif
