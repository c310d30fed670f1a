/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* One user stack, frame by frame. Memory is read through STACK_WALK_READ() alone, which whoever
 *includes this defines: bpf_probe_read_user() in the kernel; tests compile the same lines as
 *ordinary C and step through stacks they made up.
 *
 *	struct stack_walk walk = { .ip = …, .sp = …, .fp = …, .limit = 512 };
 *	if (!stack_walk_begin(&walk, frames))
 *		while (!stack_walk_step(&walk, frames))
 *			;
 *	// walk.count frames, leaf first; walk.result says how it ended
 *
 * Frames are as bpf/events.h says: the leaf as it is, everything else a return address. What a
 *signal interrupted is stored as its address + 1, so that "subtract one" holds for it too. */
#ifndef BPF_STACK_WALK_BPF_H
#define BPF_STACK_WALK_BPF_H

#include <linux/types.h>

#include "bpf/events.h"
#include "bpf/results.h"

#ifndef STACK_WALK_READ
#error "define STACK_WALK_READ(to, bytes, from): 0, or what went wrong"
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
	STACK_FRAME_BYTES_MAX =
		1 << 20,            /* a frame pointer farther from the stack pointer is none */
	FRAMELESS_BYTES_MAX = 4096, /* of a function that sets up no frame */
	SIGNAL_FLAGS_MAX = 7, /* uc_flags: UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS */
	USER_ADDRESS_MIN = 4096,
	USER_ADDRESS_BITS =
		56, /* five-level page tables; what is too high here lies in no mapping */
};

struct stack_walk {
	__u64 ip, sp, fp;    /* of the frame whose caller comes next */
	__u32 first;         /* index in frames where the user part begins */
	__u32 count;         /* frames found, the leaf included */
	__u32 limit;         /* most frames wanted, 1 to USER_FRAMES_MAX */
	__u8 result;         /* enum walk_result, once the walk has ended */
	__u8 is_interrupted; /* ip is an instruction, not a return address */
	__u8 is_guessed;     /* some caller was found without an unwind row */
	__u8 leaf_way;       /* enum leaf_way, of the first caller */
};

/* Both step functions: 0 to go on, 1 when the walk has ended. */
static __always_inline int stack_walk_end(struct stack_walk *walk, enum walk_result result)
{
	walk->result = result;
	return 1;
}

static __always_inline int stack_walk_is_code(__u64 address)
{
	return address >= USER_ADDRESS_MIN && !(address >> USER_ADDRESS_BITS);
}

static __always_inline int stack_walk_add(struct stack_walk *walk, __u64 *frames, __u64 address)
{
	__u32 at = walk->first + walk->count;

	if (walk->count >= walk->limit || at >= STACK_FRAMES_ROOM)
		return stack_walk_end(walk, WALK_too_deep);
	frames[at] = address;
	walk->count++;
	return 0;
}

/* Stores the leaf. */
static __always_inline int stack_walk_begin(struct stack_walk *walk, __u64 *frames)
{
	walk->count = 0;
	walk->is_guessed = 0;
	walk->leaf_way = LEAF_FRAME_POINTER;
	walk->is_interrupted = 1;
	walk->result = WALK_complete;
	if (!stack_walk_is_code(walk->ip))
		return stack_walk_end(walk, WALK_bad_address);
	return stack_walk_add(walk, frames, walk->ip);
}

static __always_inline int stack_walk_signal(struct stack_walk *walk, __u64 *frames);

/* Stores one caller and stands there. A signal's trampoline is the frame of a call that never was:
 * its address is exact, and so is the one it will go back to. */
static __always_inline int stack_walk_caller(struct stack_walk *walk, __u64 *frames, __u64 address,
					     __u64 sp, __u64 fp, int is_signal)
{
	walk->ip = address;
	walk->sp = sp;
	walk->fp = fp;
	walk->is_interrupted = 0;
	walk->is_guessed = 1;
	if (stack_walk_add(walk, frames, is_signal ? address + 1 : address))
		return 1;
	return is_signal ? stack_walk_signal(walk, frames) : 0;
}

#if STACK_WALK_X86

/* `mov $__NR_rt_sigreturn,%rax; syscall` without its last byte: what a signal handler returns to,
 * the same bytes in glibc and musl; debuggers and libgcc know the frame by them as well. */
#define SIGRETURN_CODE 0x0f0000000fc0c748ULL

/* Of struct rt_sigframe (arch/x86/include/asm/sigframe.h) after its return address: struct
 * ucontext. */
enum {
	SIGNAL_FP_OFFSET = 120,
	SIGNAL_SP_OFFSET = 160, /* then ip */
};

static __always_inline int stack_walk_is_sigreturn(__u64 address)
{
	__u64 code;

	return !STACK_WALK_READ(&code, sizeof(code), address) && code == SIGRETURN_CODE;
}

/* On top of the stack lies what the kernel saved for a signal: go on where it hit. */
static __always_inline int stack_walk_signal(struct stack_walk *walk, __u64 *frames)
{
	struct {
		__u64 sp, ip;
	} saved;
	__u64 fp;

	if (STACK_WALK_READ(&fp, sizeof(fp), walk->sp + SIGNAL_FP_OFFSET) ||
	    STACK_WALK_READ(&saved, sizeof(saved), walk->sp + SIGNAL_SP_OFFSET))
		return stack_walk_end(walk, WALK_read_fault);
	if (!stack_walk_is_code(saved.ip))
		return stack_walk_end(walk, WALK_bad_address);
	walk->ip = saved.ip;
	walk->sp = saved.sp;
	walk->fp = fp;
	walk->is_interrupted = 1;
	return stack_walk_add(walk, frames, saved.ip + 1);
}

