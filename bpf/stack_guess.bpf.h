/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The rungs below the unwind rows, for code that has none: the leaf's instructions, the frame
 * pointer. They guess, check what they can, and say so in struct stack_walk. */
#ifndef BPF_STACK_GUESS_BPF_H
#define BPF_STACK_GUESS_BPF_H

#include "bpf/stack_registers.bpf.h"

enum {
	FRAMELESS_BYTES_MAX = 4096, /* of a function that sets up no frame */
	SYSCALL_CODE = 0x050f,
	SIGNAL_FLAGS_MAX = 7, /* uc_flags: UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS */
};

static __always_inline void stack_guess_frame_pointer(struct stack_walk *walk, __u64 fp)
{
	walk->fp = fp;
	walk->known |= 1ULL << UNWIND_REGISTER_FP;
}

static __always_inline int stack_guess_caller(struct stack_walk *walk, __u64 *frames, __u64 address,
					      __u64 sp)
{
	walk->is_guessed = 1;
	stack_walk_keep(walk, 0);
	return stack_walk_caller(walk, frames, address, sp, 0);
}

#if STACK_WALK_X86
/* `mov $__NR_rt_sigreturn,%rax; syscall` without its last byte: what a signal handler returns to,
 * the same bytes in glibc and musl; debuggers and libgcc know the frame by them as well. */
#define SIGRETURN_CODE 0x0f0000000fc0c748ULL
enum { SIGNAL_CONTEXT = 0 }; /* from the stack pointer to the ucontext */
#else
/* `mov x8, #__NR_rt_sigreturn; svc #0`, the kernel's own and musl's */
#define SIGRETURN_CODE 0xd4000001d2801168ULL
enum { SIGNAL_CONTEXT = 128 }; /* behind the siginfo */
#endif

static __always_inline int stack_guess_is_sigreturn(__u64 address)
{
	__u64 code;

	return !STACK_WALK_READ(&code, sizeof(code), address) && code == SIGRETURN_CODE;
}

#if STACK_WALK_X86

/* The eight bytes before address, the last one on top; 0: they cannot be read. */
static __always_inline __u64 stack_guess_code_before(__u64 address)
{
	__u64 code;

	return STACK_WALK_READ(&code, sizeof(code), address - sizeof(code)) ? 0 : code;
}

/* Does a call end right before address? code: what stack_guess_code_before() gave. The encodings of
 * `call rel32` and of `call r/m64` without and with prefix, index and displacement. */
static __always_inline int stack_guess_is_call(__u64 code)
{
	return ((code >> 24) & 0xff) == 0xe8 || ((code >> 48) & 0x38ff) == 0x10ff ||
	       ((code >> 40) & 0x38ff) == 0x10ff || ((code >> 32) & 0x38ff) == 0x10ff ||
	       ((code >> 16) & 0x38ff) == 0x10ff || ((code >> 8) & 0x38ff) == 0x10ff;
}

static __always_inline int stack_guess_follows_call(__u64 address)
{
	return stack_guess_is_call(stack_guess_code_before(address));
}

/* Is [sp] the return address of a function that sets up no frame? Compilers leave the frame pointer
 * to the caller in functions that call nobody, whatever -fno-omit-frame-pointer says (GCC), and on
 * the early ways out of others. The ABI has every call made with an aligned stack, so only code
 * without a frame has it off by a word; Go aligns nothing, but its calls are direct. */
static __always_inline int stack_guess_is_frameless(const struct stack_walk *walk, __u64 top)
{
	__u64 code, into;

	if (walk->sp & 7 || !stack_walk_is_code(top))
		return 0;
	code = stack_guess_code_before(top);
	if (!stack_guess_is_call(code))
		return 0;
	if ((walk->sp & 15) == 8)
		return 1;
	into = walk->ip - (top + (__u64)(__s64)(__s32)(code >> 32));
	return ((code >> 24) & 0xff) == 0xe8 && into < FRAMELESS_BYTES_MAX;
}

