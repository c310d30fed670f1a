/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the instructions of call frame information: what is known of the caller's registers from one
 * instruction of the code to the next. DWARF 5, 6.4.2 and 7.24; GNU and Arm extensions. */
#ifndef NODE_AGENT_FILE_PARSER_FRAMES_FRAME_MACHINE_H
#define NODE_AGENT_FILE_PARSER_FRAMES_FRAME_MACHINE_H

#include "node-agent/file_parser/frames/frame_entry.h"
#include "node-agent/file_parser/frames/frame_expression.h"

/* Where the caller's value of a register is. */
struct frame_saved {
	enum {
		FRAME_UNSPECIFIED,
		FRAME_SAME,
		FRAME_UNDEFINED,
		FRAME_SAVED_AT, /* at this address */
		FRAME_IS,       /* this itself */
	} kind;
	struct frame_value value;
};

/* The registers that a walk needs; the others' instructions are read over. */
enum { FRAME_FP, FRAME_SP, FRAME_RETURN, FRAME_KEPT, FRAME_FOLLOWED };

struct frame_state {
	bool has_cfa, cfa_is_expression;
	/* An exception is thrown on: what is returned to is a landing pad, not behind a call. Only
	 * code that leaves by __builtin_eh_return saves the result's register, and its last
	 * instructions count from the one that moves the stack pointer to the handler's frame. */
	bool is_result_saved, is_landing;
	uint64_t cfa_register;
	int64_t cfa_offset;
	struct frame_value cfa_expression;
	struct frame_saved saved[FRAME_FOLLOWED];
};

/* The numbers of the followed registers; one machine's code has them all alike. */
struct frame_registers {
	uint64_t number[FRAME_FOLLOWED];
	uint64_t count; /* those that a rule may name are below */
	bool is_arm64;
};
bool frame_registers_of(uint16_t elf_machine, struct frame_registers *registers);

/* state holds from start up to end. False: enough. */
typedef bool (*frame_state_add)(void *context, uint64_t start, uint64_t end,
				const struct frame_state *state);

enum frame_run { FRAME_RUN_DONE, FRAME_RUN_STOPPED, FRAME_RUN_DAMAGED, FRAME_RUN_OVER_BUDGET };

/* The states of entry's code, none that begins at limit or behind it. Takes what it runs from
 * *budget. DAMAGED: what has been added does not count. add may be NULL: to know that. */
enum frame_run frame_machine_run(const struct frame_entry *entry,
				 const struct frame_registers *registers, uint64_t limit,
				 frame_state_add add, void *context, uint64_t *budget);

#endif
