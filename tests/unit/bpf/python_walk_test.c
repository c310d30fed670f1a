/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel side's walk over CPython's frames as ordinary C, in memory that is made up: a list as
 * each version has it, and whatever else may stand there. Layouts: DWARF of CPython's own builds.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "tests/check.h"

static int memory_read(void *to, uint64_t bytes, uint64_t from);
#define RUNTIME_READ(to, bytes, from) memory_read(to, bytes, from)
#include "bpf/python_walk.bpf.h"

/* --- memory --- */

#define MEMORY  0x7f0000000000ULL
#define POINTER (MEMORY + 0x100) /* the thread's */
#define CURRENT (MEMORY + 0x200) /* what _PyRuntime knows */
#define STATE   (MEMORY + 0x400)
#define CFRAME  (MEMORY + 0x800)
#define CODES   (MEMORY + 0x1000)

enum {
	MEMORY_BYTES = 1 << 20,
	CODE_BYTES = 0x100,
	CODES_COUNT = 16,
	FRAMES = 0x2000, /* from there on */
	FRAME_BYTES = 0x100,
	DEPTH_MAX = 3000,
};

static uint8_t memory[MEMORY_BYTES];
static uint64_t hole, hole_bytes; /* not there */
static unsigned reads;

/* Like bpf_probe_read_user(): all or nothing, and zeroes when nothing. */
static int memory_read(void *to, uint64_t bytes, uint64_t from)
{
	reads++;
	if (from >= MEMORY && from - MEMORY <= MEMORY_BYTES &&
	    bytes <= MEMORY_BYTES - (from - MEMORY) &&
	    (from + bytes <= hole || from >= hole + hole_bytes)) {
		memcpy(to, memory + (from - MEMORY), bytes);
		return 0;
	}
	memset(to, 0, bytes);
	return -14;
}

static void put(uint64_t at, uint64_t value, size_t bytes)
{
	memcpy(memory + (at - MEMORY), &value, bytes);
}

static uint64_t code_at(unsigned number)
{
	return CODES + number % CODES_COUNT * CODE_BYTES;
}

static uint64_t frame_at(unsigned number)
{
	return MEMORY + FRAMES + (uint64_t)number * FRAME_BYTES;
}

/* --- versions --- */

enum how { EACH, FLAG, SHIM };

static const struct version {
	const char *name;
	struct runtime_layout layout;
	enum how entry;
} versions[] = {
	{"3.8",
	 {.tstate_thread_id = 176,
	  .tstate_frame = 24,
	  .cframe_frame = RUNTIME_OFFSET_NONE,
	  .frame_code = 32,
	  .frame_previous = 24,
	  .frame_instr = 104,
	  .frame_entry = RUNTIME_OFFSET_NONE,
	  .code_argcount = 16,
	  .code_kwonly = 24,
	  .code_flags = 36,
	  .code_firstline = 40,
	  .code_name = 112,
	  .code_filename = 104,
	  .code_lines = 120},
	 EACH},
	{"3.10",
	 {.tstate_thread_id = 176,
	  .tstate_frame = 24,
	  .cframe_frame = RUNTIME_OFFSET_NONE,
	  .frame_code = 32,
	  .frame_previous = 24,
	  .frame_instr = 96,
	  .frame_entry = RUNTIME_OFFSET_NONE,
	  .code_argcount = 16,
	  .code_kwonly = 24,
	  .code_flags = 36,
	  .code_firstline = 40,
	  .code_name = 112,
	  .code_filename = 104,
	  .code_lines = 120,
	  .flags = RUNTIME_INSTR_IS_UNITS},
	 EACH},
	{"3.11",
	 {.tstate_thread_id = 152,
	  .tstate_frame = 56,
	  .cframe_frame = 8,
	  .frame_code = 32,
	  .frame_previous = 48,
	  .frame_instr = 56,
	  .frame_entry = 68,
	  .entry_value = 1,
	  .code_argcount = 56,
	  .code_kwonly = 64,
	  .code_flags = 48,
	  .code_firstline = 72,
	  .code_name = 128,
	  .code_filename = 112,
	  .code_lines = 136,
	  .code_bytes = 184,
	  .flags = RUNTIME_INSTR_IS_POINTER},
	 FLAG},
	{"3.12",
	 {.tstate_thread_id = 136,
	  .tstate_frame = 56,
	  .cframe_frame = 0,
	  .frame_code = 0,
	  .frame_previous = 8,
	  .frame_instr = 56,
	  .frame_entry = 70,
	  .entry_value = 3,
	  .code_argcount = 52,
	  .code_kwonly = 60,
	  .code_flags = 48,
	  .code_firstline = 68,
	  .code_name = 128,
	  .code_filename = 112,
	  .code_lines = 136,
	  .code_bytes = 192,
	  .flags = RUNTIME_INSTR_IS_POINTER | RUNTIME_ENTRY_IS_SHIM},
	 SHIM},
	{"3.13",
	 {.tstate_thread_id = 152,
	  .tstate_frame = 72,
	  .cframe_frame = RUNTIME_OFFSET_NONE,
	  .frame_code = 0,
	  .frame_previous = 8,
	  .frame_instr = 56,
	  .frame_entry = 70,
	  .entry_value = 3,
	  .code_argcount = 52,
	  .code_kwonly = 60,
	  .code_flags = 48,
	  .code_firstline = 68,
	  .code_name = 128,
	  .code_filename = 112,
	  .code_lines = 136,
	  .code_bytes = 200,
	  .flags = RUNTIME_INSTR_IS_POINTER | RUNTIME_ENTRY_IS_SHIM},
	 SHIM},
	{"3.14",
	 {.tstate_thread_id = 152,
	  .tstate_frame = 72,
	  .cframe_frame = RUNTIME_OFFSET_NONE,
	  .frame_code = 0,
	  .frame_previous = 8,
	  .frame_instr = 56,
	  .frame_entry = 74,
	  .entry_value = 3,
	  .code_argcount = 52,
	  .code_kwonly = 60,
	  .code_flags = 48,
	  .code_firstline = 68,
	  .code_name = 128,
	  .code_filename = 112,
	  .code_lines = 136,
	  .code_bytes = 208,
	  .flags = RUNTIME_INSTR_IS_POINTER | RUNTIME_ENTRY_IS_SHIM},
	 SHIM},
};
enum { VERSIONS = sizeof versions / sizeof *versions };

