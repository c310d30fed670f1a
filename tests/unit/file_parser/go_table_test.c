/* SPDX-License-Identifier: Apache-2.0 */
/* The truth is the linker's .debug_frame as readelf reads it, and the code as objdump reads it, of
 * programs that the Go compilers found here have built. */
#include "node-agent/file_parser/go/go_table.h"

#include "node-agent/file_parser/code/known_code.h"
#include "tests/unit/file_parser/go_programs.h"

/* --- .debug_frame --- */

/* Where our rows have to differ: the linker does not know that these change the stack, or that
 * nobody has called them. */
static const char *const differing[] = {
	"runtime.goexit",
	"runtime.rt0_go",
	"_rt0_amd64_linux",
	"_rt0_amd64",
	"runtime.mcall",
	"runtime.systemstack",
	"runtime.cgocallback",
	"runtime.asmcgocall",
	"runtime.morestack",
	"runtime.nanotime1",
	"runtime.vgetrandom1",
	"time.now",
	"runtime.sigfwd",
	"runtime.callCgoMmap",
	"runtime.callCgoMunmap",
	"runtime.callCgoSigaction",
	"runtime.clone",
	"gogo",
	"runtime.sigreturn",
	"runtime.sigreturn__sigaction",
	"runtime.switchToCrashStack0",
	"runtime.asmcgocall_no_g",
};

static bool is_name(const char *symbol, const char *name)
{
	size_t length = strlen(name);

	return strncmp(symbol, name, length) == 0 &&
	       (!symbol[length] || strcmp(symbol + length, ".abi0") == 0);
}

struct span {
	uint64_t start, end;
};
static struct span spans[64]; /* of the differing functions */
static size_t span_count;
static struct span go_text;

static void load_symbols(const char *path)
{
	char line[4096], name[4096] = "", type;
	uint64_t address;
	FILE *pipe;
	bool is_open = false;

	pipe = listing("nm -n %s 2>/dev/null", path);
	span_count = 0;
	while (pipe && fgets(line, sizeof line, pipe)) {
		if (sscanf(line, "%" SCNx64 " %c %4095s", &address, &type, name) != 3 ||
		    !strchr("tT", type))
			continue;
		if (is_open)
			spans[span_count++].end = address;
		is_open = false;
		if (strcmp(name, "runtime.text") == 0)
			go_text.start = address;
		if (strcmp(name, "runtime.etext") == 0)
			go_text.end = address;
		for (size_t i = 0; i < sizeof differing / sizeof *differing; i++)
			if (is_name(name, differing[i]) && span_count < 64) {
				spans[span_count].start = address;
				is_open = true;
			}
	}
	if (pipe)
		pclose(pipe);
}

static bool is_differing(uint64_t address)
{
	for (size_t i = 0; i < span_count; i++)
		if (address >= spans[i].start && address < spans[i].end)
			return true;
	return false;
}

static uint64_t bytes_equal, bytes_other;

/* The linker's row: the CFA is rsp + offset from start to end. */
static void compare(uint64_t start, uint64_t end, int64_t offset)
{
	while (start < end) {
		const struct piece *piece = find(start);
		uint64_t next = piece && piece->end < end ? piece->end : end;

		if (!piece)
			next = start + 1;
		if (piece && piece->rule.cfa == UNWIND_CFA_REGISTER &&
		    piece->rule.cfa_register == UNWIND_REGISTER_SP &&
		    piece->rule.cfa_offset == offset) {
			bytes_equal += next - start;
		} else if (!is_differing(start)) {
			if (bytes_other < 64)
				printf("# at %" PRIx64 ": rsp+%" PRId64 ", got cfa %d %d %d\n",
				       start, offset, piece ? piece->rule.cfa : -1,
				       piece ? piece->rule.cfa_register : 0,
				       piece ? piece->rule.cfa_offset : 0);
			bytes_other += next - start;
		}
		start = next;
	}
}

static void test_debug_frame(const char *path)
{
	char line[4096], rule[64];
	uint64_t address, last = 0, end = 0, first;
	int64_t offset = -1;
	bool is_debug = false;
	FILE *pipe;

	pipe = listing("readelf --debug-dump=frames-interp %s 2>/dev/null", path);
	bytes_equal = bytes_other = 0;
	while (pipe && fgets(line, sizeof line, pipe)) {
		const char *pc = strstr(line, " pc=");

		if (strncmp(line, "Contents of", 11) == 0)
			is_debug = strstr(line, ".debug_frame") != NULL;
		if (pc && sscanf(pc, " pc=%" SCNx64 "..%" SCNx64, &first, &address) == 2) {
			compare(last, end, offset);
			last = end = 0;
			if (is_debug && first >= go_text.start && first < go_text.end)
				last = end = address;
			offset = INT64_MIN;
		} else if (end && sscanf(line, "%" SCNx64 " %63s", &address, rule) == 2) {
			if (offset != INT64_MIN)
				compare(last, address < end ? address : end, offset);
			last = address;
			if (sscanf(rule, "rsp+%" SCNd64, &offset) != 1)
				offset = -1; /* differs from everything */
		}
	}
	compare(last, end, offset);
	if (pipe)
		pclose(pipe);
	printf("# %" PRIu64 " bytes of code have the linker's rows\n", bytes_equal);
	CHECK(bytes_equal > 400000);
	CHECK_NUMBER(bytes_other, 0);
}

