/* SPDX-License-Identifier: Apache-2.0 */
/* Units and their DIEs: headers, abbreviations, values of attributes, references. DWARF 2 to 5,
 * both formats (32 and 64 bit), GNU's split DWARF 4 as well as DWARF 5's, dwp packages. What does
 * not fit reads as absent and is counted as damage, never believed. Sources: DWARF 5 chapters 2 and
 * 7 (dwarfstd.org), DWARF 4 and 2 for what differs; GNU's split DWARF 4:
 * gcc.gnu.org/wiki/DebugFission and DebugFissionDWP; dwz's forms: DW_FORM_GNU_ref_alt 0x1f20,
 * DW_FORM_GNU_strp_alt 0x1f21. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_DWARF_DWARF_UNIT_H
#define SYMBOL_SERVER_SYMBOLIZE_DWARF_DWARF_UNIT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/hash_table.h"
#include "symbol-server/symbolize/dwarf/dwarf_file.h"

/* The attributes that names, lines and inlining need; all others are skipped. */
enum dwarf_slot {
	DWARF_NAME,
	DWARF_LINKAGE_NAME, /* also MIPS_linkage_name */
	DWARF_LOW_PC,
	DWARF_HIGH_PC,
	DWARF_RANGES_AT,
	DWARF_ORIGIN, /* abstract_origin */
	DWARF_SPECIFICATION,
	DWARF_CALL_FILE,
	DWARF_CALL_LINE,
	DWARF_SIBLING, /* of DIEs with children */
	/* of units only */
	DWARF_STMT_LIST,
	DWARF_COMP_DIR,
	DWARF_LANGUAGE,
	DWARF_STR_OFFSETS_BASE,
	DWARF_ADDR_BASE, /* also GNU_addr_base */
	DWARF_RNGLISTS_BASE,
	DWARF_GNU_RANGES_BASE,
	DWARF_DWO_NAME, /* also GNU_dwo_name */
	DWARF_GNU_DWO_ID,
	DWARF_SLOT_COUNT,
};

struct dwarf_value {
	uint16_t form; /* 0: the DIE has no such attribute */
	const uint8_t *at;
	int64_t constant; /* DW_FORM_implicit_const's */
};

struct dwarf_die {
	uint64_t offset; /* in its section */
	uint64_t next;   /* of what follows its attributes: first child or sibling */
	uint16_t tag;    /* 0: ends a run of siblings */
	bool has_children;
	uint32_t has; /* bits by enum dwarf_slot: only those values are set */
	struct dwarf_value values[DWARF_SLOT_COUNT];
};

struct dwarf_abbreviations;
struct dwarf_units;

struct dwarf_unit {
	struct dwarf_units *units; /* that it is one of */
	uint64_t offset, end, first_die;
	uint64_t abbreviations_at;
	struct dwarf_abbreviations *abbreviations; /* NULL until first used */
	uint64_t signature; /* of a type unit; of a skeleton or split unit the dwo id */
	uint8_t section;    /* DWARF_INFO or DWARF_TYPES */
	uint8_t version, type /* DW_UT_… ; DWARF 4's are told by section and attributes */,
		address_bytes, offset_bytes;
	bool is_open; /* its root has been read: what follows is known */

	uint16_t root_tag;
	uint16_t language;
	bool has_stmt_list;
	uint64_t stmt_list, low_pc;
	uint64_t str_offsets_base, addr_base, rnglists_base, gnu_ranges_base;
	const char *name, *comp_dir, *dwo_name; /* NULL: none */
	/* A split unit's addresses are its skeleton's; NULL: it is no split unit, or stands alone.
	 */
	struct dwarf_unit *skeleton;
	const uint64_t *part; /* by enum dwarf_section: where its part begins; dwp, otherwise 0 */
};

