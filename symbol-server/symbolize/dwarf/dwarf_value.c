/* SPDX-License-Identifier: Apache-2.0 */
/* What the value of an attribute means, by its form: DWARF 5, 7.5.5 and 7.5.6. */
#include "symbol-server/symbolize/dwarf/dwarf_abbreviation.h"
#include "symbol-server/symbolize/dwarf/dwarf_constants.h"
#include "symbol-server/symbolize/dwarf/dwarf_unit.h"
#include "symbol-server/symbolize/symbol_table.h"

/* The value's bytes; an indirect form is resolved. */
static struct dwarf_cursor value_cursor(const struct dwarf_unit *unit,
					const struct dwarf_value *value, uint64_t *form)
{
	struct dwarf_bytes section = dwarf_units_section(unit->units, unit->section);
	struct dwarf_cursor cursor = {
		.at = value->at,
		.end = section.at + unit->end,
		.is_big_endian = unit->units->is_big_endian,
	};

	*form = value->form;
	if (*form == DW_FORM_indirect)
		*form = dwarf_uleb(&cursor);
	return cursor;
}

/* ---- texts ---- */

/* Any number of values may point into one text without an end, which is not searched each time. */
static const char *text_at(struct dwarf_units *units, enum dwarf_section number, uint64_t offset)
{
	struct dwarf_bytes section = dwarf_units_section(units, number);
	struct dwarf_cursor cursor = dwarf_cursor_at(section, offset, false);
	const char *text;

	if (dwarf_left(&cursor) > DWARF_TEXT_MAX)
		cursor.end = cursor.at + DWARF_TEXT_MAX;
	text = dwarf_text(&cursor);

	return cursor.failed ? NULL : text;
}

static const char *indexed_text(struct dwarf_unit *unit, uint64_t index)
{
	struct dwarf_units *units = unit->units;
	struct dwarf_bytes section = dwarf_units_section(units, DWARF_STR_OFFSETS);
	struct dwarf_cursor cursor;
	uint64_t offset;

	if (index > section.length)
		return NULL;
	cursor = dwarf_cursor_at(section, unit->str_offsets_base + index * unit->offset_bytes,
				 units->is_big_endian);
	offset = dwarf_number(&cursor, unit->offset_bytes);
	return cursor.failed ? NULL : text_at(units, DWARF_STR, offset);
}

static const char *alt_text(struct dwarf_unit *unit, uint64_t offset)
{
	if (unit->units->alt)
		return text_at(unit->units->alt, DWARF_STR, offset);
	unit->units->flags |= SYMBOL_TABLE_ALT_MISSING;
	return NULL;
}

const char *dwarf_value_text(struct dwarf_unit *unit, const struct dwarf_value *value)
{
	uint64_t form;
	struct dwarf_cursor cursor = value_cursor(unit, value, &form);
	const char *text;

	switch (form) {
	case DW_FORM_string:
		text = dwarf_text(&cursor);
		return cursor.failed ? NULL : text;
	case DW_FORM_strp:
		return text_at(unit->units, DWARF_STR, dwarf_number(&cursor, unit->offset_bytes));
	case DW_FORM_line_strp:
		return text_at(unit->units, DWARF_LINE_STR,
			       dwarf_number(&cursor, unit->offset_bytes));
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_strp_alt:
		return alt_text(unit, dwarf_number(&cursor, unit->offset_bytes));
	case DW_FORM_strx:
	case DW_FORM_GNU_str_index:
		return indexed_text(unit, dwarf_uleb(&cursor));
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
		return indexed_text(unit,
				    dwarf_number(&cursor, (unsigned)(form - DW_FORM_strx1) + 1));
	case DW_FORM_strx4:
		return indexed_text(unit, dwarf_number(&cursor, 4));
	default:
		return NULL;
	}
}

/* ---- numbers ---- */

