/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel side's walk as ordinary C, over stacks and code that are made up here. */
#include "tests/unit/bpf/stack_world.h"

static void test_chain(void)
{
	world_clear();
	frame_put(10, word(20), CODE + 0x200);
	frame_put(20, word(40), CODE + 0x300);
	frame_put(40, 0, CODE + 0x400);
	CHECK_NUMBER(run(CODE + 0x100, word(5), word(10)), WALK_complete);
	CHECK_NUMBER(walk.count, 4);
	CHECK_NUMBER(frames[0], CODE + 0x100);
	CHECK_NUMBER(frames[1], CODE + 0x200);
	CHECK_NUMBER(frames[2], CODE + 0x300);
	CHECK_NUMBER(frames[3], CODE + 0x400);
	CHECK(walk.is_guessed);
}

/* The user part stands behind the kernel part. */
static void test_behind_kernel_frames(void)
{
	world_clear();
	walk.first = KERNEL_FRAMES_MAX;
	frame_put(10, 0, CODE + 0x200);
	CHECK_NUMBER(run(CODE + 0x100, word(10), word(10)), WALK_complete);
	CHECK_NUMBER(frames[KERNEL_FRAMES_MAX], CODE + 0x100);
	CHECK_NUMBER(frames[KERNEL_FRAMES_MAX + 1], CODE + 0x200);
	CHECK_NUMBER(frames[0], 0);
}

static void test_ends(void)
{
	world_clear();
	CHECK_NUMBER(run(CODE + 0x100, word(5), 0),
		     WALK_complete); /* a leaf that says it is outermost */
	CHECK_NUMBER(walk.count, 1);
	CHECK(!walk.is_guessed);
	CHECK(walk.is_end_guessed);

	world_clear();
	frame_put(10, word(20), CODE + 0x200);
	frame_put(20, 0, 0); /* as thread libraries put it on a fresh stack */
	CHECK_NUMBER(run(CODE + 0x100, word(5), word(10)), WALK_complete);
	CHECK_NUMBER(walk.count, 2);

	world_clear();
	CHECK_NUMBER(run(0, word(5), word(10)), WALK_bad_address);
	CHECK_NUMBER(walk.count, 0);
	CHECK_NUMBER(run(0xffffffff81000000ULL, word(5), word(10)), WALK_bad_address);
	CHECK_NUMBER(walk.count, 0);
}

/* A frame pointer register that holds something else. */
static void test_no_frame_pointer(void)
{
	const uint64_t implausible[] = {
		1,            /* as libc's start leaves it */
		word(10) + 4, /* not aligned */
		word(4),      /* below the stack pointer */
		word(5) + STACK_FRAME_BYTES_MAX + 8,
		CODE,
		~7ULL,
	};

	for (size_t i = 0; i < sizeof implausible / sizeof *implausible; i++) {
		world_clear();
		frame_put(10, implausible[i], CODE + 0x200);
		CHECK_NUMBER(run(CODE + 0x100, word(5), implausible[i]), WALK_no_frame_pointer);
		CHECK_NUMBER(walk.count, 1);
	}
	/* the same one frame further up */
	world_clear();
	frame_put(10, 1, CODE + 0x200);
	CHECK_NUMBER(run(CODE + 0x100, word(5), word(10)), WALK_no_frame_pointer);
	CHECK_NUMBER(walk.count, 2);
	/* points into the stack, but at something that is no frame */
	world_clear();
	frame_put(10, word(20), 42);
	CHECK_NUMBER(run(CODE + 0x100, word(5), word(10)), WALK_no_frame_pointer);
	CHECK_NUMBER(walk.count, 1);
}

/* Code of no file that only gives its room back behind its call: the frame pointer is not its. */
static void test_trampoline(void)
{
#if !defined(__x86_64__)
	SKIP("the code is x86-64's");
	return;
#endif
	static const uint8_t made[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd1,
				       0x48, 0x83, 0xc4, 0x08, 0xc3};

	for (int broken = 0; broken < 3; broken++) {
		world_clear();
		memcpy(code + 0x200, made, sizeof made);
		if (broken == 1)
			code[0x20a] = 0x90; /* it does not return yet */
		rule_put(CODE + 0x100, CODE + 0x140,
			 (struct unwind_rule){.cfa = UNWIND_CFA_REGISTER,
					      .cfa_register = UNWIND_REGISTER_SP,
					      .cfa_offset = 16,
					      .fp = UNWIND_FP_SAME,
					      .ra = UNWIND_RA_AT_CFA,
					      .ra_offset = -8});
		stack[6] = CODE + 0x206; /* into the trampoline, behind its call */
		stack[8] = broken == 2 ? 42 : CODE + 0x300;
		code[0x300 - 5] = 0xe8;
		frame_put(20, 0, CODE + 0x400); /* of who called it */
		CHECK_NUMBER(run(CODE + 0x110, word(5), word(20)), WALK_complete);
		CHECK_NUMBER(walk.count, broken ? 3 : 4);
		CHECK_NUMBER(frames[1], CODE + 0x206);
		CHECK_NUMBER(frames[2], broken ? CODE + 0x400 : CODE + 0x300);
		CHECK(walk.is_guessed);
	}
}

