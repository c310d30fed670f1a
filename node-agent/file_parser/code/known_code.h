/* SPDX-License-Identifier: Apache-2.0 */
/* Code at which stacks end or leave a signal handler, known by its bytes: C libraries without call
 * frame information, musl above all, describe it nowhere, and every stack has some. */
#ifndef NODE_AGENT_FILE_PARSER_CODE_KNOWN_CODE_H
#define NODE_AGENT_FILE_PARSER_CODE_KNOWN_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "node-agent/file_parser/frames/call_frames.h"
#include "node-agent/file_parser/code/code_file.h"

/* The pieces of [start, end), at most 64 KiB that nothing else describes, in ascending order.
 * False: add wants no more. */
bool known_code_pieces(const struct code_file *file, uint64_t start, uint64_t end,
		       call_frames_add add, void *context);

/* A function of [start, end), described from its first instruction on, to which code returns that
 * has not called it: the address before it, in the gap there, is looked up. NULL: it is none. */
const struct unwind_rule *known_code_behind_gap(const struct code_file *file, uint64_t start,
						uint64_t end);

#endif
