/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for x86-64 code that nothing describes: musl, assembly of codecs, programs built without
 * tables. From any instruction all ways to a return tell how far the return address is, since a
 * return finds it on top of the stack; a function that does not return is followed from its first
 * instruction. Where two ways disagree, or a call finds the stack not aligned as the ABI wants it,
 * there is no rule. The rules carry UNWIND_RULE_GUESSED. Code that keeps frame pointers is left to
 * these. */
#ifndef NODE_AGENT_FILE_PARSER_CODE_BARE_CODE_H
#define NODE_AGENT_FILE_PARSER_CODE_BARE_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "node-agent/file_parser/frames/call_frames.h"
#include "node-agent/file_parser/code/code_file.h"

struct bare_code;

/* Of [start, end), at most a page that nothing else describes. NULL: there are none, or there is no
 * memory. */
struct bare_code *bare_code_open(const struct code_file *file, uint64_t start, uint64_t end);
void bare_code_close(struct bare_code *bare);

/* The pieces of [start, end), which lies in what was opened, in ascending order. False: add wants
 * no more. */
bool bare_code_pieces(const struct bare_code *bare, uint64_t start, uint64_t end,
		      call_frames_add add, void *context);

#endif
