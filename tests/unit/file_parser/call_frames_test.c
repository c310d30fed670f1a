/* SPDX-License-Identifier: Apache-2.0 */
/* The truth is the assembler's: code of one byte per row, with .cfi directives between. */
#include "node-agent/file_parser/frames/call_frames.h"

#include <time.h>

#include "tests/check.h"
#include "tests/unit/file_parser/assembled.h"

#if defined(__x86_64__)

static struct page_rows rows;

static bool add_row(void *context, uint64_t start, uint64_t end, const struct unwind_rule *rule)
{
	return row_builder_add(context, start, end, rule);
}

/* The rows of the page of code; false: the file has none, *failure. */
static bool read_page(int fd, uint16_t machine, enum row_failure *failure)
{
	struct code_file file;
	struct call_frames *frames;

	row_builder_begin(&rows, CODE_PAGE);
	*failure = ROW_FAILURE_NOT_CODE;
	if (!code_file_open(&file, fd))
		return false;
	if (machine)
		file.machine = machine;
	frames = call_frames_open(&file, failure);
	if (frames) {
		*failure = call_frames_pieces(frames, CODE_AT, CODE_AT + 0x10000, add_row, &rows);
		row_builder_end(&rows);
	}
	call_frames_close(frames);
	code_file_close(&file);
	return frames;
}

struct expected {
	uint64_t offset;
	struct unwind_rule rule;
};

static void check_rows(const struct expected *expected, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct unwind_rule *want = &expected[i].rule,
					 *got = page_rows_find(&rows, CODE_AT + expected[i].offset);

		printf("# code + %d\n", (int)expected[i].offset);
		if (!CHECK(got))
			continue;
		if (!CHECK(memcmp(got, want, sizeof *want) == 0))
			printf("# got cfa %d %d%+d add %d, fp %d %d, ra %d %d, flags %d\n"
			       "# want cfa %d %d%+d add %d, fp %d %d, ra %d %d, flags %d\n",
			       got->cfa, got->cfa_register, got->cfa_offset, got->cfa_add, got->fp,
			       got->fp_offset, got->ra, got->ra_offset, got->flags, want->cfa,
			       want->cfa_register, want->cfa_offset, want->cfa_add, want->fp,
			       want->fp_offset, want->ra, want->ra_offset, want->flags);
	}
}

/* The rows of what the source is assembled to. */
static void check_source(const char *source, const char *flags, const struct expected *expected,
			 size_t count)
{
	enum row_failure failure;
	int fd = assemble(source, flags, NULL);

	if (fd < 0) {
		SKIP("no assembler");
		return;
	}
	CHECK(read_page(fd, 0, &failure));
	CHECK_NUMBER(failure, ROW_FAILURE_NONE);
	check_rows(expected, count);
	close(fd);
}

#define NONE                           \
	{                              \
		.cfa = UNWIND_CFA_NONE \
	}
#define END                           \
	{                             \
		.cfa = UNWIND_CFA_END \
	}
#define RULE(register_, offset_, ...)                                                         \
	{                                                                                     \
		.cfa = UNWIND_CFA_REGISTER, .cfa_register = register_, .cfa_offset = offset_, \
		.ra_offset = -8, __VA_ARGS__                                                  \
	}
#define DEREF(register_, offset_, add_, ...)                                               \
	{                                                                                  \
		.cfa = UNWIND_CFA_DEREF, .cfa_register = register_, .cfa_offset = offset_, \
		.cfa_add = add_, .ra_offset = -8, __VA_ARGS__                              \
	}
#define FP_AT_CFA(offset_) .fp = UNWIND_FP_AT_CFA, .fp_offset = offset_
#define FP_AT_FP(offset_)  .fp = UNWIND_FP_AT_FP, .fp_offset = offset_
#define FP_UNDEFINED       .fp = UNWIND_FP_UNDEFINED
#define COUNT(array)       (sizeof(array) / sizeof *(array))