static const struct runtime_layout *layout;
static struct runtime_place place;

/* What code object `number` says of itself. */
static uint16_t cookie_of(unsigned number)
{
	number %= CODES_COUNT;
	return runtime_cookie(number, 1, 67, 100 + number,
			      runtime_texts(number << 4, (number + 1) << 4, (number + 2) << 4));
}

static void use(const struct version *version)
{
	memset(memory, 0xaa, sizeof memory); /* what is not written is no address */
	hole = hole_bytes = 0;
	layout = &version->layout;
	place = (struct runtime_place){.language = RUNTIME_CPYTHON,
				       .current_at = CURRENT,
				       .thread_in = -1,
				       .other_in = -1,
				       .layout = *layout};
	CHECK(runtime_layout_spans(&place.layout));
	put(CURRENT, STATE, 8);
	put(STATE + layout->tstate_thread_id, POINTER, 8);
	for (unsigned i = 0; i < CODES_COUNT; i++) {
		put(code_at(i) + layout->code_argcount, i, 4);
		put(code_at(i) + layout->code_kwonly, 1, 4);
		put(code_at(i) + layout->code_flags, 67, 4);
		put(code_at(i) + layout->code_firstline, 100 + i, 4);
		put(code_at(i) + layout->code_name, i << 4, 8);
		put(code_at(i) + layout->code_filename, (i + 1) << 4, 8);
		put(code_at(i) + layout->code_lines, (i + 2) << 4, 8);
	}
}

static void put_instr(uint64_t frame, uint64_t code, int64_t position)
{
	if (layout->flags & RUNTIME_INSTR_IS_POINTER)
		put(frame + layout->frame_instr, code + layout->code_bytes + (uint64_t)position, 8);
	else
		put(frame + layout->frame_instr,
		    (uint64_t)(layout->flags & RUNTIME_INSTR_IS_UNITS ? position / 2 : position),
		    4);
}

static void put_innermost(uint64_t frame)
{
	if (layout->cframe_frame == RUNTIME_OFFSET_NONE) {
		put(STATE + layout->tstate_frame, frame, 8);
		return;
	}
	put(STATE + layout->tstate_frame, CFRAME, 8);
	put(CFRAME + layout->cframe_frame, frame, 8);
}

/* depth frames, innermost first, of which every run-th is an entry; frame i has code i and position
 * 2 * i. In versions with shims these take a number each. Returns how many numbers are taken. */
