/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/code/x86_code.h"

#include <string.h>

enum { SP = 4, FP = 5 }; /* as instructions number them */

/* What comes behind an opcode. */
enum operands {
	M = 1 << 0,   /* ModRM, and what that asks for */
	B1 = 1 << 1,  /* one byte of immediate operand */
	B2 = 1 << 2,  /* two */
	Z = 1 << 3,   /* four, or two with the prefix 66 */
	B4 = 1 << 4,  /* four whatever prefix there is */
	BAD = 1 << 7, /* not in 64-bit mode, or a prefix, which is not looked up */
};

static const uint8_t one_byte[256] = {
#define ARITHMETIC M, M, M, M, B1, Z, BAD, BAD
	ARITHMETIC,
	ARITHMETIC,
	ARITHMETIC,
	ARITHMETIC,
	ARITHMETIC,
	ARITHMETIC,
	ARITHMETIC,
	ARITHMETIC,
	[0x60] = BAD,
	BAD,
	BAD,
	M,
	BAD,
	BAD,
	BAD,
	BAD,
	Z,
	M | Z,
	B1,
	M | B1,
	[0x70] = B1,
	B1,
	B1,
	B1,
	B1,
	B1,
	B1,
	B1,
	B1,
	B1,
	B1,
	B1,
	B1,
	B1,
	B1,
	B1,
	[0x80] = M | B1,
	M | Z,
	BAD,
	M | B1,
	M,
	M,
	M,
	M,
	M,
	M,
	M,
	M,
	M,
	M,
	M,
	M,
	[0x9a] = BAD,
	[0xa8] = B1,
	Z,
	[0xb0] = B1,
	B1,
	B1,
	B1,
	B1,
	B1,
	B1,
	B1,
	Z,
	Z,
	Z,
	Z,
	Z,
	Z,
	Z,
	Z,
	[0xc0] = M | B1,
	M | B1,
	B2,
	0,
	BAD,
	BAD,
	M | B1,
	M | Z,
	BAD,
	0,
	B2,
	0,
	0,
	B1,
	BAD,
	0,
	[0xd0] = M,
	M,
	M,
	M,
	BAD,
	BAD,
	BAD,
	0,
	M,
	M,
	M,
	M,
	M,
	M,
	M,
	M,
	[0xe0] = B1,
	B1,
	B1,
	B1,
	B1,
	B1,
	B1,
	B1,
	B4,
	B4,
	BAD,
	B1,
	[0xf6] = M,
	M,
	[0xfe] = M,
	M,
};

struct reader {
	const uint8_t *at, *end;
	bool is_short, has_rex_w, has_word, has_rex_r, has_rex_b;
};

static uint8_t take(struct reader *reader)
{
	if (reader->at < reader->end)
		return *reader->at++;
	reader->is_short = true;
	return 0;
}

static void skip(struct reader *reader, size_t bytes)
{
	if (bytes > (size_t)(reader->end - reader->at))
		reader->is_short = true;
	else
		reader->at += bytes;
}

static int32_t number_at(const uint8_t *at, unsigned bytes)
{
	int32_t number;

	if (bytes == 1)
		return (int8_t)*at;
	memcpy(&number, at, sizeof number);
	return number;
}

struct modrm {
	uint8_t mode, reg, rm; /* without what prefixes add */
	int base;              /* of memory: 0 to 7, −1: no register that matters */
	int32_t displacement;
};

static struct modrm take_modrm(struct reader *reader)
{
	uint8_t byte = take(reader), sib = 0;
	struct modrm modrm = {byte >> 6, byte >> 3 & 7, byte & 7, byte & 7, 0};
	unsigned bytes = modrm.mode == 1 ? 1 : modrm.mode == 2 ? 4 : 0;
	const uint8_t *at;

	if (modrm.mode == 3)
		return modrm;
	if (modrm.rm == 4) {
		sib = take(reader);
		modrm.base = (sib & 0x38) == 0x20 ? sib & 7 : -1; /* no index */
	}
	if (modrm.mode == 0 && (modrm.rm == 5 || (modrm.rm == 4 && (sib & 7) == 5))) {
		bytes = 4;
		modrm.base = -1;
	}
	at = reader->at;
	skip(reader, bytes);
	if (bytes && !reader->is_short)
		modrm.displacement = number_at(at, bytes);
	return modrm;
}

