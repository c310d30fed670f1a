/* SPDX-License-Identifier: Apache-2.0 */
/* This process walks its own stacks by its own unwind rows, as the agent finishes copied ones, and
 * compares with libgcc's unwinder, frame by frame: out of functions without frame pointers, through
 * signals, on other stacks and with signed return addresses, where compiled so. */
#include <alloca.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include "node-agent/file_parser/code/code_file.h"
#include "node-agent/unwind/stack_finish.h"
#include "node-agent/file_parser/unwind_file.h"
#include "tests/check.h"

#define NOINLINE __attribute__((noinline, noclone))

enum { FILES_MAX = 16, FRAMES_MAX = 256, SIGRETURN_BYTES = 8, NAME_BYTES = 32 };

/* --- this process's code --- */

static struct mapped {
	uint64_t start, end, base;
	struct unwind_file *file;
} mapped[FILES_MAX];
static unsigned mapped_count;
static struct row_pages *pages;
static struct page_rows rows;
static bool by_frame_pointers;

static void add_file(uint64_t start, uint64_t end, uint64_t offset, const char *path)
{
	struct code_file code;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (mapped_count == FILES_MAX || !code_file_open(&code, fd))
		return;
	for (unsigned i = 0; i < code.segment_count; i++) {
		const Elf64_Phdr *segment = &code.segments[i];

		if (segment->p_type == PT_LOAD && segment->p_flags & PF_X &&
		    offset == (segment->p_offset & ~(uint64_t)0xfff))
			mapped[mapped_count++] = (struct mapped){
				start, end, start - (segment->p_vaddr & ~(uint64_t)0xfff),
				unwind_file_open(fd)};
	}
	code_file_close(&code);
}

static void find_files(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512], path[256], rights[8];
	uint64_t start, end, offset;

	while (maps && fgets(line, sizeof line, maps))
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %255s", &start,
			   &end, rights, &offset, path) == 5 &&
		    rights[2] == 'x' && path[0] == '/')
			add_file(start, end, offset, path);
	if (maps)
		fclose(maps);
}

static struct stack_code locate(void *context, uint64_t address)
{
	(void)context;
	for (unsigned i = 0; i < mapped_count && !by_frame_pointers; i++)
		if (address >= mapped[i].start && address < mapped[i].end)
			return (struct stack_code){STACK_CODE_FILE, i + 1, mapped[i].base};
	return (struct stack_code){.place = STACK_CODE_ANONYMOUS};
}

/* Any of our memory: what the kernel reads for a walk of its own. */
static bool read_own(void *context, uint64_t address, void *to, uint32_t length)
{
	static int ends[2];

	(void)context;
	if (!ends[1] && pipe2(ends, O_CLOEXEC))
		return false;
	return write(ends[1], (const void *)address, length) == (ssize_t)length &&
	       read(ends[0], to, length) == (ssize_t)length;
}

/* --- one stack by both --- */

static union {
	struct stack_copy_event event;
	uint8_t bytes[sizeof(struct stack_copy_event) + STACK_COPY_BYTES_MIN];
} copy;
static uint64_t frames[FRAMES_MAX], truth[FRAMES_MAX];
static unsigned truth_count;
static struct stack_finished finished;
static unsigned compared, differ, signed_seen;
static bool is_quiet, is_through_signal;

static _Unwind_Reason_Code add_truth(struct _Unwind_Context *context, void *unused)
{
	int is_exact = 0;
	uint64_t ip = _Unwind_GetIPInfo(context, &is_exact);
	static const uint8_t sigreturn[SIGRETURN_BYTES] = {0x68, 0x11, 0x80, 0xd2, 1, 0, 0, 0xd4};
	uint8_t code[SIGRETURN_BYTES];

	(void)unused;
	if (truth_count == FRAMES_MAX || ip == 0) /* the start's undefined return address */
		return _URC_END_OF_STACK;
	/* Addresses that nobody returns to, as bpf/stack_walk.bpf.h has them. */
	if (read_own(NULL, ip, code, sizeof code) && memcmp(code, sigreturn, sizeof code) == 0)
		is_exact = is_through_signal = 1;
	truth[truth_count] = ip + (uint64_t)(is_exact && truth_count > 0);
	truth_count++;
	return _URC_NO_REASON;
}

