/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What HotSpot's compilers have put around an interrupted instruction, as far as it tells where the
 * return address is: the ways into a frame and out of it, of which there are few. x86-64.
 *
 * Where they come from: cpu/x86/x86_64.ad (MachPrologNode, MachEpilogNode), macroAssembler_x86.cpp
 * (verified_entry), c1_MacroAssembler_x86.cpp (build_frame), sharedRuntime_x86_64.cpp
 * (generate_native_wrapper), templateTable_x86.cpp (remove_activation); looked up in the code that
 * 8, 11, 17, 21 and 25 make. */
#ifndef BPF_HOTSPOT_CODE_BPF_H
#define BPF_HOTSPOT_CODE_BPF_H

#include "bpf/hotspot_frames.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/* 16 bytes before the instruction and 16 from it on, lowest first. */
struct hotspot_code {
	__u64 earlier, before, next, after;
};

/* What the walk through one process' Java frames keeps. */
struct hotspot_walk {
	__u64 low, bytes; /* of the code cache; bytes 0: there is none that is known */
	__u64 blob, name; /* the CodeBlob's address, the beginning of its name */
	struct hotspot_code code;
	__u64 read[HOTSPOT_BLOB_BYTES / sizeof(__u64)]; /* of the blob, or of a ConstMethod */
};

/* Where a compiled method's frame is. */
enum hotspot_state {
	HOTSPOT_FRAMED,    /* all of it is there, the caller's frame pointer below the address */
	HOTSPOT_FRAMELESS, /* the return address is on top */
	HOTSPOT_PUSHED,    /* the caller's frame pointer is, and the return address above it */
	HOTSPOT_UNSAVED,   /* all of it is there, the frame pointer is still the caller's */
	HOTSPOT_CALLED,    /* one more word lies on the frame */
};

/* `bytes` of the instructions before, the first of which is `back` bytes away (8 at most). */
static __always_inline __u64 hotspot_before(const struct hotspot_code *code, __u32 back,
					    __u32 bytes)
{
	return code->before >> (64 - 8 * back) & (~0ULL >> (64 - 8 * bytes));
}

static __always_inline __u64 hotspot_next(const struct hotspot_code *code, __u32 bytes)
{
	return code->next & (~0ULL >> (64 - 8 * bytes));
}

/* Does `sub $n,%rsp`, `add $n,%rsp` end so many bytes before? operation: 0xec, 0xc4 */
static __always_inline int hotspot_moved(const struct hotspot_code *code, __u32 back,
					 __u64 operation)
{
	return hotspot_before(code, 4 + back, 3) == (operation << 16 | 0x8348) ||
	       (back <= 1 && hotspot_before(code, 7 + back, 3) == (operation << 16 | 0x8148));
}

/* `mov %rsp,%rbp` in both encodings */
static __always_inline int hotspot_is_enter(__u64 three)
{
	return three == 0xec8b48 || three == 0xe58948;
}

/* Frame pointer pushed, room not yet made; or given back, and not yet popped. */
static __always_inline int hotspot_is_pushed(const struct hotspot_code *code)
{
	const __u64 three = hotspot_next(code, 3);
	const int is_sub = three == 0xec8348 || three == 0xec8148;

	if (hotspot_before(code, 1, 1) == 0x55)
		return is_sub || hotspot_is_enter(three);
	if (is_sub)
		return hotspot_before(code, 4, 1) == 0x55 &&
		       hotspot_is_enter(hotspot_before(code, 3, 3));
	return hotspot_next(code, 1) == 0x5d && hotspot_moved(code, 0, 0xc4);
}

/* A return's poll: the frame is gone. Also the first instruction of whatever comes then, and the
 * way to the handler of a poll that has hit (C2SafepointPollStub). */
