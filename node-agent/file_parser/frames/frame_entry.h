/* SPDX-License-Identifier: Apache-2.0 */
/* One FDE, and the CIE it names: which code it is about, and the instructions that say how to find
 * the caller's frame there. Formats: Linux Standard Base 5.0, 10.6; DWARF 5, 6.4.1. */
#ifndef NODE_AGENT_FILE_PARSER_FRAMES_FRAME_ENTRY_H
#define NODE_AGENT_FILE_PARSER_FRAMES_FRAME_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "node-agent/file_parser/frames/frame_bytes.h"
#include "node-agent/file_parser/frames/frame_section.h"

enum { FRAME_COMMON_BYTES_MAX = 512 };

/* What is said once for many functions: a CIE. */
struct frame_common {
	uint64_t at; /* in its section */
	bool is_good;
	bool has_sizes; /* FDEs say how long their own augmentation is */
	bool is_signal; /* augmentation S */
	uint8_t encoding;
	uint16_t bytes_length;
	uint64_t code_factor, return_register;
	int64_t data_factor;
	struct frame_bytes instructions; /* in bytes */
	uint8_t bytes[FRAME_COMMON_BYTES_MAX];
};

struct frame_entry {
	uint64_t start, end; /* ELF addresses */
	const struct frame_common *common;
	struct frame_bytes instructions; /* in the section's window: use them before it moves */
};

/* The last CIEs seen: neighbours mostly share one. */
enum { FRAME_COMMONS = 8 };
struct frame_commons {
	struct frame_common *entries; /* FRAME_COMMONS; NULL: none seen yet */
	unsigned next, count;
};
void frame_commons_release(struct frame_commons *commons);

enum frame_kind { FRAME_BAD, FRAME_END, FRAME_CIE, FRAME_FDE };

/* What begins at a place in the section, and where the next one does. BAD: not to be read on from;
 * with *next beyond at, only this one is unusable. */
enum frame_kind frame_entry_read(struct frame_section *section, struct frame_commons *commons,
				 uint64_t at, struct frame_entry *entry, uint64_t *next);

/* A pointer in one of the encodings of LSB 10.5. False: it is none that stands for itself. */
bool frame_pointer_read(struct frame_bytes *bytes, uint8_t encoding, uint64_t *value);

#endif
