/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of .eh_frame or .debug_frame, read through a window: what one page of code needs mostly
 * lies together. */
#ifndef NODE_AGENT_FILE_PARSER_FRAMES_FRAME_SECTION_H
#define NODE_AGENT_FILE_PARSER_FRAMES_FRAME_SECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node-agent/file_parser/code/code_file.h"
#include "node-agent/file_parser/row_builder.h"

enum { FRAME_ENTRY_BYTES_MAX = 256 << 10 }; /* of one CIE or FDE that we read */

struct frame_section {
	const struct code_file *file;
	uint64_t address, offset, size;
	bool is_debug;     /* .debug_frame: CIEs and distances are told apart otherwise */
	bool ends_at_zero; /* its size is a guess: an entry of no length is the end */
	uint8_t *content;  /* inflated, where the file has it compressed */
	uint8_t *window;
	size_t window_room, window_length;
	uint64_t window_at;
	uint64_t bytes_read; /* so far */
	bool is_unreadable;  /* something that ought to be in the file was not */
};

/* False: the file has no such section, or *failure says what is wrong with it. */
bool frame_section_open(struct frame_section *section, const struct code_file *file,
			const char *name, enum row_failure *failure);

/* The same, of what lies at an address: up to the end of its segment. */
bool frame_section_open_at(struct frame_section *section, const struct code_file *file,
			   uint64_t address);
void frame_section_release(struct frame_section *section);

/* Borrowed until the next call. NULL: outside, too many, or unreadable. */
const uint8_t *frame_section_bytes(struct frame_section *section, uint64_t at, uint64_t length);

size_t frame_section_memory(const struct frame_section *section);

#endif