bool dwarf_value_number(const struct dwarf_unit *unit, const struct dwarf_value *value,
			uint64_t *number)
{
	uint64_t form, read;
	struct dwarf_cursor cursor = value_cursor(unit, value, &form);

	switch (form) {
	case DW_FORM_implicit_const:
		read = (uint64_t)value->constant;
		break;
	case DW_FORM_flag_present:
		read = 1;
		break;
	case DW_FORM_udata:
	case DW_FORM_rnglistx:
	case DW_FORM_loclistx:
		read = dwarf_uleb(&cursor);
		break;
	case DW_FORM_sdata:
		read = (uint64_t)dwarf_sleb(&cursor);
		break;
	case DW_FORM_data1:
	case DW_FORM_data2:
	case DW_FORM_data4:
	case DW_FORM_data8:
	case DW_FORM_flag:
	case DW_FORM_sec_offset:
		read = dwarf_number(&cursor, dwarf_form_size(unit, form));
		break;
	default:
		return false;
	}
	if (cursor.failed)
		return false;
	*number = read;
	return true;
}

/* ---- addresses ---- */

/* .debug_addr is in the file that is not split. */
bool dwarf_indexed_address(const struct dwarf_unit *unit, uint64_t index, uint64_t *address)
{
	const struct dwarf_unit *of = unit->skeleton ? unit->skeleton : unit;
	struct dwarf_bytes section = dwarf_units_section(of->units, DWARF_ADDR);
	struct dwarf_cursor cursor;

	if (index > section.length)
		return false;
	cursor = dwarf_cursor_at(section, of->addr_base + index * unit->address_bytes,
				 of->units->is_big_endian);
	*address = dwarf_number(&cursor, unit->address_bytes);
	return !cursor.failed;
}

bool dwarf_value_address(const struct dwarf_unit *unit, const struct dwarf_value *value,
			 uint64_t *address)
{
	uint64_t form;
	struct dwarf_cursor cursor = value_cursor(unit, value, &form);

	switch (form) {
	case DW_FORM_addr:
		*address = dwarf_number(&cursor, unit->address_bytes);
		return !cursor.failed;
	case DW_FORM_addrx:
	case DW_FORM_GNU_addr_index:
		return dwarf_indexed_address(unit, dwarf_uleb(&cursor), address);
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
		return dwarf_indexed_address(
			unit, dwarf_number(&cursor, (unsigned)(form - DW_FORM_addrx1) + 1),
			address);
	default:
		return false;
	}
}

/* ---- references ---- */

static bool place_at(struct dwarf_units *units, uint64_t offset, struct dwarf_unit **of)
{
	*of = dwarf_unit_at(units, DWARF_INFO, offset);
	if (*of && offset >= (*of)->first_die && dwarf_unit_open(*of))
		return true;
	units->flags |= SYMBOL_TABLE_DAMAGED;
	return false;
}

static bool place_in_alt(struct dwarf_unit *unit, uint64_t offset, struct dwarf_unit **of)
{
	if (unit->units->alt)
		return place_at(unit->units->alt, offset, of);
	unit->units->flags |= SYMBOL_TABLE_ALT_MISSING;
	return false;
}

static bool place_in_unit(struct dwarf_unit *unit, uint64_t *offset, struct dwarf_unit **of)
{
	*of = unit;
	if (*offset < unit->end - unit->offset) {
		*offset += unit->offset;
		return true;
	}
	unit->units->flags |= SYMBOL_TABLE_DAMAGED;
	return false;
}

bool dwarf_value_reference(struct dwarf_unit *unit, const struct dwarf_value *value,
			   struct dwarf_unit **of, uint64_t *offset)
{
	uint64_t form;
	struct dwarf_cursor cursor = value_cursor(unit, value, &form);

	if (form == DW_FORM_ref_udata)
		*offset = dwarf_uleb(&cursor);
	else if (dwarf_form_size(unit, form) <= 8)
		*offset = dwarf_number(&cursor, dwarf_form_size(unit, form));
	else
		return false;
	if (cursor.failed)
		return false;
	switch (form) {
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
		return place_in_unit(unit, offset, of);
	case DW_FORM_ref_addr:
		return place_at(unit->units, *offset, of);
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8:
		return place_in_alt(unit, *offset, of);
	default: /* a type unit's signature names no function */
		return false;
	}
}
