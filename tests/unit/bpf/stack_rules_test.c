/* SPDX-License-Identifier: Apache-2.0 */
/* Steps by unwind rules, one kind after the other, over a made-up stack. Where the kernel lays
 * something out, it is put there through the system's own struct. */
#include "tests/unit/bpf/stack_world.h"

#define ALL_KNOWN ((1ULL << UNWIND_REGISTERS) - 1)

/* The function at the top of most of these stacks: its callers end there. */
#define END_CODE (CODE + 0x800)

static const struct unwind_rule end_rule = {.cfa = UNWIND_CFA_END};

static struct unwind_rule rule_of(enum unwind_cfa cfa, uint8_t cfa_register, int32_t cfa_offset)
{
	return (struct unwind_rule){.cfa = cfa,
				    .cfa_register = cfa_register,
				    .cfa_offset = cfa_offset,
				    .ra_offset = -8};
}

static struct unwind_rule on_stack(int32_t cfa_offset)
{
	return rule_of(UNWIND_CFA_REGISTER, UNWIND_REGISTER_SP, cfa_offset);
}

/* A stack whose callers' code ends it. */
static void world_with_end(void)
{
	world_clear();
	rule_put(END_CODE, END_CODE + 0x100, end_rule);
}

/* leaf (its rule) → the function that ends the stack, called from END_CODE + 0x20 */
static enum walk_result run_leaf(struct unwind_rule rule, uint64_t sp, uint64_t fp)
{
	rule_put(CODE + 0x100, CODE + 0x200, rule);
	return run(CODE + 0x140, sp, fp);
}

static bool is_at_end(void)
{
	return walk.count == 2 && frames[1] == END_CODE + 0x20 && !walk.is_guessed &&
	       !walk.is_end_guessed;
}

static void test_frame_addresses(void)
{
	world_with_end();
	stack[7] = END_CODE + 0x20;
	CHECK_NUMBER(run_leaf(on_stack(24), word(5), 1), WALK_complete);
	CHECK(is_at_end());
	CHECK_NUMBER(walk.sp, word(8));

	world_with_end();
	stack[7] = END_CODE + 0x20;
	CHECK_NUMBER(
		run_leaf(rule_of(UNWIND_CFA_REGISTER, UNWIND_REGISTER_FP, 16), word(2), word(6)),
		WALK_complete);
	CHECK(is_at_end());

	world_with_end(); /* realigned functions keep it in r10 */
	stack[7] = END_CODE + 0x20;
	walk.known = 1 << 10;
	walk.registers[10] = word(9);
	CHECK_NUMBER(run_leaf(rule_of(UNWIND_CFA_REGISTER, 10, -8), word(2), 1), WALK_complete);
	CHECK(is_at_end());

	world_with_end(); /* and later at a place below the frame pointer */
	stack[7] = END_CODE + 0x20;
	stack[4] = word(8) - 16;
	struct unwind_rule deref = rule_of(UNWIND_CFA_DEREF, UNWIND_REGISTER_FP, -8);
	deref.cfa_add = 16;
	CHECK_NUMBER(run_leaf(deref, word(2), word(5)), WALK_complete);
	CHECK(is_at_end());

	world_with_end(); /* that cannot be read */
	deref.cfa_offset = -64;
	CHECK_NUMBER(run_leaf(deref, word(2), word(5)), WALK_read_fault);
	CHECK_NUMBER(walk.count, 1);
}

static void test_unknown_register(void)
{
	world_with_end();
	walk.known = ALL_KNOWN & ~(1ULL << 10);
	walk.registers[10] = word(8);
	stack[7] = END_CODE + 0x20;
	CHECK_NUMBER(run_leaf(rule_of(UNWIND_CFA_REGISTER, 10, 0), word(2), 1),
		     WALK_register_unknown);
	CHECK_NUMBER(walk.count, 1);
	/* no such register */
	world_with_end();
	walk.known = ~0ULL;
	CHECK_NUMBER(run_leaf(rule_of(UNWIND_CFA_REGISTER, 200, 0), word(2), 1),
		     WALK_register_unknown);
	/* what a leaf knows its caller does not */
	world_with_end();
	walk.known = ALL_KNOWN;
	walk.registers[3] = word(20);
	rule_put(CODE + 0x400, CODE + 0x500, rule_of(UNWIND_CFA_REGISTER, 3, 0));
	stack[5] = CODE + 0x440;
	stack[19] = END_CODE + 0x20;
	struct unwind_rule leaf = on_stack(8);
	leaf.kept = UNWIND_KEPT_UNDEFINED;
	CHECK_NUMBER(run_leaf(leaf, word(5), 1), WALK_register_unknown);
	CHECK_NUMBER(walk.count, 2);
}

