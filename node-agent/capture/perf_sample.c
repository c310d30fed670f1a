/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/capture/perf_sample.h"

#include <asm/perf_regs.h>
#include <linux/perf_event.h>
#include <string.h>

#include "bpf/frames.h"
#include "bpf/results.h"
#include "node-agent/kernel/perf_event.h"

enum {
	USER_ADDRESS_MIN = 4096,
	USER_ADDRESS_BITS = 56, /* as the kernel side's walk has it */
	TIME_OFFSET = 24,       /* header, ip, pid and tid */
	REGISTERS_MAX = 64,
};

/* --- words out of a record --- */

struct words {
	const uint8_t *at;
	size_t left;
	bool is_short;
};

static uint64_t word_take(struct words *words)
{
	uint64_t word = 0;

	if (words->left < sizeof word) {
		words->is_short = true;
		return 0;
	}
	memcpy(&word, words->at, sizeof word);
	words->at += sizeof word;
	words->left -= sizeof word;
	return word;
}

uint64_t perf_sample_time(const void *record, size_t length)
{
	uint64_t time_ns;

	if (length < TIME_OFFSET + sizeof time_ns)
		return 0;
	memcpy(&time_ns, (const uint8_t *)record + TIME_OFFSET, sizeof time_ns);
	return time_ns;
}

/* --- registers --- */

#if defined(__x86_64__)

enum { REGISTER_IP = PERF_REG_X86_IP };

/* System V ABI for x86-64, figure 3.36, in the order of the DWARF numbers. */
static const uint8_t dwarf_order[UNWIND_REGISTERS] = {
	PERF_REG_X86_AX,  PERF_REG_X86_DX,  PERF_REG_X86_CX,  PERF_REG_X86_BX,
	PERF_REG_X86_SI,  PERF_REG_X86_DI,  PERF_REG_X86_BP,  PERF_REG_X86_SP,
	PERF_REG_X86_R8,  PERF_REG_X86_R9,  PERF_REG_X86_R10, PERF_REG_X86_R11,
	PERF_REG_X86_R12, PERF_REG_X86_R13, PERF_REG_X86_R14, PERF_REG_X86_R15,
};

/* The instruction `syscall` leaves the next one's address in rcx and the flags in r11 (Intel SDM),
 * and that is how the kernel saves them; nothing else makes both equal. Where execve or a signal
 * replaced the address, they differ. Returns the length of `syscall`. */
static uint32_t entry_bytes(const uint64_t *registers, bool is_in_kernel)
{
	return is_in_kernel && registers[PERF_REG_X86_CX] == registers[PERF_REG_X86_IP] &&
			       registers[PERF_REG_X86_R11] == registers[PERF_REG_X86_FLAGS]
		       ? 2
		       : 0;
}

/* rax, rcx, r11: the system call's own by then. */
enum { LOST_BY_ENTRY = 1 << 0 | 1 << 2 | 1 << 11 };

#else

enum { REGISTER_IP = PERF_REG_ARM64_PC, LOST_BY_ENTRY = 0 };

static const uint8_t dwarf_order[UNWIND_REGISTERS] = {
	0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
	16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
};

static uint32_t entry_bytes(const uint64_t *registers, bool is_in_kernel)
{
	(void)registers, (void)is_in_kernel;
	return 0;
}

#endif

static void take_registers(struct words *words, struct perf_sample *sample)
{
	uint64_t registers[REGISTERS_MAX] = {0};

	for (int i = 0; i < REGISTERS_MAX; i++)
		if (PERF_USER_REGISTERS >> i & 1)
			registers[i] = word_take(words);
	for (int i = 0; i < UNWIND_REGISTERS; i++)
		sample->registers[i] = registers[dwarf_order[i]];
	sample->user_ip = registers[REGISTER_IP];
	sample->entry_bytes = entry_bytes(registers, sample->is_in_kernel);
	sample->known = (UINT64_C(1) << UNWIND_REGISTERS) - 1;
	if (sample->entry_bytes)
		sample->known &= ~(uint64_t)LOST_BY_ENTRY;
}

/* --- the record --- */

/* Addresses at the end of the range are no addresses but say what follows (PERF_CONTEXT_KERNEL). */
static void take_callchain(struct words *words, struct perf_sample *sample)
{
	uint64_t count = word_take(words);

	if (count > words->left / sizeof(uint64_t)) {
		words->is_short = true;
		return;
	}
	for (uint64_t i = 0; i < count; i++) {
		uint64_t address = word_take(words);

		if (address >= PERF_CONTEXT_MAX)
			continue;
		if (sample->kernel_count < KERNEL_FRAMES_MAX)
			sample->kernel[sample->kernel_count++] = address;
		else
			sample->is_kernel_cut = true;
	}
	/* just enough looks the same as cut, as in the BPF side's */
	sample->is_kernel_cut |= sample->kernel_count == KERNEL_FRAMES_MAX;
	if (!sample->is_in_kernel)
		sample->kernel_count = 0;
	else if (!sample->kernel_count)
		sample->kernel[sample->kernel_count++] = sample->ip;
}