/* --- the code --- */

/* What has to hold at a call: where the row of the caller's address is looked up. */
static const struct {
	const char *function, *call;
	uint8_t cfa;
	bool framed; /* if it has a frame of its own, the frame pointer shows it */
} calls[] = {
	{"runtime.asmcgocall", "gosave_systemstack_switch", UNWIND_CFA_REGISTER, false},
	{"runtime.systemstack", "*%rdi", UNWIND_CFA_GO_GOROUTINE, true},
	{"runtime.cgocallback", "*%rax", UNWIND_CFA_NONE, true},
	{"runtime.nanotime1", "*%rax", UNWIND_CFA_NONE, true},
	{"time.now", "*%rax", UNWIND_CFA_NONE, true},
	{"runtime.mcall", "*%r12", UNWIND_CFA_END, false},
	{"runtime.clone", "*%r12", UNWIND_CFA_END, false},
	{"runtime.morestack", "newstack", UNWIND_CFA_GO_GOROUTINE, false},
	{"runtime.goexit", "goexit1", UNWIND_CFA_END, false},
	{"runtime.mstart", "mstart0", UNWIND_CFA_REGISTER, false},
	{"runtime.rt0_go", "mstart", UNWIND_CFA_END, false},
	{"runtime.sigtramp", "sigtrampgo", UNWIND_CFA_REGISTER, false},
	{"runtime.asyncPreempt", "asyncPreempt2", UNWIND_CFA_REGISTER, false},
};
static unsigned calls_seen, calls_wrong, c_calls;

struct function {
	char name[256];
	bool is_popped;           /* the return address */
	bool is_saved, is_framed; /* the frame pointer: saved so far, set so far */
	int64_t stored[2]; /* where %rdi and %rdx have been stored last, from the stack pointer */
};
static unsigned saves, wrong_fp, undefined_fp, instructions;

static bool starts(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* "mov %rdi,0x28(%rsp)" */
static bool store(const char *text, const char *reg, int64_t *offset)
{
	char form[32];
	const char *at;

	snprintf(form, sizeof form, "mov    %%%s,", reg);
	if (!starts(text, form))
		return false;
	at = text + strlen(form);
	*offset = starts(at, "(%rsp)") ? 0 : strtoll(at, (char **)&at, 16);
	return starts(at, "(%rsp)");
}

static void check_call(const struct function *function, const struct piece *piece, const char *text)
{
	const struct unwind_rule *rule = &piece->rule;

	if (strcmp(function->name, "runtime.asmcgocall.abi0") == 0 && !strstr(text, "gosave")) {
		bool is_switch = ++c_calls % 2;
		int64_t offset = function->stored[!is_switch];

		if (rule->cfa != (is_switch ? UNWIND_CFA_GO_SWITCH : UNWIND_CFA_DEREF) ||
		    rule->cfa_offset != offset || rule->cfa_add != (function->is_saved ? 16 : 8) ||
		    (!is_switch && rule->cfa_register != UNWIND_REGISTER_SP))
			calls_wrong++;
	}
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		bool framed = calls[i].framed && function->is_framed;

		if (!is_name(function->name, calls[i].function) || !strstr(text, calls[i].call))
			continue;
		calls_seen |= 1U << i;
		if (rule->cfa != (framed ? UNWIND_CFA_REGISTER : calls[i].cfa) ||
		    (framed &&
		     (rule->cfa_register != UNWIND_REGISTER_FP || rule->cfa_offset != 16)) ||
		    !(rule->flags & UNWIND_RULE_SIGNAL) !=
			    !starts(function->name, "runtime.asyncPre")) {
			printf("# %s: %s", function->name, text);
			calls_wrong++;
		}
	}
}