static unsigned make(const struct version *version, unsigned depth, unsigned run)
{
	unsigned number = 0;

	use(version);
	put_innermost(depth ? frame_at(0) : 0);
	for (unsigned i = 0; i < depth; i++) {
		const bool is_entry = (i + 1) % run == 0 || i + 1 == depth;
		const bool is_last = i + 1 == depth;

		put(frame_at(number) + layout->frame_code, code_at(i), 8);
		put_instr(frame_at(number), code_at(i), 2 * i);
		if (version->entry != EACH)
			put(frame_at(number) + layout->frame_entry,
			    version->entry == FLAG ? is_entry : 0, 1);
		if (version->entry == SHIM && is_entry) {
			put(frame_at(number) + layout->frame_previous, frame_at(number + 1), 8);
			number++;
			put(frame_at(number) + layout->frame_entry, 3, 1);
			put(frame_at(number) + layout->frame_code, 1, 8);
		}
		put(frame_at(number) + layout->frame_previous, is_last ? 0 : frame_at(number + 1),
		    8);
		number++;
	}
	return number;
}

/* --- walks --- */

enum { FIRST = 7 };

static uint64_t words[SAMPLE_WORDS_MAX + 1];
static struct runtime_walk walk;

static void go(uint32_t limit)
{
	unsigned steps = 0;

	memset(words, 0, sizeof words);
	memset(&walk, 0x55, sizeof walk);
	walk.first = FIRST;
	walk.limit = limit;
	reads = 0;
	if (!python_walk_begin(&walk, (__u64 *)words, &place, POINTER))
		while (!python_walk_step(&walk, (__u64 *)words))
			steps++;
	CHECK(steps <= limit * RUNTIME_STEPS_A_FRAME);
	CHECK(walk.count <= 2 * limit + 1);
	for (uint32_t i = 0; i < FIRST; i++)
		CHECK(!words[i]);
	CHECK(!words[FIRST + walk.count]);
}

/* 0: whole. */
static uint64_t end_of(void)
{
	const uint64_t last = walk.count ? words[FIRST + walk.count - 1] : 0;

	return stack_frame_kind(last) == STACK_FRAME_RUNTIME_END ? stack_frame_address(last) : 0;
}

static uint64_t word(unsigned frame, unsigned number)
{
	return words[FIRST + 2 * frame + number];
}

static bool is_frame(unsigned at, unsigned run, unsigned depth, bool is_each)
{
	const bool is_entry = is_each || (at + 1) % run == 0 || at + 1 == depth;

	return word(at, 0) == runtime_frame_code(code_at(at)) &&
	       word(at, 1) == runtime_frame_place(2 * at, cookie_of(at), is_entry);
}

static void check_list(const struct version *version, unsigned depth, unsigned run, uint32_t limit)
{
	const unsigned found = depth < limit ? depth : limit;
	bool ok = true;

	make(version, depth, run);
	go(limit);
	CHECK_NUMBER(walk.frames, found);
	CHECK_NUMBER(end_of(), depth > limit ? RUNTIME_END_CUT : 0);
	CHECK_NUMBER(walk.count, 2 * found + (depth > limit));
	for (unsigned i = 0; i < found; i++)
		ok &= is_frame(i, run, depth, version->entry == EACH);
	CHECK(ok);
}

static void test_lists(void)
{
	for (unsigned i = 0; i < VERSIONS; i++) {
		check_list(&versions[i], 0, 1, 256);
		check_list(&versions[i], 1, 1, 256);
		check_list(&versions[i], 7, 3, 256);
		check_list(&versions[i], 256, 256, 256);
		check_list(&versions[i], 256, 1, 256); /* as many entries as frames */
		check_list(&versions[i], 257, 5, 256);
		check_list(&versions[i], 2000, 2000, 256);
		check_list(&versions[i], 33, 4, 32);
	}
}

/* A read each of frames and of code objects, and few before. */
static void test_reads(void)
{
	for (unsigned i = 0; i < VERSIONS; i++) {
		make(&versions[i], 10, 10);
		go(256);
		CHECK(reads <= 2 * 10 + 5);
	}
}

static void test_positions(void)
{
	for (unsigned i = 0; i < VERSIONS; i++) {
		make(&versions[i], 3, 3);
		put_instr(frame_at(0), code_at(0), -2); /* has not begun */
		put_instr(frame_at(1), code_at(1), 0x10000);
		go(256);
		CHECK_NUMBER(runtime_frame_position(word(0, 1)), RUNTIME_POSITION_NONE);
		CHECK_NUMBER(runtime_frame_position(word(1, 1)), 0x10000);
		CHECK_NUMBER(runtime_frame_cookie(word(0, 1)), cookie_of(0));
		CHECK_NUMBER(end_of(), 0);
	}
}

