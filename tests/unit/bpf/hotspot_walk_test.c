/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of a JVM that is made up: what a step finds, and what it does with memory that lies. */
#include "tests/unit/bpf/java_world.h"

static uint64_t method, other; /* compiled: 8 words, the frame there from + 16 on; the caller */

static void compiled_world(void)
{
	world_clear();
	method = blob_put(8, 8, NAME_NMETHOD, 8, 16);
	other = blob_put(16, 8, NAME_NMETHOD, 4, 16);
	stack[20] = 0x77; /* the caller's frame pointer */
	stack[21] = call_put(other + 0x40);
}

/* The caller was found: at `index` words its frame begins. */
static void check_caller(int ended, unsigned index, uint64_t fp)
{
	CHECK_NUMBER(ended, 0);
	CHECK_NUMBER(walk.ip, other + 0x40);
	CHECK_NUMBER(walk.sp, word(index));
	CHECK_NUMBER(walk.fp, fp);
	CHECK_NUMBER(walk.count, 3);
	CHECK_NUMBER(frames[0],
		     hotspot_word(STACK_FRAME_JAVA_COMPILED, stack_frame_address(frames[0])));
	CHECK_NUMBER(frames[1], hotspot_pointer_word(blob_of(method), 8));
	CHECK_NUMBER(frames[2], other + 0x40);
}

static void test_compiled(void)
{
	compiled_world();
	stand(method + 0x40, word(14), 0x55);
	check_caller(step(), 22, 0x77);
	CHECK(!walk.is_guessed);
	/* and from there on, as a caller */
	stack[24] = 0x88;
	stack[25] = call_put(method + 0x50);
	CHECK_NUMBER(step(), 0);
	CHECK_NUMBER(walk.sp, word(26));
	CHECK_NUMBER(frames[2], hotspot_word(STACK_FRAME_JAVA_COMPILED, other + 0x40));
	CHECK_NUMBER(frames[4], method + 0x50);
}