/* leaf → A → B, whose frame hangs on the register that is followed → end. Where it is for A and for
 * B the leaf's and A's rules say; the value is in the leaf's register or in that word of the stack.
 */
static void test_kept_register(void)
{
	enum { IN_REGISTER, SAME = UNWIND_KEPT_SAME, UNDEFINED = UNWIND_KEPT_UNDEFINED };
	static const struct {
		uint8_t leaf_kept, a_kept, place;
		enum walk_result result;
	} rows[] = {
		{SAME, SAME, IN_REGISTER, WALK_complete},
		{SAME, UNDEFINED, IN_REGISTER, WALK_register_unknown},
		{UNDEFINED, SAME, IN_REGISTER, WALK_register_unknown},
		/* the leaf's CFA is word 10, A's is word 15 */
		{3, SAME, 10 - 3, WALK_complete},
		{SAME, 4, 15 - 4, WALK_complete},
		{3, 4, 15 - 4, WALK_complete}, /* twice: the outer one is B's */
		{UNDEFINED, 2, 15 - 2, WALK_complete},
		{3, UNDEFINED, 10 - 3, WALK_register_unknown},
		{250, SAME, IN_REGISTER, WALK_register_unknown}, /* not to be read */
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct unwind_rule leaf = on_stack(40), a = on_stack(40);

		world_with_end();
		walk.known = ALL_KNOWN;
		if (rows[i].place == IN_REGISTER)
			walk.registers[UNWIND_REGISTER_KEPT] = word(21);
		else
			stack[rows[i].place] = word(21);
		leaf.kept = rows[i].leaf_kept;
		a.kept = rows[i].a_kept;
		rule_put(CODE + 0x400, CODE + 0x500, a);
		rule_put(CODE + 0x500, CODE + 0x600,
			 rule_of(UNWIND_CFA_REGISTER, UNWIND_REGISTER_KEPT, 8));
		stack[9] = CODE + 0x440;
		stack[14] = CODE + 0x540;
		stack[21] = END_CODE + 0x20;
		CHECK_NUMBER(run_leaf(leaf, word(5), 1), rows[i].result);
		CHECK_NUMBER(walk.count, rows[i].result == WALK_complete ? 4 : 3);
	}
}

/* Entries of 16 bytes: `jmp *GOT(%rip)`, `push $n` up to +11, `jmp resolver`. */
static void test_plt(void)
{
	for (unsigned at = 0; at < 16; at++) {
		world_with_end();
		stack[at < 11 ? 5 : 6] = END_CODE + 0x20;
		rule_put(CODE + 0x100, CODE + 0x200, rule_of(UNWIND_CFA_PLT, 0, 11));
		CHECK_NUMBER(run(CODE + 0x150 + at, word(5), 1), WALK_complete);
		CHECK(is_at_end());
	}
}

/* leaf → function A, which needs its frame pointer → end. Where the leaf leaves A's frame pointer
 * is its rule's affair. */
static enum walk_result run_restoring(struct unwind_rule rule, uint64_t fp)
{
	rule_put(CODE + 0x400, CODE + 0x500, rule_of(UNWIND_CFA_REGISTER, UNWIND_REGISTER_FP, 16));
	stack[9] = CODE + 0x440;
	stack[21] = END_CODE + 0x20;
	rule.cfa = UNWIND_CFA_REGISTER;
	rule.cfa_register = UNWIND_REGISTER_SP;
	rule.cfa_offset = 40;
	rule.ra_offset = -8;
	return run_leaf(rule, word(5), fp);
}