static uint8_t operands_of_0f(uint8_t opcode)
{
	static const char plain[] = "\x05\x06\x07\x08\x09\x0b\x0e\x30\x31\x32\x33\x34\x35\x37\x77"
				    "\xa0\xa1\xa2\xa8\xa9\xaa";
	static const char with_byte[] = "\x70\x71\x72\x73\xa4\xac\xba\xc2\xc4\xc5\xc6";
	static const char none[] =
		"\x04\x0a\x0c\x0f\x24\x25\x26\x27\x36\x39\x3b\x3c\x3d\x3e\x3f\xff";

	if (opcode && memchr(none, opcode, sizeof none - 1))
		return BAD;
	if (opcode && memchr(plain, opcode, sizeof plain - 1))
		return 0;
	if (opcode >= 0xc8 && opcode <= 0xcf)
		return 0;
	if (opcode >= 0x80 && opcode <= 0x8f)
		return B4;
	return opcode && memchr(with_byte, opcode, sizeof with_byte - 1) ? M | B1 : M;
}

/* --- what it does --- */

static void set(struct x86_instruction *out, enum x86_effect effect, int32_t value)
{
	out->effect = effect;
	out->value = value;
}

/* add, or, …, cmp with an immediate operand. */
static void of_arithmetic(const struct reader *reader, const struct modrm *modrm, int32_t number,
			  struct x86_instruction *out)
{
	if (modrm->mode != 3 || reader->has_rex_b || modrm->reg == 7 ||
	    (modrm->rm != SP && modrm->rm != FP))
		return;
	if (modrm->rm == FP)
		set(out, X86_FP_LOST, 0);
	else if (reader->has_rex_w && (modrm->reg == 0 || modrm->reg == 5))
		set(out, X86_MOVE_SP, modrm->reg == 0 ? number : -number);
	else
		set(out, X86_SP_LOST, 0);
}

/* mov and lea. to, from: registers, −1 for others and memory. */
static void of_move(const struct reader *reader, int to, int from, int32_t plus,
		    struct x86_instruction *out)
{
	if (to != SP && to != FP)
		return;
	set(out, to == SP ? X86_SP_LOST : X86_FP_LOST, 0);
	if (!reader->has_rex_w)
		return;
	if (to == SP && from == SP)
		set(out, X86_MOVE_SP, plus);
	else if (to == SP && from == FP)
		set(out, X86_SP_FROM_FP, plus);
	else if (to == FP && from == SP)
		set(out, X86_FP_FROM_SP, plus);
}

static void of_modrm(const struct reader *reader, uint8_t opcode, const struct modrm *modrm,
		     int32_t number, struct x86_instruction *out)
{
	int reg = reader->has_rex_r ? -1 : modrm->reg, rm = reader->has_rex_b ? -1 : modrm->rm;
	bool is_register = modrm->mode == 3;

	if (opcode == 0x81 || opcode == 0x83)
		of_arithmetic(reader, modrm, number, out);
	else if (opcode == 0x89 && is_register)
		of_move(reader, rm, reg, 0, out);
	else if (opcode == 0x8b)
		of_move(reader, reg, is_register ? rm : -1, 0, out);
	else if (opcode == 0x8d)
		of_move(reader, reg, reader->has_rex_b ? -1 : modrm->base, modrm->displacement,
			out);
	else if (opcode == 0x8f)
		set(out, X86_MOVE_SP, 8);
	else if (opcode == 0xff && modrm->reg == 6)
		set(out, X86_MOVE_SP, -8);
	else if (opcode == 0xff && (modrm->reg == 2 || modrm->reg == 3))
		set(out, X86_CALL, 0);
	else if (opcode == 0xff && (modrm->reg == 4 || modrm->reg == 5))
		set(out, X86_JUMP_SOMEWHERE, 0);
	else if ((opcode < 0x40 && opcode < 0x38 && (opcode & 7) < 2 && is_register) ||
		 ((opcode == 0x87 || opcode == 0xc7) && is_register))
		of_move(reader, rm, -1, 0, out); /* to r/m */
	else if (opcode < 0x38 && ((opcode & 7) == 2 || (opcode & 7) == 3))
		of_move(reader, reg, -1, 0, out);
}