/* Instructions around the one that was interrupted, and where the frame is then. */
static void test_ways(void)
{
	static const struct {
		const char *name;
		uint8_t before[10], next[10]; /* behind it: 0xe9, 0xc3 */
		unsigned before_bytes, at;    /* bytes of before; from the code's begin on */
		unsigned sp;                  /* index of the stack pointer's word */
		bool is_own;                  /* the register is the caller's frame pointer still */
	} ways[] = {
		{"inline cache check", {0x90}, {0x45, 0x8b, 0x56, 0x08}, 1, 4, 21, true},
		{"stack bang", {0x90}, {0x89, 0x84, 0x24}, 1, 4, 21, true},
		{"push", {0x89, 0x84, 0x24, 0, 0xc0, 0xfe, 0xff}, {0x55}, 7, 11, 21, true},
		{"push of on-stack replacement",
		 {0x89, 0x84, 0x24, 0, 0xc0, 0xfe, 0xff},
		 {0x55},
		 7,
		 0x50,
		 21,
		 true},
		{"sub", {0x55}, {0x48, 0x83, 0xec, 0x30}, 1, 12, 20, false},
		{"mov of native methods", {0x55}, {0x48, 0x8b, 0xec, 0x48}, 1, 12, 20, false},
		{"sub of native methods",
		 {0x55, 0x48, 0x8b, 0xec},
		 {0x48, 0x83, 0xec, 0x30},
		 4,
		 14,
		 20,
		 false},
		{"mov of the frame pointer",
		 {0x48, 0x81, 0xec, 0x38, 0, 0, 0},
		 {0x48, 0x89, 0x6c, 0x24, 0x30},
		 7,
		 11,
		 14,
		 true},
		{"barrier", {0x48, 0x83, 0xec, 0x30}, {0x41, 0x81, 0x7f, 0x20}, 4, 15, 14, false},
		{"barrier's jump",
		 {0x41, 0x81, 0x7f, 0x20, 1, 0, 0, 0},
		 {0x0f, 0x85},
		 8,
		 15,
		 14,
		 false},
		{"body", {0x90}, {0x8b, 0x44, 0x24, 0x08}, 1, 0x40, 14, false},
		{"body's test",
		 {0x4d, 0x8b, 0x97, 8, 1, 0, 0},
		 {0x41, 0x85, 0x02},
		 7,
		 0x40,
		 14,
		 false},
		{"add", {0x90}, {0x48, 0x83, 0xc4, 0x30}, 1, 0x40, 14, false},
		{"pop", {0x48, 0x83, 0xc4, 0x30}, {0x5d}, 4, 0x40, 20, false},
		{"pop behind a long add",
		 {0x48, 0x81, 0xc4, 0, 1, 0, 0},
		 {0x5d},
		 7,
		 0x40,
		 20,
		 false},
		{"poll", {0x48, 0x83, 0xc4, 0x30, 0x5d}, {0x49, 0x3b, 0xa7}, 5, 0x40, 21, true},
		{"poll's jump", {0x49, 0x3b, 0xa7, 8, 1, 0, 0}, {0x0f, 0x87}, 7, 0x40, 21, true},
		{"poll of 11",
		 {0x5d, 0x4d, 0x8b, 0x97, 8, 1, 0, 0},
		 {0x41, 0x85, 0x02},
		 8,
		 0x40,
		 21,
		 true},
		{"way to the poll's handler",
		 {0x90},
		 {0x4c, 0x8d, 0x15, 0, 0, 0, 0, 0x4d, 0x89, 0x97},
		 1,
		 0x80,
		 21,
		 true},
		{"jump to it", {0x4d, 0x89, 0x97, 8, 1, 0, 0}, {0xe9}, 7, 0x80, 21, true},
		{"ret", {0x90}, {0xc3}, 1, 0x40, 21, true},
		{"native method has left", {0xc9}, {0x49, 0x83, 0x7f, 0x08, 0}, 1, 0x40, 21, true},
		{"and looks for exceptions",
		 {0xc9, 0x49, 0x83, 0x7f, 0x08, 0},
		 {0x0f, 0x85},
		 6,
		 0x40,
		 21,
		 true},
		{"a virtual thread goes on",
		 {0xe9, 0, 0, 0, 0},
		 {0x49, 0x83, 0x7f, 0x08, 0, 0x0f, 0x85},
		 5,
		 0x40,
		 21,
		 true},
		{"call's stub", {0x90}, {0x48, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0}, 1, 0x90, 21, true},
		{"deoptimization handler",
		 {0xe8, 0, 0, 0, 0},
		 {0x48, 0x83, 0x2c, 0x24, 5},
		 5,
		 0x65,
		 13,
		 false},
	};

	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		compiled_world();
		put(heap, method - HEAP + ways[i].at - ways[i].before_bytes, ways[i].before,
		    ways[i].before_bytes);
		put(heap, method - HEAP + ways[i].at, ways[i].next, sizeof ways[i].next);
		heap[method - HEAP + ways[i].at + 10] = 0xe9;
		heap[method - HEAP + ways[i].at + 11] = 0xc3;
		stand(method + ways[i].at, word(ways[i].sp), 0x66);
		check_report(step() == 0 && walk.ip == other + 0x40 && walk.sp == word(22) &&
				     walk.fp == (ways[i].is_own ? 0x66 : 0x77) && !walk.is_guessed,
			     ways[i].name, __FILE__, __LINE__);
	}
}

static void test_deoptimized(void)
{
	compiled_world();
	stack[16] = method + 0x30;
	stand_at_caller(method + 0x60, word(14), 0x55);
	CHECK_NUMBER(step(), 0);
	CHECK_NUMBER(frames[1], hotspot_word(STACK_FRAME_JAVA_COMPILED, method + 0x30));
	CHECK_NUMBER(walk.ip, other + 0x40);
	stack[16] = other;
	stand_at_caller(method + 0x60, word(14), 0x55);
	CHECK_NUMBER(step(), 1);
	CHECK_NUMBER(walk.result, WALK_bad_frame);
}

/* A word more on the stack, and what is no return address at all. */
static void test_pushed_more(void)
{
	compiled_world();
	stand(method + 0x40, word(13), 0x55);
	CHECK_NUMBER(step(), 0);
	CHECK_NUMBER(walk.sp, word(22));
	CHECK(walk.is_guessed);
	stack[21] = 0x1234;
	stand(method + 0x40, word(14), 0x55);
	CHECK_NUMBER(step(), 1);
	CHECK_NUMBER(walk.result, WALK_java_state);
}

