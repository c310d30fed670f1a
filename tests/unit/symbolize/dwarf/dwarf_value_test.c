/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, lengths and forms. */
#include "tests/unit/symbolize/dwarf/dwarf_parts.h"

static struct dwarf_cursor cursor_of(const uint8_t *bytes, size_t length)
{
	return dwarf_cursor_at((struct dwarf_bytes){bytes, length}, 0, false);
}

static void numbers_of_any_length(void)
{
	/* DWARF 5, tables 7.7 and 7.8, then the ends of 64 bits */
	static const uint8_t twelve_thousand[] = {0xe4, 0xe0, 0x72}, minus_129[] = {0xff, 0x7e},
			     minus_128[] = {0x80, 0x7f}, plus_128[] = {0x80, 0x01},
			     all_ones[] = {0xff, 0xff, 0xff, 0xff, 0xff,
					   0xff, 0xff, 0xff, 0xff, 0x01},
			     padded[] = {0x82, 0x80, 0x80, 0x80, 0x80, 0x80,
					 0x80, 0x80, 0x80, 0x80, 0x80, 0x00},
			     endless[] = {0x80, 0x80}, lowest[] = {0x80, 0x80, 0x80, 0x80, 0x80,
								   0x80, 0x80, 0x80, 0x80, 0x7f};
	struct dwarf_cursor cursor = cursor_of(twelve_thousand, 3);

	CHECK_NUMBER(dwarf_uleb(&cursor), 1880164);
	cursor = cursor_of(minus_129, 2);
	CHECK_NUMBER(dwarf_sleb(&cursor), -129);
	cursor = cursor_of(minus_128, 2);
	CHECK_NUMBER(dwarf_sleb(&cursor), -128);
	cursor = cursor_of(plus_128, 2);
	CHECK_NUMBER(dwarf_uleb(&cursor), 128);
	cursor = cursor_of(all_ones, 10);
	CHECK(dwarf_uleb(&cursor) == UINT64_MAX && !cursor.failed);
	cursor = cursor_of(lowest, 10);
	CHECK(dwarf_sleb(&cursor) == INT64_MIN && !cursor.failed);
	cursor = cursor_of(padded, 12);
	CHECK(dwarf_uleb(&cursor) == 2 && !cursor.failed && !dwarf_left(&cursor));
	cursor = cursor_of(endless, 2);
	CHECK(dwarf_uleb(&cursor) == 0 && cursor.failed);
	CHECK(dwarf_number(&cursor, 4) == 0 && cursor.failed);
}

static void lengths_of_both_formats(void)
{
	static const uint8_t reserved[] = {0xf0, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0, 0, 0, 0},
			     wide[] = {0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0, 0, 0, 0};
	struct dwarf_cursor cursor = cursor_of(reserved, sizeof(reserved));
	uint64_t length;

	dwarf_initial_length(&cursor, &length);
	CHECK(cursor.failed);
	cursor = cursor_of(wide, sizeof(wide));
	CHECK_NUMBER(dwarf_initial_length(&cursor, &length), 8);
	CHECK(length == 1 && !cursor.failed);
}

#define PAIR(first_, second_) (first_), (second_)
#define LONG(low_)            (low_), 0, 0, 0
#define ONES_4                1, 1, 1, 1

/* Every kind of value between two that are asked for: the second is found behind all of them. */
static void values_behind_others(void)
{
	static const uint8_t abbreviations[] = {
		1, DW_TAG_compile_unit, 1, PAIR(DW_AT_name, DW_FORM_string), PAIR(0, 0), 2,
		DW_TAG_subprogram, 0, PAIR(DW_AT_name, DW_FORM_string),
		/* attributes that nobody asks for */
		PAIR(0x02, DW_FORM_block1), PAIR(0x02, DW_FORM_block2), PAIR(0x02, DW_FORM_block4),
		PAIR(0x02, DW_FORM_block), PAIR(0x02, DW_FORM_exprloc), PAIR(0x3a, DW_FORM_data1),
		PAIR(0x3b, DW_FORM_data2), PAIR(0x34, DW_FORM_data4), PAIR(0x34, DW_FORM_data8),
		PAIR(0x34, DW_FORM_data16), PAIR(0x34, DW_FORM_sdata), PAIR(0x34, DW_FORM_udata),
		PAIR(0x34, DW_FORM_strx3), PAIR(0x34, DW_FORM_addrx3), PAIR(0x34, DW_FORM_ref_sig8),
		PAIR(0x34, DW_FORM_flag_present), PAIR(0x34, DW_FORM_indirect),
		PAIR(0x34, DW_FORM_implicit_const), 0x7f,
		PAIR(DW_AT_call_line, DW_FORM_implicit_const), PAIR(0xe4, 0x00),
		PAIR(DW_AT_low_pc, DW_FORM_addr), PAIR(DW_AT_high_pc, DW_FORM_indirect), PAIR(0, 0),
		0};
	static const uint8_t info[] = {
		LONG(91), 5, 0, 1, 8, LONG(0), /* version 5, DW_UT_compile, addresses of 8 */
		1, PAIR('u', 0), 2, PAIR('f', 0),
		/* blocks, of 2 bytes and of 1 */
		PAIR(2, 9), 9, PAIR(1, 0), 9, LONG(1), 9, PAIR(0x81, 0), 9, 0,
		/* data of 1, 2, 4, 8 and 16 bytes */
		1, PAIR(1, 1), ONES_4, ONES_4, ONES_4, ONES_4, ONES_4, ONES_4, ONES_4,
		/* LEB128 of either sign, indices of 3 bytes, a signature, what the value says */
		PAIR(0xff, 0x7f), PAIR(0xff, 0x01), 1, PAIR(2, 3), 1, PAIR(2, 3), PAIR(1, 2),
		PAIR(3, 4), PAIR(5, 6), PAIR(7, 8), DW_FORM_data2, PAIR(1, 1),
		/* low_pc, high_pc */
		WORD(0, 0x10), DW_FORM_data1, 0x20};
	const struct part parts[] = {PART(".debug_info", info),
				     PART(".debug_abbrev", abbreviations)};
	struct opened *opened = open_parts(parts, 2);
	struct dwarf_unit *unit = opened->units.rows;
	struct dwarf_die die;
	uint64_t number = 0;

	CHECK_NUMBER(opened->units.count, 1);
	CHECK(dwarf_unit_open(unit));
	CHECK_TEXT(unit->name, "u");
	CHECK(dwarf_die_read(unit, unit->first_die + 3, &die));
	CHECK_TEXT(dwarf_value_text(unit, &die.values[DWARF_NAME]), "f");
	CHECK(dwarf_value_number(unit, &die.values[DWARF_CALL_LINE], &number) && number == 100);
	CHECK(dwarf_value_address(unit, &die.values[DWARF_LOW_PC], &number) && number == 0x1000);
	CHECK(dwarf_value_number(unit, &die.values[DWARF_HIGH_PC], &number) && number == 0x20);
	CHECK_NUMBER(die.next, sizeof(info));
	CHECK_NUMBER(opened->units.flags, 0);
	CHECK(!dwarf_die_read(unit, unit->end, &die) && !opened->units.flags);
	close_parts(opened);
}

int main(void)
{
	numbers_of_any_length();
	lengths_of_both_formats();
	values_behind_others();
	return checks_done();
}