static void test_loops(void)
{
	world_clear();
	frame_put(10, word(10), CODE + 0x200); /* its own caller */
	CHECK_NUMBER(run(CODE + 0x100, word(5), word(10)), WALK_no_frame_pointer);
	CHECK_NUMBER(walk.count, 2);
	world_clear();
	frame_put(10, word(20), CODE + 0x200);
	frame_put(20, word(10), CODE + 0x300);
	CHECK_NUMBER(run(CODE + 0x100, word(5), word(10)), WALK_no_frame_pointer);
	CHECK_NUMBER(walk.count, 3);
}

static void test_read_fault(void)
{
	world_clear();
	frame_put(10, STACK + sizeof stack + 64, CODE + 0x200); /* in reach, but not there */
	CHECK_NUMBER(run(CODE + 0x100, word(5), word(10)), WALK_read_fault);
	CHECK_NUMBER(walk.count, 2);
	/* the last two words of the stack's memory are a frame all the same */
	world_clear();
	frame_put(10, word(STACK_WORDS - 2), CODE + 0x200);
	frame_put(STACK_WORDS - 2, 0, CODE + 0x300);
	CHECK_NUMBER(run(CODE + 0x100, word(5), word(10)), WALK_complete);
	CHECK_NUMBER(walk.count, 3);
}

static void chain_of(unsigned depth)
{
	world_clear();
	for (unsigned i = 0; i < depth; i++)
		frame_put(2 * i, i + 1 < depth ? word(2 * i + 2) : 0, CODE + 0x200 + i);
}

static void test_depth(void)
{
	chain_of(1000);
	CHECK_NUMBER(run(CODE + 0x100, STACK, STACK), WALK_too_deep);
	CHECK_NUMBER(walk.count, USER_FRAMES_DEFAULT);
	CHECK_NUMBER(frames[0], CODE + 0x100); /* the leaf is kept, the root end cut */
	CHECK_NUMBER(frames[USER_FRAMES_DEFAULT - 1], CODE + 0x200 + USER_FRAMES_DEFAULT - 2);
	CHECK_NUMBER(frames[USER_FRAMES_DEFAULT], 0);

	chain_of(7); /* and the leaf: exactly as deep as wanted */
	walk.limit = 8;
	CHECK_NUMBER(run(CODE + 0x100, STACK, STACK), WALK_complete);
	CHECK_NUMBER(walk.count, 8);
	chain_of(8);
	walk.limit = 8;
	CHECK_NUMBER(run(CODE + 0x100, STACK, STACK), WALK_too_deep);
	CHECK_NUMBER(walk.count, 8);

	chain_of(1500);
	walk.limit = USER_FRAMES_MAX;
	walk.first = KERNEL_FRAMES_MAX;
	CHECK_NUMBER(run(CODE + 0x100, STACK, STACK), WALK_too_deep);
	CHECK_NUMBER(walk.count, USER_FRAMES_MAX);
}

#if STACK_WALK_X86
struct leaf_row {
	const char *what, *bytes; /* the byte before the instruction, then the instruction */
	size_t length;
	int offset; /* of the return address in words above the stack pointer; −1: not a first or
		       last one */
};

/* The encodings are those of `as`, checked with objdump. */
static const struct leaf_row leaf_rows[] = {
	{"push %rbp", "\x90\x55\x48\x89\xe5", 5, 0},
	{"endbr64", "\x90\xf3\x0f\x1e\xfa\x55", 6, 0},
	{"mov %rsp,%rbp after push", "\x55\x48\x89\xe5", 4, 1},
	{"mov %rsp,%rbp after push, other encoding", "\x55\x48\x8b\xec", 4, 1},
	{"mov %rsp,%rbp elsewhere", "\x90\x48\x89\xe5", 4, -1},
	{"ret", "\x5d\xc3", 2, 0},
	{"repz ret", "\x5d\xf3\xc3", 3, 0},
	{"bnd ret", "\x5d\xf2\xc3", 3, 0},
	{"ret $8", "\x5d\xc2\x08\x00", 4, 0},
	{"jmp *GOT(%rip)", "\xfa\xff\x25\x10\x20\x00\x00", 7, 0},
	{"bnd jmp *GOT(%rip)", "\xfa\xf2\xff\x25\x10\x20\x00\x00", 8, 0},
	{"pop %rbp", "\x90\x5d\xc3", 3, -1},
	{"leave", "\x90\xc9\xc3", 3, -1},
	{"repz stos", "\x90\xf3\xaa", 3, -1},
	{"push %r13", "\x90\x41\x55", 3, -1},
	{"syscall before ret", "\x90\x0f\x05\xc3", 4, 0},
	{"syscall elsewhere", "\x90\x0f\x05\x48\x3d", 5, -1},
};

