/* SPDX-License-Identifier: Apache-2.0 */
/* A unit's line table: DWARF 5, 6.2, and what versions 2 to 4 have instead. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_DWARF_DWARF_LINE_H
#define SYMBOL_SERVER_SYMBOLIZE_DWARF_DWARF_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol-server/symbolize/dwarf/dwarf_unit.h"
#include "symbol-server/symbolize/convert/table_builder.h"

struct dwarf_line_file {
	const char *directory, *name; /* borrowed from the file; directory NULL: none */
};

struct dwarf_lines {
	struct dwarf_line_file *files; /* by the program's file numbers: from 0 or 1 on as the
					  version has it, so that call_file is an index, too */
	uint32_t file_count, file_room;
	const char *comp_dir; /* relative directories count from here; NULL: none */
	/* by ascending address, sequence by sequence, each address once in one. Their file is an
	 * index of files; UINT32_MAX: none. The caller may change it. */
	struct line_row *rows;
	size_t row_count, row_room;
	uint64_t program_bytes; /* of all tables that were read, one after the other */
	/* inside, kept for reuse */
	const char **directories;
	uint32_t directory_count, directory_room;
	struct dwarf_sequence *sequences;
	size_t sequence_count, sequence_room;
	struct line_row *sorted;
	size_t sorted_room;
	bool no_memory;
};

enum {
	DWARF_LINE_FILES_MAX = 1000000,
	DWARF_LINE_ROWS_MAX = 50000000, /* of one unit */
	DWARF_LINE_PATH_MAX = 4096,
};

/* Replaces what lines held by the table at that offset of .debug_line, in the unit's file; split
 * units: their skeleton's. False: it is damaged; what was good before that is
 * there. */
bool dwarf_lines_read(struct dwarf_lines *lines, struct dwarf_unit *unit, uint64_t offset);
void dwarf_lines_release(struct dwarf_lines *lines);

/* The path of a file by number, put together; "" when unknown. */
const char *dwarf_lines_path(const struct dwarf_lines *lines, uint32_t file,
			     char path[DWARF_LINE_PATH_MAX]);

#endif
