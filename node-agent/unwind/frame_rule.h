/* SPDX-License-Identifier: Apache-2.0 */
/* Where the return address of a frame lies, by the call frame information of its code: tells which
 * steps of a walk along frame pointers were right. x86-64. The bytes are a stranger's: everything
 * is bounded, read with pread(2), and what is not understood is "unknown". Format: .eh_frame_hdr
 * and .eh_frame of the Linux Standard Base 5.0, chapter 10; DWARF 5, 6.4. */
#ifndef NODE_AGENT_UNWIND_FRAME_RULE_H
#define NODE_AGENT_UNWIND_FRAME_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

enum frame_rule_kind {
	FRAME_RULE_UNKNOWN,       /* no table, or one that computes */
	FRAME_RULE_FRAME_POINTER, /* the frame pointer points to the caller's, then the return
				     address */
	FRAME_RULE_STACK,         /* so many bytes above the stack pointer; no frame is set up */
	FRAME_RULE_SIGNAL,        /* a signal's trampoline */
	FRAME_RULE_OTHER,         /* by a register the walk does not know */
};

struct frame_rule {
	uint8_t kind;           /* enum frame_rule_kind */
	bool keeps_fp;          /* STACK: the frame pointer register still is the caller's */
	uint16_t return_offset; /* STACK: of the return address from the stack pointer, in bytes */
	uint16_t fp_offset;     /* STACK, unless keeps_fp: of the caller's frame pointer */
};

/* One lookup in a file. address: ELF address of the instruction. */
struct frame_rule frame_rule_read(int fd, uint64_t address);

/* The same with a memory, for the hot places of all files. */
struct frame_rules;
struct frame_rules *frame_rules_new(struct error *err);
/* file: tells files apart, never 0. fd −1: known is only what was looked up before. */
struct frame_rule frame_rules_find(struct frame_rules *rules, uint32_t file, int fd,
				   uint64_t address);
void frame_rules_free(struct frame_rules *rules);

#endif
