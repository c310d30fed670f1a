/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files: what cannot be used says why, and nothing that a file has in it makes us go wrong.
 */
#include "node-agent/file_parser/unwind_file.h"

#include <elf.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/unit/file_parser/assembled.h"

static struct page_rows rows;

/* --- small things --- */

static void test_not_code(void)
{
	int fd = memfd_create("text", MFD_CLOEXEC);
	struct unwind_file *file;

	CHECK(write(fd, "no program at all", 17) == 17);
	file = unwind_file_open(fd);
	CHECK(file);
	unwind_file_page(file, 0, &rows);
	CHECK_NUMBER(rows.state, UNWIND_PAGE_FAILED);
	CHECK_NUMBER(rows.failure, ROW_FAILURE_NOT_CODE);
	unwind_file_close(file);
	file = unwind_file_open(-1);
	unwind_file_page(file, 7, &rows);
	CHECK_NUMBER(rows.failure, ROW_FAILURE_NOT_CODE);
	CHECK_NUMBER(rows.page, 7);
	unwind_file_close(file);
	unwind_file_close(NULL);
}

#if defined(__x86_64__)

/* Functions of all kinds of information on two pages, one of them across the border. */
static const char source[] =
	".text\n"
	".rept 20\n.cfi_startproc\npush %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\n"
	"mov %rsp, %rbp\n.cfi_def_cfa_register %rbp\n.cfi_remember_state\npop %rbp\n"
	".cfi_def_cfa %rsp, 8\n.cfi_restore "
	"%rbp\nret\n.cfi_restore_state\nnop\n.cfi_endproc\nnop\n.endr\n"
	".cfi_startproc\n.cfi_escape 0x0f,0x03,0x76,0x70,0x06\nnop\n"
	".cfi_escape 0x10,6,2,0x76,0\nnop\n.cfi_escape 0x16,6,1,0x9c\nnop\n.cfi_endproc\n"
	".cfi_startproc\n.cfi_signal_frame\nnop\n.cfi_endproc\n"
	".cfi_startproc\nnop\n.cfi_def_cfa_offset 24\n.skip 0x10000\n.cfi_def_cfa_offset 32\nnop\n"
	".cfi_endproc\n";

static void test_page_border(int fd)
{
	struct unwind_file *file = unwind_file_open(dup(fd));
	const struct unwind_rule *rule;

	unwind_file_page(file, CODE_PAGE + 1, &rows);
	CHECK_NUMBER(rows.state, UNWIND_PAGE_LOADED);
	rule = page_rows_find(&rows, CODE_AT + 0x10000);
	CHECK(rule && rule->cfa == UNWIND_CFA_REGISTER && rule->cfa_offset == 24);
	CHECK_NUMBER(rows.count, 3); /* that, 32 and the gap */
	unwind_file_page(file, CODE_PAGE + 2, &rows);
	CHECK_NUMBER(rows.state, UNWIND_PAGE_EMPTY);
	CHECK(unwind_file_bytes(file) < 64 << 10);
	unwind_file_close(file);
}

