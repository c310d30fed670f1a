/* SPDX-License-Identifier: Apache-2.0 */
/* What the two files of debug_units share: debug_scopes.c finds what a DIE is called, debug_units.c
 * walks. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_CONVERT_DEBUG_WALK_H
#define SYMBOL_SERVER_SYMBOLIZE_CONVERT_DEBUG_WALK_H

#include <stddef.h>
#include <stdint.h>

#include "common/hash_table.h"
#include "symbol-server/symbolize/convert/debug_units.h"
#include "symbol-server/symbolize/dwarf/dwarf_line.h"

enum {
	DIE_DEPTH_MAX = 512,
	ORIGIN_CHAIN_MAX = 16,
	NAMES_MAX = 50000000,
	QUALIFIED_MAX = 4096, /* bytes of a name put together from scopes */
	/* Tables that are pointed at again and again: so much in all, and so often each. */
	LINE_BYTES_FREE = 16 << 20,
	RANGES_FREE = 1 << 20,
	REPEATED_MAX = 8,
};

struct scope {            /* a namespace, class or function that names are inside of */
	uint32_t parent;  /* index; 0 is the root */
	const char *name; /* the file's */
};

struct die_name { /* by the DIE a name comes from */
	uint64_t key;
	uint32_t name; /* text, pending number | TABLE_NAME_PENDING */
};

struct die_scope {
	uint64_t key;
	uint32_t scope;
};

struct walk {
	struct table_builder *builder;
	const struct debug_files *files;
	uint32_t flags;
	bool no_memory;

	/* the unit at hand */
	bool is_c; /* names need no scopes */
	/* Its files and rows: those of read, or none. Many units of LTO may share a table: the one
	 * read last is kept. */
	const struct dwarf_lines *lines;
	struct dwarf_lines read;
	const struct dwarf_units *read_of; /* NULL: nothing is read */
	uint64_t read_at;
	uint8_t read_address_bytes;
	uint32_t *file_texts; /* by file number of read; UINT32_MAX: not asked yet */
	size_t file_room;

	uint64_t listed_ranges, listed_ranges_max; /* of DW_AT_ranges, so far and at most */
	struct code_range *ranges;                 /* of functions being walked, nested ones last */
	size_t range_count, range_room;

	struct hash_table name_table, scope_table;
	struct die_name *names;
	size_t name_count, name_room;
	struct die_scope *die_scopes;
	size_t die_scope_count, die_scope_room;
	struct scope *scopes;
	size_t scope_count, scope_room;
	uint64_t *pending; /* keys of the DIEs whose qualified name is wanted at the end */
	uint32_t *pending_plain;
	size_t pending_count, pending_room;
};

/* What a DIE is inside of. */
struct place {
	/* The scope that names are in: parent's, and inside of it die's, if that is one. A number
	 * is given when a name asks for it, which one type in a thousand has. */
	struct place *parent;
	struct dwarf_unit *unit;
	const struct dwarf_die *die; /* NULL: parent's scope */
	uint32_t scope;
	bool has_scope; /* scope is known */
	uint32_t node;  /* innermost function with code, or SYMBOL_NONE */
	uint32_t depth; /* of inlining for what is inlined here */
	uint32_t die_depth;
};

/* Room for one more row of an array; the row, or NULL. */
void *debug_walk_row(struct walk *walk, void **rows, size_t *count, size_t *room, size_t size);

#define ROW_ADD(walk_, rows_, count_, room_) \
	debug_walk_row(walk_, (void **)&(rows_), &(count_), &(room_), sizeof(*(rows_)))

/* The function symbol at address (not 0: of an out-of-line function); linkage name of the DIE or of
 * what it is an instance of; without one the plain name in C, or the name with its scopes. 0: it
 * has none. */
uint32_t debug_name(struct walk *walk, struct dwarf_unit *unit, const struct dwarf_die *die,
		    uint64_t address);
/* The name of what an inlined function's DIE is an instance of. */
uint32_t debug_inlined_name(struct walk *walk, struct dwarf_unit *unit,
			    const struct dwarf_die *die);

/* Where a function without a linkage name is declared, for its qualified name. */
void debug_note_scope(struct walk *walk, struct dwarf_unit *unit, const struct dwarf_die *die,
		      struct place *place);
/* Texts of the names that were pending, after the last unit; free(). NULL: memory. */
uint32_t *debug_settle_names(struct walk *walk);

#endif