/* Two functions with bytes between that are nobody's. */
static const char plain_source[] = "f: .cfi_startproc\nnop\n"
				   ".cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\nnop\n"
				   ".cfi_def_cfa_register %rbp\nnop\n"
				   ".cfi_remember_state\n.cfi_def_cfa %rsp, 8\n"
				   ".cfi_restore %rbp\nnop\n"
				   ".cfi_restore_state\nnop\n"
				   ".cfi_def_cfa %rsp, 0x12340\n.cfi_same_value %rbp\nnop\n"
				   ".cfi_endproc\nnop\nnop\n"
				   "g: .cfi_startproc\n.cfi_undefined %rip\nnop\n.cfi_endproc\n";
static const struct expected plain_rows[] = {
	{0, RULE(7, 8)},
	{1, RULE(7, 16, FP_AT_CFA(-16))},
	{2, RULE(6, 16, FP_AT_CFA(-16))},
	{3, RULE(7, 8)},
	{4, RULE(6, 16, FP_AT_CFA(-16))},
	{5, RULE(7, 0x12340)},
	{6, NONE},
	{7, NONE},
	{8, END},
	{9, NONE},
};

/* The same code, described in each place that linkers and compilers put it. */
static void test_places(void)
{
	static const struct {
		const char *what, *flags, *directive, *after;
	} places[] = {
		{".eh_frame_hdr", "-Wl,--eh-frame-hdr", "", NULL},
		{"no .eh_frame_hdr", "-Wl,--no-eh-frame-hdr", "", NULL},
		{".eh_frame_hdr without section headers", "-Wl,--eh-frame-hdr", "",
		 /* e_shoff, e_shnum, e_shstrndx */
		 "f() { printf '\\0\\0\\0\\0\\0\\0\\0\\0' | dd of=$1 bs=1 seek=40 conv=notrunc && "
		 "printf '\\0\\0\\0\\0' | dd of=$1 bs=1 seek=60 conv=notrunc; }; f"},
		{".debug_frame", "", ".cfi_sections .debug_frame\n", NULL},
		{".debug_frame, compressed", "", ".cfi_sections .debug_frame\n",
		 "objcopy --compress-debug-sections=zlib-gabi"},
		{".eh_frame_hdr by gold", "-fuse-ld=gold -Wl,--eh-frame-hdr", "", NULL},
	};

	for (size_t i = 0; i < COUNT(places); i++) {
		char source[1024];
		enum row_failure failure;
		int fd;

		printf("# %s\n", places[i].what);
		snprintf(source, sizeof source, "%s.text\n%s", places[i].directive, plain_source);
		fd = assemble(source, places[i].flags, places[i].after);
		if (fd < 0) {
			SKIP("cannot be linked here");
			continue;
		}
		CHECK(read_page(fd, 0, &failure));
		CHECK_NUMBER(failure, ROW_FAILURE_NONE);
		CHECK_NUMBER(rows.state, UNWIND_PAGE_LOADED);
		check_rows(plain_rows, COUNT(plain_rows));
		close(fd);
	}
}

/* Start files have .eh_frame even where the program has only .debug_frame: one fills the other's
 * gaps. A page of its own, a gap in front, between and behind. */
static void test_both(void)
{
	static const struct expected expected[] = {
		{0, RULE(7, 24)}, {1, RULE(7, 16)}, {2, RULE(7, 8)},
		{3, RULE(7, 32)}, {4, RULE(7, 40)}, {5, NONE},
	};
	enum row_failure failure;
	int fd =
		assemble(".cfi_sections .debug_frame\n"
			 "a: .cfi_startproc\n.cfi_def_cfa_offset 24\nnop\n.cfi_endproc\n"
			 "hole: nop\nnop\n"
			 "b: .cfi_startproc\n.cfi_def_cfa_offset 32\nnop\n.cfi_endproc\n"
			 "c: .cfi_startproc\n.cfi_def_cfa_offset 40\nnop\n.cfi_endproc\nnop\n"
			 ".section .eh_frame,\"a\",@unwind\n"
			 "cie: .long 1f-0f\n0: .long 0\n.byte 1\n.asciz \"zR\"\n.byte 1, 0x78, 16\n"
			 ".byte 1, 0x1b, 0x0c, 7, 8, 0x90, 1\n.balign 8\n1:\n"
			 ".long 1f-0f\n0: .long .-cie\n.long hole-.\n.long 2\n.byte 0\n"
			 ".byte 0x0e, 16, 0x41, 0x0e, 8\n.balign 8\n1:\n",
			 "-Wl,--eh-frame-hdr", NULL);

	if (fd < 0) {
		SKIP("no assembler");
		return;
	}
	CHECK(read_page(fd, 0, &failure));
	CHECK_NUMBER(failure, ROW_FAILURE_NONE);
	check_rows(expected, COUNT(expected));
	close(fd);
}

