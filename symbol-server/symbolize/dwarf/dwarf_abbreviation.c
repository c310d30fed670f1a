/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/dwarf/dwarf_abbreviation.h"

#include <stdlib.h>

#include "common/array.h"
#include "symbol-server/symbolize/dwarf/dwarf_constants.h"
#include "symbol-server/symbolize/symbol_table.h"

/* ---- forms ---- */

uint8_t dwarf_form_size(const struct dwarf_unit *unit, uint64_t form)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		return 0;
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		return 2;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_ref_sup4:
		return 4;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		return 8;
	case DW_FORM_data16:
		return 16;
	case DW_FORM_addr:
		return unit->address_bytes;
	case DW_FORM_ref_addr:
		return unit->version <= 2 ? unit->address_bytes : unit->offset_bytes;
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		return unit->offset_bytes;
	default:
		return DWARF_SIZE_VARIES;
	}
}

static void skip_leb(struct dwarf_cursor *cursor)
{
	while (cursor->at < cursor->end)
		if (!(*cursor->at++ & 0x80))
			return;
	dwarf_fail(cursor);
}

void dwarf_form_skip(const struct dwarf_unit *unit, uint64_t form, struct dwarf_cursor *cursor)
{
	uint8_t size = dwarf_form_size(unit, form);

	if (size != DWARF_SIZE_VARIES) {
		dwarf_skip(cursor, size);
		return;
	}
	switch (form) {
	case DW_FORM_string:
		dwarf_text(cursor);
		break;
	case DW_FORM_block1:
		dwarf_skip(cursor, dwarf_u8(cursor));
		break;
	case DW_FORM_block2:
		dwarf_skip(cursor, dwarf_number(cursor, 2));
		break;
	case DW_FORM_block4:
		dwarf_skip(cursor, dwarf_number(cursor, 4));
		break;
	case DW_FORM_block:
	case DW_FORM_exprloc:
		dwarf_skip(cursor, dwarf_uleb(cursor));
		break;
	case DW_FORM_sdata:
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		skip_leb(cursor);
		break;
	case DW_FORM_indirect: /* the form is in front of the value; not another indirect one */
		form = dwarf_uleb(cursor);
		if (form == DW_FORM_indirect)
			dwarf_fail(cursor);
		else
			dwarf_form_skip(unit, form, cursor);
		break;
	default:
		dwarf_fail(cursor);
	}
}

/* ---- tables ---- */

static uint8_t slot_of(uint64_t attribute)
{
	switch (attribute) {
	case DW_AT_name:
		return DWARF_NAME;
	case DW_AT_linkage_name:
	case DW_AT_MIPS_linkage_name:
		return DWARF_LINKAGE_NAME;
	case DW_AT_low_pc:
		return DWARF_LOW_PC;
	case DW_AT_high_pc:
		return DWARF_HIGH_PC;
	case DW_AT_ranges:
		return DWARF_RANGES_AT;
	case DW_AT_abstract_origin:
		return DWARF_ORIGIN;
	case DW_AT_specification:
		return DWARF_SPECIFICATION;
	case DW_AT_call_file:
		return DWARF_CALL_FILE;
	case DW_AT_call_line:
		return DWARF_CALL_LINE;
	default:
		return DWARF_SLOT_COUNT;
	}
}

static uint8_t unit_slot_of(uint64_t attribute)
{
	switch (attribute) {
	case DW_AT_stmt_list:
		return DWARF_STMT_LIST;
	case DW_AT_comp_dir:
		return DWARF_COMP_DIR;
	case DW_AT_language:
		return DWARF_LANGUAGE;
	case DW_AT_str_offsets_base:
		return DWARF_STR_OFFSETS_BASE;
	case DW_AT_addr_base:
	case DW_AT_GNU_addr_base:
		return DWARF_ADDR_BASE;
	case DW_AT_rnglists_base:
		return DWARF_RNGLISTS_BASE;
	case DW_AT_GNU_ranges_base:
		return DWARF_GNU_RANGES_BASE;
	case DW_AT_dwo_name:
	case DW_AT_GNU_dwo_name:
		return DWARF_DWO_NAME;
	case DW_AT_GNU_dwo_id:
		return DWARF_GNU_DWO_ID;
	default:
		return slot_of(attribute);
	}
}

static bool is_unit(uint64_t tag)
{
	return tag == DW_TAG_compile_unit || tag == DW_TAG_partial_unit ||
	       tag == DW_TAG_skeleton_unit || tag == DW_TAG_type_unit;
}

/* Of variables, members, parameters and types nothing is asked for but scopes' names. */
static bool is_wanted(uint64_t tag)
{
	return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine ||
	       dwarf_tag_is_scope(tag) || is_unit(tag);
}