/* Method handles' code has no frame. */
static void test_without_frame(void)
{
	compiled_world();
	method = blob_put(8, 8, NAME_NATIVE, 0, 40);
	stand(method + 8, word(21), 0x55);
	check_caller(step(), 22, 0x55);
}

static void test_adapters(void)
{
	compiled_world();
	blob_put(8, 8, NAME_ADAPTERS, 0, UINT32_MAX);
	stand(method, word(21), 0x55); /* what is in r13 is not the caller's stack pointer yet */
	walk.registers[HOTSPOT_R13] = word(100);
	CHECK_NUMBER(step(), 0);
	CHECK_NUMBER(walk.sp, word(22));
	CHECK_NUMBER(frames[0], hotspot_word(STACK_FRAME_JAVA_STUB, method));
	stand(method + 30, word(21), 0x55); /* pushed again, below the arguments */
	walk.registers[HOTSPOT_RAX] = other + 0x40;
	walk.registers[HOTSPOT_R13] = word(26);
	CHECK_NUMBER(step(), 0);
	CHECK_NUMBER(walk.sp, word(26));
	stack[21] = 0;
	stand(method + 20, word(21), 0x55); /* popped */
	walk.registers[HOTSPOT_RAX] = other + 0x40;
	walk.registers[HOTSPOT_R13] = word(26);
	CHECK_NUMBER(step(), 0);
	CHECK_NUMBER(walk.ip, other + 0x40);
	CHECK_NUMBER(walk.sp, word(26));
}

/* By its frame pointer: the way into Java, whose caller is native code. */
static void test_stub(void)
{
	compiled_world();
	blob_put(8, 8, NAME_STUBS, 0, UINT32_MAX);
	libc[0x100 - 5] = 0xe8;
	stack[30] = 0x99;
	stack[31] = LIBC + 0x100;
	stand_at_caller(method + 0x40, word(14), word(30));
	CHECK_NUMBER(step(), 0);
	CHECK_NUMBER(walk.ip, LIBC + 0x100);
	CHECK_NUMBER(walk.sp, word(32));
	CHECK_NUMBER(walk.fp, 0x99);
	CHECK(!walk.is_guessed);
	stand(method + 0x40, word(14), word(30)); /* interrupted, it may have no frame yet */
	CHECK_NUMBER(step(), HOTSPOT_UNTOLD);
}

/* Interrupted, it is believed to have been called from where its own call is: by its frame pointer,
 * or some words above the stack pointer. */
static void test_interrupted_stub(void)
{
	compiled_world();
	blob_put(8, 8, NAME_STUBS, 0, UINT32_MAX);
	put_int(heap, other + 0x40 - 4 - HEAP, (uint32_t)(method + 0x20 - (other + 0x40)));
	stack[14] = call_put(other + 0x60); /* left from before, of a call elsewhere */
	stack[30] = 0x99;
	stack[31] = other + 0x40;
	stand(method + 0x40, word(14), word(30));
	CHECK_NUMBER(step(), 0);
	CHECK_NUMBER(walk.ip, other + 0x40);
	CHECK_NUMBER(walk.sp, word(32));
	CHECK_NUMBER(walk.fp, 0x99);
	CHECK(!walk.is_guessed);
	stand(method + 0x40, word(27), 0x55);
	CHECK_NUMBER(step(), 0);
	CHECK_NUMBER(walk.sp, word(32));
	CHECK_NUMBER(walk.fp, 0x55);
	stand(method + 0x10, word(27), 0x55); /* before where that call goes to */
	CHECK_NUMBER(step(), HOTSPOT_UNTOLD);
}

static void test_frozen(void)
{
	compiled_world();
	stand_at_caller(place.return_barrier, word(14), 0x55);
	CHECK_NUMBER(step(), 1);
	CHECK_NUMBER(walk.result, WALK_frozen);
	blob_put(8, 8, NAME_STUBS, 0, UINT32_MAX); /* by its instruction */
	put(heap, method + 0x40 - HEAP, "\x49\x8b\xa7", 3);
	stand_at_caller(method + 0x40, word(14), word(30));
	CHECK_NUMBER(step(), 1);
	CHECK_NUMBER(walk.result, WALK_frozen);
}

/* --- the interpreter --- */

static uint64_t interpreter, java_method;

/* Its ways in begin at + 0x100, the frame is made at + 0x130; bytecodes' code is from + 0x400 on.
 */
