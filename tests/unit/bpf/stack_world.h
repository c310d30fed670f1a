/* SPDX-License-Identifier: Apache-2.0 */
/* A made-up process for the kernel side's walk as ordinary C: a stack, the code of a program and of
 * a library, and unwind rules for pieces of that code. */
#ifndef TESTS_UNIT_BPF_STACK_WORLD_H
#define TESTS_UNIT_BPF_STACK_WORLD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#include "tests/check.h"

#define STACK_WALK_READ(to, bytes, from) memory_read(to, bytes, from)
#define STACK_WALK_RULE(walk, address)   rule_find(walk, address)
#define STACK_WALK_TLS(walk)             thread_pointer
static int memory_read(void *to, size_t bytes, uint64_t from);
static uint64_t thread_pointer;
#include "bpf/stack_frame.bpf.h"
static int rule_find(struct stack_walk *walk, uint64_t address);
#include "bpf/stack_walk.bpf.h"

#define STACK 0x7ffc00000000ULL
#define CODE  0x400000ULL
#define LIBC  0x7f0000000000ULL /* code of a library, with a signal trampoline at +0x100 */

enum { STACK_WORDS = 4096, CODE_BYTES = 4096, RULED = 16 };

static uint64_t stack[STACK_WORDS];
static uint8_t code[CODE_BYTES], libc_code[CODE_BYTES];

/* Like bpf_probe_read_user(): all or nothing, and zeroes when nothing. */
static int memory_read(void *to, size_t bytes, uint64_t from)
{
	static const struct {
		uint64_t start;
		const void *bytes;
		size_t length;
	} areas[] = {
		{STACK, stack, sizeof stack},
		{CODE, code, sizeof code},
		{LIBC, libc_code, sizeof libc_code},
	};

	for (size_t i = 0; i < sizeof areas / sizeof *areas; i++)
		if (from >= areas[i].start && from - areas[i].start <= areas[i].length &&
		    bytes <= areas[i].length - (from - areas[i].start)) {
			memcpy(to, (const uint8_t *)areas[i].bytes + (from - areas[i].start),
			       bytes);
			return 0;
		}
	memset(to, 0, bytes);
	return -14;
}

/* What is known of the code from start up to end; of all other code, nothing. */
static struct ruled {
	uint64_t start, end;
	enum stack_rule found;
	struct unwind_rule rule;
} ruled[RULED];
static size_t ruled_count;

static int rule_find(struct stack_walk *walk, uint64_t address)
{
	for (size_t i = 0; i < ruled_count; i++)
		if (address >= ruled[i].start && address < ruled[i].end) {
			walk->rule = ruled[i].rule;
			return ruled[i].found;
		}
	return STACK_RULE_ANONYMOUS;
}

static inline void rule_put(uint64_t start, uint64_t end, struct unwind_rule rule)
{
	ruled[ruled_count++] = (struct ruled){start, end, STACK_RULE_FOUND, rule};
}

static inline void rule_without(uint64_t start, uint64_t end, enum stack_rule found)
{
	ruled[ruled_count++] = (struct ruled){.start = start, .end = end, .found = found};
}

static __u64 frames[STACK_FRAMES_ROOM];
static struct stack_walk walk;

static inline void world_clear(void)
{
	static const uint8_t sigreturn[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};

	memset(stack, 0, sizeof stack);
	memset(code, 0x90, sizeof code);
	memset(libc_code, 0x90, sizeof libc_code);
	memcpy(libc_code + 0x100, sigreturn, sizeof sigreturn);
	memset(frames, 0, sizeof frames);
	memset(&walk, 0, sizeof walk);
	ruled_count = 0;
	thread_pointer = 0;
	walk.limit = USER_FRAMES_DEFAULT;
}

static inline uint64_t word(unsigned index)
{
	return STACK + 8 * (uint64_t)index;
}

/* `call rel32` that ends right before the address. */
static inline uint64_t call_before(uint64_t address)
{
	code[address - CODE - 5] = 0xe8;
	return address;
}

/* A stack frame at word index: the caller's frame pointer and the return address, behind a call. */
static inline void frame_put(unsigned index, uint64_t caller_fp, uint64_t return_address)
{
	stack[index] = caller_fp;
	stack[index + 1] = return_address;
	if (return_address >= CODE + 5 && return_address < CODE + CODE_BYTES)
		call_before(return_address);
}

static inline void code_put(uint64_t address, const char *bytes, size_t length)
{
	memcpy(code + (address - CODE), bytes, length);
}

#if STACK_WALK_X86
/* Where the kernel leaves the interrupted registers: the system's own struct at word index. */
static inline ucontext_t *context_put(unsigned index, uint64_t ip, uint64_t sp, uint64_t fp)
{
	ucontext_t *context = (ucontext_t *)(void *)&stack[index];

	context->uc_flags = 7;
	context->uc_mcontext.gregs[REG_RIP] = (greg_t)ip;
	context->uc_mcontext.gregs[REG_RSP] = (greg_t)sp;
	context->uc_mcontext.gregs[REG_RBP] = (greg_t)fp;
	return context;
}
#endif

static inline enum walk_result run(uint64_t ip, uint64_t sp, uint64_t fp)
{
	walk.ip = ip;
	walk.sp = sp;
	walk.fp = fp;
	if (!stack_walk_begin(&walk, frames))
		while (!stack_walk_step(&walk, frames))
			;
	return walk.result;
}

#endif