static void of_opcode(const struct reader *reader, uint8_t opcode, int32_t number,
		      struct x86_instruction *out)
{
	if (opcode >= 0x50 && opcode <= 0x57)
		set(out, opcode == 0x55 && !reader->has_rex_b ? X86_PUSH_FP : X86_MOVE_SP, -8);
	else if (opcode == 0x5d && !reader->has_rex_b)
		set(out, X86_POP_FP, 8);
	else if (opcode == 0x5c && !reader->has_rex_b)
		set(out, X86_SP_LOST, 0);
	else if (opcode >= 0x58 && opcode <= 0x5f)
		set(out, X86_MOVE_SP, 8);
	else if (opcode == 0x68 || opcode == 0x6a || opcode == 0x9c)
		set(out, X86_MOVE_SP, -8);
	else if (opcode == 0x9d)
		set(out, X86_MOVE_SP, 8);
	else if ((opcode >= 0x70 && opcode <= 0x7f) || (opcode >= 0xe0 && opcode <= 0xe3))
		set(out, X86_BRANCH, number);
	else if (opcode == 0xe9 || opcode == 0xeb)
		set(out, X86_JUMP, number);
	else if (opcode == 0xe8)
		*out = (struct x86_instruction){
			.effect = X86_CALL, .is_direct = true, .value = number};
	else if (opcode == 0xc2 || opcode == 0xc3)
		set(out, X86_RETURN, 0);
	else if (opcode == 0xc9)
		set(out, X86_LEAVE, 0);
	else if (opcode == 0xcc || opcode == 0xf4)
		set(out, X86_STOP, 0);
	else if (opcode == 0x90)
		set(out, X86_NOP, 0);
	else if ((opcode == 0xbd || opcode == 0xbc) && !reader->has_rex_b)
		set(out, opcode == 0xbd ? X86_FP_LOST : X86_SP_LOST, 0);
	else if (opcode == 0xca || opcode == 0xcb || opcode == 0xcf)
		set(out, X86_BAD, 0);
}

/* --- one instruction --- */

static unsigned immediate_bytes(const struct reader *reader, uint8_t operands)
{
	if (operands & B1)
		return 1;
	if (operands & B2)
		return 2;
	if (operands & B4)
		return 4;
	return operands & Z ? (reader->has_word && !reader->has_rex_w ? 2 : 4) : 0;
}

/* Of an opcode of the first page. */
static void decode_plain(struct reader *reader, uint8_t opcode, struct x86_instruction *out)
{
	uint8_t operands = one_byte[opcode];
	struct modrm modrm = {0};
	const uint8_t *at;
	unsigned bytes;

	if (operands & M)
		modrm = take_modrm(reader);
	if ((opcode == 0xf6 || opcode == 0xf7) && modrm.reg < 2)
		operands |= opcode == 0xf6 ? B1 : Z;
	bytes = immediate_bytes(reader, operands);
	if (opcode >= 0xb8 && opcode <= 0xbf && reader->has_rex_w)
		bytes = 8;
	if (opcode >= 0xa0 && opcode <= 0xa3)
		bytes = 8;
	at = reader->at;
	skip(reader, bytes);
	if (operands & BAD || reader->is_short)
		set(out, X86_BAD, 0);
	else if (operands & M)
		of_modrm(reader, opcode, &modrm,
			 bytes == 1 || bytes == 4 ? number_at(at, bytes) : 0, out);
	else
		of_opcode(reader, opcode, bytes == 1 || bytes == 4 ? number_at(at, bytes) : 0, out);
}

