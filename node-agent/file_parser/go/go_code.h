/* SPDX-License-Identifier: Apache-2.0 */
/* What Go's pcsp tables do not say, read from the machine code: where a function has saved the
 * frame pointer, and where the runtime's own functions leave one stack for another. The code is the
 * assembler's of cmd/internal/obj/x86 and runtime/asm_amd64.s, of Go 1.17 to 1.26. */
#ifndef NODE_AGENT_FILE_PARSER_GO_GO_CODE_H
#define NODE_AGENT_FILE_PARSER_GO_GO_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/unwind_rows.h"

/* --- the frame pointer --- */

/* Addresses from which on the caller's frame pointer is in memory at CFA − 16, and the frame
 * pointer is CFA − 16 itself; UINT64_MAX: never. */
struct go_frame {
	uint64_t saved, set;
};

enum { GO_PROLOGUE_BYTES = 24 }; /* from the byte before */

/* code: what lies at address − 1 and behind it, where the stack pointer has been lowered by depth
 * for the first time. */
struct go_frame go_frame_read(const uint8_t *code, size_t length, uint64_t address, uint64_t depth);

/* --- functions that are not like others --- */

enum go_way {
	GO_WAY_STACK,  /* the table is right */
	GO_WAY_FRAME,  /* on another stack: the frame pointer still shows the frame */
	GO_WAY_NONE,   /* on another stack, and nothing shows the frame */
	GO_WAY_END,    /* nobody called this function */
	GO_WAY_SWITCH, /* asmcgocall for a goroutine: UNWIND_CFA_GO_SWITCH */
	/* systemstack and morestack: UNWIND_CFA_GO_GOROUTINE, whose caller has called the function,
	 * or has been left in it as if it had not yet */
	GO_WAY_CALLER,
	GO_WAY_LEFT,
	GO_WAY_SAVED,  /* asmcgocall on the system stack: the stack pointer is saved on the stack */
	GO_WAY_SIGNAL, /* returns to the kernel from a signal's handler */
};

/* From an address on, up to the next part. */
struct go_part {
	uint64_t from;
	enum go_way way;
	int32_t offset; /* of what is saved, from the stack pointer */
};

/* Where the runtime keeps what a thread works on, as its own functions have it in their code: g is
 * at the thread pointer + tls, its m's goroutine at curg, the frame pointer of that at fp; the rest
 * is where bpf/stack_walk.bpf.h has it. */
struct go_descriptor {
	bool has_g, has_curg;
	int32_t tls;
	int16_t curg, fp;
};

enum { GO_PARTS_MAX = 8, GO_FUNCTION_BYTES = 512, GO_NAME_BYTES = 48 };

struct go_function {
	uint64_t start, end;      /* end: where the next one begins */
	uint32_t pcsp;            /* 0: it has no table */
	uint8_t flags;            /* enum go_function_flags */
	bool has_flags;           /* all of them */
	char name[GO_NAME_BYTES]; /* of a longer one the first bytes */
	unsigned part_count;      /* at least 1 */
	struct go_part parts[GO_PARTS_MAX];
	bool is_injected;        /* its caller was interrupted, not calling */
	int16_t return_register; /* has the return address while it is off the stack; 0: none */
	struct go_descriptor descriptor; /* where go_function_leaves() */
};

/* abi.FuncFlag: the first two since Go 1.17, the third since 1.18. */
enum go_function_flags { GO_TOP_FRAME = 1, GO_WRITES_SP = 2, GO_ASSEMBLY = 4 };

/* Whether the parts can be told without the code: one part, the table's. */
bool go_function_is_plain(const struct go_function *function);

/* Whether its parts need the descriptor. */
bool go_function_leaves(const struct go_function *function);

/* Adds what the code of this function says, if it is one of those that say something. */
void go_descriptor_read(struct go_descriptor *descriptor, const struct go_function *function,
			const uint8_t *code, size_t length);

/* Fills parts and what follows them; code: the function's first bytes. */
void go_function_parts(struct go_function *function, const uint8_t *code, size_t length);

/* At the address from, in the part; depth: from the stack pointer up to the return address, where
 * the table is right. */
struct unwind_rule go_rule(const struct go_function *function, const struct go_part *part,
			   int64_t depth, uint64_t from, const struct go_frame *frame);

#endif
