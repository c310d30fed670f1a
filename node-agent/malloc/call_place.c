/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/malloc/call_place.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/auxv.h>

static struct {
	uintptr_t start, bytes;
} own_code;

void call_place_init(void)
{
	const ElfW(Phdr) *header = (const ElfW(Phdr) *)getauxval(AT_PHDR);
	const size_t count = getauxval(AT_PHNUM);
	uintptr_t base = 0;

	for (size_t i = 0; header && i < count; i++)
		if (header[i].p_type == PT_PHDR)
			base = (uintptr_t)header - header[i].p_vaddr;
	for (size_t i = 0; header && i < count; i++)
		if (header[i].p_type == PT_LOAD && header[i].p_flags & PF_X && !own_code.bytes) {
			own_code.start = base + header[i].p_vaddr;
			own_code.bytes = header[i].p_memsz;
		}
}

static bool is_own_code(uintptr_t address)
{
	return address - own_code.start < own_code.bytes;
}

/* No more of the stack is looked at than is sure to be there: the rest of the page. */
__attribute__((no_sanitize("address"))) uintptr_t call_place(uintptr_t from, uintptr_t thread)
{
	enum { WORDS = 32, PAGE = 4096 };
	const uintptr_t *frame = __builtin_frame_address(0);
	const size_t rest = (PAGE - (uintptr_t)frame % PAGE) / sizeof *frame;
	const size_t words = rest < WORDS ? rest : WORDS;

	if (!is_own_code(from))
		for (size_t i = 0; i < words; i++)
			if (is_own_code(frame[i])) {
				from = frame[i];
				break;
			}
	return from ^ (thread - (uintptr_t)frame) << 16;
}
