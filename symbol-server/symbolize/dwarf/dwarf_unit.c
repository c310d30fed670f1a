/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/dwarf/dwarf_unit.h"

#include <stdlib.h>

#include "common/array.h"
#include "symbol-server/symbolize/dwarf/dwarf_abbreviation.h"
#include "symbol-server/symbolize/dwarf/dwarf_constants.h"
#include "symbol-server/symbolize/symbol_table.h"

static const uint64_t no_parts[DWARF_SECTION_COUNT];

/* ---- headers ---- */

/* DWARF 5, 7.5.1; version 2 to 4: 7.5.1.1 of theirs. */
static void read_header_fields(struct dwarf_unit *unit, struct dwarf_cursor *cursor)
{
	if (unit->version >= 5) {
		unit->type = dwarf_u8(cursor);
		unit->address_bytes = dwarf_u8(cursor);
		unit->abbreviations_at = dwarf_number(cursor, unit->offset_bytes);
		if (unit->type == DW_UT_skeleton || unit->type == DW_UT_split_compile)
			unit->signature = dwarf_number(cursor, 8);
	} else {
		unit->type = unit->section == DWARF_TYPES ? DW_UT_type : DW_UT_compile;
		unit->abbreviations_at = dwarf_number(cursor, unit->offset_bytes);
		unit->address_bytes = dwarf_u8(cursor);
	}
	if (unit->type == DW_UT_type || unit->type == DW_UT_split_type) {
		unit->signature = dwarf_number(cursor, 8);
		dwarf_number(cursor, unit->offset_bytes); /* of the type inside */
	}
}

static bool is_possible(const struct dwarf_unit *unit)
{
	return unit->version >= 2 && unit->version <= 5 &&
	       dwarf_is_address_size(unit->address_bytes);
}

static bool read_header(struct dwarf_unit *unit, struct dwarf_bytes section, uint64_t *next)
{
	struct dwarf_cursor cursor = dwarf_cursor_at(section, unit->offset,
						     unit->units->is_big_endian);
	uint64_t length, version;

	unit->offset_bytes = (uint8_t)dwarf_initial_length(&cursor, &length);
	if (cursor.failed || length > dwarf_left(&cursor) || !length)
		return false;
	cursor.end = cursor.at + length;
	*next = unit->end = (uint64_t)(cursor.end - section.at);
	version = dwarf_number(&cursor, 2);
	unit->version = version <= 5 ? (uint8_t)version : 0;
	read_header_fields(unit, &cursor);
	unit->first_die = (uint64_t)(cursor.at - section.at);
	if (cursor.failed || !is_possible(unit))
		unit->version = 0; /* passed over; the next one may be good */
	return true;
}

static bool read_headers(struct dwarf_units *units, unsigned number, uint32_t *room,
			 struct error *err)
{
	struct dwarf_bytes section = dwarf_units_section(units, number);
	uint64_t at = 0;

	while (section.at && at < section.length) {
		struct dwarf_unit *unit;

		if (units->count == DWARF_UNITS_MAX) {
			units->flags |= SYMBOL_TABLE_CUT;
			return true;
		}
		unit = ARRAY_GROW(units->rows, units->count, *room) ? &units->rows[units->count++]
								    : NULL;
		if (!unit)
			return error_set(err, ERROR_MEMORY, "no memory for its units");
		*unit = (struct dwarf_unit){
			.units = units, .offset = at, .section = (uint8_t)number, .part = no_parts};
		if (!read_header(unit, section, &at)) {
			units->count--;
			units->flags |= SYMBOL_TABLE_DAMAGED;
			return true;
		}
		if (!unit->version) {
			units->count--;
			units->flags |= SYMBOL_TABLE_DAMAGED;
		}
	}
	return true;
}

/* ---- packages ---- */

/* Columns of an index: DWARF 5, 7.3.5.3; version 2 is GNU's. */
static int section_of_column(unsigned version, uint64_t id)
{
	switch (id) {
	case 1:
		return DWARF_INFO;
	case 2:
		return version == 2 ? DWARF_TYPES : -1;
	case 3:
		return DWARF_ABBREV;
	case 4:
		return DWARF_LINE;
	case 6:
		return DWARF_STR_OFFSETS;
	case 8:
		return version == 5 ? DWARF_RNGLISTS : -1;
	default:
		return -1;
	}
}

