/* SPDX-License-Identifier: Apache-2.0 */
/* The truth is the assembler's: code with .cfi directives, read back out of this very program. */
#include "node-agent/unwind/frame_rule.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/check.h"

#if defined(__x86_64__)

extern const char __ehdr_start[];
extern const char cfi_code[], cfi_signal[];

/* One instruction of one byte per row. */
__asm__(".pushsection .text\n"
	".globl cfi_code, cfi_signal\n"
	"cfi_code: .cfi_startproc\n"
	"nop\n" /* 0: nothing done yet */
	"nop\n"
	".cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\n"
	"nop\n" /* 2: pushed %rbp */
	".cfi_def_cfa_register %rbp\n"
	"nop\n" /* 3: the frame stands */
	".cfi_remember_state\n.cfi_offset %rbx, -24\n"
	"nop\n" /* 4: and more is saved */
	".cfi_def_cfa %rsp, 8\n"
	"nop\n" /* 5: before ret */
	".cfi_restore_state\n"
	"nop\n" /* 6: behind a jump, the frame again */
	".cfi_def_cfa %rsp, 40\n.cfi_same_value %rbp\n"
	"nop\n" /* 7: no frame, 32 bytes of stack */
	".cfi_offset %rbp, -32\n"
	"nop\n" /* 8: the register is used for something else */
	".cfi_def_cfa %r10, 0\n"
	"nop\n" /* 9: a stack that is being aligned */
	".cfi_def_cfa %rbp, 32\n"
	"nop\n" /* 10: no frame as the walk knows it */
	".cfi_def_cfa %rsp, 8\n.cfi_register %rip, %r10\n"
	"nop\n" /* 11: as vfork has it */
	".cfi_offset %rip, -8\n.cfi_escape 0x0f, 0x03, 0x77, 0x08, 0x06\n"
	"nop\n" /* 12: an expression */
	".cfi_endproc\n"
	"nop\nnop\n"
	"cfi_signal: .cfi_startproc\n.cfi_signal_frame\nnop\n.cfi_endproc\n"
	".popsection\n");

static int self = -1;

static struct frame_rule rule_of(const char *code, int offset)
{
	return frame_rule_read(self, (uint64_t)(code - __ehdr_start + offset));
}

static void test_rows(void)
{
	static const struct {
		int offset, kind, return_offset, keeps_fp, fp_offset;
	} rows[] = {
		{0, FRAME_RULE_STACK, 0, true, 0},
		{1, FRAME_RULE_STACK, 0, true, 0},
		{2, FRAME_RULE_STACK, 8, false, 0},
		{3, FRAME_RULE_FRAME_POINTER, 0, false, 0},
		{4, FRAME_RULE_FRAME_POINTER, 0, false, 0},
		{5, FRAME_RULE_STACK, 0, true, 0}, /* saved below the stack pointer: taken back */
		{6, FRAME_RULE_FRAME_POINTER, 0, false, 0},
		{7, FRAME_RULE_STACK, 32, true, 0},
		{8, FRAME_RULE_STACK, 32, false, 8},
		{9, FRAME_RULE_OTHER, 0, false, 0},
		{10, FRAME_RULE_OTHER, 0, false, 0},
		{11, FRAME_RULE_UNKNOWN, 0, false, 0},
		{12, FRAME_RULE_UNKNOWN, 0, false, 0},
		{13, FRAME_RULE_UNKNOWN, 0, false, 0}, /* behind its end */
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct frame_rule rule = rule_of(cfi_code, rows[i].offset);

		printf("# instruction %d\n", rows[i].offset);
		CHECK_NUMBER(rule.kind, rows[i].kind);
		CHECK_NUMBER(rule.return_offset, rows[i].return_offset);
		CHECK_NUMBER(rule.keeps_fp, rows[i].keeps_fp);
		CHECK_NUMBER(rule.fp_offset, rows[i].fp_offset);
	}
	CHECK_NUMBER(rule_of(cfi_signal, 0).kind, FRAME_RULE_SIGNAL);
	CHECK_NUMBER(frame_rule_read(self, 0).kind, FRAME_RULE_UNKNOWN);
	CHECK_NUMBER(frame_rule_read(self, UINT64_MAX).kind, FRAME_RULE_UNKNOWN);
	CHECK_NUMBER(frame_rule_read(-1, 0).kind, FRAME_RULE_UNKNOWN);
}

static void test_memory(void)
{
	struct error err = {0};
	struct frame_rules *rules = frame_rules_new(&err);
	uint64_t address = (uint64_t)(cfi_code + 3 - __ehdr_start);

	CHECK(rules);
	if (!rules)
		return;
	CHECK_NUMBER(frame_rules_find(rules, 1, -1, address).kind, FRAME_RULE_UNKNOWN);
	CHECK_NUMBER(frame_rules_find(rules, 1, self, address).kind, FRAME_RULE_FRAME_POINTER);
	CHECK_NUMBER(frame_rules_find(rules, 1, -1, address).kind, FRAME_RULE_FRAME_POINTER);
	CHECK_NUMBER(frame_rules_find(rules, 2, -1, address).kind, FRAME_RULE_UNKNOWN);
	CHECK_NUMBER(frame_rules_find(rules, 1, -1, address - 3).kind, FRAME_RULE_UNKNOWN);
	frame_rules_free(rules);
	frame_rules_free(NULL);
}

/* Changed bytes of headers and tables: any answer will do, the sanitizers watch. */
static void test_mutations(void)
{
	int fd = memfd_create("mutant", MFD_CLOEXEC);
	struct stat st = {0};
	uint64_t kinds[5] = {0};
	unsigned seed = 1;
	uint8_t *original;

	CHECK(fd >= 0 && fstat(self, &st) == 0);
	original = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, self, 0);
	CHECK(original != MAP_FAILED && write(fd, original, (size_t)st.st_size) == st.st_size);
	for (int i = 0; i < 4000; i++) {
		off_t at[4];
		struct frame_rule rule;

		for (int k = 0; k < 4; k++) {
			uint8_t value = (uint8_t)rand_r(&seed);

			/* the headers, or anywhere */
			at[k] = rand_r(&seed) % (k < 2 ? 1024 : (int)st.st_size);
			if (pwrite(fd, &value, 1, at[k]) != 1)
				return;
		}
		rule = frame_rule_read(fd, (uint64_t)(cfi_code - __ehdr_start) + (unsigned)i % 14);
		if (rule.kind > FRAME_RULE_OTHER)
			abort();
		kinds[rule.kind]++;
		for (int k = 0; k < 4; k++)
			if (pwrite(fd, original + at[k], 1, at[k]) != 1)
				return;
	}
	CHECK(kinds[FRAME_RULE_STACK] > 100 && kinds[FRAME_RULE_UNKNOWN] > 100);
	munmap(original, (size_t)st.st_size);
	close(fd);
}

int main(void)
{
	self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	CHECK(self >= 0);
	test_rows();
	test_memory();
	test_mutations();
	close(self);
	return checks_done();
}

#else

int main(void)
{
	SKIP("unwind tables are checked on x86-64 only");
	return checks_done();
}

#endif