static void test_leaf_instructions(void)
{
	for (size_t i = 0; i < sizeof leaf_rows / sizeof *leaf_rows; i++) {
		const struct leaf_row *row = &leaf_rows[i];
		uint64_t direct_caller = CODE + 0x300;

		printf("# %s\n", row->what);
		world_clear();
		code_put(CODE + 0x80 - 1, row->bytes, row->length);
		call_before(direct_caller);
		if (row->offset >= 0)
			stack[5 + row->offset] = direct_caller;
		if (row->offset == 1)
			stack[5] = word(10); /* pushed already */
		frame_put(10, 0, CODE + 0x400);
		CHECK_NUMBER(run(CODE + 0x80, word(5), row->offset == 1 ? 7 : word(10)),
			     WALK_complete);
		CHECK_NUMBER(walk.count, row->offset < 0 ? 2 : 3);
		CHECK_NUMBER(frames[1], row->offset < 0 ? CODE + 0x400 : direct_caller);
		CHECK_NUMBER(frames[walk.count - 1], CODE + 0x400);
	}
}

/* What looks like a first or last instruction is believed only if a call ends at the address. */
static void test_leaf_needs_a_call(void)
{
	static const struct {
		const char *bytes;
		size_t length;
	} calls[] = {
		{"\xe8\x01\x02\x03\x04", 5},             /* call rel32 */
		{"\xff\xd0", 2},                         /* call *%rax */
		{"\xff\x13", 2},                         /* call *(%rbx) */
		{"\x41\xff\x54\x24\x08", 5},             /* call *8(%r12) */
		{"\xff\x15\x10\x20\x00\x00", 6},         /* call *GOT(%rip) */
		{"\x41\xff\x94\x24\x00\x01\x00\x00", 8}, /* call *256(%r12) */
	};

	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		world_clear();
		code_put(CODE + 0x80, "\xc3", 1);
		code_put(CODE + 0x300 - calls[i].length, calls[i].bytes, calls[i].length);
		stack[5] = CODE + 0x300;
		CHECK_NUMBER(run(CODE + 0x80, word(5), 0), WALK_complete);
		CHECK_NUMBER(walk.count, 2);
	}
	world_clear();
	code_put(CODE + 0x80, "\x55", 1);
	stack[5] = CODE + 0x300; /* a saved register that happens to point to code */
	frame_put(10, 0, CODE + 0x400);
	CHECK_NUMBER(run(CODE + 0x80, word(5), word(10)), WALK_complete);
	CHECK_NUMBER(walk.count, 2);
	CHECK_NUMBER(frames[1], CODE + 0x400);
}

static void call_put(uint64_t return_address, uint64_t target)
{
	int32_t distance = (int32_t)(target - return_address);

	call_before(return_address);
	memcpy(&code[return_address - CODE - 4], &distance, sizeof distance);
}

/* A function that calls nobody has no frame, and the frame pointer is its caller's. */
static void test_frameless_leaf(void)
{
	static const struct {
		const char *what;
		unsigned sp;
		uint64_t target; /* of the call before stack[sp]; 0: an indirect one */
		bool is_leaf;
	} rows[] = {
		{"stack off by a word, indirect call", 5, 0, true},
		{"stack off by a word, direct call", 5, CODE + 0xa00, true},
		{"stack aligned, called right there", 4, CODE + 0xf0, true},
		{"stack aligned, called elsewhere: an old value", 4, CODE + 0x104, false},
		{"stack aligned, indirect call: an old value", 4, 0, false},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		printf("# %s\n", rows[i].what);
		world_clear();
		if (rows[i].target)
			call_put(CODE + 0x300, rows[i].target);
		else
			code_put(CODE + 0x300 - 2, "\xff\xd0", 2);
		stack[rows[i].sp] = CODE + 0x300;
		frame_put(10, 0, CODE + 0x400);
		CHECK_NUMBER(run(CODE + 0x100, word(rows[i].sp), word(10)), WALK_complete);
		CHECK_NUMBER(walk.count, rows[i].is_leaf ? 3 : 2);
		CHECK_NUMBER(frames[1], rows[i].is_leaf ? CODE + 0x300 : CODE + 0x400);
		CHECK_NUMBER(frames[walk.count - 1], CODE + 0x400);
	}
	world_clear(); /* no call before it: a saved register that happens to point to code */
	stack[5] = CODE + 0x300;
	frame_put(10, 0, CODE + 0x400);
	CHECK_NUMBER(run(CODE + 0x100, word(5), word(10)), WALK_complete);
	CHECK_NUMBER(walk.count, 2);
}