static void interpreter_world(void)
{
	compiled_world();
	interpreter = blob_put(32, 16, NAME_INTERPRETER, 0, UINT32_MAX);
	java_method = method_put(512, 40);
	place.interpreter = (struct hotspot_interpreter){
		.low = interpreter,
		.high = interpreter + 0x600,
		.entries = 0x100,
		.templates = 0x400,
		.entry_count = 2,
		.ways = {{0x100, 0x130}, {0x200, 0x230}},
	};
	/* at 40: its frame */
	stack[40] = 0x77;
	stack[41] = other + 0x40;
	stack[39] = word(44);    /* sender */
	stack[37] = java_method; /* method */
	stack[32] = bytecode(java_method, 7);
}

static void check_interpreted(int ended, unsigned bci, uint64_t fp)
{
	const uint16_t cookie = hotspot_cookie(META + 4096, 40, 3, 4);

	CHECK_NUMBER(ended, 0);
	CHECK_NUMBER(walk.ip, other + 0x40);
	CHECK_NUMBER(walk.sp, word(44));
	CHECK_NUMBER(walk.fp, fp);
	CHECK_NUMBER(frames[walk.count - 3], hotspot_word(STACK_FRAME_JAVA_INTERPRETED, cookie));
	CHECK_NUMBER(frames[walk.count - 2], hotspot_pointer_word(java_method, (uint16_t)bci));
	CHECK_NUMBER(frames[walk.count - 1], other + 0x40);
}

static void test_interpreted(void)
{
	interpreter_world();
	stand_at_caller(interpreter + 0x50, word(30), word(40));
	check_interpreted(step(), 7, 0x77);
	stand(interpreter + 0x480, word(30), word(40)); /* in a bytecode's code */
	walk.registers[HOTSPOT_R13] = bytecode(java_method, 23);
	check_interpreted(step(), 23, 0x77);
	stand(interpreter + 0x480, word(30), word(40)); /* with something else in its register */
	walk.registers[HOTSPOT_R13] = bytecode(java_method, 40);
	check_interpreted(step(), 7, 0x77);
	place.interpreter = (struct hotspot_interpreter){0}; /* by its blob alone */
	stand_at_caller(interpreter + 0x50, word(30), word(40));
	check_interpreted(step(), 7, 0x77);
}

static void test_entering(void)
{
	interpreter_world();
	stack[39] = stack[37] = stack[32] = 0;
	stand(interpreter + 0x110, word(41), 0x66); /* the return address is on top */
	walk.registers[HOTSPOT_RBX] = java_method;
	walk.registers[HOTSPOT_R13] = word(44);
	check_interpreted(step(), 0, 0x66);
	stand(interpreter + 0x120, word(36), 0x66); /* in a register */
	walk.registers[HOTSPOT_RBX] = java_method;
	walk.registers[HOTSPOT_R13] = word(44);
	walk.registers[HOTSPOT_RAX] = other + 0x40;
	check_interpreted(step(), 0, 0x66);
	stand(interpreter + 0x138, word(38), word(40)); /* half of the frame is there */
	walk.registers[HOTSPOT_RBX] = java_method;
	stack[39] = word(44);
	check_interpreted(step(), 0, 0x77);
}

/* leave; pop %r13; mov %rbx,%rsp; jmp *%r13 */
static void test_leaving(void)
{
	static const uint8_t way[] = {0xc9, 0x41, 0x5d, 0x48, 0x8b, 0xe3, 0x41, 0xff, 0xe5};

	interpreter_world();
	put(heap, interpreter + 0x480 - HEAP, way, sizeof way);
	stand(interpreter + 0x480, word(30), word(40));
	check_interpreted(step(), 7, 0x77);
	stand(interpreter + 0x481, word(41), 0x66);
	walk.registers[HOTSPOT_RBX] = word(44);
	check_interpreted(step(), 0, 0x66);
	stand(interpreter + 0x483, word(42), 0x66);
	walk.registers[HOTSPOT_RBX] = word(44);
	walk.registers[HOTSPOT_R13] = other + 0x40;
	check_interpreted(step(), 0, 0x66);
	stand(interpreter + 0x486, word(44), 0x66); /* whose frame it was is gone */
	walk.registers[HOTSPOT_R13] = other + 0x40;
	CHECK_NUMBER(step(), 0);
	CHECK_NUMBER(walk.ip, other + 0x40);
	CHECK_NUMBER(walk.sp, word(44));
	CHECK_NUMBER(frames[0], interpreter + 0x486);
}

