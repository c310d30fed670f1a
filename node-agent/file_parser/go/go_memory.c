/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/go/go_memory.h"

#include <string.h>

#include "node-agent/file_parser/code/x86_code.h"

enum { CODE_BYTES = 256, JUMP_SHORT = 2, JUMP_LONG = 6 };

enum function { TAKEN, GIVEN, ALLOCATES, NEXT, FUNCTIONS };
static const char *const names[FUNCTIONS] = {
	[TAKEN] = "runtime.setprofilebucket",
	[GIVEN] = "runtime.mProf_Free",
	[ALLOCATES] = "runtime.profilealloc",
	[NEXT] = "runtime.nextSample", /* where that is not inlined into the one before */
};

static bool begins(const uint8_t *code, size_t length, const uint8_t *with, size_t with_length)
{
	return length >= with_length && !memcmp(code, with, with_length);
}

unsigned go_stack_check(const uint8_t *code, size_t length, bool *is_by_stack)
{
	/* cmp sp, 16(r14): g's stackguard0 */
	static const uint8_t by_register[] = {0x49, 0x3b, 0x66, 0x10};
	/* mov rcx, fs:-8; cmp sp, 16(rcx) */
	static const uint8_t by_stack[] = {0x64, 0x48, 0x8b, 0x0c, 0x25, 0xf8, 0xff,
					   0xff, 0xff, 0x48, 0x3b, 0x61, 0x10};
	unsigned at = 0;

	*is_by_stack = begins(code, length, by_stack, sizeof by_stack);
	if (*is_by_stack)
		at = sizeof by_stack;
	else if (begins(code, length, by_register, sizeof by_register))
		at = sizeof by_register;
	if (!at || length < at + JUMP_LONG)
		return 0;
	if (code[at] == 0x76) /* jbe */
		return at + JUMP_SHORT;
	return code[at] == 0x0f && code[at + 1] == 0x86 ? at + JUMP_LONG : 0;
}

uint64_t go_variable_read(const uint8_t *code, size_t length, uint64_t address)
{
	struct x86_instruction instruction;
	uint64_t found = 0;

	for (size_t at = 0; at < length; at += instruction.length) {
		const uint8_t *bytes = code + at;
		int32_t offset;

		instruction = x86_decode(bytes, length - at);
		if (instruction.effect == X86_BAD || instruction.effect == X86_CALL ||
		    instruction.effect == X86_RETURN)
			break;
		/* mov r64, offset(rip) */
		if (instruction.length != 7 || (bytes[0] & 0xfb) != 0x48 || bytes[1] != 0x8b ||
		    (bytes[2] & 0xc7) != 0x05)
			continue;
		memcpy(&offset, bytes + 3, sizeof offset);
		found = address + at + instruction.length + (uint64_t)(int64_t)offset;
	}
	return found;
}

/* The function's first bytes. *offset: in the file. */
static size_t read_code(const struct code_file *file, const struct go_span *function,
			uint8_t code[CODE_BYTES], uint64_t *offset)
{
	uint64_t left = code_file_offset(file, function->start, offset);
	uint64_t length = function->end - function->start;

	if (length > left)
		length = left;
	if (length > CODE_BYTES)
		length = CODE_BYTES;
	return length && code_file_read(file, *offset, code, (size_t)length) ? (size_t)length : 0;
}

/* The probe's offset in the file; 0: the code is not what it should be. */
static uint64_t find_probe(const struct code_file *file, const struct go_span *function,
			   bool *is_by_stack)
{
	uint8_t code[CODE_BYTES];
	uint64_t offset = 0;
	size_t length = read_code(file, function, code, &offset);
	unsigned check = go_stack_check(code, length, is_by_stack);

	return check ? offset + check : 0;
}

static bool is_data(const struct code_file *file, uint64_t address)
{
	for (unsigned i = 0; i < file->segment_count; i++) {
		const Elf64_Phdr *segment = &file->segments[i];

		if (segment->p_type == PT_LOAD && segment->p_flags & PF_W &&
		    address >= segment->p_vaddr && segment->p_memsz >= sizeof(uint64_t) &&
		    address - segment->p_vaddr <= segment->p_memsz - sizeof(uint64_t))
			return true;
	}
	return false;
}

static uint64_t find_rate(const struct code_file *file, const struct go_span *function)
{
	uint8_t code[CODE_BYTES];
	uint64_t offset = 0, rate;
	size_t length = read_code(file, function, code, &offset);

	rate = go_variable_read(code, length, function->start);
	return rate && is_data(file, rate) ? rate : 0;
}

void go_memory_places(const struct code_file *file, struct go_table *table,
		      struct memory_places *places)
{
	struct go_span found[FUNCTIONS];
	uint64_t taken, given, rate;
	bool is_taken_by_stack, is_given_by_stack;

	go_table_find(table, names, FUNCTIONS, found);
	taken = find_probe(file, &found[TAKEN], &is_taken_by_stack);
	given = find_probe(file, &found[GIVEN], &is_given_by_stack);
	if (!taken || !given || is_taken_by_stack != is_given_by_stack)
		return;
	memory_place_add(places, is_taken_by_stack ? MEMORY_GO_TAKEN_BY_STACK : MEMORY_GO_TAKEN,
			 taken);
	memory_place_add(places, is_given_by_stack ? MEMORY_GO_GIVEN_BY_STACK : MEMORY_GO_GIVEN,
			 given);
	rate = find_rate(file, &found[ALLOCATES]);
	if (!rate)
		rate = find_rate(file, &found[NEXT]);
	if (rate)
		memory_place_add(places, MEMORY_GO_RATE, rate);
}
