/* SPDX-License-Identifier: Apache-2.0 */
/* Call frame information → rules. .eh_frame through .eh_frame_hdr's search table; .eh_frame without
 * one and .debug_frame through an index built once. Formats: Linux Standard Base 5.0, chapter 10;
 * DWARF 5, 6.4; System V ABI for x86-64; DWARF for the Arm 64-bit architecture. */
#ifndef NODE_AGENT_FILE_PARSER_FRAMES_CALL_FRAMES_H
#define NODE_AGENT_FILE_PARSER_FRAMES_CALL_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node-agent/file_parser/code/code_file.h"
#include "node-agent/file_parser/row_builder.h"

struct call_frames;

/* file is borrowed. NULL: it has no call frame information, or *failure says why not. */
struct call_frames *call_frames_open(const struct code_file *file, enum row_failure *failure);
void call_frames_close(struct call_frames *frames);

/* Pieces of [start, end) in ascending order, FDE by FDE, also those that begin before start; what
 * has no FDE is left out. add returns false to stop. An FDE that cannot be expressed or is damaged
 * gives one piece of UNWIND_CFA_NONE, and only its own. ROW_FAILURE_NONE: all went well. */
typedef bool (*call_frames_add)(void *context, uint64_t start, uint64_t end,
				const struct unwind_rule *rule);
enum row_failure call_frames_pieces(struct call_frames *frames, uint64_t start, uint64_t end,
				    call_frames_add add, void *context);

/* The function, or the part of one, that has the address. False: none. */
bool call_frames_function(struct call_frames *frames, uint64_t address, uint64_t *start,
			  uint64_t *end);
/* Whether a function, by the frame information, begins at the address; *end: where it ends. */
bool call_frames_begins(struct call_frames *frames, uint64_t address, uint64_t *end);

size_t call_frames_bytes(const struct call_frames *frames); /* of memory it holds */

#endif