/* A frame pointer that is used for something else may lead to what looks like code. */
static void test_callers_need_a_call(void)
{
	world_clear();
	stack[10] = word(20);
	stack[11] = CODE + 0x200;
	frame_put(20, 0, CODE + 0x300);
	CHECK_NUMBER(run(CODE + 0x100, word(4), word(10)), WALK_no_frame_pointer);
	CHECK_NUMBER(walk.count, 1);
	stack[10] = 0; /* but the first frame of a coroutine was never called */
	CHECK_NUMBER(run(CODE + 0x100, word(4), word(10)), WALK_complete);
	CHECK_NUMBER(walk.count, 2);
}

/* Only the interrupted instruction is looked at that way: a return address may well point to a ret.
 */
static void test_leaf_only_once(void)
{
	world_clear();
	code_put(CODE + 0x200, "\xc3", 1);
	call_before(CODE + 0x300);
	frame_put(10, 0, CODE + 0x200);
	stack[12] = CODE + 0x300;
	CHECK_NUMBER(run(CODE + 0x100, word(5), word(10)), WALK_complete);
	CHECK_NUMBER(walk.count, 2);
}

/* Code at the very start of a mapping: the byte before it cannot be read. */
static void test_leaf_at_mapping_start(void)
{
	world_clear();
	code_put(CODE, "\xc3", 1);
	stack[5] = call_before(CODE + 0x300);
	CHECK_NUMBER(run(CODE, word(5), 0), WALK_complete);
	CHECK_NUMBER(walk.count, 2);
	CHECK_NUMBER(frames[1], CODE + 0x300);
}

static void test_signal(void)
{
	/* handler (leaf) → trampoline → interrupted function → its caller; the handler on a stack
	 * of its own, above the other one */
	world_clear();
	frame_put(1000, word(50), LIBC + 0x100);
	context_put(1002, CODE + 0x500, word(45), word(50));
	frame_put(50, 0, CODE + 0x600);
	CHECK_NUMBER(run(CODE + 0x100, word(990), word(1000)), WALK_complete);
	CHECK_NUMBER(walk.count, 4);
	CHECK_NUMBER(frames[1], LIBC + 0x100 + 1); /* exact after "subtract one" */
	CHECK_NUMBER(frames[2], CODE + 0x500 + 1);
	CHECK_NUMBER(frames[3], CODE + 0x600);

	/* the signal hit a function's first instruction */
	code_put(CODE + 0x500, "\x55", 1);
	stack[45] = call_before(CODE + 0x700);
	CHECK_NUMBER(run(CODE + 0x100, word(990), word(1000)), WALK_complete);
	CHECK_NUMBER(walk.count, 5);
	CHECK_NUMBER(frames[3], CODE + 0x700);
	CHECK_NUMBER(frames[4], CODE + 0x600);

	/* the tick hit the handler's first instruction: its return address follows no call */
	code_put(CODE + 0x100, "\x55", 1);
	stack[1001] = LIBC + 0x100;
	CHECK_NUMBER(run(CODE + 0x100, word(1001), word(50)), WALK_complete);
	CHECK_NUMBER(walk.count, 5);
	CHECK_NUMBER(frames[1], LIBC + 0x100 + 1); /* exact after "subtract one" */
	CHECK_NUMBER(frames[2], CODE + 0x500 + 1);
}
#endif

int main(void)
{
	test_chain();
	test_behind_kernel_frames();
	test_ends();
	test_no_frame_pointer();
	test_trampoline();
	test_loops();
	test_read_fault();
	test_depth();
#if STACK_WALK_X86
	test_leaf_instructions();
	test_leaf_needs_a_call();
	test_frameless_leaf();
	test_callers_need_a_call();
	test_leaf_only_once();
	test_leaf_at_mapping_start();
	test_signal();
#endif
	return checks_done();
}