/* 3.14's references have tags. */
static void test_tags(void)
{
	make(&versions[5], 2, 2);
	put(frame_at(0), code_at(0) | 1, 8);
	go(256);
	CHECK(word(0, 0) == runtime_frame_code(code_at(0)));
}

/* --- whose list --- */

static void expect_none(void)
{
	go(256);
	CHECK_NUMBER(walk.count, 0);
}

static void test_places(void)
{
	const struct version *version = &versions[2];

	make(version, 2, 2);
	put(STATE + layout->tstate_thread_id, POINTER + 8, 8); /* another thread has the GIL */
	expect_none();
	place.thread_id_minus_tp = 8;
	go(256);
	CHECK_NUMBER(walk.frames, 2);

	make(version, 2, 2); /* nobody has it: the thread's own */
	put(CURRENT, 0, 8);
	expect_none();
	place.thread_at = 0x18;
	put(POINTER + 0x18, STATE, 8);
	go(256);
	CHECK_NUMBER(walk.frames, 2);
	place.current_at = 0;
	go(256);
	CHECK_NUMBER(walk.frames, 2);
	put(POINTER + 0x18, 0, 8); /* a thread that is none of Python's */
	expect_none();

	put(POINTER - 0x40, MEMORY + 0x80, 8); /* in what the thread has a pointer to */
	put(MEMORY + 0x80 + 0x28, STATE, 8);
	place.other_at = -0x40;
	place.other_in = 0x28;
	go(256);
	CHECK_NUMBER(walk.frames, 2);
	put(POINTER - 0x40, 0, 8);
	expect_none();
	place.language = 0;
	put(POINTER - 0x40, MEMORY + 0x80, 8);
	expect_none();
}

static void expect_end(enum runtime_end why, unsigned frames)
{
	go(256);
	CHECK_NUMBER(end_of(), why);
	CHECK_NUMBER(walk.frames, frames);
	CHECK_NUMBER(walk.count, 2 * frames + 1);
}

static void test_other_interpreter(void)
{
	make(&versions[2], 2, 2);
	place.layout.tstate_interp = 16;
	put(STATE + 16, MEMORY, 8);
	place.first_interpreter = MEMORY;
	go(256);
	CHECK_NUMBER(end_of(), 0);
	put(STATE + 16, MEMORY + 0x80, 8);
	expect_end(RUNTIME_END_OTHER, 2);
	go(1);
	CHECK_NUMBER(end_of(), RUNTIME_END_CUT);
	place.first_interpreter = 0;
	go(256);
	CHECK_NUMBER(end_of(), 0);
}

static void test_states_unread(void)
{
	make(&versions[2], 2, 2);
	place.current_at = 0x1000;
	expect_end(RUNTIME_END_UNREAD, 0);
	put(POINTER + 0x18, STATE, 8);
	place.thread_at = 0x18; /* found all the same */
	go(256);
	CHECK_NUMBER(end_of(), 0);
	CHECK_NUMBER(walk.frames, 2);
	put(POINTER + 0x18, 0x10, 8);
	expect_end(RUNTIME_END_UNREAD, 0);
	place.thread_at = 0;
	place.current_at = CURRENT;
	hole = STATE + layout->tstate_frame;
	hole_bytes = 8;
	expect_end(RUNTIME_END_UNREAD, 0);
	hole = CFRAME;
	hole_bytes = 16;
	expect_end(RUNTIME_END_UNREAD, 0);
}

/* --- lists that are none --- */

static void test_holes(void)
{
	for (unsigned i = 0; i < VERSIONS; i++) {
		make(&versions[i], 5, 5);
		hole = frame_at(3);
		hole_bytes = 1;
		expect_end(RUNTIME_END_UNREAD, 3);
		hole = code_at(1) + layout->code_flags; /* named by nobody, and the list goes on */
		go(256);
		CHECK_NUMBER(end_of(), 0);
		CHECK_NUMBER(walk.frames, 5);
		CHECK_NUMBER(runtime_frame_cookie(word(0, 1)), cookie_of(0));
		CHECK_NUMBER(runtime_frame_cookie(word(1, 1)), 0);
		CHECK_NUMBER(runtime_frame_cookie(word(2, 1)), cookie_of(2));
	}
}