static void take_user(struct words *words, struct perf_sample *sample)
{
	uint64_t abi = word_take(words), size, readable;

	sample->user = abi == PERF_SAMPLE_REGS_ABI_64   ? PERF_USER_64BIT
		       : abi == PERF_SAMPLE_REGS_ABI_32 ? PERF_USER_32BIT
							: PERF_USER_NONE;
	if (sample->user != PERF_USER_NONE)
		take_registers(words, sample);
	size = word_take(words);
	if (!size)
		return;
	if (size > words->left) {
		words->is_short = true;
		return;
	}
	sample->stack = words->at;
	words->at += size;
	words->left -= size;
	readable = word_take(words);
	sample->stack_bytes = (uint32_t)(readable < size ? readable : size);
}

bool perf_sample_parse(const void *record, size_t length, struct perf_sample *sample)
{
	struct perf_event_header header;
	struct words words = {(const uint8_t *)record + sizeof header,
			      length > sizeof header ? length - sizeof header : 0, false};
	uint64_t who;

	*sample = (struct perf_sample){.user = PERF_USER_NONE};
	if (length < sizeof header)
		return false;
	memcpy(&header, record, sizeof header);
	if (header.type != PERF_RECORD_SAMPLE || header.size != length)
		return false;
	sample->is_in_kernel = (header.misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
			       PERF_RECORD_MISC_KERNEL;
	sample->ip = word_take(&words);
	who = word_take(&words);
	memcpy(&sample->tgid, &who, sizeof sample->tgid);
	memcpy(&sample->tid, (const uint8_t *)&who + sizeof sample->tgid, sizeof sample->tid);
	sample->time_ns = word_take(&words);
	take_callchain(&words, sample);
	take_user(&words, sample);
	return !words.is_short;
}

/* --- as the BPF side has it --- */

static bool is_code(uint64_t address)
{
	return address >= USER_ADDRESS_MIN && !(address >> USER_ADDRESS_BITS);
}

static void copy_fill(const struct perf_sample *sample, struct stack_copy_event *copy)
{
	*copy = (struct stack_copy_event){
		.type = EVENT_STACK_COPY,
		.is_interrupted = 1,
		.size = (uint32_t)sizeof *copy + sample->stack_bytes,
		.stack_bytes = sample->stack_bytes,
		.known = sample->known,
		.ip = sample->user_ip - sample->entry_bytes,
		.sp = sample->registers[UNWIND_REGISTER_SP],
		.fp = sample->registers[UNWIND_REGISTER_FP],
	};
	memcpy(copy->registers, sample->registers, sizeof copy->registers);
	memcpy(copy->stack, sample->stack, sample->stack_bytes);
}

/* A thread that ends gives up its memory, and execve() gets a new one while the registers are still
 * those of the program before: such stacks are whole without a user part. */
static bool is_stack_gone(const struct perf_sample *sample)
{
	return sample->entry_bytes && !sample->stack_bytes;
}

/* Why the walk stopped where it begins. */
static enum walk_result user_result(const struct perf_sample *sample)
{
	if (!is_code(sample->user_ip))
		return WALK_bad_address;
	if (sample->user == PERF_USER_32BIT)
		return WALK_compat_32bit;
	return sample->stack_bytes ? WALK_not_loaded : WALK_read_fault;
}

void perf_sample_event(const struct perf_sample *sample, struct sample_event *event,
		       struct stack_copy_event *copy)
{
	/* Threads that the kernel makes inside a process (io_uring's workers) have no user part. */
	bool has_user = sample->user != PERF_USER_NONE && !is_stack_gone(sample) &&
			(sample->user_ip || sample->registers[UNWIND_REGISTER_SP]);

	*event = (struct sample_event){
		.type = EVENT_SAMPLE_CPU,
		.time_ns = sample->time_ns,
		.kernel_count = sample->kernel_count,
		.result = WALK_complete,
	};
	memcpy(event->frames, sample->kernel, sample->kernel_count * sizeof event->frames[0]);
	if (sample->is_in_kernel)
		event->flags |= SAMPLE_IN_KERNEL;
	if (sample->is_kernel_cut)
		event->flags |= SAMPLE_KERNEL_CUT;
	if (has_user) {
		event->result = user_result(sample);
		if (event->result != WALK_bad_address)
			sample_event_add_native(event, sample->user_ip - sample->entry_bytes);
	} else if (sample->is_in_kernel) {
		event->flags |= SAMPLE_KERNEL_THREAD;
	} else {
		event->result = WALK_no_registers;
	}
	if (event->result == WALK_not_loaded) {
		event->flags |= SAMPLE_HAS_COPY;
		copy_fill(sample, copy);
	}
	event->size = sample_event_frames_end(event);
}