/* Where the return address of the interrupted function lies, told from its instructions: bytes
 * above the stack pointer, or −1 when they do not tell. code: the bytes from the instruction on,
 * lowest first; before: the one before it. Numbers, not an array: 5.10 wants stack accesses at
 * fixed places. */
static __always_inline int stack_guess_leaf_offset(__u64 code, __u64 before)
{
	__u64 two = code & 0xffff, three = code & 0xffffff;

	if ((code & 0xff) == 0x55 ||             /* push %rbp comes next */
	    (code & 0xffffffff) == 0xfa1e0ff3 || /* endbr64 */
	    (code & 0xff) == 0xc3 ||             /* ret */
	    (code & 0xff) == 0xc2 ||             /* ret imm16 */
	    two == 0xc3f3 || two == 0xc3f2 ||    /* repz ret, bnd ret */
	    two == 0x25ff || three == 0x25fff2)  /* [bnd] jmp *GOT(%rip): PLT entry or tail call */
		return 0;
	/* mov %rsp,%rbp in both encodings, the push before it is done */
	if (before == 0x55 && (three == 0xe58948 || three == 0xec8b48))
		return 8;
	return -1;
}

/* At a function's first and last instructions the frame pointer is still, or again, its caller's: a
 * walk along it would lose the direct caller. Returns 1 when this rung knew the way. */
static __always_inline int stack_guess_leaf(struct stack_walk *walk, __u64 *frames, int *ended)
{
	__u64 code = 0, before = 0;
	__u64 saved[2]; /* saved frame pointer and return address */
	int offset, is_signal;

	if (STACK_WALK_READ(&code, sizeof(code), walk->ip - 1)) { /* reaches into a hole? */
		code = 0;
		if (STACK_WALK_READ(&code, 1, walk->ip))
			return 0;
	} else {
		before = code & 0xff;
		code >>= 8;
	}
	if ((code & 0xffff) == SYSCALL_CODE) { /* changes neither: what follows it tells */
		before = 0;
		code >>= 16;
	}
	offset = stack_guess_leaf_offset(code, before);
	if (offset <= 0) {
		if (STACK_WALK_READ(&saved[1], sizeof(saved[1]), walk->sp))
			return 0;
		is_signal = (walk->sp & 15) == 8 && stack_guess_is_sigreturn(saved[1]);
		if (offset < 0 && !is_signal && !stack_guess_is_frameless(walk, saved[1]))
			return 0;
		offset = 0;
	} else if (STACK_WALK_READ(saved, sizeof(saved), walk->sp)) {
		return 0;
	}
	if (!stack_walk_is_code(saved[1]))
		return 0;
	/* The trampoline: the first or last instruction of a signal handler. */
	if (!stack_guess_is_sigreturn(saved[1]) && !stack_guess_follows_call(saved[1]))
		return 0;
	if (offset)
		stack_guess_frame_pointer(walk, saved[0]);
	*ended = stack_guess_caller(walk, frames, saved[1], walk->sp + offset + 8);
	return 1;
}

/* A caller that has nothing left to do but to give its room back: `add $N,%rsp; ret` comes right
 * behind the call. Trampolines of CPython's perf support are made like that, in code of no file;
 * they leave the frame pointer to whoever had it. Returns 1 when this rung knew the way. */
static __always_inline int stack_guess_trampoline(struct stack_walk *walk, __u64 *frames,
						  int *ended)
{
	__u64 code = 0, address = 0, sp;

	if (STACK_WALK_READ(&code, sizeof(code), walk->ip) || (code & 0xffffff) != 0xc48348 ||
	    ((code >> 32) & 0xff) != 0xc3 || code & 0x87000000)
		return 0;
	sp = walk->sp + ((code >> 24) & 0xff);
	if (STACK_WALK_READ(&address, sizeof(address), sp) || !stack_walk_is_code(address) ||
	    !stack_guess_follows_call(address))
		return 0;
	walk->is_guessed = 1;
	*ended = stack_walk_caller(walk, frames, address, sp + 8, 0);
	return 1;
}