struct index_view {
	struct dwarf_bytes bytes;
	bool is_big_endian;
	unsigned version;
	uint64_t columns, rows, slots;
	uint64_t columns_at, offsets_at;
};

static uint64_t word_at(const struct index_view *view, uint64_t offset)
{
	struct dwarf_cursor cursor = dwarf_cursor_at(view->bytes, offset, view->is_big_endian);

	return dwarf_number(&cursor, 4);
}

static bool index_open(struct index_view *view)
{
	struct dwarf_cursor cursor = dwarf_cursor_at(view->bytes, 0, view->is_big_endian);
	uint64_t first = dwarf_number(&cursor, 4);

	/* Version 5 has 2 bytes of version and 2 of padding. */
	view->version = view->is_big_endian && first >> 16 == 5 ? 5 : (unsigned)(first & 0xffff);
	view->columns = dwarf_number(&cursor, 4);
	view->rows = dwarf_number(&cursor, 4);
	view->slots = dwarf_number(&cursor, 4);
	if (cursor.failed || (view->version != 2 && view->version != 5) || view->columns > 16 ||
	    view->slots > view->bytes.length / 12 || view->rows > view->slots)
		return false;
	view->columns_at = 16 + view->slots * 12;
	view->offsets_at = view->columns_at + view->columns * 4;
	return view->offsets_at + view->rows * view->columns * 4 <= view->bytes.length;
}

/* Where the unit's parts of the sections are, by the row whose part of its own section holds it. */
static void index_apply(struct dwarf_units *units, const struct index_view *view, uint64_t row,
			enum dwarf_section own, uint64_t *part)
{
	struct dwarf_unit *unit = NULL;

	for (uint64_t i = 0; i < view->columns; i++)
		if (section_of_column(view->version, word_at(view, view->columns_at + i * 4)) ==
		    (int)own) {
			uint64_t at = (row * view->columns + i) * 4;

			unit = dwarf_unit_at(units, own, word_at(view, view->offsets_at + at));
		}
	for (uint64_t i = 0; unit && i < view->columns; i++) {
		uint64_t at = (row * view->columns + i) * 4;
		int section = section_of_column(view->version,
						word_at(view, view->columns_at + i * 4));

		if (section < 0 || section == (int)own)
			continue;
		part[section] = word_at(view, view->offsets_at + at);
	}
	if (!unit || unit->part != no_parts)
		return;
	unit->part = part;
	unit->abbreviations_at += part[DWARF_ABBREV];
}

/* False: memory. */
static bool read_index(struct dwarf_units *units, enum dwarf_section index)
{
	struct index_view view = {.bytes = dwarf_units_section(units, index),
				  .is_big_endian = units->is_big_endian};
	enum dwarf_section own = DWARF_INFO;
	uint64_t *parts;

	if (!view.bytes.at)
		return true;
	if (!index_open(&view)) {
		units->flags |= SYMBOL_TABLE_DAMAGED;
		return true;
	}
	parts = calloc(view.rows + 1, sizeof(*parts) * DWARF_SECTION_COUNT);
	if (!parts)
		return false;
	units->parts[index == DWARF_TU_INDEX] = parts;
	if (index == DWARF_TU_INDEX && view.version == 2)
		own = DWARF_TYPES;
	for (uint64_t row = 0; row < view.rows; row++)
		index_apply(units, &view, row, own, parts + row * DWARF_SECTION_COUNT);
	return true;
}

bool dwarf_units_open(struct dwarf_units *units, struct dwarf_file *file, struct error *err)
{
	uint32_t room = 0;

	*units = (struct dwarf_units){.file = file,
				      .is_big_endian = dwarf_file_is_big_endian(file)};
	hash_table_init(&units->table_index, DWARF_UNITS_MAX);
	hash_table_init(&units->signatures, DWARF_UNITS_MAX);
	if (!read_headers(units, DWARF_INFO, &room, err) ||
	    !read_headers(units, DWARF_TYPES, &room, err)) {
		dwarf_units_close(units);
		return false;
	}
	if (!read_index(units, DWARF_CU_INDEX) || !read_index(units, DWARF_TU_INDEX)) {
		dwarf_units_close(units);
		return error_set(err, ERROR_MEMORY, "no memory for its index of units");
	}
	return true;
}