struct dwarf_units {
	struct dwarf_file *file;
	struct dwarf_units *alt; /* supplementary file's, or NULL; the caller's */
	uint32_t flags;          /* enum symbol_table_flags: what was damaged, missing, cut */
	struct dwarf_unit *rows; /* by section, then offset */
	uint32_t count;
	bool is_big_endian;
	uint32_t number; /* the caller's, to tell several files' DIEs apart */
	/* inside */
	uint32_t loaded; /* bits of sections */
	struct dwarf_bytes sections[DWARF_SECTION_COUNT];
	uint64_t *parts[2];                  /* of both indexes' rows */
	struct dwarf_abbreviations **tables; /* by place */
	uint32_t table_count, table_room;
	struct hash_table table_index, signatures;
	bool has_signatures;
};

enum {
	DWARF_UNITS_MAX = 4000000,
	DWARF_ABBREVIATIONS_MAX = 1000000, /* of one table */
	DWARF_ATTRIBUTES_MAX = 512,        /* of one abbreviation */
	DWARF_TEXT_MAX = 256 << 10,        /* longer ones count as absent */
};

static inline bool dwarf_is_address_size(unsigned bytes)
{
	return bytes == 2 || bytes == 4 || bytes == 8;
}

static inline struct dwarf_bytes dwarf_units_section(struct dwarf_units *units, unsigned section)
{
	if (!(units->loaded & 1u << section)) {
		units->loaded |= 1u << section;
		units->sections[section] =
			dwarf_file_section(units->file, (enum dwarf_section)section, &units->flags);
	}
	return units->sections[section];
}

/* Reads all unit headers. units may not move afterwards. False: memory. A damaged header ends its
 * section. */
bool dwarf_units_open(struct dwarf_units *units, struct dwarf_file *file, struct error *err);
void dwarf_units_close(struct dwarf_units *units); /* the file stays the caller's */
/* The memory of its sections goes back; nothing can be read of the units any more. */
void dwarf_units_drop(struct dwarf_units *units);

/* Reads the root's attributes into unit; once. False: it is damaged and to be passed over. */
bool dwarf_unit_open(struct dwarf_unit *unit);

/* The unit of that offset in .debug_info (or .debug_types), or NULL. */
struct dwarf_unit *dwarf_unit_at(struct dwarf_units *units, enum dwarf_section section,
				 uint64_t offset);
/* The split unit of that id; NULL: none. Reads all roots at the first call. */
struct dwarf_unit *dwarf_unit_of_signature(struct dwarf_units *units, uint64_t signature);

/* The DIE at that offset of the unit's section. False: there is none, or it is damaged. */
bool dwarf_die_read(struct dwarf_unit *unit, uint64_t offset, struct dwarf_die *die);

static inline bool dwarf_die_has(const struct dwarf_die *die, enum dwarf_slot slot)
{
	return die->has & 1u << slot;
}

/* ---- values ---- */

/* NULL: the form is none of a text, or its place is outside. Borrowed from the file. */
const char *dwarf_value_text(struct dwarf_unit *unit, const struct dwarf_value *value);
/* Constants, section offsets, flags. */
bool dwarf_value_number(const struct dwarf_unit *unit, const struct dwarf_value *value,
			uint64_t *number);
bool dwarf_value_address(const struct dwarf_unit *unit, const struct dwarf_value *value,
			 uint64_t *address);
/* Address number index of the unit's part of .debug_addr. */
bool dwarf_indexed_address(const struct dwarf_unit *unit, uint64_t index, uint64_t *address);
/* Where the DIE is that is meant. *of is its unit, opened; perhaps another, or one of units->alt.
 * False: there is none; where the supplementary file is missing flags say so. */
bool dwarf_value_reference(struct dwarf_unit *unit, const struct dwarf_value *value,
			   struct dwarf_unit **of, uint64_t *offset);

/* ---- code ---- */

/* The code of a DIE: low_pc and high_pc, or its ranges; dead ones (tombstones: 0, −1, −2 of the
 * address size) left out. add is called for each, in the file's order. Returns how many. */
unsigned dwarf_die_ranges(struct dwarf_unit *unit, const struct dwarf_die *die,
			  void (*add)(void *context, uint64_t low, uint64_t high), void *context);

#endif
