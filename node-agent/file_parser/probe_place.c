/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/probe_place.h"

#include <string.h>

bool probe_is_cheap(const uint8_t *code, size_t length)
{
	if (length < 2)
		return false;
	switch (code[0]) {
	case 0x41: /* push, of the upper registers */
		return (code[1] & 0xf8) == 0x50;
	case 0x0f: /* a jump by condition, far */
		return (code[1] & 0xf0) == 0x80;
	case 0x90:
	case 0xe8:
	case 0xe9:
	case 0xeb:
		return true;
	default: /* push; a jump by condition, near */
		return (code[0] & 0xf8) == 0x50 || (code[0] & 0xf0) == 0x70;
	}
}

enum { REX = 0x40, REX_W = 8, REX_R = 4, REX_B = 1 };

/* Registers that a caller has put something into: rcx, rdx, rsp, rsi, rdi, r8, r9. */
static bool is_passed(unsigned number)
{
	return 0x3d6 >> number & 1;
}

/* The operands' bytes from ModRM on; 0: memory by a register, which is none of the few forms that
 * functions begin with. */
static size_t operands(const uint8_t *code, size_t length)
{
	if (!length)
		return 0;
	if (code[0] >> 6 == 3)
		return 1;
	return (code[0] & 0xc7) == 5 ? 5 : 0; /* memory by rip and 32 bits */
}

/* The length of an instruction that changes nothing a probe looks at; 0: it may, or is unknown. */
static size_t harmless(const uint8_t *code, size_t length)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	unsigned rex = 0, written;
	size_t at = 0, more;

	if (length >= sizeof endbr64 && !memcmp(code, endbr64, sizeof endbr64))
		return sizeof endbr64;
	if (length && (code[0] & 0xf0) == REX)
		rex = code[at++];
	if (at + 2 > length)
		return 0;
	more = operands(code + at + 1, length - at - 1);
	if (!more)
		return 0;
	switch (code[at]) {
	case 0x84: /* test */
	case 0x85:
	case 0x38: /* cmp */
	case 0x39:
	case 0x3a:
	case 0x3b:
		return at + 1 + more;
	case 0x80: /* cmp with 8 bits; other numbers write */
	case 0x83:
		return (code[at + 1] >> 3 & 7) == 7 ? at + 2 + more : 0;
	case 0x81:
		return (code[at + 1] >> 3 & 7) == 7 ? at + 5 + more : 0;
	case 0x31: /* xor, mov to a register */
	case 0x89:
		written = (code[at + 1] & 7) | (rex & REX_B ? 8 : 0);
		return more == 1 && !is_passed(written) ? at + 1 + more : 0;
	case 0x33:
	case 0x8b:
	case 0x8d: /* lea */
		written = (code[at + 1] >> 3 & 7) | (rex & REX_R ? 8 : 0);
		return is_passed(written) ? 0 : at + 1 + more;
	default:
		return 0;
	}
}

size_t probe_place(const uint8_t *code, size_t length)
{
	size_t at = 0, step;

	while (at < length && !probe_is_cheap(code + at, length - at)) {
		step = harmless(code + at, length - at);
		if (!step || step > length - at)
			return 0;
		at += step;
	}
	return at < length ? at : 0;
}
