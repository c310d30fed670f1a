/* SPDX-License-Identifier: Apache-2.0 */
/* Samples as <linux/perf_event.h> lays them out, and one live: a thread that knows its registers
 * and its stack is sampled by the kernel. */
#include "node-agent/capture/perf_sample.h"

#include <asm/perf_regs.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/results.h"
#include "node-agent/capture/perf_rings.h"
#include "tests/check.h"

static uint64_t words[16 << 10];
static size_t word_count;
static struct perf_sample sample;
static union {
	struct sample_event event;
	uint64_t room[64 + KERNEL_FRAMES_MAX];
} out;
static union {
	struct stack_copy_event event;
	uint8_t room[sizeof(struct stack_copy_event) + PERF_RECORD_BYTES_MAX];
} copy;

static void put(uint64_t word)
{
	words[word_count++] = word;
}

static void begin(uint16_t misc, uint64_t ip, uint32_t tgid, uint32_t tid)
{
	struct perf_event_header header = {PERF_RECORD_SAMPLE, misc, 0};

	word_count = 0;
	put(0);
	memcpy(words, &header, sizeof header);
	put(ip);
	put(tgid | (uint64_t)tid << 32);
	put(777000); /* time */
}

/* As many of its words as there are; the memory behind them is not to be touched. */
static bool parse_some(size_t count)
{
	struct perf_event_header header = {.type = PERF_RECORD_SAMPLE};
	uint64_t *exact = malloc(count * 8);
	bool is_whole;

	memcpy(&header, words, sizeof header);
	header.size = (uint16_t)(count * 8);
	memcpy(words, &header, sizeof header);
	memcpy(exact, words, count * 8);
	is_whole = perf_sample_parse(exact, count * 8, &sample);
	if (is_whole)
		perf_sample_event(&sample, &out.event, &copy.event);
	free(exact);
	return is_whole;
}

static bool parse(void)
{
	return parse_some(word_count);
}

#if defined(__x86_64__)

/* In perf's order, each with its own value; ip, sp, cx, flags and r11 as given. */
static void put_registers(uint64_t ip, uint64_t sp, uint64_t cx, uint64_t flags, uint64_t r11)
{
	put(PERF_SAMPLE_REGS_ABI_64);
	for (int i = PERF_REG_X86_AX; i <= PERF_REG_X86_R15; i++)
		if (i < PERF_REG_X86_SS || i >= PERF_REG_X86_R8)
			put(i == PERF_REG_X86_IP      ? ip
			    : i == PERF_REG_X86_SP    ? sp
			    : i == PERF_REG_X86_CX    ? cx
			    : i == PERF_REG_X86_FLAGS ? flags
			    : i == PERF_REG_X86_R11   ? r11
						      : 0x100 + (uint64_t)i);
}

static void put_stack(size_t bytes, uint64_t readable)
{
	put(bytes);
	for (size_t i = 0; i < bytes / 8; i++)
		put(0xabcd0000 + i);
	if (bytes)
		put(readable);
}

/* System V ABI for x86-64, figure 3.36. */
static const struct {
	int dwarf, perf;
} numbers[] = {
	{0, PERF_REG_X86_AX},   {1, PERF_REG_X86_DX},   {3, PERF_REG_X86_BX},
	{4, PERF_REG_X86_SI},   {5, PERF_REG_X86_DI},   {6, PERF_REG_X86_BP},
	{8, PERF_REG_X86_R8},   {9, PERF_REG_X86_R9},   {10, PERF_REG_X86_R10},
	{12, PERF_REG_X86_R12}, {13, PERF_REG_X86_R13}, {14, PERF_REG_X86_R14},
	{15, PERF_REG_X86_R15},
};

