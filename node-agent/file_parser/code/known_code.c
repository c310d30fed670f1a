/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/code/known_code.h"

#include <string.h>

enum {
	PATTERN_BYTES = 24,
	STEP_BYTES = 4096,
	LEAST_BYTES = 16, /* what is shorter fills the space up to the next function */
	ANY = 0x100,      /* for a byte of a pattern */
};

struct pattern {
	uint16_t machine;
	uint8_t length;
	uint8_t before; /* the rule holds from so many bytes before: where a caller is looked up */
	uint8_t after;  /* so many of its last bytes are compared, and the rule does not hold there
			 */
	uint16_t bytes[PATTERN_BYTES];
	struct unwind_rule rule;
};

#define SIGNAL(ucontext)                                                                          \
	{                                                                                         \
		.cfa = UNWIND_CFA_SIGNAL, .fp = UNWIND_FP_UNDEFINED, .flags = UNWIND_RULE_SIGNAL, \
		.cfa_offset = ucontext                                                            \
	}
/* The return address is still where arm64's calls put it. */
#define IN_X30(offset_)                                                                      \
	{                                                                                    \
		.cfa = UNWIND_CFA_REGISTER, .cfa_register = 31, .ra = UNWIND_RA_IN_REGISTER, \
		.ra_offset = 30, .cfa_offset = offset_                                       \
	}
#define END                           \
	{                             \
		.cfa = UNWIND_CFA_END \
	}

static const struct pattern patterns[] = {
	/* mov $15, %rax (rt_sigreturn); syscall. A handler returns to it. */
	{EM_X86_64, 9, 1, 0, {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05}, SIGNAL(0)},
	/* mov $15, %eax; syscall */
	{EM_X86_64, 7, 1, 0, {0xb8, 15, 0, 0, 0, 0x0f, 0x05}, SIGNAL(0)},
	/* musl's _start: xor %rbp, %rbp; mov %rsp, %rdi; lea …(%rip), %rsi; and $-16, %rsp; call …
	 */
	{EM_X86_64,
	 22,
	 0,
	 0,
	 {0x48, 0x31, 0xed, 0x48, 0x89, 0xe7, 0x48, 0x8d, 0x35, ANY, ANY,
	  ANY,  ANY,  0x48, 0x83, 0xe4, 0xf0, 0xe8, ANY,  ANY,  ANY, ANY},
	 END},
	/* A new thread in musl's clone: xor %ebp, %ebp; pop %rdi; call *%r9; mov %eax, %edi;
	 * xor %eax, %eax; mov $60, %al (exit); syscall; hlt */
	{EM_X86_64,
	 15,
	 0,
	 0,
	 {0x31, 0xed, 0x5f, 0x41, 0xff, 0xd1, 0x89, 0xc7, 0x31, 0xc0, 0xb0, 60, 0x0f, 0x05, 0xf4},
	 END},
	/* glibc's __start_context, to which a coroutine's first function returns: mov %rbx, %rsp;
	 * mov (%rsp), %rdi; test %rdi, %rdi; je …; call …; mov %rax, %rdi. Without and with a
	 * landing pad before it. */
	{EM_X86_64,
	 20,
	 1,
	 3,
	 {0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24, 0x48, 0x85, 0xff,
	  0x74, ANY,  0xe8, ANY,  ANY,  ANY,  ANY,  0x48, 0x89, 0xc7},
	 END},
	{EM_X86_64,
	 21,
	 1,
	 0,
	 {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24,
	  0x48, 0x85, 0xff, 0x74, ANY,  0xe8, ANY,  ANY,  ANY,  ANY},
	 END},
	/* Go's crosscall1, by which C starts a thread of Go's (runtime/cgo/gcc_amd64.S), between
	 * its six pushes, rbp the second, and pops: mov %rdi, %rbx; mov %rdx, %rdi; call *%rsi;
	 * call *%rbx */
	{EM_X86_64,
	 21,
	 0,
	 11,
	 {0x48, 0x89, 0xfb, 0x48, 0x89, 0xd7, 0xff, 0xd6, 0xff, 0xd3, 0x41,
	  0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5d, 0x5b, 0xc3},
	 {.cfa = UNWIND_CFA_REGISTER,
	  .cfa_register = 7,
	  .cfa_offset = 56,
	  .fp = UNWIND_FP_AT_CFA,
	  .fp_offset = -24,
	  .kept = 2,
	  .ra_offset = -8}},
	/* The start of a table of arm64's calls into other files, which pushes before it goes to
	 * the dynamic linker: stp x16, x30, [sp, #-16]!; adrp x16, …; ldr x17, [x16, …]; add x16,
	 * x16, …; br x17. Its first instruction, and then the others. */
	{EM_AARCH64,
	 20,
	 0,
	 16,
	 {0xf0, 0x7b, 0xbf, 0xa9, ANY, ANY,  ANY,  ANY,  0x11, ANY,
	  ANY,  0xf9, 0x10, ANY,  ANY, 0x91, 0x20, 0x02, 0x1f, 0xd6},
	 IN_X30(0)},
	{EM_AARCH64,
	 17,
	 0,
	 0,
	 {0xa9, ANY, ANY, ANY, ANY, 0x11, ANY, ANY, 0xf9, 0x10, ANY, ANY, 0x91, 0x20, 0x02, 0x1f,
	  0xd6},
	 IN_X30(16)},
	/* An entry of it, from adrp on, or from the landing pad before that. */
	{EM_AARCH64,
	 12,
	 8,
	 0,
	 {0x11, ANY, ANY, 0xf9, 0x10, ANY, ANY, 0x91, 0x20, 0x02, 0x1f, 0xd6},
	 IN_X30(0)},
	/* A new thread in musl's clone: ldp x1, x0, [sp], #16; blr x1; mov x8, #93 (exit); svc #0
	 */
	{EM_AARCH64,
	 16,
	 0,
	 0,
	 {0xe1, 0x03, 0xc1, 0xa8, 0x20, 0x00, 0x3f, 0xd6, 0xa8, 0x0b, 0x80, 0xd2, 0x01, 0x00, 0x00,
	  0xd4},
	 END},
	/* mov x8, #139 (rt_sigreturn); svc #0. The ucontext is behind a siginfo. */
	{EM_AARCH64, 8, 1, 0, {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4}, SIGNAL(128)},
};