/* Code as musl has it, which says nothing of itself; a described function in between. */
static void test_known_code(void)
{
	static const char musl[] =
		".text\n.skip 64, 0x90\n"
		"nop\nmov $15, %rax\nsyscall\n" /* 64 */
		"nop\nnop\nnop\nnop\nnop\nnop\n"
		".cfi_startproc\nnop\nmov $15, %rax\nsyscall\n.cfi_endproc\n" /* 80 */
		".skip 6, 0x90\n"
		"xor %rbp, %rbp\nmov %rsp, %rdi\nlea 0x345c5(%rip), %rsi\nand $-16, %rsp\n" /* 96 */
		"call .+0x1000\nnop\n"
		".skip 4077, 0x90\n"
		/* 4196: a new thread, 14 bytes before the second step's end */
		"xor %ebp, %ebp\npop %rdi\ncall *%r9\nmov %eax, %edi\nxor %eax, %eax\n"
		"mov $60, %al\nsyscall\nhlt\nret\n"
		/* 4212: glibc's end of a coroutine */
		"nop\nmov %rbx, %rsp\nmov (%rsp), %rdi\ntest %rdi, %rdi\nje .+10\n"
		"call .+0x1000\nmov %rax, %rdi\nnop\n"
		/* 4234: the same with a landing pad */
		"nop\nendbr64\nmov %rbx, %rsp\nmov (%rsp), %rdi\ntest %rdi, %rdi\nje .+10\n"
		"call .+0x1000\nmov %rax, %rdi\n";
	static const struct {
		uint64_t offset;
		int cfa;
	} expected[] = {
		{63, UNWIND_CFA_NONE},       {64, UNWIND_CFA_SIGNAL}, {65, UNWIND_CFA_SIGNAL},
		{73, UNWIND_CFA_SIGNAL},     {74, UNWIND_CFA_NONE},   {80, UNWIND_CFA_REGISTER},
		{82, UNWIND_CFA_REGISTER},   {90, UNWIND_CFA_NONE},   {95, UNWIND_CFA_NONE},
		{96, UNWIND_CFA_END},        {117, UNWIND_CFA_END},   {118, UNWIND_CFA_NONE},
		{4195, UNWIND_CFA_NONE},     {4196, UNWIND_CFA_END},  {4210, UNWIND_CFA_END},
		{4211, UNWIND_CFA_REGISTER}, {4212, UNWIND_CFA_END},  {4229, UNWIND_CFA_END},
		{4230, UNWIND_CFA_NONE},     {4234, UNWIND_CFA_END},  {4238, UNWIND_CFA_END},
	};
	int fd = assemble(musl, "", NULL);
	struct unwind_file *file;

	if (fd < 0) {
		SKIP("no assembler");
		return;
	}
	file = unwind_file_open(fd);
	unwind_file_page(file, CODE_PAGE, &rows);
	CHECK_NUMBER(rows.state, UNWIND_PAGE_LOADED);
	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
		const struct unwind_rule *rule = page_rows_find(&rows,
								CODE_AT + expected[i].offset);

		printf("# code + %d\n", (int)expected[i].offset);
		CHECK_NUMBER(rule ? rule->cfa : -1, expected[i].cfa);
		if (rule && rule->cfa == UNWIND_CFA_SIGNAL)
			CHECK(rule->cfa_offset == 0 && rule->flags == UNWIND_RULE_SIGNAL);
	}
	unwind_file_close(file);
}

static bool is_sound(void)
{
	if (rows.state == UNWIND_PAGE_FAILED)
		return rows.failure != ROW_FAILURE_NONE && !rows.count;
	if (rows.failure != ROW_FAILURE_NONE || (rows.count && rows.rows[0].low))
		return false;
	for (uint32_t i = 0; i < rows.count; i++)
		if (rows.rows[i].rule >= rows.rule_count ||
		    (i && rows.rows[i].low <= rows.rows[i - 1].low))
			return false;
	return rows.state == (rows.count ? UNWIND_PAGE_LOADED : UNWIND_PAGE_EMPTY);
}