static void test_user(void)
{
	begin(PERF_RECORD_MISC_USER, 0x401234, 10, 11);
	put(0); /* no kernel frames */
	put_registers(0x401234, 0x7ffc0000, 0xc0, 0x246, 0xb0);
	put_stack(64, 40);
	CHECK(parse());
	CHECK_NUMBER(sample.tgid, 10);
	CHECK_NUMBER(sample.tid, 11);
	CHECK_NUMBER(sample.time_ns, 777000);
	CHECK_NUMBER(perf_sample_time(words, word_count * 8), 777000);
	CHECK_NUMBER(out.event.result, WALK_not_loaded);
	CHECK_NUMBER(out.event.flags, SAMPLE_HAS_COPY);
	CHECK_NUMBER(out.event.kernel_count, 0);
	CHECK_NUMBER(out.event.user_count, 1);
	CHECK_NUMBER(out.event.frames[0], 0x401234);
	CHECK_NUMBER(out.event.size, sizeof out.event + 8);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		CHECK_NUMBER(copy.event.registers[numbers[i].dwarf], 0x100 + numbers[i].perf);
	CHECK_NUMBER(copy.event.registers[2], 0xc0);
	CHECK_NUMBER(copy.event.registers[11], 0xb0);
	CHECK_NUMBER(copy.event.sp, 0x7ffc0000);
	CHECK_NUMBER(copy.event.registers[7], 0x7ffc0000);
	CHECK_NUMBER(copy.event.fp, 0x100 + PERF_REG_X86_BP);
	CHECK_NUMBER(copy.event.ip, 0x401234);
	CHECK_NUMBER(copy.event.known, 0xffff);
	CHECK_NUMBER(copy.event.is_interrupted, 1);
	CHECK_NUMBER(copy.event.stack_bytes, 40);
	CHECK_NUMBER(copy.event.size, sizeof copy.event + 40);
	CHECK(!memcmp(copy.event.stack, &(uint64_t){0xabcd0000}, 8));
	CHECK(!memcmp(copy.event.stack + 32, &(uint64_t){0xabcd0004}, 8));
}

static void test_system_call(void)
{
	begin(PERF_RECORD_MISC_KERNEL, 0xffffffff81000010, 10, 10);
	put(3);
	put(PERF_CONTEXT_KERNEL);
	put(0xffffffff81000010);
	put(0xffffffff81000020);
	put_registers(0x401236, 0x7ffc0000, 0x401236, 0x246, 0x246);
	put_stack(64, 64);
	CHECK(parse());
	CHECK_NUMBER(out.event.flags, SAMPLE_HAS_COPY | SAMPLE_IN_KERNEL);
	CHECK_NUMBER(out.event.kernel_count, 2);
	CHECK_NUMBER(out.event.frames[0], 0xffffffff81000010);
	CHECK_NUMBER(out.event.frames[1], 0xffffffff81000020);
	CHECK_NUMBER(out.event.frames[2], 0x401234); /* the instruction `syscall` */
	CHECK_NUMBER(copy.event.ip, 0x401234);
	CHECK_NUMBER(copy.event.known, 0xffff & ~(1 << 0 | 1 << 2 | 1 << 11));

	/* a fault, and a signal that is being delivered in a system call: the address is exact */
	begin(PERF_RECORD_MISC_KERNEL, 0xffffffff81000010, 10, 10);
	put(0);
	put_registers(0x401236, 0x7ffc0000, 0x401236, 0x246, 0x202);
	put_stack(64, 64);
	CHECK(parse());
	CHECK_NUMBER(out.event.kernel_count, 1);
	CHECK_NUMBER(out.event.frames[0], 0xffffffff81000010);
	CHECK_NUMBER(out.event.frames[1], 0x401236);
	CHECK_NUMBER(copy.event.known, 0xffff);

	/* right behind a system call, but in user code */
	begin(PERF_RECORD_MISC_USER, 0x401236, 10, 10);
	put(0);
	put_registers(0x401236, 0x7ffc0000, 0x401236, 0x246, 0x246);
	put_stack(64, 64);
	CHECK(parse());
	CHECK_NUMBER(out.event.frames[0], 0x401236);
}