/* --- memory that lies --- */

static void test_hostile_map(void)
{
	compiled_world();
	for (unsigned i = 8; i < 16; i++)
		map[i] = 1; /* leads back, and on to the free one before */
	stand(method + 0x40, word(14), 0x55);
	CHECK_NUMBER(step(), HOTSPOT_UNTOLD);
	memset(map, 1, sizeof map); /* never to an end within bounds */
	stand(HEAP + HEAP_BYTES / 2, word(14), 0x55);
	CHECK_NUMBER(step(), HOTSPOT_UNTOLD);
	map[4] = 200; /* beyond the first */
	stand(HEAP + (4 << SEGMENT_LOG2), word(14), 0x55);
	CHECK_NUMBER(step(), HOTSPOT_UNTOLD);
	place.heaps[0].segment_map = 0x10;
	CHECK_NUMBER(step(), HOTSPOT_UNTOLD);
	place.heaps[0].segment_log2 = 200;
	CHECK_NUMBER(step(), HOTSPOT_UNTOLD);
}

static void test_hostile_blob(void)
{
	const uint32_t sizes[] = {1, HOTSPOT_FRAME_WORDS_MAX + 1, UINT32_MAX};

	for (unsigned i = 0; i < 3; i++) {
		compiled_world();
		put_int(heap, blob_of(method) - HEAP + 28, sizes[i]);
		stand_at_caller(method + 0x40, word(14), 0x55);
		CHECK_NUMBER(step(), 1);
		CHECK_NUMBER(walk.result, WALK_bad_frame);
	}
	compiled_world();
	put_int(heap, blob_of(method) - HEAP + 28, 4096); /* out of the stack */
	stand_at_caller(method + 0x40, word(14), 0x55);
	CHECK_NUMBER(step(), 1);
	CHECK_NUMBER(walk.result, WALK_read_fault);
	put_int(heap, blob_of(method) - HEAP + 12, 0); /* it does not have the address */
	stand_at_caller(method + 0x40, word(14), 0x55);
	CHECK_NUMBER(step(), HOTSPOT_UNTOLD);
	memset(&place.layout, 0xff, sizeof place.layout); /* offsets beyond all that is read */
	stand(method + 0x40, word(14), 0x55);
	step();
	CHECK(walk.count <= 3);
}

static void test_hostile_interpreter(void)
{
	interpreter_world();
	stack[37] = 0x1234567;
	stand_at_caller(interpreter + 0x50, word(30), word(40));
	CHECK_NUMBER(step(), 1);
	CHECK_NUMBER(walk.result, WALK_bad_frame);
	interpreter_world();
	stack[39] = word(20); /* the caller below: a loop */
	stand_at_caller(interpreter + 0x50, word(30), word(40));
	CHECK_NUMBER(step(), 1);
	CHECK_NUMBER(walk.result, WALK_bad_frame);
	interpreter_world();
	stand_at_caller(interpreter + 0x50, word(41), word(40)); /* its frame below it */
	CHECK_NUMBER(step(), 1);
	CHECK_NUMBER(walk.result, WALK_bad_frame);
	interpreter_world();
	place.interpreter.entry_count = UINT32_MAX;
	place.interpreter.entries = place.interpreter.templates = UINT32_MAX;
	stand(interpreter + 0x50, word(30), word(40));
	step();
	CHECK(walk.count <= 3);
}

/* No room for the second word. */
static void test_full(void)
{
	compiled_world();
	stand(method + 0x40, word(14), 0x55);
	walk.limit = 1;
	CHECK_NUMBER(step(), 1);
	CHECK_NUMBER(walk.result, WALK_too_deep);
	CHECK_NUMBER(walk.count, 1);
}

int main(void)
{
	test_compiled();
	test_ways();
	test_deoptimized();
	test_pushed_more();
	test_without_frame();
	test_adapters();
	test_stub();
	test_interrupted_stub();
	test_frozen();
	test_interpreted();
	test_entering();
	test_leaving();
	test_hostile_map();
	test_hostile_blob();
	test_hostile_interpreter();
	test_full();
	return checks_done();
}