/* Everything that is not a register and an offset. */
static void test_kinds(void)
{
	static const char source[] =
		".text\nf: .cfi_startproc\nnop\n"
		/* 1: as linkers describe a procedure linkage table */
		".cfi_escape 0x0f,0x0b,0x77,8,0x80,0,0x3f,0x1a,0x3a,0x2a,0x33,0x24,0x22\nnop\n"
		/* 2: *(rbp − 16), the frame pointer at *(rbp) */
		".cfi_escape 0x0f,0x03,0x76,0x70,0x06\n.cfi_escape 0x10,6,2,0x76,0\nnop\n"
		/* 3: *(rsp + 40) + 8 */
		".cfi_escape 0x0f,0x05,0x77,40,0x06,0x23,8\n.cfi_same_value %rbp\nnop\n"
		/* 4: the same by lit8, plus */
		".cfi_escape 0x0f,0x05,0x77,40,0x06,0x38,0x22\nnop\n"
		/* 5: rsp + 24 as an expression, rbp at rsp + 8 */
		".cfi_escape 0x0f,0x02,0x77,24\n.cfi_escape 0x10,6,2,0x77,8\nnop\n"
		/* 6: rsp + 8 * r9: not to be expressed */
		".cfi_escape 0x0f,0x06,0x77,0,0x79,0,0x38,0x1e\nnop\n"
		/* 7: the return address in a register, as in vfork */
		".cfi_def_cfa %rsp, 8\n.cfi_same_value %rbp\n.cfi_register %rip, %rdi\nnop\n"
		/* 8: … in no place that is known; 9: the same; 10: elsewhere */
		".cfi_same_value %rip\nnop\n"
		".cfi_escape 0x16,16,1,0x30\nnop\n"
		".cfi_offset %rip, -16\nnop\n"
		/* 11: the frame pointer in another register; 12: CFA − 16 itself; 13: undefined */
		".cfi_offset %rip, -8\n.cfi_register %rbp, %rbx\nnop\n"
		".cfi_val_offset %rbp, -16\nnop\n"
		".cfi_undefined %rbp\nnop\n"
		/* 14: further away than a rule can say; 15: as far as it can */
		".cfi_offset %rbp, -40000\nnop\n"
		".cfi_offset %rbp, -32768\nnop\n"
		/* 16: a large frame; 17: too large */
		".cfi_def_cfa_offset 0x7ffffff8\n.cfi_same_value %rbp\nnop\n"
		".cfi_def_cfa_offset 0x80000000\nnop\n"
		/* 18: from another register; 19: the caller's stack pointer is not the CFA */
		".cfi_def_cfa %r10, 0\nnop\n"
		".cfi_def_cfa %rsp, 8\n.cfi_register %rsp, %r8\nnop\n"
		/* 20: relative to the CFA by an expression, which finds it on the stack */
		".cfi_restore %rsp\n.cfi_escape 0x10,6,2,0x48,0x1c\nnop\n"
		/* 21: GNU_args_size, GNU_negative_offset_extended */
		".cfi_escape 0x2e,16\n.cfi_escape 0x2f,6,2\nnop\n"
		/* 22: advance by set_loc is the end of what is tested */
		".cfi_escape 0x0f,0x07,0x77,40,0x06,0x0a,0,0x80,0x22\n.cfi_restore %rbp\nnop\n"
		".cfi_endproc\n";
	static const struct expected expected[] = {
		{0, RULE(7, 8)},
		{1, {.cfa = UNWIND_CFA_PLT, .cfa_offset = 10, .ra_offset = -8}},
		{2, DEREF(6, -16, 0, FP_AT_FP(0))},
		{3, DEREF(7, 40, 8)},
		{4, DEREF(7, 40, 8)},
		{5, RULE(7, 24, FP_AT_CFA(-16))},
		{6, NONE},
		{7,
		 {UNWIND_CFA_REGISTER, 7, .cfa_offset = 8, .ra = UNWIND_RA_IN_REGISTER,
		  .ra_offset = 5}},
		{8, NONE},
		{9, NONE},
		{10, NONE},
		{11, RULE(7, 8, FP_UNDEFINED)},
		{12, RULE(7, 8, FP_UNDEFINED)},
		{13, RULE(7, 8, FP_UNDEFINED)},
		{14, RULE(7, 8, FP_UNDEFINED)},
		{15, RULE(7, 8, FP_AT_CFA(-32768))},
		{16, RULE(7, 0x7ffffff8)},
		{17, NONE},
		{18, RULE(10, 0)},
		{19, NONE},
		{20, RULE(7, 8, FP_AT_CFA(-24))},
		{21, RULE(7, 8, FP_AT_CFA(16))},
		{22, NONE},
	};

	check_source(source, "", expected, COUNT(expected));
}

