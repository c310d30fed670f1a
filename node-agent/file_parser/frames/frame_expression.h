/* SPDX-License-Identifier: Apache-2.0 */
/* What a DWARF expression of call frame information comes to, where that can be said in a few
 * numbers. DWARF 5, 2.5 and 6.4.2. */
#ifndef NODE_AGENT_FILE_PARSER_FRAMES_FRAME_EXPRESSION_H
#define NODE_AGENT_FILE_PARSER_FRAMES_FRAME_EXPRESSION_H

#include "node-agent/file_parser/frames/frame_bytes.h"

enum { FRAME_REGISTER_CFA = 0xffff }; /* the canonical frame address, taken for a register */

struct frame_value {
	enum {
		FRAME_VALUE_UNKNOWN,
		FRAME_VALUE_CONSTANT, /* offset */
		FRAME_VALUE_REGISTER, /* base + offset */
		FRAME_VALUE_DEREF,    /* *(base + offset) + add */
		FRAME_VALUE_PLT,      /* unwind_rows.h: UNWIND_CFA_PLT */
	} kind;
	uint32_t base;
	int64_t offset, add;
};

/* initial, which may be NULL, lies on the stack when the expression begins. */
struct frame_value frame_expression_value(struct frame_bytes expression,
					  const struct frame_value *initial);

#endif