void dwarf_units_close(struct dwarf_units *units)
{
	for (uint32_t i = 0; i < units->table_count; i++)
		dwarf_abbreviations_free(units->tables[i]);
	hash_table_release(&units->table_index);
	hash_table_release(&units->signatures);
	free(units->parts[0]);
	free(units->parts[1]);
	free(units->tables);
	free(units->rows);
	*units = (struct dwarf_units){0};
}

void dwarf_units_drop(struct dwarf_units *units)
{
	for (unsigned i = 0; i < DWARF_SECTION_COUNT; i++) {
		dwarf_file_drop(units->file, (enum dwarf_section)i);
		units->sections[i] = (struct dwarf_bytes){0};
	}
	units->loaded = UINT32_MAX;
}

struct dwarf_unit *dwarf_unit_at(struct dwarf_units *units, enum dwarf_section section,
				 uint64_t offset)
{
	uint32_t low = 0, high = units->count;

	while (low < high) { /* the first that begins behind */
		uint32_t middle = low + (high - low) / 2;
		const struct dwarf_unit *unit = &units->rows[middle];

		if (unit->section < (unsigned)section ||
		    (unit->section == (unsigned)section && unit->offset <= offset))
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || units->rows[low - 1].section != (unsigned)section ||
	    offset >= units->rows[low - 1].end)
		return NULL;
	return &units->rows[low - 1];
}

static void index_signatures(struct dwarf_units *units)
{
	units->has_signatures = true;
	for (uint32_t i = 0; i < units->count; i++) {
		struct dwarf_unit *unit = &units->rows[i];

		if (unit->type != DW_UT_type && unit->type != DW_UT_split_type &&
		    dwarf_unit_open(unit))
			hash_table_add(&units->signatures, hash_word(0, unit->signature), i);
	}
}

struct dwarf_unit *dwarf_unit_of_signature(struct dwarf_units *units, uint64_t signature)
{
	uint64_t hash = hash_word(0, signature);

	if (!units->has_signatures)
		index_signatures(units);
	HASH_TABLE_EACH(i, &units->signatures, hash)
		if (units->rows[i].signature == signature)
			return &units->rows[i];
	return NULL;
}

/* ---- abbreviations ---- */

static bool is_for(const struct dwarf_abbreviations *table, const struct dwarf_unit *unit)
{
	return table->offset == unit->abbreviations_at &&
	       table->address_bytes == unit->address_bytes &&
	       table->offset_bytes == unit->offset_bytes &&
	       table->is_version_2 == (unit->version <= 2);
}

static struct dwarf_abbreviations *add_table(struct dwarf_unit *unit, uint64_t hash)
{
	struct dwarf_units *units = unit->units;
	struct dwarf_abbreviations *table;

	if (!ARRAY_GROW(units->tables, units->table_count, units->table_room))
		return NULL;
	table = dwarf_abbreviations_read(unit, dwarf_units_section(units, DWARF_ABBREV));
	if (!table || !hash_table_add(&units->table_index, hash, units->table_count)) {
		dwarf_abbreviations_free(table);
		return NULL;
	}
	units->tables[units->table_count++] = table;
	return table;
}

/* Units may share one; each is read once. */
static struct dwarf_abbreviations *table_for(struct dwarf_unit *unit)
{
	struct dwarf_units *units = unit->units;
	uint64_t hash = hash_word(0, unit->abbreviations_at);

	HASH_TABLE_EACH(i, &units->table_index, hash)
		if (is_for(units->tables[i], unit))
			return units->tables[i];
	return add_table(unit, hash);
}

/* ---- DIEs ---- */

static void read_values(const struct dwarf_unit *unit, const struct dwarf_abbreviation *row,
			struct dwarf_cursor *cursor, struct dwarf_die *die)
{
	const struct dwarf_step *step;

	if (!row->step_count)
		return;
	step = &unit->abbreviations->steps[row->first_step];
	for (unsigned i = 0; i < row->step_count; i++, step++) {
		if (step->slot != DWARF_SLOT_COUNT && !(die->has & 1u << step->slot)) {
			die->has |= 1u << step->slot;
			die->values[step->slot] = (struct dwarf_value){
				.form = step->form, .at = cursor->at, .constant = step->constant};
		}
		if (!step->form)
			dwarf_skip(cursor, (uint64_t)step->constant);
		else if (step->size != DWARF_SIZE_VARIES)
			dwarf_skip(cursor, step->size);
		else
			dwarf_form_skip(unit, step->form, cursor);
	}
}