static void test_no_walk(void)
{
	/* a kernel thread, and the idle task */
	begin(PERF_RECORD_MISC_KERNEL, 0xffffffff81000010, 2, 2);
	put(0);
	put(PERF_SAMPLE_REGS_ABI_NONE);
	put_stack(0, 0);
	CHECK(parse());
	CHECK_NUMBER(out.event.flags, SAMPLE_IN_KERNEL | SAMPLE_KERNEL_THREAD);
	CHECK_NUMBER(out.event.result, WALK_complete);
	CHECK_NUMBER(out.event.user_count, 0);
	CHECK_NUMBER(sample.user, PERF_USER_NONE);

	/* a worker that the kernel made inside a process */
	begin(PERF_RECORD_MISC_KERNEL, 0xffffffff81000010, 10, 12);
	put(0);
	put_registers(0, 0, 1, 0, 0);
	put_stack(0, 0);
	CHECK(parse());
	CHECK_NUMBER(out.event.flags, SAMPLE_IN_KERNEL | SAMPLE_KERNEL_THREAD);

	/* in execve() or exit(), when the memory has been given up */
	begin(PERF_RECORD_MISC_KERNEL, 0xffffffff81000010, 10, 10);
	put(0);
	put_registers(0x401236, 0x7ffc0000, 0x401236, 0x246, 0x246);
	put_stack(64, 0);
	CHECK(parse());
	CHECK_NUMBER(out.event.flags, SAMPLE_IN_KERNEL | SAMPLE_KERNEL_THREAD);
	CHECK_NUMBER(out.event.result, WALK_complete);
	CHECK_NUMBER(out.event.user_count, 0);

	/* a stack that cannot be read */
	begin(PERF_RECORD_MISC_USER, 0x401234, 10, 10);
	put(0);
	put_registers(0x401234, 8, 0, 0, 1);
	put_stack(64, 0);
	CHECK(parse());
	CHECK_NUMBER(out.event.result, WALK_read_fault);
	CHECK_NUMBER(out.event.user_count, 1);
	CHECK_NUMBER(out.event.flags, 0);

	/* 32-bit code, and a jump into nowhere */
	begin(PERF_RECORD_MISC_USER, 0x401234, 10, 10);
	put(0);
	put_registers(0x401234, 0x7ffc0000, 0, 0, 1);
	words[5] = PERF_SAMPLE_REGS_ABI_32;
	put_stack(64, 64);
	CHECK(parse());
	CHECK_NUMBER(out.event.result, WALK_compat_32bit);
	CHECK_NUMBER(out.event.user_count, 1);
	begin(PERF_RECORD_MISC_USER, 0, 10, 10);
	put(0);
	put_registers(0, 0x7ffc0000, 0, 0, 1);
	put_stack(64, 64);
	CHECK(parse());
	CHECK_NUMBER(out.event.result, WALK_bad_address);
	CHECK_NUMBER(out.event.user_count, 0);
}

static void test_sizes(void)
{
	size_t whole, wrong = 0;

	begin(PERF_RECORD_MISC_KERNEL, 0xffffffff81000010, 10, 10);
	put(200);
	for (uint64_t i = 0; i < 200; i++)
		put(i ? 0xffffffff81000000 + i : PERF_CONTEXT_KERNEL);
	put_registers(0x401234, 0x7ffc0000, 0, 0, 1);
	put_stack(4096, UINT64_MAX);
	CHECK(parse());
	CHECK_NUMBER(out.event.kernel_count, KERNEL_FRAMES_MAX);
	CHECK(out.event.flags & SAMPLE_KERNEL_CUT);
	CHECK_NUMBER(copy.event.stack_bytes, 4096); /* never more than there is */
	whole = word_count;
	for (size_t count = 1; count < whole; count++)
		wrong += parse_some(count);
	CHECK_NUMBER(wrong, 0);
	CHECK(!perf_sample_parse(words, 4, &sample));
	CHECK_NUMBER(perf_sample_time(words, 31), 0);
	word_count = whole;
	words[4] = UINT64_MAX; /* kernel frames */
	CHECK(!parse());
}