static void check_instruction(struct function *function, uint64_t address, const char *text)
{
	const struct piece *piece = find(address);
	const struct unwind_rule *rule = piece ? &piece->rule : NULL;
	int64_t depth, offset;
	bool saves_fp;

	if (!piece)
		return;
	for (int i = 0; i < 2; i++)
		if (store(text, i ? "rdx" : "rdi", &offset))
			function->stored[i] = offset;
	if (starts(text, "call"))
		check_call(function, piece, text);
	if (starts(text, "mov    %rsp,%rbp") || starts(text, "lea    "))
		function->is_framed |= strstr(text, ",%rbp") && function->is_saved;
	if (rule->cfa != UNWIND_CFA_REGISTER || rule->cfa_register != UNWIND_REGISTER_SP)
		return;
	instructions++;
	if (is_name(function->name, "syscall.rawVforkSyscall")) {
		function->is_popped |= starts(text, "pop    %r12");
		wrong_fp += rule->cfa_offset == 0 &&
			    (!function->is_popped || rule->ra != UNWIND_RA_IN_REGISTER ||
			     rule->ra_offset != 12);
	}
	depth = rule->cfa_offset - 8;
	if (depth < 0)
		return;
	saves_fp = (starts(text, "push   %rbp") && depth == 0) ||
		   (store(text, "rbp", &offset) && offset == depth - 8);
	undefined_fp += rule->fp == UNWIND_FP_UNDEFINED;
	if ((rule->fp == UNWIND_FP_AT_CFA &&
	     (!function->is_saved || rule->fp_offset != -16 || !depth)) ||
	    (rule->fp == UNWIND_FP_SAME && depth && !saves_fp) ||
	    (rule->fp != UNWIND_FP_AT_CFA && function->is_saved && depth)) {
		if (wrong_fp++ < 5)
			printf("# %s %" PRIx64 ": fp %d, %s", function->name, address, rule->fp,
			       text);
	}
	saves += saves_fp && !function->is_saved;
	function->is_saved |= saves_fp;
}

static void test_code(const char *path)
{
	char line[8192], name[256];
	struct function function = {0};
	uint64_t address;
	int at;
	FILE *pipe;

	pipe = listing("objdump -d --no-show-raw-insn -j .text %s 2>/dev/null", path);
	calls_seen = calls_wrong = c_calls = saves = wrong_fp = undefined_fp = instructions = 0;
	while (pipe && fgets(line, sizeof line, pipe)) {
		at = 0;
		if (sscanf(line, "%" SCNx64 " <%255[^>]", &address, name) == 2) {
			function = (struct function){0};
			memcpy(function.name, name, sizeof name);
		} else if (sscanf(line, " %" SCNx64 ":\t%n", &address, &at) == 1 && at) {
			check_instruction(&function, address, line + at);
		}
	}
	if (pipe)
		pclose(pipe);
	printf("# %u instructions, %u functions save the frame pointer, %u instructions without "
	       "one\n",
	       instructions, saves, undefined_fp);
	CHECK(saves > 500);
	CHECK_NUMBER(wrong_fp, 0);
	CHECK(undefined_fp < instructions / 200);
	CHECK_NUMBER(calls_wrong, 0);
	CHECK_NUMBER(c_calls, 2);
	/* Without cgo nobody calls back. */
	CHECK_NUMBER(calls_seen | 1U << 2, (1U << sizeof calls / sizeof *calls) - 1);
}

/* The return address that the kernel's frame has is the function's first byte. */
static void test_sigreturn(const char *path)
{
	uint64_t address = 0;
	const struct piece *piece;
	FILE *pipe;

	pipe = listing("nm %s | grep -w 'runtime.sigreturn.*abi0'", path);
	CHECK(pipe && fscanf(pipe, "%" SCNx64, &address) == 1);
	if (pipe)
		pclose(pipe);
	piece = find(address - 1);
	CHECK(piece && piece->rule.cfa == UNWIND_CFA_SIGNAL && piece->rule.cfa_offset == 0);
	CHECK(piece && piece->end > address + 8);
}

/* Where the runtime's descriptors have what, by the program's DWARF; the walker's own places too.
 */
