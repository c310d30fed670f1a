/* SPDX-License-Identifier: Apache-2.0 */
/* Where Go's table lies in a file and how it is laid out: by its section, or, where a linker has
 * put it among other data, by the bytes it begins with. Formats: runtime/symtab.go and
 * cmd/link/internal/ld/pcln.go of Go 1.2 to 1.26. */
#ifndef NODE_AGENT_FILE_PARSER_GO_GO_PLACE_H
#define NODE_AGENT_FILE_PARSER_GO_GO_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "node-agent/file_parser/code/code_file.h"
#include "node-agent/file_parser/row_builder.h"

enum { GO_HEADER_WORDS = 8 }; /* of 8 bytes, behind the first 8 */

/* Of one version of the table; *_word count the header's words, *_at a function's bytes. */
struct go_layout {
	uint8_t magic;    /* the lowest byte; the others are 0xff */
	uint8_t pc_bytes; /* of an entry in ftab, and of a function's first field */
	bool is_relative; /* those count from the start of the text */
	uint8_t text_word, names_word, pcs_word, functions_word; /* 0: the table's own start */
	uint8_t name_at, pcsp_at, flags_at, function_bytes;
};

struct go_place {
	const struct code_file *file;
	const struct go_layout *layout;
	uint64_t address, offset, bytes; /* of the table; bytes may be more than it has */
	uint64_t words[GO_HEADER_WORDS];
	uint32_t count;                       /* of functions */
	uint64_t ftab, functions, names, pcs; /* from the table's start */
};

/* False: not a Go program for x86-64 (*failure NONE), or one whose table was not found. */
bool go_place_find(const struct code_file *file, struct go_place *place, enum row_failure *failure);

/* Where the text that entries count from may start, the likeliest first; the table does not say it
 * since Go 1.26, and before that a PIE has it in a relocation only. Returns how many. */
enum { GO_TEXTS_MAX = 72 };
unsigned go_place_texts(const struct go_place *place, uint64_t texts[GO_TEXTS_MAX]);

#endif
