/* SPDX-License-Identifier: Apache-2.0 */
/* One instruction of 64-bit x86 code: how long it is, and what it does to the stack pointer, the
 * frame pointer and the flow of control. Intel's Software Developer's Manual, volume 2, chapter 2
 * and appendix A. */
#ifndef NODE_AGENT_FILE_PARSER_CODE_X86_CODE_H
#define NODE_AGENT_FILE_PARSER_CODE_X86_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { X86_LENGTH_MAX = 15 };

enum x86_effect {
	X86_OTHER,
	X86_NOP, /* several bytes or one: space between functions, too */
	X86_BAD, /* no instruction, or none that code of a program's has */
	X86_RETURN,
	X86_JUMP,   /* to value */
	X86_BRANCH, /* to value, or on */
	X86_JUMP_SOMEWHERE,
	X86_STOP,       /* ud2, hlt, int3: nothing comes after it */
	X86_CALL,       /* to value, if is_direct */
	X86_MOVE_SP,    /* sp += value */
	X86_POP_FP,     /* and sp += 8 */
	X86_PUSH_FP,    /* and sp -= 8 */
	X86_LEAVE,      /* sp = fp, pop fp */
	X86_SP_FROM_FP, /* sp = fp + value */
	X86_FP_FROM_SP, /* fp = sp + value */
	X86_SP_LOST,    /* sp = what nobody follows */
	X86_FP_LOST,
};

struct x86_instruction {
	uint8_t length;
	uint8_t effect; /* enum x86_effect */
	bool is_direct;
	int32_t value; /* a target: from the instruction's end */
};

/* bytes: as many as are left, of which no more than X86_LENGTH_MAX are looked at. What is cut is
 * X86_BAD, of length 1; zeros are X86_BAD, too. */
struct x86_instruction x86_decode(const uint8_t *bytes, size_t left);

#endif