static void walk(void)
{
	struct stack_finish input = {.copy = &copy.event,
				     .frames = frames,
				     .count = 1,
				     .limit = FRAMES_MAX,
				     .locate = locate,
				     .read_code = read_own,
				     .now_s = 1};

	frames[0] = copy.event.ip;
	for (;;) {
		finished = stack_finish(&input, pages);
		if (!finished.is_waiting)
			return;
		unwind_file_page(mapped[finished.executable - 1].file, finished.page, &rows);
		rows.executable = finished.executable;
		row_pages_put(pages, &rows, 1);
	}
}

/* Return addresses on the stack with something above their 48 bits. */
static void count_signed(const uint64_t *from, const uint64_t *to)
{
	const uint64_t mask = (1ULL << 48) - 1;

	for (; from < to; from++)
		for (unsigned i = 1; i < truth_count; i++)
			signed_seen += *from != truth[i] && (*from & mask) == truth[i];
}

static bool is_equal(void)
{
	if (finished.result != WALK_complete || finished.count != truth_count)
		return false;
	for (unsigned i = 1; i < truth_count; i++)
		if (frames[i] != truth[i])
			return false;
	return true;
}

static void compare(void)
{
	truth_count = 0;
	is_through_signal = false;
	copy.event.stack_bytes = STACK_COPY_BYTES_MIN;
	copy.event.is_interrupted = 1;
	copy.event.known = (1ULL << UNWIND_REGISTERS) - 1;
	copy.event.fp = copy.event.registers[UNWIND_REGISTER_FP];
	memcpy(copy.event.stack, (const void *)copy.event.sp, STACK_COPY_BYTES_MIN);
	walk();
}

static void judge(void)
{
	/* A signal's trampoline lies in no file here, so that one step is a guess, and has to be.
	 */
	bool good = is_equal() && (by_frame_pointers || finished.is_guessed == is_through_signal);

	compared++;
	differ += !good;
	if (good || is_quiet)
		return;
	printf("# result %d, %u of %u frames, guessed %d\n", finished.result, finished.count,
	       truth_count, finished.is_guessed);
	for (unsigned i = 0; i < finished.count || i < truth_count; i++)
		printf("# %2u %16" PRIx64 " %16" PRIx64 "\n", i, i < finished.count ? frames[i] : 0,
		       i < truth_count ? truth[i] : 0);
}

/* All registers as they are here; x16 is lost. */
#define TAKE_REGISTERS()                                                                           \
	__asm__ volatile("stp x0, x1, [%0]\nstp x2, x3, [%0, #16]\nstp x4, x5, [%0, #32]\n"        \
			 "stp x6, x7, [%0, #48]\nstp x8, x9, [%0, #64]\nstp x10, x11, [%0, #80]\n" \
			 "stp x12, x13, [%0, #96]\nstp x14, x15, [%0, #112]\n"                     \
			 "stp x16, x17, [%0, #128]\nstp x18, x19, [%0, #144]\n"                    \
			 "stp x20, x21, [%0, #160]\nstp x22, x23, [%0, #176]\n"                    \
			 "stp x24, x25, [%0, #192]\nstp x26, x27, [%0, #208]\n"                    \
			 "stp x28, x29, [%0, #224]\nstr x30, [%0, #240]\nmov x16, sp\n"            \
			 "str x16, [%1]\nadr x16, .\nstr x16, [%2]"                                \
			 :                                                                         \
			 : "r"(copy.event.registers), "r"(&copy.event.sp), "r"(&copy.event.ip)     \
			 : "x16", "memory")

/* Here every stack is looked at. */
static NOINLINE void sample(void)
{
	TAKE_REGISTERS();
	compare();
	_Unwind_Backtrace(add_truth, NULL);
	judge();
	count_signed((const uint64_t *)copy.event.sp,
		     (const uint64_t *)(copy.event.sp + STACK_COPY_BYTES_MIN / 2));
	__asm__ volatile("" ::: "memory");
}

