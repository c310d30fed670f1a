/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of this very thread's stack, finished by the rows of the files it runs, against the
 * compiler's own unwinder, which walks by the same files' tables in its own way. */
#include "node-agent/unwind/stack_finish.h"

#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include "node-agent/file_parser/unwind_file.h"
#include "tests/check.h"

#if defined(__x86_64__)

enum { FILES_MAX = 32, DEPTH = 40, FRAMES_MAX = 200, COPY_BYTES = 64 << 10 };

/* --- the files this process runs --- */

static struct code {
	uint64_t start, end, base;
	uint32_t executable;
	struct unwind_file *file;
} codes[FILES_MAX];
static unsigned code_count;

static int note_code(struct dl_phdr_info *info, size_t size, void *context)
{
	const char *path = *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";

	(void)size, (void)context;
	for (int i = 0; i < info->dlpi_phnum && code_count < FILES_MAX; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		int fd;

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) ||
		    (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
			continue;
		codes[code_count] = (struct code){
			.start = info->dlpi_addr + segment->p_vaddr,
			.end = info->dlpi_addr + segment->p_vaddr + segment->p_memsz,
			.base = info->dlpi_addr,
			.executable = code_count + 1,
			.file = unwind_file_open(fd),
		};
		code_count++;
	}
	return 0;
}

static int place_of_rest; /* what lies outside of files */

static struct stack_code locate(void *context, uint64_t address)
{
	(void)context;
	for (unsigned i = 0; i < code_count; i++)
		if (address >= codes[i].start && address < codes[i].end)
			return (struct stack_code){.place = STACK_CODE_FILE,
						   .executable = codes[i].executable,
						   .base = codes[i].base};
	return (struct stack_code){.place = place_of_rest};
}

/* --- one stack --- */

static union {
	struct stack_copy_event event;
	uint8_t room[sizeof(struct stack_copy_event) + COPY_BYTES];
} copy;
static uint64_t truth[FRAMES_MAX];
static int truth_count;
static uintptr_t stack_top;
static volatile int after; /* keeps calls from being the last thing a function does */

/* DWARF's order of the registers. */
static void copy_registers(const greg_t *from)
{
	static const int order[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
				    REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
				    REG_R12, REG_R13, REG_R14, REG_R15};

	for (int i = 0; i < UNWIND_REGISTERS; i++)
		copy.event.registers[i] = (uint64_t)from[order[i]];
	copy.event.known = 1 << 3 | 1 << 6 | 0xf << 12; /* what getcontext() keeps */
	copy.event.ip = (uint64_t)from[REG_RIP];
	copy.event.sp = (uint64_t)from[REG_RSP];
	copy.event.fp = (uint64_t)from[REG_RBP];
}

/* Byte by byte: AddressSanitizer has forbidden places in it. */
__attribute__((no_sanitize("address"))) static void copy_stack(void)
{
	const volatile uint8_t *from = (const volatile uint8_t *)copy.event.sp;

	copy.event.stack_bytes = (uint32_t)(stack_top - copy.event.sp);
	if (copy.event.stack_bytes > COPY_BYTES)
		copy.event.stack_bytes = COPY_BYTES;
	for (uint32_t i = 0; i < copy.event.stack_bytes; i++)
		copy.event.stack[i] = from[i];
}

static _Unwind_Reason_Code note_truth(struct _Unwind_Context *context, void *nothing)
{
	(void)nothing;
	if (truth_count < FRAMES_MAX && _Unwind_GetIP(context)) /* 0: beyond the outermost */
		truth[truth_count++] = _Unwind_GetIP(context);
	return _URC_NO_REASON;
}

__attribute__((noinline)) static void take(void)
{
	ucontext_t context;

	getcontext(&context);
	memset(&copy.event, 0, sizeof copy.event);
	copy.event.size = sizeof copy;
	copy.event.is_interrupted = 1;
	copy_registers(context.uc_mcontext.gregs);
	copy_stack();
	truth_count = 0;
	_Unwind_Backtrace(note_truth, NULL);
	after++;
}

__attribute__((noinline)) static void descend(int depth)
{
	volatile char local[64] = {(char)depth};

	if (depth)
		descend(depth - 1);
	else
		take();
	after += local[0];
}

static int by_sort(const void *a, const void *b)
{
	(void)a, (void)b;
	descend(3);
	return 0;
}

/* --- finishing it --- */

static uint64_t frames[FRAMES_MAX];
static struct page_rows rows;

static struct stack_finish input_of(uint32_t limit)
{
	frames[0] = copy.event.ip;
	return (struct stack_finish){.copy = &copy.event,
				     .frames = frames,
				     .count = 1,
				     .limit = limit,
				     .locate = locate,
				     .now_s = 1};
}

static struct row_pages *new_pages(void)
{
	const struct row_pages_options options = {-1, -1, -1, 4 << 20};

	return row_pages_new(&options, NULL);
}

/* Until nothing is waited for; every page once. */
static struct stack_finished finish_all(struct row_pages *pages, uint32_t limit, unsigned *loaded)
{
	struct stack_finish input = input_of(limit);
	struct stack_finished out;

