/* SPDX-License-Identifier: Apache-2.0 */
/* What call frame information says at one instruction → the rule as the walk knows it. */
#ifndef NODE_AGENT_FILE_PARSER_FRAMES_UNWIND_RULE_H
#define NODE_AGENT_FILE_PARSER_FRAMES_UNWIND_RULE_H

#include "bpf/unwind_rows.h"
#include "node-agent/file_parser/frames/frame_machine.h"

/* Exact, or UNWIND_CFA_NONE; a frame pointer that cannot be told exactly is UNWIND_FP_UNDEFINED. */
struct unwind_rule unwind_rule_of(const struct frame_state *state,
				  const struct frame_registers *registers, bool is_signal);

#endif