/* A value that is not asked for joins the one before that is not either. */
static bool add_step(struct dwarf_abbreviations *table, struct dwarf_abbreviation *row,
		     const struct dwarf_step *step)
{
	struct dwarf_step *last = row->step_count ? &table->steps[table->step_count - 1] : NULL;
	struct dwarf_step *added;
	bool is_skip = step->slot == DWARF_SLOT_COUNT && step->size != DWARF_SIZE_VARIES;

	if (is_skip && last && !last->form) {
		last->constant += step->size;
		return true;
	}
	if (!ARRAY_GROW(table->steps, table->step_count, table->step_room))
		return false;
	added = &table->steps[table->step_count++];
	*added = *step;
	if (is_skip)
		*added = (struct dwarf_step){.slot = DWARF_SLOT_COUNT, .constant = step->size};
	row->step_count++;
	return true;
}

/* The attributes of one row. False: memory, or (cursor failed) damage. */
static bool read_attributes(struct dwarf_abbreviations *table, struct dwarf_abbreviation *row,
			    const struct dwarf_unit *unit, struct dwarf_cursor *cursor)
{
	bool wanted = is_wanted(row->tag);

	for (unsigned i = 0; i < DWARF_ATTRIBUTES_MAX; i++) {
		uint64_t attribute = dwarf_uleb(cursor), form = dwarf_uleb(cursor);
		struct dwarf_step step = {.slot = DWARF_SLOT_COUNT};
		int64_t constant = form == DW_FORM_implicit_const ? dwarf_sleb(cursor) : 0;

		if (cursor->failed || (!attribute && !form))
			return !cursor->failed;
		if (!form || form > UINT16_MAX)
			break;
		step.form = (uint16_t)form;
		step.size = dwarf_form_size(unit, form);
		if (wanted)
			step.slot = is_unit(row->tag) ? unit_slot_of(attribute)
						      : slot_of(attribute);
		else if (attribute == DW_AT_sibling && row->has_children)
			step.slot = DWARF_SIBLING;
		/* Lines and file numbers fit; what does not is none of ours. */
		step.constant = constant < 0 || constant > INT32_MAX ? 0 : (int32_t)constant;
		if (!add_step(table, row, &step))
			return false;
	}
	dwarf_fail(cursor);
	return false;
}

static int compare_codes(const void *left, const void *right)
{
	const struct dwarf_abbreviation *a = left, *b = right;

	return a->code < b->code ? -1 : a->code > b->code;
}

static void sort_rows(struct dwarf_abbreviations *table)
{
	if (table->count)
		qsort(table->rows, table->count, sizeof(*table->rows), compare_codes);
	table->is_sorted = !table->count || table->rows[table->count - 1].code == table->count;
	for (uint32_t i = 0; table->is_sorted && i < table->count; i++)
		table->is_sorted = table->rows[i].code == i + 1;
}

struct dwarf_abbreviations *dwarf_abbreviations_read(const struct dwarf_unit *unit,
						     struct dwarf_bytes section)
{
	struct dwarf_abbreviations *table = calloc(1, sizeof(*table));
	struct dwarf_cursor cursor = dwarf_cursor_at(section, unit->abbreviations_at,
						     unit->units->is_big_endian);

	if (!table)
		return NULL;
	table->offset = unit->abbreviations_at;
	table->address_bytes = unit->address_bytes;
	table->offset_bytes = unit->offset_bytes;
	table->is_version_2 = unit->version <= 2;
	while (!cursor.failed && table->count < DWARF_ABBREVIATIONS_MAX) {
		uint64_t code = dwarf_uleb(&cursor), tag;
		struct dwarf_abbreviation *row;
		bool has_children;

		if (!code || cursor.failed)
			break;
		tag = dwarf_uleb(&cursor);
		has_children = dwarf_u8(&cursor) != 0;
		if (!ARRAY_GROW(table->rows, table->count, table->room))
			goto no_memory;
		row = &table->rows[table->count++];
		*row = (struct dwarf_abbreviation){.code = code,
						   .tag = tag > UINT16_MAX ? 0xffff : (uint16_t)tag,
						   .first_step = table->step_count,
						   .has_children = has_children};
		if (read_attributes(table, row, unit, &cursor))
			continue;
		if (!cursor.failed)
			goto no_memory;
		table->count--;
	}
	if (cursor.failed)
		unit->units->flags |= SYMBOL_TABLE_DAMAGED;
	sort_rows(table);
	return table;
no_memory:
	dwarf_abbreviations_free(table);
	return NULL;
}

void dwarf_abbreviations_free(struct dwarf_abbreviations *table)
{
	if (!table)
		return;
	free(table->rows);
	free(table->steps);
	free(table);
}

const struct dwarf_abbreviation *dwarf_abbreviation_find(const struct dwarf_abbreviations *table,
							 uint64_t code)
{
	uint32_t low = 0, high = table->count;

	if (table->is_sorted)
		return code - 1 < table->count ? &table->rows[code - 1] : NULL;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (table->rows[middle].code == code)
			return &table->rows[middle];
		if (table->rows[middle].code < code)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}