/* Memory may end with the last member that is asked for. */
static void test_borders(void)
{
	for (unsigned i = 0; i < VERSIONS; i++) {
		make(&versions[i], 1, 1);
		hole = frame_at(0) + layout->frame_instr +
		       (layout->flags & RUNTIME_INSTR_IS_POINTER ? 8 : 4);
		if (layout->frame_entry != RUNTIME_OFFSET_NONE)
			hole = frame_at(0) + layout->frame_entry + 1;
		hole_bytes = 1;
		go(256);
		CHECK_NUMBER(walk.frames, 1);
		hole--;
		expect_end(RUNTIME_END_UNREAD, 0);
	}
}

static void test_wrong(void)
{
	static const uint64_t wrong[] = {1, 4095, 1ULL << 56, UINT64_MAX, 0xffff888000000000};

	for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		make(&versions[0], 3, 1);
		put(frame_at(1) + layout->frame_previous, wrong[i], 8);
		expect_end(RUNTIME_END_WRONG, 2);
		put(frame_at(1) + layout->frame_code, wrong[i], 8);
		expect_end(RUNTIME_END_WRONG, 1);
		put_innermost(wrong[i]);
		expect_end(RUNTIME_END_WRONG, 0);
	}
}

static void test_loops(void)
{
	for (unsigned i = 0; i < VERSIONS; i++)
		for (unsigned length = 1; length <= 100; length += 9)
			for (unsigned before = 0; before <= 20; before += 10) {
				const unsigned taken = make(&versions[i], before + length, 200);

				put(frame_at(taken - 1) + layout->frame_previous, frame_at(before),
				    8);
				go(256);
				CHECK(end_of() == RUNTIME_END_LOOP ||
				      (end_of() == RUNTIME_END_CUT && length > 80));
				CHECK(walk.frames >= before);
			}
}

/* Entries of nothing, one in another. */
static void test_only_entries(void)
{
	const struct version *version = &versions[4];

	use(version);
	put_innermost(frame_at(0));
	for (unsigned i = 0; i < DEPTH_MAX; i++) {
		put(frame_at(i) + layout->frame_entry, 3, 1);
		put(frame_at(i) + layout->frame_previous, frame_at(i + 1), 8);
	}
	go(256);
	CHECK_NUMBER(end_of(), RUNTIME_END_CUT);
	CHECK_NUMBER(walk.frames, 256);
	put(frame_at(0) + layout->frame_previous, frame_at(0), 8);
	go(256);
	CHECK_NUMBER(end_of(), RUNTIME_END_LOOP);
}

/* The loop's frame has returned, and what it had is being given back. */
static void test_entries_of_nothing(void)
{
	make(&versions[4], 6, 2); /* two frames, an entry, two, an entry, two, an entry */
	put(frame_at(2) + layout->frame_previous, frame_at(5), 8);
	go(256);
	CHECK_NUMBER(walk.count, 10);
	CHECK(word(1, 0) == runtime_frame_code(code_at(1)) && runtime_frame_is_entry(word(1, 1)));
	CHECK(word(2, 0) == runtime_frame_code(0) &&
	      word(2, 1) == runtime_frame_place(RUNTIME_POSITION_NONE, 0, 1));
	CHECK(word(3, 0) == runtime_frame_code(code_at(4)) && !runtime_frame_is_entry(word(3, 1)));
	put_innermost(frame_at(2));
	go(256);
	CHECK_NUMBER(walk.count, 8);
	CHECK(word(0, 0) == runtime_frame_code(0) && word(1, 0) == runtime_frame_code(0));
}

/* A layout that is none reads nothing beyond what there is room for. */
static void test_layouts(void)
{
	uint64_t dice = 88172645463325252ULL;

	make(&versions[4], 20, 3);
	for (unsigned i = 0; i < 20000; i++) {
		__u8 *bytes = (__u8 *)&place.layout;

		for (unsigned k = 0; k < sizeof place.layout; k++) {
			dice ^= dice << 13, dice ^= dice >> 7, dice ^= dice << 17;
			if (dice % 3 == 0)
				bytes[k] = (dice >> 8) % (dice & 64 ? 256 : 4);
		}
		walk.first = FIRST;
		walk.limit = 256;
		if (!python_walk_begin(&walk, (__u64 *)words, &place, POINTER))
			while (!python_walk_step(&walk, (__u64 *)words))
				;
		if (walk.count > RUNTIME_WORDS_MAX || walk.frames > 256) {
			CHECK(false);
			return;
		}
	}
	CHECK(true);
}

int main(void)
{
	test_lists();
	test_reads();
	test_positions();
	test_tags();
	test_places();
	test_other_interpreter();
	test_states_unread();
	test_holes();
	test_borders();
	test_wrong();
	test_loops();
	test_only_entries();
	test_entries_of_nothing();
	test_layouts();
	return checks_done();
}
