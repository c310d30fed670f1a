/* SPDX-License-Identifier: Apache-2.0 */
/* Where a DIE's code is: DWARF 5, 2.17 and 7.25 (.debug_rnglists); version 2 to 4: 2.17.3 of theirs
 * (.debug_ranges). */
#include "symbol-server/symbolize/dwarf/dwarf_constants.h"
#include "symbol-server/symbolize/dwarf/dwarf_unit.h"
#include "symbol-server/symbolize/symbol_table.h"

enum { RANGES_MAX = 1000000 }; /* of one DIE */

struct collect {
	struct dwarf_unit *unit;
	uint64_t base;
	void (*add)(void *context, uint64_t low, uint64_t high);
	void *context;
	unsigned count;
};

static uint64_t highest(const struct dwarf_unit *unit)
{
	return unit->address_bytes == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * unit->address_bytes) - 1;
}

/* What a linker has thrown away is at 0, −1 or −2. */
static void collect_range(struct collect *to, uint64_t low, uint64_t high)
{
	if (!low || low >= highest(to->unit) - 1 || high <= low)
		return;
	to->add(to->context, low, high);
	to->count++;
}

static uint64_t indexed(struct collect *to, struct dwarf_cursor *cursor)
{
	uint64_t address = 0;

	if (!dwarf_indexed_address(to->unit, dwarf_uleb(cursor), &address))
		dwarf_fail(cursor);
	return address;
}

/* One entry; false at the end of the list. A base that is a tombstone makes its pairs dead. */
static bool list_entry(struct collect *to, struct dwarf_cursor *cursor)
{
	unsigned size = to->unit->address_bytes;
	uint64_t low, high;

	switch (dwarf_u8(cursor)) {
	case DW_RLE_end_of_list:
		return false;
	case DW_RLE_base_addressx:
		to->base = indexed(to, cursor);
		return true;
	case DW_RLE_base_address:
		to->base = dwarf_number(cursor, size);
		return true;
	case DW_RLE_startx_endx:
		low = indexed(to, cursor);
		high = indexed(to, cursor);
		break;
	case DW_RLE_startx_length:
		low = indexed(to, cursor);
		high = low + dwarf_uleb(cursor);
		break;
	case DW_RLE_offset_pair:
		low = to->base + dwarf_uleb(cursor);
		high = to->base + dwarf_uleb(cursor);
		if (to->base >= highest(to->unit) - 1)
			return true;
		break;
	case DW_RLE_start_end:
		low = dwarf_number(cursor, size);
		high = dwarf_number(cursor, size);
		break;
	case DW_RLE_start_length:
		low = dwarf_number(cursor, size);
		high = low + dwarf_uleb(cursor);
		break;
	default:
		dwarf_fail(cursor);
		return false;
	}
	if (!cursor->failed)
		collect_range(to, low, high);
	return true;
}

static void read_rnglist(struct collect *to, uint64_t offset)
{
	struct dwarf_units *units = to->unit->units;
	struct dwarf_cursor cursor = dwarf_cursor_at(dwarf_units_section(units, DWARF_RNGLISTS),
						     offset, units->is_big_endian);

	for (unsigned i = 0; i < RANGES_MAX && !cursor.failed && list_entry(to, &cursor);)
		i++;
	if (cursor.failed)
		units->flags |= SYMBOL_TABLE_DAMAGED;
}

/* GNU's split units have their ranges in the file that is not split. */
static void read_ranges(struct collect *to, uint64_t offset)
{
	struct dwarf_units *units = to->unit->skeleton ? to->unit->skeleton->units
						       : to->unit->units;
	unsigned size = to->unit->address_bytes;
	struct dwarf_cursor cursor = dwarf_cursor_at(dwarf_units_section(units, DWARF_RANGES),
						     offset, units->is_big_endian);

	for (unsigned i = 0; i < RANGES_MAX && !cursor.failed; i++) {
		uint64_t low = dwarf_number(&cursor, size), high = dwarf_number(&cursor, size);

		if (cursor.failed || (!low && !high))
			break;
		if (low == highest(to->unit))
			to->base = high;
		else if (to->base < highest(to->unit) - 1)
			collect_range(to, to->base + low, to->base + high);
	}
	if (cursor.failed)
		units->flags |= SYMBOL_TABLE_DAMAGED;
}

/* rnglistx: an index into the offsets behind the table's header. */
static bool listed_offset(struct dwarf_unit *unit, uint64_t index, uint64_t *offset)
{
	struct dwarf_units *units = unit->units;
	struct dwarf_bytes section = dwarf_units_section(units, DWARF_RNGLISTS);
	struct dwarf_cursor cursor;

	if (index > section.length)
		return false;
	cursor = dwarf_cursor_at(section, unit->rnglists_base + index * unit->offset_bytes,
				 units->is_big_endian);
	*offset = unit->rnglists_base + dwarf_number(&cursor, unit->offset_bytes);
	return !cursor.failed;
}

static void collect_list(struct collect *to, const struct dwarf_value *value)
{
	struct dwarf_unit *unit = to->unit;
	uint64_t number;

	if (!dwarf_value_number(unit, value, &number))
		return;
	if (unit->version < 5) {
		const struct dwarf_unit *base = unit->skeleton ? unit->skeleton : NULL;

		read_ranges(to, number + (base ? base->gnu_ranges_base : 0));
	} else if (value->form != DW_FORM_rnglistx) {
		read_rnglist(to, number + unit->part[DWARF_RNGLISTS]);
	} else if (listed_offset(unit, number, &number)) {
		read_rnglist(to, number);
	}
}

unsigned dwarf_die_ranges(struct dwarf_unit *unit, const struct dwarf_die *die,
			  void (*add)(void *context, uint64_t low, uint64_t high), void *context)
{
	struct collect to = {.unit = unit, .add = add, .context = context};
	uint64_t low, high;

	to.base = unit->skeleton && !unit->low_pc ? unit->skeleton->low_pc : unit->low_pc;
	if (dwarf_die_has(die, DWARF_RANGES_AT)) {
		collect_list(&to, &die->values[DWARF_RANGES_AT]);
		return to.count;
	}
	if (!dwarf_die_has(die, DWARF_LOW_PC) || !dwarf_die_has(die, DWARF_HIGH_PC) ||
	    !dwarf_value_address(unit, &die->values[DWARF_LOW_PC], &low))
		return 0;
	/* Since version 4 the end may be a number of bytes. */
	if (dwarf_value_number(unit, &die->values[DWARF_HIGH_PC], &high))
		high += low;
	else if (!dwarf_value_address(unit, &die->values[DWARF_HIGH_PC], &high))
		return 0;
	collect_range(&to, low, high);
	return to.count;
}