static void test_frame_pointers(void)
{
	world_with_end();
	CHECK_NUMBER(run_restoring((struct unwind_rule){.fp = UNWIND_FP_SAME}, word(20)),
		     WALK_complete);
	CHECK_NUMBER(walk.count, 3);
	CHECK_NUMBER(frames[2], END_CODE + 0x20);

	for (int below = 2; below <= 4; below++) { /* 2: right below the return address */
		world_with_end();
		stack[10 - below] = word(20);
		CHECK_NUMBER(run_restoring((struct unwind_rule){.fp = UNWIND_FP_AT_CFA,
								.fp_offset = (int16_t)(-8 * below)},
					   1),
			     WALK_complete);
		CHECK_NUMBER(walk.count, 3);
		CHECK_NUMBER(frames[2], END_CODE + 0x20);
	}

	world_with_end();
	stack[30] = word(20);
	CHECK_NUMBER(run_restoring((struct unwind_rule){.fp = UNWIND_FP_AT_FP, .fp_offset = -16},
				   word(32)),
		     WALK_complete);
	CHECK_NUMBER(frames[2], END_CODE + 0x20);
}

static void test_frame_pointer_lost(void)
{
	static const struct unwind_rule losing[] = {
		{.fp = UNWIND_FP_UNDEFINED},
		{.fp = UNWIND_FP_AT_CFA, .fp_offset = -1024}, /* below what is mapped */
		{.fp = 200},
	};

	for (size_t i = 0; i < sizeof losing / sizeof *losing; i++) {
		world_with_end();
		CHECK_NUMBER(run_restoring(losing[i], word(20)), WALK_register_unknown);
		CHECK_NUMBER(walk.count, 2);
		/* nor may the lower rungs believe it */
		world_with_end();
		rule_without(CODE + 0x400, CODE + 0x500, STACK_RULE_NO_TABLE);
		frame_put(20, 0, END_CODE + 0x20);
		CHECK_NUMBER(run_restoring(losing[i], word(20)), WALK_no_table);
		CHECK_NUMBER(walk.count, 2);
	}
	/* lost by one, restored by the next: whatever is in the register in between */
	world_with_end();
	rule_put(CODE + 0x600, CODE + 0x700, rule_of(UNWIND_CFA_REGISTER, UNWIND_REGISTER_FP, 16));
	struct unwind_rule restoring = on_stack(32);
	restoring.fp = UNWIND_FP_AT_CFA;
	restoring.fp_offset = -16;
	rule_put(CODE + 0x400, CODE + 0x500, restoring);
	struct unwind_rule lost = on_stack(8);
	lost.fp = UNWIND_FP_UNDEFINED;
	stack[5] = CODE + 0x440;
	stack[8] = word(20);
	stack[9] = CODE + 0x640;
	stack[21] = END_CODE + 0x20;
	CHECK_NUMBER(run_leaf(lost, word(5), 1), WALK_complete);
	CHECK_NUMBER(walk.count, 4);
	CHECK_NUMBER(frames[3], END_CODE + 0x20);
}

/* Between `call` and the prologue of code that does not use the stack for it (arm64 always). */
static void test_return_address_in_register(void)
{
	struct unwind_rule rule = on_stack(0);

	rule.ra = UNWIND_RA_IN_REGISTER;
	rule.ra_offset = 11;
	world_with_end();
	walk.known = 1 << 11;
	walk.registers[11] = END_CODE + 0x20;
	CHECK_NUMBER(run_leaf(rule, word(5), 1), WALK_complete);
	CHECK(is_at_end());
	CHECK_NUMBER(walk.sp, word(5));
	world_with_end();
	CHECK_NUMBER(run_leaf(rule, word(5), 1), WALK_register_unknown);
}