static bool is_there(const struct pattern *pattern, const uint8_t *bytes, size_t length)
{
	if (length < pattern->length)
		return false;
	for (size_t i = 0; i < pattern->length; i++)
		if (pattern->bytes[i] != ANY && pattern->bytes[i] != bytes[i])
			return false;
	return true;
}

/* Whether any of the machine's patterns begins with the byte: most of a gap is none. */
static const bool *first_bytes(uint16_t machine)
{
	static bool is_first[UINT8_MAX + 1];
	static uint16_t made_for; /* a process reads one machine's files, or a few tests' */

	if (made_for == machine)
		return is_first;
	memset(is_first, false, sizeof is_first);
	for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
		if (patterns[i].machine == machine)
			is_first[patterns[i].bytes[0]] = true;
	made_for = machine;
	return is_first;
}

static const struct pattern *find(uint16_t machine, const uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
		if (patterns[i].bytes[0] == bytes[0] && patterns[i].machine == machine &&
		    is_there(&patterns[i], bytes, length))
			return &patterns[i];
	return NULL;
}

/* [start, end) of file bytes. A pattern that begins in one step may end in the next. */
static bool search(const struct code_file *file, uint64_t start, uint64_t end, uint64_t offset,
		   call_frames_add add, void *context)
{
	uint8_t bytes[STEP_BYTES + PATTERN_BYTES];
	const bool *is_first = first_bytes(file->machine);
	const struct pattern *pattern;

	for (uint64_t at = start; at < end; at += STEP_BYTES) {
		size_t length = end - at < sizeof bytes ? (size_t)(end - at) : sizeof bytes;

		if (!code_file_read(file, offset + (at - start), bytes, length))
			return true;
		for (size_t i = 0; i < length && i < STEP_BYTES; i++) {
			if (!is_first[bytes[i]])
				continue;
			pattern = find(file->machine, bytes + i, length - i);
			if (pattern &&
			    !add(context, at + i - (at + i > start ? pattern->before : 0),
				 at + i + pattern->length - pattern->after, &pattern->rule))
				return false;
		}
	}
	return true;
}

const struct unwind_rule *known_code_behind_gap(const struct code_file *file, uint64_t start,
						uint64_t end)
{
	enum { SMALLEST = 24, LARGEST = 40, ALIGNMENT = 16 };
	uint8_t bytes[PATTERN_BYTES];
	const struct pattern *pattern;
	uint64_t offset;

	/* Most of a library's functions need not be read. */
	if (end - start < SMALLEST || end - start > LARGEST || start % ALIGNMENT ||
	    code_file_offset(file, start, &offset) < sizeof bytes ||
	    !code_file_read(file, offset, bytes, sizeof bytes))
		return NULL;
	pattern = find(file->machine, bytes, sizeof bytes);
	return pattern && pattern->before ? &pattern->rule : NULL;
}

bool known_code_pieces(const struct code_file *file, uint64_t start, uint64_t end,
		       call_frames_add add, void *context)
{
	for (unsigned i = 0; i < file->segment_count; i++) {
		const Elf64_Phdr *segment = &file->segments[i];
		uint64_t offset, low = start > segment->p_vaddr ? start : segment->p_vaddr;
		uint64_t left, high;

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) || low >= end)
			continue;
		left = code_file_offset(file, low, &offset);
		high = end - low < left ? end : low + left;
		if (high - low >= LEAST_BYTES && !search(file, low, high, offset, add, context))
			return false;
	}
	return true;
}
