/* SPDX-License-Identifier: Apache-2.0 */
/* Abbreviation tables, made ready for skipping: what nobody asks for is one step wherever sizes
 * allow it. Most of the conversion's time is spent here. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_DWARF_DWARF_ABBREVIATION_H
#define SYMBOL_SERVER_SYMBOLIZE_DWARF_DWARF_ABBREVIATION_H

#include "symbol-server/symbolize/dwarf/dwarf_unit.h"

enum { DWARF_SIZE_VARIES = 255 };

/* One attribute, or several that nobody asks for whose sizes are known: then form is 0 and constant
 * their size. */
struct dwarf_step {
	uint16_t form;
	uint8_t slot; /* DWARF_SLOT_COUNT: not asked for */
	uint8_t size; /* of the value; DWARF_SIZE_VARIES */
	int32_t constant;
};

struct dwarf_abbreviation {
	uint64_t code; /* 0: a hole in the table */
	uint32_t first_step;
	uint16_t step_count;
	uint16_t tag;
	bool has_children;
};

struct dwarf_abbreviations {
	uint64_t offset; /* in .debug_abbrev */
	uint8_t address_bytes, offset_bytes;
	bool is_version_2;
	bool is_sorted; /* rows[i].code == i + 1 */
	struct dwarf_abbreviation *rows;
	uint32_t count, room;
	struct dwarf_step *steps;
	uint32_t step_count, step_room;
};

/* NULL: memory. A damaged table ends where it is damaged. */
struct dwarf_abbreviations *dwarf_abbreviations_read(const struct dwarf_unit *unit,
						     struct dwarf_bytes section);
void dwarf_abbreviations_free(struct dwarf_abbreviations *table);

const struct dwarf_abbreviation *dwarf_abbreviation_find(const struct dwarf_abbreviations *table,
							 uint64_t code);

/* Size of a value of that form, or DWARF_SIZE_VARIES; also for forms nobody knows. */
uint8_t dwarf_form_size(const struct dwarf_unit *unit, uint64_t form);
/* Steps over one value. */
void dwarf_form_skip(const struct dwarf_unit *unit, uint64_t form, struct dwarf_cursor *cursor);

#endif