/* A call may be its function's last instruction: what follows it is another's. */
static void test_looked_up_address(void)
{
	world_clear();
	rule_put(CODE + 0x100, CODE + 0x200, on_stack(8));
	rule_put(CODE + 0x200, CODE + 0x300, end_rule);
	rule_put(CODE + 0x300, CODE + 0x400, rule_of(UNWIND_CFA_REGISTER, 3, 0));
	stack[5] = CODE + 0x300;
	CHECK_NUMBER(run(CODE + 0x100, word(5), 1), WALK_complete);
	CHECK_NUMBER(walk.count, 2);
	CHECK_NUMBER(run(CODE + 0x300, word(5), 1), WALK_register_unknown); /* exact */
	CHECK_NUMBER(walk.count, 1);
}

static void test_ends(void)
{
	world_with_end();
	CHECK_NUMBER(run(END_CODE, word(5), 1), WALK_complete);
	CHECK_NUMBER(walk.count, 1);
	world_with_end(); /* a stack that the program made itself: memory ends soon above it */
	CHECK_NUMBER(run_leaf(on_stack(8), word(STACK_WORDS - 1), 1), WALK_complete);
	CHECK_NUMBER(run_leaf(on_stack(8), word(STACK_WORDS - 33), 1), WALK_complete);
	CHECK_NUMBER(walk.count, 1);
	CHECK(!walk.is_end_guessed);
	CHECK_NUMBER(run_leaf(on_stack(8), word(STACK_WORDS - 34), 1), WALK_no_start);
	world_with_end(); /* in the middle, also right below the end of a page */
	CHECK_NUMBER(run_leaf(on_stack(8), word(5), 1), WALK_no_start);
	CHECK_NUMBER(walk.count, 1);
	CHECK_NUMBER(run_leaf(on_stack(8), word(1023), 1), WALK_no_start);
	world_with_end();
	stack[5] = 42;
	CHECK_NUMBER(run_leaf(on_stack(8), word(5), 1), WALK_bad_address);
	world_with_end();
	CHECK_NUMBER(run_leaf(on_stack(8), word(STACK_WORDS), 1), WALK_read_fault);
}

/* Callers lie above; what the code has just done to the stack pointer may hide that. */
static void test_frame_must_fit(void)
{
	world_with_end();
	stack[5] = END_CODE + 0x20;
	CHECK_NUMBER(run_leaf(on_stack(8), word(5) + 4, 1), WALK_bad_frame);
	for (unsigned place = 2; place < 5; place++) {
		world_with_end();
		rule_put(CODE + 0x400, CODE + 0x500,
			 rule_of(UNWIND_CFA_REGISTER, UNWIND_REGISTER_FP, 0));
		stack[5] = CODE + 0x440;
		stack[place - 1] = END_CODE + 0x20;
		CHECK_NUMBER(run_leaf(on_stack(8), word(5), word(place)), WALK_bad_frame);
		CHECK_NUMBER(walk.count, 2);
	}
	/* the interrupted function's own may */
	world_with_end();
	stack[2] = END_CODE + 0x20;
	CHECK_NUMBER(
		run_leaf(rule_of(UNWIND_CFA_REGISTER, UNWIND_REGISTER_FP, 0), word(5), word(3)),
		WALK_complete);
	CHECK(is_at_end());
	/* another stack is far away */
	world_with_end();
	rule_put(CODE + 0x400, CODE + 0x500, rule_of(UNWIND_CFA_REGISTER, UNWIND_REGISTER_FP, 16));
	stack[5] = CODE + 0x440;
	memcpy(libc_code + 0x800, &(uint64_t[2]){0, END_CODE + 0x20}, 16);
	CHECK_NUMBER(run_leaf(on_stack(8), word(5), LIBC + 0x800), WALK_complete);
	CHECK_NUMBER(walk.count, 3);
	CHECK_NUMBER(frames[2], END_CODE + 0x20);
}