/* Bytes changed in the headers, the tables, anywhere: any answer will do that is one. */
static void test_mutations(int original)
{
	unsigned seed = 1, states[4] = {0}, unsound = 0;
	struct stat st = {0};
	uint8_t *bytes, *mutant;

	CHECK(fstat(original, &st) == 0 && st.st_size > 0);
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, original, 0);
	mutant = malloc((size_t)st.st_size);
	CHECK(bytes != MAP_FAILED && mutant);
	for (int i = 0; i < 600; i++) {
		int fd = memfd_create("mutant", MFD_CLOEXEC), changes = 1 + rand_r(&seed) % 8;
		size_t length = (size_t)st.st_size;
		struct unwind_file *file;

		memcpy(mutant, bytes, length);
		for (int k = 0; k < changes; k++) {
			/* the code itself is long and says nothing: what lies around it */
			size_t room = k % 2 ? 2048 : length, at = (size_t)rand_r(&seed) % room;

			if (k % 4 == 2)
				at = length - 1 - at % 4096;
			mutant[at] = (uint8_t)rand_r(&seed);
		}
		if (i % 10 == 9)
			length = (size_t)rand_r(&seed) % length;
		if (write(fd, mutant, length) != (ssize_t)length)
			break;
		file = unwind_file_open(fd);
		for (uint32_t page = CODE_PAGE; page < CODE_PAGE + 2; page++) {
			unwind_file_page(file, page, &rows);
			unsound += !is_sound();
			states[rows.state]++;
		}
		unwind_file_close(file);
	}
	CHECK_NUMBER(unsound, 0);
	printf("# %u loaded, %u empty, %u failed\n", states[UNWIND_PAGE_LOADED],
	       states[UNWIND_PAGE_EMPTY], states[UNWIND_PAGE_FAILED]);
	CHECK(states[UNWIND_PAGE_LOADED] > 100 && states[UNWIND_PAGE_FAILED] > 20);
	munmap(bytes, (size_t)st.st_size);
	free(mutant);
}

/* --- where memory is taken --- */

/* malloc(), code that nothing is said of, calloc(), and what says of data that it is code. */
static const char takers[] = ".text\n.globl malloc, calloc\n"
			     ".type malloc, @function\nmalloc:\n.cfi_startproc\n"
			     "push %rbp\n.cfi_def_cfa_offset 16\nnop\npop %rbp\nret\n"
			     ".cfi_endproc\n.size malloc, .-malloc\n"
			     "nop\nnop\nret\n"
			     ".type calloc, @function\ncalloc:\n.cfi_startproc\nnop\nret\n"
			     ".cfi_endproc\n.size calloc, .-calloc\n"
			     ".data\n.cfi_startproc\nnop\nret\n.cfi_endproc\n";

enum { BARE_AT = CODE_AT + 4, CALLOC_AT = CODE_AT + 7 };

static void places_of(int fd, const struct memory_functions *functions,
		      struct memory_places *places)
{
	struct unwind_file *file = unwind_file_open(dup(fd));

	*places = (struct memory_places){0};
	unwind_file_memory(file, places);
	if (functions)
		unwind_file_functions(file, functions, places);
	unwind_file_close(file);
}

/* The same as by its own names. */
static void test_told(int stripped, const struct memory_places *named, uint64_t data)
{
	const struct memory_functions functions = {
		.count = 12,
		.items = {{CALLOC_AT, MEMORY_CALLOC},
			  {CODE_AT, MEMORY_MALLOC},
			  {CODE_AT, MEMORY_MALLOC}, /* once more: not again */
			  {CODE_AT + 1, MEMORY_MALLOC},
			  {BARE_AT, MEMORY_MALLOC},
			  {CALLOC_AT + 1, MEMORY_CALLOC},
			  {data, MEMORY_MALLOC},
			  {0, MEMORY_MALLOC},
			  {UINT64_MAX, MEMORY_MALLOC},
			  {CODE_AT, MEMORY_GO_RATE},
			  {CODE_AT, MEMORY_BASE},
			  {CODE_AT, MEMORY_PLACE_KINDS}},
	};
	struct memory_places places;
	const struct memory_place *place, *want;

	places_of(stripped, &functions, &places);
	CHECK_NUMBER(places.refused, 9);
	CHECK_NUMBER(places.count, named->count);
	for (uint32_t kind = MEMORY_MALLOC; kind <= MEMORY_CALLOC; kind++) {
		place = memory_place_find(&places, kind);
		want = memory_place_find(named, kind);
		CHECK(place && want && place->at == want->at && place->bytes == want->bytes &&
		      place->skip == want->skip && place->is_cheap == want->is_cheap);
	}
}