	for (*loaded = 0; *loaded < 100; ++*loaded) {
		uint64_t before = frames[0];

		out = stack_finish(&input, pages);
		if (!out.is_waiting)
			break;
		if (frames[0] != before || out.executable < 1 || out.executable > code_count)
			break;
		unwind_file_page(codes[out.executable - 1].file, out.page, &rows);
		rows.executable = out.executable;
		rows.page = out.page;
		row_pages_put(pages, &rows, 1);
	}
	return out;
}

/* The leaf is another instruction of the same function. */
static int frames_differing(uint32_t count)
{
	int wrong = 0;

	for (uint32_t i = 1; i < count; i++)
		wrong += (int)i >= truth_count || frames[i] != truth[i];
	return wrong;
}

static void check_whole(const char *what)
{
	struct row_pages *pages = new_pages();
	unsigned loaded, again;
	struct stack_finished out = finish_all(pages, FRAMES_MAX, &loaded);

	printf("# %s: %d frames, %u pages\n", what, truth_count, loaded);
	CHECK_NUMBER(out.result, WALK_complete);
	CHECK_NUMBER(out.count, truth_count);
	CHECK_NUMBER(frames_differing(out.count), 0);
	CHECK(!out.is_waiting && !out.is_guessed && !out.is_end_guessed);
	CHECK(loaded >= 2); /* this program and the C library, at least */
	out = finish_all(pages, FRAMES_MAX, &again);
	CHECK_NUMBER(again, 0);
	CHECK_NUMBER(out.count, truth_count);
	row_pages_free(pages);
}

static void test_limits(void)
{
	struct row_pages *pages = new_pages();
	struct stack_finished out;
	uint32_t whole = copy.event.stack_bytes;
	unsigned loaded;

	out = finish_all(pages, 10, &loaded);
	CHECK_NUMBER(out.result, WALK_too_deep);
	CHECK_NUMBER(out.count, 10);
	CHECK_NUMBER(frames_differing(out.count), 0);
	for (uint32_t part = 0; part < 8; part++) {
		copy.event.stack_bytes = whole / 8 * part;
		out = finish_all(pages, FRAMES_MAX, &loaded);
		CHECK_NUMBER(out.result, WALK_copy_short);
		CHECK(out.count < (uint32_t)truth_count);
		CHECK_NUMBER(frames_differing(out.count), 0);
	}
	copy.event.stack_bytes = whole;
	row_pages_free(pages);
}

static enum walk_result result_without(int place)
{
	struct row_pages *pages = new_pages();
	struct stack_finished out;
	unsigned files = code_count, loaded;

	code_count = 0;
	place_of_rest = place;
	out = finish_all(pages, FRAMES_MAX, &loaded);
	CHECK_NUMBER(out.count, 1);
	code_count = files;
	row_pages_free(pages);
	return out.result;
}

static void test_places(void)
{
	CHECK_NUMBER(result_without(STACK_CODE_NONE), WALK_leaf_not_code);
	CHECK_NUMBER(result_without(STACK_CODE_UNKNOWN), WALK_no_mapping);
	CHECK_NUMBER(result_without(STACK_CODE_CHANGED), WALK_mappings_changed);
	CHECK_NUMBER(result_without(STACK_CODE_UPROBE), WALK_uprobe);
	place_of_rest = STACK_CODE_NONE;
}

/* Pages without rows: the frame pointer may help, and that is told. */
static void test_without_rows(void)
{
	static const struct {
		uint8_t state;
		enum walk_result result;
	} states[] = {{UNWIND_PAGE_EMPTY, WALK_no_table}, {UNWIND_PAGE_FAILED, WALK_table_failed}};

	for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
		struct row_pages *pages = new_pages();
		struct stack_finish input = input_of(FRAMES_MAX);
		struct stack_finished out;
		int asked = 0;

		while (out = stack_finish(&input, pages), out.is_waiting && asked++ < 100) {
			row_builder_begin(&rows, out.page);
			rows.executable = out.executable;
			rows.state = states[i].state;
			rows.failure = states[i].state == UNWIND_PAGE_FAILED ? ROW_FAILURE_DAMAGED
									     : ROW_FAILURE_NONE;
			row_pages_put(pages, &rows, 1);
		}
		CHECK(asked > 0 && asked < 100);
		CHECK(out.result == states[i].result || out.is_guessed);
		row_pages_free(pages);
	}
}

int main(void)
{
	int numbers[2] = {2, 1};

	stack_top = (uintptr_t)environ; /* _start's frame is right below the arguments */
	dl_iterate_phdr(note_code, NULL);
	place_of_rest = STACK_CODE_NONE;
	descend(DEPTH);
	check_whole("recursion");
	test_limits();
	test_places();
	test_without_rows();
	qsort(numbers, 2, sizeof *numbers, by_sort); /* through the C library's code */
	check_whole("called by qsort");
	return checks_done();
}

#else

int main(void)
{
	SKIP("takes a stack of x86-64");
	return checks_done();
}

#endif