/* The walk stops before code whose rows are absent, and goes on from there once they are there. */
static void test_not_loaded(void)
{
	world_with_end();
	rule_without(CODE + 0x400, CODE + 0x500, STACK_RULE_ABSENT);
	stack[5] = CODE + 0x440;
	stack[7] = END_CODE + 0x20;
	CHECK_NUMBER(run_leaf(on_stack(8), word(5), word(20)), WALK_not_loaded);
	CHECK_NUMBER(walk.count, 2);
	CHECK_NUMBER(walk.ip, CODE + 0x440);
	CHECK_NUMBER(walk.sp, word(6));
	CHECK(!walk.is_interrupted);
	ruled[1].found = STACK_RULE_FOUND;
	ruled[1].rule = on_stack(16);
	while (!stack_walk_step(&walk, frames))
		;
	CHECK_NUMBER(walk.result, WALK_complete);
	CHECK_NUMBER(walk.count, 3);
	CHECK_NUMBER(frames[2], END_CODE + 0x20);

	world_clear();
	rule_without(CODE + 0x100, CODE + 0x200, STACK_RULE_ABSENT);
	CHECK_NUMBER(run(CODE + 0x140, word(5), 0), WALK_not_loaded);
	CHECK_NUMBER(walk.count, 1);
	CHECK(walk.is_interrupted);
}

/* The lower rungs serve code without rows in the middle of code that has some, and say why they
 * were needed when they fail. */
static void test_guessing_between_rows(void)
{
	static const struct {
		enum stack_rule found;
		enum walk_result result;
	} without[] = {
		{STACK_RULE_ANONYMOUS, WALK_no_frame_pointer},
		{STACK_RULE_NO_TABLE, WALK_no_table},
		{STACK_RULE_FAILED, WALK_table_failed},
		{STACK_RULE_FOUND, WALK_no_table}, /* a row that says nothing */
	};

	for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
		world_with_end();
		rule_without(CODE + 0x400, CODE + 0x500, without[i].found);
		stack[5] = CODE + 0x440;
		frame_put(20, 1, END_CODE + 0x20);
		CHECK_NUMBER(run_leaf(on_stack(8), word(5), word(20)), WALK_complete);
		CHECK_NUMBER(walk.count, 3);
		CHECK_NUMBER(frames[2], END_CODE + 0x20);
		CHECK(walk.is_guessed);
		CHECK(!walk.is_end_guessed);
		CHECK_NUMBER(run(CODE + 0x140, word(5), 1), without[i].result);
		CHECK_NUMBER(walk.count, 2);
		CHECK(!walk.is_guessed);
		CHECK_NUMBER(run(CODE + 0x140, word(5), 0), WALK_complete);
		CHECK_NUMBER(walk.count, 2);
		CHECK(walk.is_end_guessed);
	}
}

#if STACK_WALK_X86
#define TRAMPOLINE (LIBC + 0x100)

/* handler (leaf) → trampoline → interrupted function */
static void handler_put(void)
{
	stack[1000] = TRAMPOLINE;
	rule_put(CODE + 0x100, CODE + 0x200, on_stack(8));
	/* glibc's begins a byte early, so that it is found behind a call that never was */
	rule_put(TRAMPOLINE - 1, TRAMPOLINE + 9,
		 (struct unwind_rule){.cfa = UNWIND_CFA_SIGNAL, .flags = UNWIND_RULE_SIGNAL});
}

static void test_signal(void)
{
	world_with_end();
	handler_put();
	context_put(1001, CODE + 0x500, word(45), word(50));
	rule_put(CODE + 0x500, CODE + 0x600, on_stack(8)); /* right at its beginning */
	stack[45] = END_CODE + 0x20;
	CHECK_NUMBER(run(CODE + 0x140, word(1000), 1), WALK_complete);
	CHECK_NUMBER(walk.count, 4);
	CHECK_NUMBER(frames[1], TRAMPOLINE + 1); /* exact after "subtract one" */
	CHECK_NUMBER(frames[2], CODE + 0x500 + 1);
	CHECK_NUMBER(frames[3], END_CODE + 0x20);
	CHECK(!walk.is_guessed);

	/* the tick hit the trampoline itself: the leaf is exact as it is */
	CHECK_NUMBER(run(TRAMPOLINE + 7, word(1001), 1), WALK_complete);
	CHECK_NUMBER(walk.count, 3);
	CHECK_NUMBER(frames[0], TRAMPOLINE + 7);
	CHECK_NUMBER(frames[1], CODE + 0x500 + 1);

	world_with_end(); /* what the signal hit is nowhere */
	handler_put();
	context_put(1001, 42, word(45), word(50));
	CHECK_NUMBER(run(CODE + 0x140, word(1000), 1), WALK_bad_address);
	CHECK_NUMBER(walk.count, 2);
	CHECK_NUMBER(frames[1], TRAMPOLINE + 1);
	world_with_end();
	handler_put();
	stack[STACK_WORDS - 4] = TRAMPOLINE;
	CHECK_NUMBER(run(CODE + 0x140, word(STACK_WORDS - 4), 1), WALK_read_fault);
}