static void test_takers(const char *flags)
{
	const struct build_id id = {.length = 4, .bytes = {0xca, 0xfe, 0, 1}};
	struct memory_places places, named;
	char all[128];
	int fd, stripped;

	snprintf(all, sizeof all, "%s -Wl,--build-id=0xcafe0001 -Wl,--section-start=.data=0x%x",
		 flags, CODE_AT + 0x20000);
	fd = assemble(takers, all, NULL);
	stripped = assemble(takers, all, "strip");
	if (fd < 0 || stripped < 0) {
		SKIP("no assembler");
		return;
	}
	places_of(fd, NULL, &named);
	CHECK(memory_place_find(&named, MEMORY_MALLOC) && memory_place_find(&named, MEMORY_CALLOC));
	CHECK_NUMBER(named.nameless.length, 0);
	places_of(stripped, NULL, &places);
	CHECK(!memory_place_find(&places, MEMORY_MALLOC));
	CHECK(build_id_equal(&places.nameless, &id));
	CHECK_NUMBER(places.refused, 0);
	test_told(stripped, &named, CODE_AT + 0x20000);
	close(fd);
	close(stripped);
}

static void test_assembled(void)
{
	static const char *const flags[] = {"-Wl,--eh-frame-hdr", "-Wl,--no-eh-frame-hdr"};

	test_known_code();
	for (size_t i = 0; i < 2; i++)
		test_takers(flags[i]);
	for (size_t i = 0; i < 2; i++) {
		int fd = assemble(source, flags[i], NULL);

		if (fd < 0) {
			SKIP("no assembler");
			continue;
		}
		test_page_border(fd);
		test_mutations(fd);
		close(fd);
	}
}

#else

static void test_assembled(void)
{
	SKIP("the code is x86-64's");
}

#endif

/* A page of code, and call frame information of 3 GiB, all of it a hole. */
static int hollow_file(void)
{
	enum { CODE = 0x10000, HEADERS = 0x1000, NAMES = 0x2000, FRAMES = 0x20000 };
	static const char names[] = "\0.eh_frame";
	const uint64_t bytes = UINT64_C(3) << 30;
#if defined(__aarch64__)
	const uint16_t machine = EM_AARCH64;
#else
	const uint16_t machine = EM_X86_64;
#endif
	const Elf64_Ehdr header = {
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = machine,
		.e_phoff = sizeof header,
		.e_shoff = HEADERS,
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 3,
		.e_shstrndx = 2,
	};
	const Elf64_Phdr code = {PT_LOAD, PF_R | PF_X, CODE, CODE, CODE, CODE, CODE, 0x1000};
	const Elf64_Shdr sections[3] = {
		[1] = {1, SHT_PROGBITS, SHF_ALLOC, FRAMES, FRAMES, bytes, 0, 0, 8, 0},
		[2] = {0, SHT_STRTAB, 0, 0, NAMES, sizeof names, 0, 0, 1, 0},
	};
	int fd = memfd_create("hollow", MFD_CLOEXEC);

	if (fd < 0 || pwrite(fd, &header, sizeof header, 0) < 0 ||
	    pwrite(fd, &code, sizeof code, sizeof header) < 0 ||
	    pwrite(fd, sections, sizeof sections, HEADERS) < 0 ||
	    pwrite(fd, names, sizeof names, NAMES) < 0 || ftruncate(fd, FRAMES + (off_t)bytes) < 0)
		return -1;
	return fd;
}

static void test_hollow(void)
{
	struct unwind_file *file = unwind_file_open(hollow_file());
	const clock_t before = clock();

	unwind_file_page(file, 1, &rows);
	CHECK_NUMBER(rows.state, UNWIND_PAGE_FAILED);
	CHECK_NUMBER(rows.failure, ROW_FAILURE_LIMIT);
	CHECK(clock() - before < 2 * CLOCKS_PER_SEC); /* all of it takes longer */
	unwind_file_close(file);
}

int main(void)
{
	test_not_code();
	test_hollow();
	test_assembled();
	return checks_done();
}