/* The eight bytes before address, the last one on top; 0: they cannot be read. */
static __always_inline __u64 stack_walk_code_before(__u64 address)
{
	__u64 code;

	return STACK_WALK_READ(&code, sizeof(code), address - sizeof(code)) ? 0 : code;
}

/* Does a call end right before address? code: what stack_walk_code_before() gave. The encodings of
 * `call rel32` and of `call r/m64` without and with prefix, index and displacement. */
static __always_inline int stack_walk_is_call(__u64 code)
{
	return ((code >> 24) & 0xff) == 0xe8 || ((code >> 48) & 0x38ff) == 0x10ff ||
	       ((code >> 40) & 0x38ff) == 0x10ff || ((code >> 32) & 0x38ff) == 0x10ff ||
	       ((code >> 16) & 0x38ff) == 0x10ff || ((code >> 8) & 0x38ff) == 0x10ff;
}

static __always_inline int stack_walk_follows_call(__u64 address)
{
	return stack_walk_is_call(stack_walk_code_before(address));
}

/* Is [sp] the return address of a function that sets up no frame? Compilers leave the frame pointer
 * to the caller in functions that call nobody, whatever -fno-omit-frame-pointer says (GCC), and on
 * the early ways out of others. The ABI has every call made with an aligned stack, so only code
 * without a frame has it off by a word; Go aligns nothing, but its calls are direct. */
static __always_inline int stack_walk_is_frameless(const struct stack_walk *walk, __u64 top)
{
	__u64 code, into;

	if (walk->sp & 7 || !stack_walk_is_code(top))
		return 0;
	code = stack_walk_code_before(top);
	if (!stack_walk_is_call(code))
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
static __always_inline int stack_walk_leaf_offset(__u64 code, __u64 before)
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
static __always_inline int stack_walk_leaf(struct stack_walk *walk, __u64 *frames, int *ended)
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
	offset = stack_walk_leaf_offset(code, before);
	if (offset <= 0) {
		saved[0] = walk->fp;
		if (STACK_WALK_READ(&saved[1], sizeof(saved[1]), walk->sp))
			return 0;
		is_signal = (walk->sp & 15) == 8 && stack_walk_is_sigreturn(saved[1]);
		if (offset < 0 && !is_signal && !stack_walk_is_frameless(walk, saved[1]))
			return 0;
		offset = 0;
	} else if (STACK_WALK_READ(saved, sizeof(saved), walk->sp)) {
		return 0;
	}
	if (!stack_walk_is_code(saved[1]))
		return 0;
	/* The trampoline: the first or last instruction of a signal handler. */
	is_signal = stack_walk_is_sigreturn(saved[1]);
	if (!is_signal && !stack_walk_follows_call(saved[1]))
		return 0;
	if (walk->count == 1)
		walk->leaf_way = offset ? LEAF_FRAME_ON_TOP : LEAF_RETURN_ON_TOP;
	*ended = stack_walk_caller(walk, frames, saved[1], walk->sp + offset + 8, saved[0],
				   is_signal);
	return 1;
}

#else

static __always_inline int stack_walk_is_sigreturn(__u64 address)
{
	(void)address;
	return 0;
}

static __always_inline int stack_walk_signal(struct stack_walk *walk, __u64 *frames)
{
	(void)frames;
	return stack_walk_end(walk, WALK_read_fault);
}

/* arm64 keeps a leaf's return address in a register whose content the instructions do not tell. */
static __always_inline int stack_walk_leaf(struct stack_walk *walk, __u64 *frames, int *ended)
{
	(void)walk, (void)frames, (void)ended;
	return 0;
}

#endif

/* {caller's frame pointer, return address} lie at the frame pointer, on x86-64 and on arm64. */
static __always_inline int stack_walk_frame_pointer(struct stack_walk *walk, __u64 *frames)
{
	__u64 record[3] = {}; /* the third: what lies on top of the stack after the return */
	__u64 fp = walk->fp;
	int is_signal;

	/* 0 is the outermost frame's, says the ABI; user space checks where that lies. */
	if (fp == 0)
		return stack_walk_end(walk, WALK_complete);
	/* Callers' frames lie above. A frame pointer that is below, odd or far off is a register
	 * the code uses for something else. fp == sp is a frame without locals. */
	if (fp & 7 || fp < walk->sp || fp - walk->sp > STACK_FRAME_BYTES_MAX)
		return stack_walk_end(walk, WALK_no_frame_pointer);
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
		return stack_walk_end(walk, WALK_no_frame_pointer);
	is_signal = record[2] <= SIGNAL_FLAGS_MAX && stack_walk_is_sigreturn(record[1]);
#if STACK_WALK_X86
	/* Code that uses the register for something else. What starts a thread of its own making
	 * (Go's goexit, makecontext) puts an address there that nobody called from. */
	if (!is_signal && record[0] && !stack_walk_follows_call(record[1]))
		return stack_walk_end(walk, WALK_no_frame_pointer);
#endif
	return stack_walk_caller(walk, frames, record[1], fp + 16, record[0], is_signal);
}

/* Finds one caller (two frames where a signal came between) by the first rung of the ladder that
 * knows the way. The order is: the code's unwind row, which is exact; the leaf's instructions; the
 * frame pointer. The two lower rungs guess. */
static __always_inline int stack_walk_step(struct stack_walk *walk, __u64 *frames)
{
	int ended = 0;

	/* Rows of the code's own unwind tables are looked up here, before anything is guessed; as
	 * long as no map carries any, every address goes on down. */
	if (walk->is_interrupted && stack_walk_leaf(walk, frames, &ended))
		return ended;
	return stack_walk_frame_pointer(walk, frames);
}

#endif