/* Every register by its DWARF number, as the system's struct has them. */
static void test_signal_registers(void)
{
	static const int order[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
				    REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
				    REG_R12, REG_R13, REG_R14, REG_R15};

	for (uint8_t number = 0; number < sizeof order / sizeof *order; number++) {
		ucontext_t *context;

		world_with_end();
		handler_put();
		context = context_put(1001, CODE + 0x540, word(45), word(50));
		context->uc_mcontext.gregs[order[number]] = (greg_t)word(60);
		rule_put(CODE + 0x500, CODE + 0x600, rule_of(UNWIND_CFA_REGISTER, number, 8));
		stack[60] = END_CODE + 0x20;
		CHECK_NUMBER(run(CODE + 0x140, word(1000), 1), WALK_complete);
		CHECK_NUMBER(walk.count, 4);
		CHECK_NUMBER(frames[3], END_CODE + 0x20);
	}
}

/* A signal frame that is described by offsets like any other. */
static void test_signal_flag_alone(void)
{
	struct unwind_rule rule = on_stack(64);

	rule.flags = UNWIND_RULE_SIGNAL;
	world_with_end();
	rule_put(CODE + 0x100, CODE + 0x200, on_stack(8));
	rule_put(CODE + 0x400, CODE + 0x500, rule);
	rule_put(CODE + 0x700, CODE + 0x701, on_stack(8));
	stack[5] = CODE + 0x440;
	stack[13] = CODE + 0x700;
	stack[14] = END_CODE + 0x20;
	CHECK_NUMBER(run(CODE + 0x140, word(5), 1), WALK_complete);
	CHECK_NUMBER(walk.count, 4);
	CHECK_NUMBER(frames[1], CODE + 0x440 + 1);
	CHECK_NUMBER(frames[2], CODE + 0x700 + 1);
	CHECK_NUMBER(frames[3], END_CODE + 0x20);
}
#endif

/* On the system stack {depth, g}; g's first two words are its stack's bounds (runtime2.go). The
 * goroutine's stack pointer was depth below the upper one. */
static void test_go_switch(void)
{
	struct unwind_rule rule = rule_of(UNWIND_CFA_GO_SWITCH, 0, 0);

	world_with_end();
	rule.cfa_add = 8;
	rule.fp = UNWIND_FP_UNDEFINED;
	rule_put(CODE + 0x400, CODE + 0x500, rule);
	stack[1000] = CODE + 0x440; /* C function (leaf) → asmcgocall */
	stack[1001] = 256;          /* depth */
	stack[1002] = word(300);    /* g */
	stack[300] = word(100), stack[301] = word(200);
	stack[200 - 256 / 8] = END_CODE + 0x20; /* at the goroutine's stack pointer */
	CHECK_NUMBER(run_leaf(on_stack(8), word(1000), 1), WALK_complete);
	CHECK_NUMBER(walk.count, 3);
	CHECK_NUMBER(frames[2], END_CODE + 0x20);
	CHECK_NUMBER(walk.sp, word(200 - 256 / 8 + 1));
	stack[1002] = 8;
	CHECK_NUMBER(run_leaf(on_stack(8), word(1000), 1), WALK_read_fault);
	CHECK_NUMBER(walk.count, 2);
}

/* The thread pointer − 8 leads to g, its m to the goroutine: m at 0x30 of both, the stack's bounds
 * at 0, stack pointer and address at 0x38 (runtime2.go). */