/* What throws an exception on goes to a landing pad, whose function's registers it has restored by
 * then; its other ways out are like anyone's, and so is a register that is no result. */
static void test_landing(void)
{
	static const char source[] =
		".text\nf: .cfi_startproc\n.cfi_def_cfa %rbp, 16\n.cfi_offset %rbp, -16\n"
		".cfi_offset %rbx, -24\n.cfi_def_cfa %rcx, 8\nnop\n"
		".cfi_offset %rax, -32\n.cfi_offset %rdx, -40\n.cfi_def_cfa %rbp, 16\nnop\n"
		".cfi_remember_state\n.cfi_def_cfa %rcx, 8\n.cfi_same_value %rbp\nnop\n"
		".cfi_def_cfa_register %rsp\nnop\n"
		".cfi_def_cfa_offset 0\n.cfi_register %rip, %rcx\nnop\n"
		".cfi_restore_state\nnop\n.cfi_endproc\n";
	static const struct expected expected[] = {
		{0, RULE(2, 8, FP_AT_CFA(-16), .kept = 3)},
		{1, RULE(6, 16, FP_AT_CFA(-16), .kept = 3)},
		{2, RULE(2, 8, .flags = UNWIND_RULE_SIGNAL)},
		{3, RULE(7, 8, .flags = UNWIND_RULE_SIGNAL)},
		{4,
		 {UNWIND_CFA_REGISTER, 7, .ra = UNWIND_RA_IN_REGISTER, .ra_offset = 2,
		  .flags = UNWIND_RULE_SIGNAL}},
		{5, RULE(6, 16, FP_AT_CFA(-16), .kept = 3)},
	};

	check_source(source, "", expected, COUNT(expected));
}

/* As the C library describes where a signal handler returns to, its context 16 bytes above the
 * stack pointer here; and one with another register in the wrong place. */
static void test_signal(void)
{
	static const struct expected expected[] = {
		{0,
		 {.cfa = UNWIND_CFA_SIGNAL,
		  .fp = UNWIND_FP_UNDEFINED,
		  .flags = UNWIND_RULE_SIGNAL,
		  .cfa_offset = 16}},
		{1, NONE},
		{2, RULE(7, 8, .flags = UNWIND_RULE_SIGNAL)},
	};

	check_source(".text\nf: .cfi_startproc\n.cfi_signal_frame\n"
			  ".cfi_escape 0x0f,4,0x77,0xb0,1,6\n"
			  ".cfi_escape 0x10,6,3,0x77,0x88,1\n"
			  ".cfi_escape 0x10,7,3,0x77,0xb0,1\n"
			  ".cfi_escape 0x10,16,3,0x77,0xb8,1\nnop\n"
			  ".cfi_escape 0x10,16,3,0x77,0xa8,1\nnop\n.cfi_endproc\n"
			  "g: .cfi_startproc\n.cfi_signal_frame\nnop\n.cfi_endproc\n",
			  "", expected, COUNT(expected));
}

/* A .debug_frame by hand: the 64-bit format, version 4, an advance by set_loc, a CIE that is not at
 * the start; code of arm64, which this machine has no linker for. */