static __always_inline int hotspot_is_poll(const struct hotspot_code *code)
{
	const __u64 two = hotspot_next(code, 2), three = hotspot_next(code, 3);

	if (hotspot_before(code, 1, 1) == 0x5d && hotspot_moved(code, 1, 0xc4))
		return 1;
	if (three == 0x673b49 || three == 0xa73b49) /* cmp n(%r15),%rsp */
		return 1;
	if (two == 0x870f) /* ja behind it */
		return hotspot_before(code, 4, 3) == 0x673b49 ||
		       hotspot_before(code, 7, 3) == 0xa73b49;
	if (two == 0x8541) /* test %eax,(%r…) behind `pop; mov n(%r15),%r10` */
		return hotspot_before(code, 8, 4) == 0x978b4d5d ||
		       hotspot_before(code, 5, 4) == 0x578b4d5d;
	if (three == 0x158d4c) /* lea (%rip),%r10; mov %r10,n(%r15) */
		return code->next >> 56 == 0x4d &&
		       ((code->after & 0xffff) == 0x9789 || (code->after & 0xffff) == 0x5789);
	if (three == 0x97894d || three == 0x57894d)
		return hotspot_before(code, 7, 3) == 0x158d4c;
	return (two & 0xff) == 0xe9 &&
	       (hotspot_before(code, 7, 3) == 0x97894d || hotspot_before(code, 4, 3) == 0x57894d);
}

/* A native method's way out: `leave; cmpq $0,pending(%r15); jne …; ret` with 8 or 32 bits; virtual
 * threads that go on come to the comparison from elsewhere. */
static __always_inline int hotspot_has_left(const struct hotspot_code *code)
{
	const __u64 two = hotspot_next(code, 2), three = hotspot_next(code, 3);

	if (three == 0x7f8349 || three == 0x7f8149)
		return hotspot_before(code, 1, 1) == 0xc9 ||
		       ((code->next >> 40 & 0xffff) == 0x850f &&
			(code->after >> 24 & 0xff) == 0xc3);
	if (two != 0x850f && (two & 0xff) != 0x75)
		return 0;
	return hotspot_before(code, 6, 4) == 0x7f8349c9 ||
	       (hotspot_before(code, 5, 3) == 0x7f8349 && (code->next >> 48 & 0xff) == 0xc3) ||
	       (hotspot_before(code, 8, 3) == 0x7f8149 && code->earlier >> 56 == 0xc9);
}

/* Stubs of static calls lie behind a method's code, and are called by it:
 * `mov $method,%rbx; jmp …` */
static __always_inline int hotspot_is_call_stub(const struct hotspot_code *code)
{
	if (hotspot_next(code, 2) == 0xbb48)
		return (code->after >> 16 & 0xff) == 0xe9;
	return hotspot_next(code, 1) == 0xe9 && code->earlier >> 48 == 0xbb48;
}

static __always_inline int hotspot_is_return(const struct hotspot_code *code)
{
	const __u64 two = hotspot_next(code, 2);

	return (two & 0xff) == 0xc3 || (two & 0xff) == 0xc2 || two == 0xc3f3 || two == 0xc3f2;
}

/* The way in: is the frame there already? What follows it is the barrier of newer ones,
 * `cmpl $n,n(%r15); jne`, with padding in front of it. */
static __always_inline int hotspot_is_in(const struct hotspot_code *code)
{
	const __u64 three = hotspot_next(code, 3);

	return hotspot_moved(code, 0, 0xec) || three == 0x7f8141 || three == 0xbf8141 ||
	       hotspot_before(code, 8, 3) == 0x7f8141 || hotspot_before(code, 5, 4) == 0x246c8948 ||
	       hotspot_before(code, 8, 4) == 0x24ac8948;
}

/* `mov %rbp,n(%rsp)` */
static __always_inline int hotspot_is_unsaved(const struct hotspot_code *code)
{
	return hotspot_next(code, 4) == 0x246c8948 || hotspot_next(code, 4) == 0x24ac8948;
}