static void decode_0f(struct reader *reader, struct x86_instruction *out)
{
	uint8_t opcode = take(reader), operands = operands_of_0f(opcode);
	struct modrm modrm = {0};
	const uint8_t *at;

	if (opcode == 0x38 || opcode == 0x3a) {
		take(reader);
		operands = opcode == 0x38 ? M : M | B1;
	}
	if (operands & M)
		modrm = take_modrm(reader);
	at = reader->at;
	skip(reader, immediate_bytes(reader, operands));
	if (operands & BAD || reader->is_short)
		set(out, X86_BAD, 0);
	else if (operands & B4)
		set(out, X86_BRANCH, number_at(at, 4));
	else if (opcode == 0x0b)
		set(out, X86_STOP, 0);
	else if (opcode == 0x1f)
		set(out, X86_NOP, 0);
	else if (((opcode >= 0x40 && opcode <= 0x4f) || opcode == 0xaf || opcode == 0xb6 ||
		  opcode == 0xb7 || opcode == 0xbe || opcode == 0xbf) &&
		 !reader->has_rex_r && modrm.reg == FP)
		set(out, X86_FP_LOST, 0);
}

/* VEX and EVEX; map: 1 as behind 0f, 2 behind 0f 38, 3 behind 0f 3a. */
static void decode_vector(struct reader *reader, unsigned map, struct x86_instruction *out)
{
	uint8_t opcode = take(reader), operands = map == 1 ? operands_of_0f(opcode) : M;

	if (map == 3)
		operands = M | B1;
	if (operands & M)
		take_modrm(reader);
	skip(reader, immediate_bytes(reader, operands));
	if (map < 1 || map > 6 || reader->is_short)
		set(out, X86_BAD, 0);
}

/* AMD's XOP: what 8f means when its ModRM byte would name another register than 0. */
static bool is_xop(const struct reader *reader, uint8_t opcode)
{
	return opcode == 0x8f && reader->at < reader->end && (*reader->at & 31) >= 8;
}

static void decode_xop(struct reader *reader, struct x86_instruction *out)
{
	unsigned map = take(reader) & 31;

	skip(reader, 2);
	take_modrm(reader);
	skip(reader, map == 8 ? 1 : map == 10 ? 4 : 0);
	if (map > 10 || reader->is_short)
		set(out, X86_BAD, 0);
}

static bool is_prefix(uint8_t byte)
{
	return byte && memchr("\x66\x67\xf2\xf3\xf0\x2e\x36\x3e\x26\x64\x65", byte, 11);
}

static void decode(struct reader *reader, struct x86_instruction *out)
{
	uint8_t opcode = take(reader), more;

	while (is_prefix(opcode)) {
		reader->has_word |= opcode == 0x66;
		opcode = take(reader);
	}
	if ((opcode & 0xf0) == 0x40) {
		reader->has_rex_w = opcode & 8;
		reader->has_rex_r = opcode & 4;
		reader->has_rex_b = opcode & 1;
		opcode = take(reader);
	}
	if (opcode == 0x0f) {
		decode_0f(reader, out);
	} else if (opcode == 0xc5) {
		take(reader);
		decode_vector(reader, 1, out);
	} else if (opcode == 0xc4) {
		more = take(reader);
		take(reader);
		decode_vector(reader, more & 31, out);
	} else if (opcode == 0x62) {
		more = take(reader);
		skip(reader, 2);
		decode_vector(reader, more & 7, out);
	} else if (is_xop(reader, opcode)) {
		decode_xop(reader, out);
	} else {
		decode_plain(reader, opcode, out);
	}
}

/* Between sections; as an instruction two of them would write to where rax points. */
static uint8_t zeros(const uint8_t *bytes, size_t left)
{
	uint8_t count = 0;

	while (count < left && count < X86_LENGTH_MAX && !bytes[count])
		count++;
	return count;
}

struct x86_instruction x86_decode(const uint8_t *bytes, size_t left)
{
	struct reader reader = {.at = bytes};
	struct x86_instruction out = {.effect = X86_OTHER};

	if (zeros(bytes, left) >= 2)
		return (struct x86_instruction){.effect = X86_BAD, .length = zeros(bytes, left)};
	reader.end = bytes + (left < X86_LENGTH_MAX ? left : X86_LENGTH_MAX);
	decode(&reader, &out);
	out.length = (uint8_t)(reader.at - bytes);
	if (reader.is_short || out.effect == X86_BAD || !out.length)
		out = (struct x86_instruction){.effect = X86_BAD, .length = 1};
	return out;
}