static void test_goroutine(void)
{
	struct unwind_rule left = {.cfa = UNWIND_CFA_GO_GOROUTINE,
				   .cfa_offset = -8,
				   .cfa_add = 0xb8,
				   .fp_offset = 0x60};
	struct unwind_rule called = left;

	for (int is_called = 0; is_called < 2; is_called++) {
		called.ra_offset = -8;
		world_with_end();
		rule_put(CODE + 0x400, CODE + 0x500, is_called ? called : left);
		rule_put(CODE + 0x600, CODE + 0x700, on_stack(24));
		stack[1000] = CODE + 0x440; /* newstack (leaf) → morestack */
		thread_pointer = word(2000);
		stack[1999] = word(2100);                         /* g */
		stack[2100 + 6] = word(2200);                     /* its m */
		stack[2200 + 23] = word(2300);                    /* m's goroutine, */
		stack[2300] = word(100), stack[2301] = word(200); /* its stack, */
		stack[2306] = word(2200);                         /* its m, */
		stack[2307] = word(150), stack[2308] = CODE + 0x640;
		stack[2312] = word(170); /* and frame pointer */
		stack[150] = CODE + 0x650, stack[152] = END_CODE + 0x20;
		stack[153] = END_CODE + 0x30;
		CHECK_NUMBER(run_leaf(on_stack(8), word(1000), 1), WALK_complete);
		CHECK_NUMBER(walk.count, 4);
		CHECK_NUMBER(frames[2], is_called ? CODE + 0x650 : CODE + 0x640);
		CHECK_NUMBER(frames[3], END_CODE + (is_called ? 0x30 : 0x20));
		CHECK_NUMBER(walk.fp, word(170));
		CHECK(!walk.is_guessed && !walk.is_end_guessed);

		stack[152] = stack[153] = CODE + 0x440; /* a thread has one goroutine */
		CHECK_NUMBER(run_leaf(on_stack(8), word(1000), 1), WALK_no_table);
		CHECK_NUMBER(walk.count, 4);
		stack[2307] = word(200); /* not of its stack */
		CHECK_NUMBER(run_leaf(on_stack(8), word(1000), 1), WALK_bad_frame);
		stack[2307] = word(150);
		stack[2306] = word(2201); /* another's */
		CHECK_NUMBER(run_leaf(on_stack(8), word(1000), 1), WALK_bad_frame);
		CHECK_NUMBER(walk.count, 2);
		stack[2200 + 23] = 8;
		CHECK_NUMBER(run_leaf(on_stack(8), word(1000), 1), WALK_read_fault);
		stack[2200 + 23] = 0; /* given up: the scheduler's own stack */
		CHECK_NUMBER(run_leaf(on_stack(8), word(1000), 1), WALK_complete);
		CHECK_NUMBER(walk.count, 2);
		thread_pointer = 0;
		CHECK_NUMBER(run_leaf(on_stack(8), word(1000), 1), WALK_no_table);
	}
}

static void test_depth(void)
{
	world_clear();
	rule_put(CODE + 0x400, CODE + 0x500, on_stack(8)); /* calls itself */
	for (unsigned i = 0; i < STACK_WORDS; i++)
		stack[i] = CODE + 0x440;
	CHECK_NUMBER(run(CODE + 0x440, word(0), 1), WALK_too_deep);
	CHECK_NUMBER(walk.count, USER_FRAMES_DEFAULT);
	walk.limit = USER_FRAMES_MAX;
	stack[100] = 0;
	CHECK_NUMBER(run(CODE + 0x440, word(0), 1), WALK_no_start);
	CHECK_NUMBER(walk.count, 101);
}

int main(void)
{
	test_frame_addresses();
	test_unknown_register();
	test_kept_register();
	test_plt();
	test_frame_pointers();
	test_frame_pointer_lost();
	test_return_address_in_register();
	test_looked_up_address();
	test_ends();
	test_frame_must_fit();
	test_not_loaded();
	test_guessing_between_rows();
#if STACK_WALK_X86
	test_signal();
	test_signal_registers();
	test_signal_flag_alone();
#endif
	test_go_switch();
	test_goroutine();
	test_depth();
	return checks_done();
}