#else

/* Code before an address is not looked at. */
static __always_inline __u64 stack_guess_code_before(__u64 address)
{
	(void)address;
	return 0;
}

static __always_inline int stack_guess_follows_call(__u64 address)
{
	return stack_guess_code_before(address) != 0;
}

/* arm64 keeps a leaf's return address in a register whose content the instructions do not tell. */
static __always_inline int stack_guess_leaf(struct stack_walk *walk, __u64 *frames, int *ended)
{
	(void)walk, (void)frames, (void)ended;
	return 0;
}

/* Those of arm64 have frame pointers. */
static __always_inline int stack_guess_trampoline(struct stack_walk *walk, __u64 *frames,
						  int *ended)
{
	(void)walk, (void)frames, (void)ended;
	return 0;
}

#endif

/* {caller's frame pointer, return address} lie at the frame pointer, on x86-64 and on arm64. */
static __always_inline int stack_guess_by_frame_pointer(struct stack_walk *walk, __u64 *frames)
{
	__u64 record[3] = {}; /* the third: what lies on top of the stack after the return */
	__u64 fp = walk->fp;

	if (!stack_walk_knows(walk, UNWIND_REGISTER_FP))
		return stack_walk_end(walk, walk->lacks);
	/* 0 is the outermost frame's, says the ABI; user space checks where that lies. */
	walk->is_end_guessed = 1;
	if (fp == 0)
		return stack_walk_end(walk, WALK_complete);
	/* Callers' frames lie above. A frame pointer that is below, odd or far off is a register
	 * the code uses for something else. fp == sp is a frame without locals. */
	if (fp & 7 || fp < walk->sp || fp - walk->sp > STACK_FRAME_BYTES_MAX)
		return stack_walk_end(walk, walk->lacks);
	/* Three words cost one read like two; at a mapping's last bytes there are only two. */
	if (STACK_WALK_READ(record, sizeof(record), fp)) {
		record[2] = ~0ULL;
		if (STACK_WALK_READ(record, 2 * sizeof(record[0]), fp))
			return stack_walk_end(walk, WALK_read_fault);
	}
#if !STACK_WALK_X86
	record[1] &= (1ULL << USER_ADDRESS_BITS) - 1; /* pointer authentication code */
#endif
	if (record[0] == 0 && record[1] == 0)
		return stack_walk_end(walk, WALK_complete);
	if (!stack_walk_is_code(record[1]))
		return stack_walk_end(walk, walk->lacks);
#if STACK_WALK_X86
	/* Code that uses the register for something else. What starts a thread of its own making
	 * (Go's goexit, makecontext) puts an address there that nobody called from; a signal's
	 * trampoline is not called either. */
	if (record[0] && !stack_guess_follows_call(record[1]) &&
	    (record[2] > SIGNAL_FLAGS_MAX || !stack_guess_is_sigreturn(record[1])))
		return stack_walk_end(walk, walk->lacks);
#endif
	walk->is_end_guessed = 0;
	stack_guess_frame_pointer(walk, record[0]);
	return stack_guess_caller(walk, frames, record[1], fp + 16);
}

/* Finds one caller by the first rung that knows the way; a signal's trampoline leads to what the
 * signal hit. */
static __always_inline int stack_guess(struct stack_walk *walk, __u64 *frames,
				       enum walk_result lacks)
{
	int ended = 0;

	walk->lacks = lacks;
	if (!walk->is_interrupted && stack_guess_is_sigreturn(walk->ip)) {
		walk->is_guessed = 1;
		return stack_walk_signal(walk, frames, walk->sp + SIGNAL_CONTEXT);
	}
	if (walk->is_interrupted && stack_guess_leaf(walk, frames, &ended))
		return ended;
	if (!walk->is_interrupted && lacks == WALK_no_frame_pointer &&
	    stack_guess_trampoline(walk, frames, &ended))
		return ended;
	return stack_guess_by_frame_pointer(walk, frames);
}

#endif
