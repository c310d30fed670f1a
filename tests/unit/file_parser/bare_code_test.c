/* SPDX-License-Identifier: Apache-2.0 */
/* Code that nothing describes, of which the assembler also makes a described twin: at every place
 * the rule told from the instructions is the table's, or there is none. */
#include "node-agent/file_parser/code/bare_code.h"
#include "node-agent/file_parser/code/x86_code.h"

#include "tests/check.h"
#include "tests/unit/file_parser/assembled.h"

enum { CODE_BYTES_MAX = 4096, NOTHING = -1 };

static struct unwind_rule rules[CODE_BYTES_MAX];

static bool add(void *context, uint64_t start, uint64_t end, const struct unwind_rule *rule)
{
	(void)context;
	for (uint64_t at = start; at < end && at - CODE_AT < CODE_BYTES_MAX; at++)
		rules[at - CODE_AT] = *rule;
	return true;
}

static bool analysed(const char *source)
{
	struct bare_code *bare;
	struct code_file file;
	int fd = assemble(source, "", NULL);

	memset(rules, 0, sizeof rules);
	if (fd < 0 || !code_file_open(&file, fd))
		return false;
	bare = bare_code_open(&file, CODE_AT, CODE_AT + (1 << UNWIND_PAGE_BITS));
	bare_code_pieces(bare, CODE_AT, CODE_AT + (1 << UNWIND_PAGE_BITS), add, NULL);
	bare_code_close(bare);
	code_file_close(&file);
	close(fd);
	return true;
}

/* The CFA's offset from register number 7, the stack pointer, or 6; fp: where the caller's frame
 * pointer is below the CFA, 0: in the register. */
static void check_at(unsigned at, int cfa_register, int offset, int fp)
{
	const struct unwind_rule *rule = &rules[at];

	printf("# at %u\n", at);
	if (offset == NOTHING) {
		CHECK_NUMBER(rule->cfa, UNWIND_CFA_NONE);
		return;
	}
	CHECK_NUMBER(rule->cfa, UNWIND_CFA_REGISTER);
	CHECK_NUMBER(rule->cfa_register, cfa_register);
	CHECK_NUMBER(rule->cfa_offset, offset);
	CHECK_NUMBER(rule->fp == UNWIND_FP_AT_CFA ? -rule->fp_offset : 0, fp);
	CHECK(rule->flags & UNWIND_RULE_GUESSED);
}

static void test_returns(void)
{
	if (!analysed(".text\npush %rbx\n"          /* 0 */
		      "push %rbp\n"                 /* 1 */
		      "sub $0x18, %rsp\n"           /* 2 */
		      "test %edi, %edi\n"           /* 6 */
		      "je 1f\n"                     /* 8 */
		      "call .+0x100\n"              /* 10 */
		      "1: add $0x18, %rsp\n"        /* 15 */
		      "pop %rbp\npop %rbx\nret\n"   /* 19, 20, 21 */
		      ".balign 16\n"                /* 32: with a frame pointer and alloca */
		      "push %rbp\nmov %rsp, %rbp\n" /* 32, 33 */
		      "sub %rdi, %rsp\n"            /* 36 */
		      "call .+0x100\n"              /* 39 */
		      "leave\nret\n")) {            /* 44, 45 */
		SKIP("no assembler");
		return;
	}
	check_at(0, 7, 8, 0);
	check_at(1, 7, 16, 0);
	check_at(2, 7, 24, 24);
	check_at(6, 7, 48, 24);
	check_at(14, 7, 48, 24);
	check_at(19, 7, 24, 24);
	check_at(20, 7, 16, 0);
	check_at(21, 7, 8, 0);
	check_at(32, 7, 8, 0);
	check_at(33, 7, 16, 16);
	check_at(36, 6, 16, 16);
	check_at(43, 6, 16, 16);
	check_at(45, 7, 8, 0);
}

/* What never returns is told from its first instruction, and not from what lies behind it. */
static void test_no_return(void)
{
	if (!analysed(".text\nret\n.balign 16\n"
		      "push %rbx\nsub $0x10, %rsp\n"        /* 16, 17 */
		      "call *%rbx\n"                        /* 21 */
		      "mov %eax, %edi\ncall .+0x100\n"      /* 23, 25 */
		      ".balign 16\n"                        /* 32: another function */
		      "push %rbp\npop %rbp\nret\n"          /* 32, 33, 34 */
		      ".balign 16\n"                        /* 48: ways that disagree */
		      "test %edi, %edi\nje 1f\npush %rax\n" /* 48, 50, 52 */
		      "1: ret\n"                            /* 53 */
		      ".balign 16\n"                        /* 64: nothing can be told */
		      "mov %rdi, %rsp\njmp *%rsi\n")) {     /* 64, 67 */
		SKIP("no assembler");
		return;
	}
	check_at(16, 7, 8, 0);
	check_at(17, 7, 16, 0);
	check_at(22, 7, 32, 0);
	check_at(29, 7, 32, 0);
	check_at(32, 7, 8, 0);
	check_at(33, 7, 16, 16);
	check_at(64, 7, NOTHING, 0);
}

/* Bytes that are no code, and cut instructions, do no harm. */
static void test_noise(void)
{
	uint8_t bytes[64];
	unsigned seed = 1;

	for (int round = 0; round < 20000; round++) {
		size_t left = (size_t)round % sizeof bytes + 1;
		struct x86_instruction code;

		for (size_t i = 0; i < left; i++)
			bytes[i] = (uint8_t)((seed = seed * 1103515245 + 12345) >> 16);
		code = x86_decode(bytes, left);
		if (!code.length || code.length > left || code.length > X86_LENGTH_MAX) {
			CHECK_NUMBER(code.length, left);
			return;
		}
	}
	CHECK(x86_decode((const uint8_t *)"\xe8\x00", 2).effect == X86_BAD);
}

/* Lengths as objdump of binutils 2.40 gives them. */
static void test_lengths(void)
{
	static const struct {
		const char *bytes;
		uint8_t length;
	} known[] = {
		{"\x48\xb8\x01\x02\x03\x04\x05\x06\x07\x08", 10}, /* movabs */
		{"\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00", 10}, /* cs nopw */
		{"\x48\x81\xec\x20\x01\x00\x00", 7},              /* sub $0x120, %rsp */
		{"\x66\x81\xfc\x00\x10", 5},                      /* cmp $0x1000, %sp */
		{"\xf6\x42\x06\x20", 4},                          /* testb */
		{"\xf7\xd8", 2},                                  /* neg */
		{"\xc4\xe2\x79\x18\x05\x01\x02\x03\x04", 9},      /* vbroadcastss */
		{"\xc5\xf8\x77", 3},                              /* vzeroupper */
		{"\x62\xf1\x7c\x48\x28\x44\x24\x01", 8},          /* vmovaps %zmm0 */
		{"\x8f\xe8\x78\xa3\x42\x10\x10", 7},              /* vpperm */
		{"\x0f\x3a\x0f\xc1\x04", 5},                      /* palignr */
		{"\x64\x48\x8b\x04\x25\x28\x00\x00\x00", 9},      /* mov %fs:0x28 */
	};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		uint8_t bytes[X86_LENGTH_MAX] = {0};

		memcpy(bytes, known[i].bytes, known[i].length);
		CHECK_NUMBER(x86_decode(bytes, sizeof bytes).length, known[i].length);
	}
}

int main(void)
{
	test_lengths();
	test_noise();
	test_returns();
	test_no_return();
	return checks_done();
}