bool dwarf_die_read(struct dwarf_unit *unit, uint64_t offset, struct dwarf_die *die)
{
	struct dwarf_bytes section = dwarf_units_section(unit->units, unit->section);
	struct dwarf_cursor cursor;
	const struct dwarf_abbreviation *row;
	uint64_t code;

	if (!section.at || offset < unit->first_die || offset >= unit->end)
		return false;
	if (!unit->abbreviations && !(unit->abbreviations = table_for(unit)))
		goto damaged;
	cursor = (struct dwarf_cursor){.at = section.at + offset,
				       .end = section.at + unit->end,
				       .is_big_endian = unit->units->is_big_endian};
	die->offset = offset;
	die->has = 0;
	die->tag = 0;
	die->has_children = false;
	code = dwarf_uleb(&cursor);
	if (code) {
		row = dwarf_abbreviation_find(unit->abbreviations, code);
		if (!row)
			goto damaged;
		die->tag = row->tag;
		die->has_children = row->has_children;
		read_values(unit, row, &cursor, die);
	}
	if (cursor.failed)
		goto damaged;
	die->next = (uint64_t)(cursor.at - section.at);
	return true;
damaged:
	unit->units->flags |= SYMBOL_TABLE_DAMAGED;
	return false;
}

/* ---- roots ---- */

static uint64_t number_of(const struct dwarf_unit *unit, const struct dwarf_die *die,
			  enum dwarf_slot slot, uint64_t otherwise)
{
	uint64_t number = otherwise;

	if (dwarf_die_has(die, slot))
		dwarf_value_number(unit, &die->values[slot], &number);
	return number;
}

static const char *text_of(struct dwarf_unit *unit, const struct dwarf_die *die,
			   enum dwarf_slot slot)
{
	return dwarf_die_has(die, slot) ? dwarf_value_text(unit, &die->values[slot]) : NULL;
}

/* Behind the header of a table of the unit's version: what a split unit's base is without saying so
 * (DWARF 5, 7.26 to 7.28). */
static uint64_t default_base(const struct dwarf_unit *unit, enum dwarf_section section)
{
	if (unit->version < 5)
		return 0;
	if (section == DWARF_RNGLISTS)
		return unit->offset_bytes == 8 ? 20 : 12;
	return unit->offset_bytes == 8 ? 16 : 8;
}

static void read_bases(struct dwarf_unit *unit, const struct dwarf_die *root)
{
	unit->str_offsets_base = number_of(unit, root, DWARF_STR_OFFSETS_BASE,
					   default_base(unit, DWARF_STR_OFFSETS)) +
				 unit->part[DWARF_STR_OFFSETS];
	unit->addr_base = number_of(unit, root, DWARF_ADDR_BASE, default_base(unit, DWARF_ADDR));
	unit->rnglists_base = number_of(unit, root, DWARF_RNGLISTS_BASE,
					default_base(unit, DWARF_RNGLISTS)) +
			      unit->part[DWARF_RNGLISTS];
	unit->gnu_ranges_base = number_of(unit, root, DWARF_GNU_RANGES_BASE, 0);
}

bool dwarf_unit_open(struct dwarf_unit *unit)
{
	struct dwarf_die root;

	if (unit->is_open)
		return unit->root_tag != 0;
	unit->is_open = true;
	if (!dwarf_die_read(unit, unit->first_die, &root) || !root.tag)
		return false;
	read_bases(unit, &root);
	unit->root_tag = root.tag;
	unit->language = (uint16_t)number_of(unit, &root, DWARF_LANGUAGE, 0);
	unit->has_stmt_list = dwarf_die_has(&root, DWARF_STMT_LIST);
	unit->stmt_list = number_of(unit, &root, DWARF_STMT_LIST, 0) + unit->part[DWARF_LINE];
	unit->name = text_of(unit, &root, DWARF_NAME);
	unit->comp_dir = text_of(unit, &root, DWARF_COMP_DIR);
	unit->dwo_name = text_of(unit, &root, DWARF_DWO_NAME);
	if (dwarf_die_has(&root, DWARF_GNU_DWO_ID)) /* version 5 has it in the header */
		unit->signature = number_of(unit, &root, DWARF_GNU_DWO_ID, 0);
	if (!dwarf_die_has(&root, DWARF_LOW_PC) ||
	    !dwarf_value_address(unit, &root.values[DWARF_LOW_PC], &unit->low_pc))
		unit->low_pc = 0;
	return true;
}
