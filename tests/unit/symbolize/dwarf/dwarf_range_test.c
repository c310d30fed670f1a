/* SPDX-License-Identifier: Apache-2.0 */
/* Range lists of both versions. */
#include "tests/unit/symbolize/dwarf/dwarf_parts.h"

struct taken {
	uint64_t low[16], high[16];
	unsigned count;
};

static void take(void *context, uint64_t low, uint64_t high)
{
	struct taken *taken = context;

	if (taken->count < 16) {
		taken->low[taken->count] = low;
		taken->high[taken->count++] = high;
	}
}

static bool was_taken(const struct taken *taken, unsigned i, uint64_t low, uint64_t high)
{
	return i < taken->count && taken->low[i] == low && taken->high[i] == high;
}

/* A unit of version 4 or 5 whose root has low_pc 0x1000 and ranges at the offset. */
static struct opened *unit_with_ranges(unsigned version, const struct part *lists,
				       unsigned lists_count)
{
	static const uint8_t abbreviations[] = {1,
						DW_TAG_compile_unit,
						0,
						DW_AT_low_pc,
						DW_FORM_addr,
						DW_AT_ranges,
						DW_FORM_sec_offset,
						0,
						0,
						0};
	static const uint8_t info_4[] = {20, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 1, WORD(0, 0x10),
					 8,  0, 0, 0};
	static const uint8_t info_5[] = {21, 0, 0, 0, 5, 0, 1, 8, 0, 0, 0, 0, 1, WORD(0, 0x10),
					 8,  0, 0, 0};
	struct part parts[PARTS_MAX] = {PART(".debug_info", info_4),
					PART(".debug_abbrev", abbreviations)};

	if (version == 5)
		parts[0] = PART(".debug_info", info_5);
	for (unsigned i = 0; i < lists_count; i++)
		parts[2 + i] = lists[i];
	return open_parts(parts, 2 + lists_count);
}

static struct taken ranges_of(struct opened *opened)
{
	struct dwarf_unit *unit = opened->units.rows;
	struct taken taken = {.count = 0};
	struct dwarf_die die;

	CHECK(dwarf_unit_open(unit) && dwarf_die_read(unit, unit->first_die, &die));
	dwarf_die_ranges(unit, &die, take, &taken);
	return taken;
}

static void range_lists_of_version_5(void)
{
	static const uint8_t lists[] = {
		WORD(0, 0), DW_RLE_offset_pair, 0x10, 0x20, /* from the unit's low_pc */
		DW_RLE_base_address, WORD(0, 0x20), DW_RLE_offset_pair, 0x80, 0x01, 0x90, 0x01,
		DW_RLE_base_addressx, 1, DW_RLE_offset_pair, 1, 2, DW_RLE_startx_endx, 0, 1,
		DW_RLE_startx_length, 0, 5, DW_RLE_start_end, WORD(0, 0x50), WORD(1, 0x50),
		DW_RLE_start_length, WORD(0, 0x60), 7,
		/* dead, empty and backwards */
		DW_RLE_start_length, WORD(0, 0), 7, DW_RLE_start_length, ONES, 7,
		DW_RLE_start_length, MINUS_2, 1, DW_RLE_start_end, WORD(2, 0x50), WORD(1, 0x50),
		DW_RLE_offset_pair, 9, 9, DW_RLE_base_address, ONES, DW_RLE_offset_pair, 0x81, 0x20,
		0x82, 0x20, DW_RLE_end_of_list, DW_RLE_start_length, WORD(0, 0x70), 7};
	static const uint8_t addresses[] = {24, 0, 0, 0, 5, 0, 8, 0, WORD(0, 0x30), WORD(0, 0x40)};
	const struct part parts[] = {PART(".debug_rnglists", lists),
				     PART(".debug_addr", addresses)};
	struct opened *opened = unit_with_ranges(5, parts, 2);
	struct taken taken;

	taken = ranges_of(opened);
	CHECK_NUMBER(taken.count, 7);
	CHECK(was_taken(&taken, 0, 0x1010, 0x1020));
	CHECK(was_taken(&taken, 1, 0x2080, 0x2090));
	CHECK(was_taken(&taken, 2, 0x4001, 0x4002));
	CHECK(was_taken(&taken, 3, 0x3000, 0x4000));
	CHECK(was_taken(&taken, 4, 0x3000, 0x3005));
	CHECK(was_taken(&taken, 5, 0x5000, 0x5001));
	CHECK(was_taken(&taken, 6, 0x6000, 0x6007));
	CHECK_NUMBER(opened->units.flags, 0);
	close_parts(opened);
}

static void range_lists_of_version_4(void)
{
	static const uint8_t lists[] = {
		WORD(0, 0),    WORD(1, 0),    WORD(2, 0), /* from the unit's low_pc */
		ONES,          WORD(0, 0x20),             /* a base */
		WORD(3, 0),    WORD(4, 0),    WORD(5, 0), WORD(5, 0), ONES,
		ONES, /* a base that was thrown away */
		WORD(2, 0x20), WORD(3, 0x20), ONES,       WORD(0, 0), WORD(0, 0x30),
		WORD(1, 0x30), WORD(0, 0),    WORD(0, 0), WORD(7, 7), WORD(8, 7)};
	const struct part part = PART(".debug_ranges", lists);
	struct opened *opened = unit_with_ranges(4, &part, 1);
	struct taken taken = ranges_of(opened);

	CHECK_NUMBER(taken.count, 3);
	CHECK(was_taken(&taken, 0, 0x1001, 0x1002));
	CHECK(was_taken(&taken, 1, 0x2003, 0x2004));
	CHECK(was_taken(&taken, 2, 0x3000, 0x3001));
	CHECK_NUMBER(opened->units.flags, 0);
	close_parts(opened);
}

static void a_range_list_without_an_end(void)
{
	static const uint8_t lists[] = {WORD(0, 0), DW_RLE_offset_pair, 1, 2, DW_RLE_start_end, 1};
	static const uint8_t unknown[] = {WORD(0, 0), DW_RLE_offset_pair, 1, 2, 0x77, 1, 2};
	struct part part = PART(".debug_rnglists", lists);
	struct opened *opened = unit_with_ranges(5, &part, 1);

	CHECK_NUMBER(ranges_of(opened).count, 1);
	CHECK(opened->units.flags & SYMBOL_TABLE_DAMAGED);
	close_parts(opened);
	part = PART(".debug_rnglists", unknown);
	opened = unit_with_ranges(5, &part, 1);
	CHECK_NUMBER(ranges_of(opened).count, 1);
	CHECK(opened->units.flags & SYMBOL_TABLE_DAMAGED);
	close_parts(opened);
}

int main(void)
{
	range_lists_of_version_5();
	range_lists_of_version_4();
	a_range_list_without_an_end();
	return checks_done();
}