static void test_descriptor(const char *path)
{
	static const char script[] =
		"python at=lambda t,n:[f.bitpos//8 for f in gdb.lookup_type('runtime.'+t).fields() "
		"if f.name==n][0]; s=at('g','sched'); print('at',at('g','m'),s+at('gobuf','sp'),"
		"s+at('gobuf','pc'),s+at('gobuf','bp'),at('m','curg'))";
	int m = 0, sp = 0, pc = 0, fp = 0, curg = 0;
	unsigned left = 0, called = 0, other = 0;
	char line[4096];
	FILE *pipe;

	pipe = listing("gdb -nx -batch -ex \"%s\" %s 2>/dev/null", script, path);
	while (pipe && fgets(line, sizeof line, pipe))
		if (sscanf(line, "at %d %d %d %d %d", &m, &sp, &pc, &fp, &curg) == 5)
			break;
	if (pipe)
		pclose(pipe);
	if (!curg) {
		SKIP("needs gdb with Python");
		return;
	}
	CHECK_NUMBER(m, 0x30);
	CHECK_NUMBER(sp, 0x38);
	CHECK_NUMBER(pc, 0x40);
	for (size_t i = 0; i < piece_count; i++) {
		const struct unwind_rule *rule = &pieces[i].rule;

		if (rule->cfa != UNWIND_CFA_GO_GOROUTINE)
			continue;
		left += !rule->ra_offset;
		called += rule->ra_offset == -8;
		other += rule->fp_offset != fp || rule->cfa_add != curg || rule->cfa_offset >= 0;
	}
	CHECK(left >= 1);
	CHECK(called == (fp == 0x68)); /* since 1.21 the frame pointer shows systemstack's caller */
	CHECK_NUMBER(other, 0);
}

static bool take_known(void *context, uint64_t start, uint64_t end, const struct unwind_rule *rule)
{
	*(struct piece *)context = (struct piece){start, end, *rule};
	return false;
}

/* Nothing describes the assembly by which C starts Go's threads; its pushes tell. */
static void test_thread_start(const char *path)
{
	FILE *pipe = listing("objdump -d --no-show-raw-insn %s 2>/dev/null | "
			     "sed -n '/^[0-9a-f]* <crosscall\\(1\\|_amd64\\)>/,/ret/p'",
			     path);
	int at, pushes = 0, fp = 0, seen = 0;
	struct piece piece = {0};
	struct code_file file;
	uint64_t address, start = 0;
	char line[256];
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	CHECK(code_file_open(&file, fd));
	while (pipe && fgets(line, sizeof line, pipe)) {
		at = 0;
		if (sscanf(line, " %" SCNx64 ":\t%n", &address, &at) != 1 || !at)
			continue;
		start = start ? start : address;
		pushes += starts(line + at, "push");
		if (starts(line + at, "push   %rbp"))
			fp = pushes;
		if (!starts(line + at, "call"))
			continue;
		known_code_pieces(&file, start, start + 48, take_known, &piece);
		seen += piece.start <= address && address < piece.end &&
			piece.rule.cfa == UNWIND_CFA_REGISTER &&
			piece.rule.cfa_offset == 8 * (pushes + 1) &&
			piece.rule.fp == UNWIND_FP_AT_CFA && piece.rule.fp_offset == -8 * (fp + 1);
	}
	CHECK_NUMBER(seen, 2);
	code_file_close(&file);
	if (pipe)
		pclose(pipe);
	if (fd >= 0)
		close(fd);
}

/* --- the same program without what makes it easy --- */

static void test_stripped(const char *path, const char *options)
{
	struct piece *whole = malloc((piece_count + 1) * sizeof *whole);
	size_t count = piece_count;
	char stripped[256];

	memcpy(whole, pieces, count * sizeof *whole);
	snprintf(stripped, sizeof stripped, "%s.stripped", path);
	if (!run("command -v llvm-objcopy-19 >/dev/null")) {
		SKIP("no llvm-objcopy to strip with");
	} else {
		CHECK(run("llvm-objcopy-19 %s %s %s", options, path, stripped));
		CHECK_NUMBER(load_path(stripped), ROW_FAILURE_NONE);
		CHECK_NUMBER(piece_count, count);
		CHECK(piece_count == count && !memcmp(whole, pieces, count * sizeof *whole));
	}
	memcpy(pieces, whole, count * sizeof *whole);
	piece_count = count;
	free(whole);
}

/* --- */

static void test_compiler(const char *go)
{
	for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
		char path[256];

		if (!build(go, &programs[i], path, sizeof path)) {
			SKIP(programs[i].cgo ? "go cannot build with cgo" : "go cannot build");
			continue;
		}
		printf("# %s, %s\n", go, programs[i].name);
		CHECK_NUMBER(load_path(path), ROW_FAILURE_NONE);
		CHECK(ascending && piece_count > 1000);
		load_symbols(path);
		test_debug_frame(path);
		test_code(path);
		test_sigreturn(path);
		test_descriptor(path);
		if (programs[i].cgo)
			test_thread_start(path);
		test_stripped(path, "--strip-all");
		test_stripped(path, "--strip-sections");
	}
}

int main(void)
{
	each_compiler(test_compiler);
	CHECK_NUMBER(load_path("/proc/self/exe"), ROW_FAILURE_COUNT);
	CHECK_NUMBER(load_path("/dev/null"), ROW_FAILURE_NOT_CODE);
	free(pieces);
	return checks_done();
}