/* --- live --- */

#define MAGIC(n_) (UINT64_C(0x6d61676963000000) + (n_))

/* Keeps marks in registers and on its stack for some time. */
static __attribute__((noinline)) void spin(uint64_t rounds)
{
	__asm__ volatile("sub $128, %%rsp\n\t" /* the red zone */
			 "push %[pushed]\n\t"
			 "1: dec %[rounds]\n\t"
			 "jnz 1b\n\t"
			 "add $136, %%rsp"
			 : [rounds] "+c"(rounds)
			 : [pushed] "D"(MAGIC(5)), "a"(MAGIC(0)), "b"(MAGIC(3)), "d"(MAGIC(1)),
			   "S"(MAGIC(4))
			 : "memory", "cc");
}

static void check_live(struct perf_rings *rings)
{
	unsigned found = 0, right = 0, in_order = 0, cpu;
	uint64_t before = 0;
	const void *record;
	size_t length;

	perf_rings_look(rings);
	while ((record = perf_rings_next(rings, &cpu, &length)) != NULL) {
		if (perf_sample_parse(record, length, &sample) && sample.registers[3] == MAGIC(3) &&
		    !sample.is_in_kernel) {
			perf_sample_event(&sample, &out.event, &copy.event);
			found++;
			right += copy.event.registers[0] == MAGIC(0) &&
				 copy.event.registers[1] == MAGIC(1) &&
				 copy.event.registers[4] == MAGIC(4) &&
				 copy.event.registers[5] == MAGIC(5) &&
				 copy.event.stack_bytes > 256 &&
				 !memcmp(copy.event.stack, &(uint64_t){MAGIC(5)}, 8) &&
				 sample.tid == (uint32_t)syscall(SYS_gettid) &&
				 out.event.frames[0] - (uintptr_t)spin < 100;
			in_order += sample.time_ns >= before;
			before = sample.time_ns;
		}
		perf_rings_release(rings, cpu, length);
	}
	CHECK(found > 10);
	CHECK_NUMBER(right, found);
	CHECK_NUMBER(in_order, found);
}

static void test_live(void)
{
	const struct perf_sampler sampler = {
		.period_ns = 1000000, .stack_bytes = 4096, .is_user_only = true};
	unsigned cpus = (unsigned)sysconf(_SC_NPROCESSORS_CONF);
	struct error err = {0};
	struct perf_rings *rings = perf_rings_new(cpus, cpus, &sampler, &err);
	struct rusage usage;
	uint64_t before, used_ns;

	for (unsigned cpu = 0; cpu < cpus; cpu++)
		if (!perf_rings_add_thread(rings, cpu, (uint32_t)getpid(), &err) &&
		    err.kind != ERROR_NOT_FOUND) {
			SKIP("perf events are not permitted here");
			printf("# %s\n", err.message);
			perf_rings_free(rings);
			return;
		}
	CHECK(perf_rings_start(rings, &err));
	getrusage(RUSAGE_THREAD, &usage);
	before = (uint64_t)usage.ru_utime.tv_sec * 1000000 + (uint64_t)usage.ru_utime.tv_usec;
	do {
		spin(10000000);
		getrusage(RUSAGE_THREAD, &usage);
		used_ns = 1000 * ((uint64_t)usage.ru_utime.tv_sec * 1000000 +
				  (uint64_t)usage.ru_utime.tv_usec - before);
	} while (used_ns < 60000000);
	CHECK(perf_rings_count(rings) > used_ns / 2);
	CHECK(perf_rings_count(rings) < used_ns * 2);
	check_live(rings);
	perf_rings_free(rings);
}

#endif

int main(void)
{
#if defined(__x86_64__)
	test_user();
	test_system_call();
	test_no_walk();
	test_sizes();
	test_live();
#else
	begin(0, 0, 0, 0);
	CHECK(!parse());
	SKIP("the registers here are those of x86-64");
#endif
	perf_rings_free(NULL);
	return checks_done();
}