/* The deoptimization handler: `call .+5; subq $5,(%rsp); jmp …` */
static __always_inline int hotspot_is_deopt(const struct hotspot_code *code)
{
	return (hotspot_next(code, 4) == 0x242c8348 && hotspot_before(code, 5, 5) == 0xe8) ||
	       (hotspot_next(code, 1) == 0xe9 && hotspot_before(code, 5, 5) == 0x05242c8348);
}

/* is_early: the instruction is before the place from which on the frame is said to be there. */
static __always_inline enum hotspot_state hotspot_state_of(const struct hotspot_code *code,
							   int is_early)
{
	if (hotspot_is_return(code) || hotspot_is_poll(code) || hotspot_has_left(code) ||
	    hotspot_is_call_stub(code))
		return HOTSPOT_FRAMELESS;
	if (hotspot_is_pushed(code))
		return HOTSPOT_PUSHED;
	/* push %rbp behind the stack's bang, `mov %eax,-n(%rsp)` */
	if (hotspot_next(code, 1) == 0x55 && hotspot_before(code, 7, 3) == 0x248489)
		return HOTSPOT_FRAMELESS;
	if (is_early)
		return hotspot_is_unsaved(code) ? HOTSPOT_UNSAVED
		       : hotspot_is_in(code)    ? HOTSPOT_FRAMED
						: HOTSPOT_FRAMELESS;
	return hotspot_is_deopt(code) ? HOTSPOT_CALLED : HOTSPOT_FRAMED;
}

/* --- the interpreter's way out --- */

/* `leave; pop A; mov B,%rsp; jmp A`: the return address is on top or in A, the caller's stack
 * pointer in B or is it already. Without the first part it is a method's that has no frame. */
struct hotspot_leaving {
	__s32 address; /* its register, DWARF number; −1: on top */
	__s32 sp;      /* the same; −1: it is the stack pointer */
	__s32 popped;  /* bytes that the stack pointer is above the frame pointer's place */
};

/* DWARF's number of the register that instructions call so. */
static __always_inline __s32 hotspot_register(__u64 number, int is_upper)
{
	if (is_upper)
		return 8 + (__s32)(number & 7);
	return (__s32)(0x54673120U >> (number & 7) * 4 & 15);
}

/* `mov B,%rsp`: 0 or B's number + 1 */
static __always_inline __s32 hotspot_is_back(__u64 three)
{
	if ((three & 0xf8fffe) != 0xe08b48)
		return 0;
	return hotspot_register(three >> 16, three & 1) + 1;
}

/* 0: it is not there. */
static __always_inline int hotspot_leaving_of(const struct hotspot_code *code, int is_framed,
					      struct hotspot_leaving *out)
{
	const __u64 one = hotspot_next(code, 1), two = hotspot_next(code, 2);
	const __u64 last = hotspot_before(code, 1, 1), pair = hotspot_before(code, 2, 2);
	__s32 sp;

	if ((one & 0xf8) == 0x58 || (two & 0xf8ff) == 0x5841) { /* pop */
		sp = hotspot_is_back(code->next >> ((one & 0xf8) == 0x58 ? 8 : 16) & 0xffffff);
		*out = (struct hotspot_leaving){-1, sp - 1, 8};
		return sp && (!is_framed || last == 0xc9);
	}
	sp = hotspot_is_back(hotspot_next(code, 3));
	if (sp && (last & 0xf8) == 0x58) { /* mov */
		const int is_upper = (pair & 0xff) == 0x41;

		*out = (struct hotspot_leaving){hotspot_register(last, is_upper), sp - 1, 16};
		return !is_framed || (is_upper ? hotspot_before(code, 3, 1) : pair & 0xff) == 0xc9;
	}
	if (((two & 0xf8ff) == 0xe0ff || (hotspot_next(code, 3) & 0xf8ffff) == 0xe0ff41) &&
	    hotspot_is_back(hotspot_before(code, 3, 3))) { /* jmp */
		const int is_upper = one == 0x41;

		*out = (struct hotspot_leaving){
			hotspot_register(code->next >> (is_upper ? 16 : 8), is_upper), -1, 0};
		return 1;
	}
	return 0;
}

#endif