static void test_by_hand(void)
{
	static const struct expected expected[] = {
		{0, {UNWIND_CFA_REGISTER, 31, .ra = UNWIND_RA_IN_REGISTER, .ra_offset = 30}},
		{1, {UNWIND_CFA_REGISTER, 31, FP_AT_CFA(-32), .cfa_offset = 32, .ra_offset = -24}},
		{2, {UNWIND_CFA_REGISTER, 29, FP_AT_CFA(-32), .cfa_offset = 32, .ra_offset = -24}},
		{3, {UNWIND_CFA_REGISTER, 31, .ra = UNWIND_RA_IN_REGISTER, .ra_offset = 30}},
		{4, END},
		{5, NONE},
	};
	static const char source[] =
		".text\nf: nop\nnop\nnop\nnop\ng: nop\nnop\n.section .debug_frame,\"\"\nstart:\n"
		".long 8\n.long -1\n.long 0\n" /* a CIE of nothing that is known */
		"cie: .long -1\n.quad 1f-0f\n0: .quad -1\n.byte 4\n.asciz \"\"\n.byte 8, 0\n"
		".byte 1, 0x78, 30, 0x0c, 31, 0\n.balign 8\n1:\n"
		".long -1\n.quad 1f-0f\n0: .quad cie-start\n.quad f, 4\n"
		".byte 0x2d, 0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3, 1\n.quad f+2\n"
		".byte 0x0d, 29, 0x41, 0x0c, 31, 0, 0xdd, 0xde\n.balign 8\n1:\n"
		".long -1\n.quad 1f-0f\n0: .quad cie-start\n.quad g, 1\n.byte 0x07, 30\n.balign "
		"8\n1:\n";
	enum row_failure failure;
	int fd = assemble(source, "", NULL);

	if (fd < 0) {
		SKIP("no assembler");
		return;
	}
	CHECK(read_page(fd, EM_AARCH64, &failure));
	CHECK_NUMBER(failure, ROW_FAILURE_NONE);
	check_rows(expected, COUNT(expected));
	/* As x86-64 its column of the return address is nothing to believe. */
	CHECK(read_page(fd, EM_X86_64, &failure));
	CHECK(page_rows_find(&rows, CODE_AT) &&
	      page_rows_find(&rows, CODE_AT)->cfa == UNWIND_CFA_NONE);
	close(fd);
}

/* One function's own information is broken; its neighbours stay. */
static void test_damage(void)
{
	static const char *const broken[] = {
		".cfi_escape 0x3f",           /* no instruction */
		".cfi_escape 0x0b",           /* nothing remembered */
		".cfi_escape 0x2d",           /* arm64's */
		".cfi_escape 0x0f,0x60,0x77", /* longer than what is left */
		".cfi_escape 0x0e,0x80,0x80,0x80,0x80,0x80,0x80,0x80,0x80,0x80,0x80,0x80,1",
		".rept 17\n.cfi_remember_state\n.endr",
		".rept 66000\n.cfi_escape 0x2e,0\n.endr", /* more than is run */
	};
	static const struct expected expected[] = {
		{0, RULE(7, 16)}, {1, NONE}, {2, NONE}, {3, RULE(7, 24)}, {4, NONE},
	};

	for (size_t i = 0; i < COUNT(broken); i++) {
		char source[512];
		enum row_failure failure;
		int fd;

		snprintf(source, sizeof source,
			 ".text\na: .cfi_startproc\n.cfi_def_cfa_offset 16\nnop\n.cfi_endproc\n"
			 "b: .cfi_startproc\nnop\n%s\nnop\n.cfi_endproc\n"
			 "c: .cfi_startproc\n.cfi_def_cfa_offset 24\nnop\n.cfi_endproc\nnop\n",
			 broken[i]);
		fd = assemble(source, "", NULL);
		printf("# %.40s\n", broken[i]);
		if (fd < 0) {
			SKIP("no assembler");
			continue;
		}
		CHECK(read_page(fd, 0, &failure));
		CHECK_NUMBER(failure, ROW_FAILURE_NONE);
		check_rows(expected, COUNT(expected));
		close(fd);
	}
}