/* --- stacks --- */

static volatile uint64_t sink;

static NOINLINE uint64_t big_frame(uint64_t x)
{
	volatile char room[6000];

	room[x % sizeof room] = (char)x;
	sample();
	return x + (uint64_t)room[(x + 1) % sizeof room];
}

static NOINLINE uint64_t moving_frame(uint64_t x)
{
	volatile char *room = alloca(16 + x % 64);

	room[x % 16] = 1;
	x = big_frame(x + 3);
	return x + (uint64_t)room[x % 16];
}

static NOINLINE uint64_t many_registers(uint64_t x)
{
	uint64_t a = sink, b = sink + 1, c = sink + 2, d = sink + 3, e = sink + 4, f = sink + 5;

	x = moving_frame(x) + moving_frame(x + a);
	return x + a * b + c * d + e * f;
}

static NOINLINE uint64_t chain(uint64_t depth)
{
	return (depth ? chain(depth - 1) : many_registers(7)) + sink;
}

static int on_compare(const void *a, const void *b)
{
	sink += chain(2);
	return *(const char *)a - *(const char *)b;
}

/* A leaf, whose return address is nowhere but in its register. */
static NOINLINE __attribute__((target("branch-protection=none"))) uint64_t trapping_leaf(uint64_t x)
{
	__asm__ volatile("brk #0");
	return x * 3 + 1;
}

static NOINLINE uint64_t above_trap(uint64_t x)
{
	volatile char room[48];

	room[x % 48] = 2;
	x = trapping_leaf(x);
	return x + (uint64_t)room[x % 48];
}

static void on_trap(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info;
	sink += chain(1);
	((ucontext_t *)context)->uc_mcontext.pc += 4;
}

static void on_raise(int number)
{
	sink += above_trap((uint64_t)number); /* one signal within the other */
	sample();
}

static void *in_thread(void *unused)
{
	(void)unused;
	sink += chain(3);
	sink += above_trap(5);
	return NULL;
}

static void check_case(const char *name, unsigned least)
{
	printf("# %s: %u stacks, %u differ\n", name, compared, differ);
	CHECK(compared >= least);
	CHECK_NUMBER(differ, 0);
	compared = differ = 0;
}

static void test_signals(int flags, const char *name)
{
	struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | flags},
			 raised = {.sa_handler = on_raise, .sa_flags = flags};

	sigaction(SIGTRAP, &trap, NULL);
	sigaction(SIGUSR1, &raised, NULL);
	sink += above_trap(3);
	raise(SIGUSR1);
	check_case(name, 5);
}

/* What frame pointers alone would give: were it the same, the rest would show nothing. */
static void test_without_rows(void)
{
	by_frame_pointers = is_quiet = true;
	sink += chain(4);
	CHECK(differ == compared && compared > 0);
	by_frame_pointers = is_quiet = false;
	compared = differ = 0;
}

int main(void)
{
	struct row_pages_options options = {
		.pages_map = -1, .rules_map = -1, .pools_map = -1, .limit_bytes = 4 << 20};
	stack_t other = {.ss_size = 256 << 10};
	char text[] = "a profiler";
	struct error err;
	pthread_t thread;

	pages = row_pages_new(&options, &err);
	find_files();
	CHECK(pages && mapped_count > 0);
	sink += chain(4);
	check_case("plain", 2);
	qsort(text, sizeof text - 1, 1, on_compare);
	check_case("called back by the C library", 20);
	test_signals(0, "through signals");
	other.ss_sp = mmap(NULL, other.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	CHECK(sigaltstack(&other, NULL) == 0);
	test_signals(SA_ONSTACK, "through signals on a stack of their own");
	CHECK(pthread_create(&thread, NULL, in_thread, NULL) == 0);
	pthread_join(thread, NULL);
	check_case("in a thread", 3);
	test_without_rows();
#if defined(__ARM_FEATURE_PAC_DEFAULT)
	CHECK(signed_seen > 100); /* or the processor signs nothing */
#endif
	return checks_done();
}
