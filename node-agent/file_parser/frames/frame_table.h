/* SPDX-License-Identifier: Apache-2.0 */
/* Which FDE is about which code: the linker's search table in .eh_frame_hdr (Linux Standard Base
 * 5.0, 10.6.2), or an index of our own. */
#ifndef NODE_AGENT_FILE_PARSER_FRAMES_FRAME_TABLE_H
#define NODE_AGENT_FILE_PARSER_FRAMES_FRAME_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node-agent/file_parser/code/code_file.h"
#include "node-agent/file_parser/frames/frame_entry.h"
#include "node-agent/file_parser/frames/frame_section.h"
#include "node-agent/file_parser/row_builder.h"

enum { FRAME_INDEX_MAX = 1 << 20, FRAME_TABLE_CHUNK = 256 };

struct frame_place {
	uint32_t start, entry; /* from the table's bases */
};

struct frame_table {
	const struct code_file *file;
	uint64_t count;
	/* A search table: read in chunks. */
	uint64_t offset, address; /* of its header */
	uint64_t section_address; /* what entries are told from */
	uint64_t chunk_at, chunk_count;
	struct frame_place *chunk; /* FRAME_TABLE_CHUNK */
	/* Our own index, sorted; first is the address that starts count from. */
	struct frame_place *index;
	uint64_t first;
};

/* The address of .eh_frame as .eh_frame_hdr has it. False: the file has no header, or not one as
 * all linkers write it. */
bool frame_table_section(const struct code_file *file, uint64_t *address);

/* The search table for a section. False: there is none that we can use. */
bool frame_table_open(struct frame_table *table, const struct code_file *file,
		      const struct frame_section *section);

/* Our own: reads the whole section. False: *failure. */
bool frame_table_build(struct frame_table *table, struct frame_section *section,
		       struct frame_commons *commons, enum row_failure *failure);
void frame_table_release(struct frame_table *table);

/* The last entry that starts at or below the address, else the first one. False: unreadable. */
bool frame_table_find(struct frame_table *table, uint64_t address, uint64_t *number);

/* What entry number, below count, says: where its code starts, and its place in the section. */
bool frame_table_entry(struct frame_table *table, uint64_t number, uint64_t *start, uint64_t *at);

size_t frame_table_memory(const struct frame_table *table);

#endif