/* Letters of augmentations: those with z are skipped by their length, others are nobody's. */
static void test_letters(void)
{
	static const struct {
		const char *letters, *data;
		bool is_good;
	} cases[] = {
		{"zR", "1, 0x1b", true},
		{"zRX", "3, 0x1b, 7, 7", true},
		{"zPLR", "7, 0x03, 1, 2, 3, 4, 0, 0x1b", true},
		{"zPR", "10, 0x80, 1, 2, 3, 4, 5, 6, 7, 8, 0x1b", true},
		{"zRS", "1, 0x1b", true},
		{"zRB", "1, 0x1b", true},
		{"zR", "1, 0x2b", false}, /* from the text */
		{"zR", "1, 0x4b", false}, /* from the function */
		{"zR", "1, 0x9b", false}, /* the address of it */
		{"zR", "1, 0xff", false},
		{"zR", "0x7f, 0x1b", false},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		char source[1024];
		enum row_failure failure;
		const struct unwind_rule *rule = NULL;
		int fd;

		snprintf(source, sizeof source,
			 ".text\nf: nop\n.section .eh_frame,\"a\",@progbits\n"
			 "cie: .long 1f-0f\n0: .long 0\n.byte 1\n.asciz \"%s\"\n.byte 1, 0x78, 16\n"
			 ".byte %s, 0x0c, 7, 8, 0x90, 1\n.balign 8\n1:\n"
			 ".long 1f-0f\n0: .long .-cie\n.long f-.\n.long 1\n.byte 0\n"
			 ".byte 0x0e, 32\n.balign 8\n1:\n",
			 cases[i].letters, cases[i].data);
		fd = assemble(source, "-Wl,--no-eh-frame-hdr -Wl,--no-ld-generated-unwind-info",
			      NULL);
		printf("# %s %s\n", cases[i].letters, cases[i].data);
		if (fd < 0) {
			SKIP("cannot be linked here");
			continue;
		}
		if (read_page(fd, 0, &failure))
			rule = page_rows_find(&rows, CODE_AT);
		CHECK((rule && rule->cfa == UNWIND_CFA_REGISTER && rule->cfa_offset == 32) ==
		      cases[i].is_good);
		if (rule && cases[i].is_good)
			CHECK_NUMBER(rule->flags, !strcmp(cases[i].letters, "zRS"));
		close(fd);
	}
}

/* A search table of which every entry names the same FDE with as many instructions as we run. */
static void test_bounded_work(void)
{
	struct timespec before, after;
	enum row_failure failure;
	int fd = assemble(".text\nf: .cfi_startproc\n.rept 60000\n.cfi_escape 0x2e,0\n.endr\n"
			  ".skip 4096\n.cfi_endproc\n"
			  ".rept 4000\n.cfi_startproc\nnop\n.cfi_endproc\n.endr\n",
			  "-Wl,--eh-frame-hdr", NULL);
	struct code_file file;
	int32_t table[2 * 4001];

	if (fd < 0 || !code_file_open(&file, fd)) {
		SKIP("no assembler");
		return;
	}
	for (unsigned i = 0; i < file.segment_count; i++) {
		off_t at = (off_t)file.segments[i].p_offset + 12;

		if (file.segments[i].p_type != PT_GNU_EH_FRAME)
			continue;
		CHECK(pread(fd, table, sizeof table, at) == sizeof table);
		for (int k = 1; k <= 4000; k++) {
			table[2 * k] = table[0] + k;
			table[2 * k + 1] = table[1];
		}
		CHECK(pwrite(fd, table, sizeof table, at) == sizeof table);
	}
	code_file_close(&file);
	clock_gettime(CLOCK_MONOTONIC, &before);
	CHECK(read_page(fd, 0, &failure));
	clock_gettime(CLOCK_MONOTONIC, &after);
	CHECK_NUMBER(failure, ROW_FAILURE_LIMIT);
	CHECK(after.tv_sec - before.tv_sec < 3);
	close(fd);
}

static void test_nothing(void)
{
	enum row_failure failure;
	int fd = assemble(".text\nnop\n", "", NULL);

	CHECK(!read_page(-1, 0, &failure));
	if (fd < 0) {
		SKIP("no assembler");
		return;
	}
	CHECK(!read_page(fd, 0, &failure));
	CHECK_NUMBER(failure, ROW_FAILURE_NONE);
	close(fd);
	call_frames_close(NULL);
}

int main(void)
{
	test_places();
	test_both();
	test_kinds();
	test_landing();
	test_signal();
	test_by_hand();
	test_damage();
	test_letters();
	test_bounded_work();
	test_nothing();
	return checks_done();
}

#else

int main(void)
{
	SKIP("the code is x86-64's");
	return checks_done();
}

#endif
