/* SPDX-License-Identifier: Apache-2.0 */
/* Line programs, and what strangers may write instead. */
#include "symbol-server/symbolize/dwarf/dwarf_line.h"

#include "tests/unit/symbolize/dwarf/dwarf_parts.h"

/* Version 4: lengths, 1 byte per instruction, lines from -5 on in 14 steps, one directory, one file
 * in it. opcode_base is 10, so that 10 is "-5 lines, 0 bytes". */
#define LINES_4(length_)                                                                         \
	(length_), 0, 0, 0, 4, 0, 26, 0, 0, 0, 1, 1, 1, 0xfb, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1, \
		'd', 0, 0, 'f', '.', 'c', 0, 1, 0, 0, 0

enum { LINES_4_SIZE = 36 };

static struct opened *unit_with_lines(const uint8_t *program, size_t length,
				      struct dwarf_lines *lines, bool is_good)
{
	static const uint8_t abbreviations[] = {1,
						DW_TAG_compile_unit,
						0,
						DW_AT_comp_dir,
						DW_FORM_string,
						DW_AT_stmt_list,
						DW_FORM_sec_offset,
						0,
						0,
						0};
	static const uint8_t info[] = {15, 0, 0,   0,   4, 0, 0, 0, 0, 0,
				       8,  1, '/', 'c', 0, 0, 0, 0, 0};
	const struct part parts[] = {PART(".debug_info", info),
				     PART(".debug_abbrev", abbreviations),
				     {".debug_line", program, length, 0}};
	struct opened *opened = open_parts(parts, 3);
	struct dwarf_unit *unit = opened->units.rows;

	CHECK(dwarf_unit_open(unit) && unit->has_stmt_list);
	CHECK(dwarf_lines_read(lines, unit, unit->stmt_list) == is_good);
	CHECK((opened->units.flags & SYMBOL_TABLE_DAMAGED) == (is_good ? 0 : SYMBOL_TABLE_DAMAGED));
	return opened;
}

#define SET_ADDRESS(low_, high_) 0, 9, DW_LNE_set_address, WORD(low_, high_)
#define END_SEQUENCE             0, 1, DW_LNE_end_sequence

static bool is_row(const struct dwarf_lines *lines, size_t i, uint64_t address, uint32_t line)
{
	const struct line_row *row = &lines->rows[i];

	return i < lines->row_count && row->address == address &&
	       (line ? row->line == line && !row->is_end : row->is_end);
}

static void a_line_program(void)
{
	static const uint8_t program[] = {
		LINES_4(32 + 57),
		/* a later sequence first */
		SET_ADDRESS(0, 0x20), DW_LNS_copy, DW_LNS_advance_pc, 4, END_SEQUENCE,
		SET_ADDRESS(0, 0x10), DW_LNS_advance_line, 9, 10 + 5,      /* line 10 */
		DW_LNS_advance_pc, 2, DW_LNS_advance_line, 1, DW_LNS_copy, /* 11 */
		DW_LNS_advance_line, 1, DW_LNS_copy,                       /* 12, the same place */
		DW_LNS_const_add_pc,                                       /* (255 - 10) / 14 */
		DW_LNS_set_column, 7, DW_LNS_negate_stmt, DW_LNS_copy,     /* 12 still */
		DW_LNS_fixed_advance_pc, 0, 1,                             /* and 256 on */
		0, 2, 0x80, 1,                                             /* a vendor's */
		10 + 14 + 6,                                               /* 1 byte, 1 line */
		DW_LNS_advance_pc, 1, END_SEQUENCE};
	struct dwarf_lines lines = {0};
	struct opened *opened = unit_with_lines(program, sizeof(program), &lines, true);
	char path[DWARF_LINE_PATH_MAX];

	CHECK_NUMBER(sizeof(program), LINES_4_SIZE + 57);
	CHECK_NUMBER(lines.row_count, 6);
	CHECK(is_row(&lines, 0, 0x1000, 10));
	CHECK(is_row(&lines, 1, 0x1002, 12));
	CHECK(is_row(&lines, 2, 0x1002 + 17 + 256 + 1, 13));
	CHECK(is_row(&lines, 3, 0x1002 + 17 + 256 + 2, 0));
	CHECK(is_row(&lines, 4, 0x2000, 1) && is_row(&lines, 5, 0x2004, 0));
	CHECK_TEXT(dwarf_lines_path(&lines, lines.rows[0].file, path), "/c/d/f.c");
	CHECK_TEXT(dwarf_lines_path(&lines, 0, path), "");
	CHECK_TEXT(dwarf_lines_path(&lines, 7, path), "");
	dwarf_lines_release(&lines);
	close_parts(opened);
}

static void sequences_that_are_left_out(void)
{
	static const uint8_t program[] = {LINES_4(32 + 59),
					  SET_ADDRESS(0, 0),
					  DW_LNS_copy,
					  DW_LNS_advance_pc,
					  4,
					  END_SEQUENCE, /* dead */
					  0,
					  9,
					  DW_LNE_set_address,
					  ONES,
					  DW_LNS_copy,
					  END_SEQUENCE, /* dead */
					  SET_ADDRESS(0, 0x40),
					  DW_LNS_copy,
					  END_SEQUENCE, /* empty */
					  SET_ADDRESS(0, 0x50),
					  DW_LNS_copy}; /* no end */
	struct dwarf_lines lines = {0};
	struct opened *opened = unit_with_lines(program, sizeof(program), &lines, true);

	CHECK_NUMBER(lines.row_count, 0);
	dwarf_lines_release(&lines);
	close_parts(opened);
}

static void line_tables_of_strangers(void)
{
	/* longer than the section; version 9; nothing per line; rows without a size, 2^63 of them
	 */
	static const uint8_t longer[] = {LINES_4(200)};
	static const uint8_t version_9[] = {8, 0, 0, 0, 9, 0, 1, 0, 0, 0, 0, 0};
	static const uint8_t version_260[] = {8, 0, 0, 0, 4, 1, 1, 0, 0, 0, 0, 0};
	static const uint8_t no_range[] = {32, 0,    0, 0,  4, 0, 26, 0, 0, 0, 1, 1,
					   1,  0xfb, 0, 10, 0, 1, 1,  1, 1, 0, 0, 0,
					   1,  'd',  0, 0,  0, 0, 0,  0, 0, 0, 0, 0};
	static const uint8_t endless[] = {30,   0,    0,    0,    5,    0,    8,
					  0,    22,   0,    0,    0,    1,    1,
					  1,    0xfb, 14,   1,    1,    1,    DW_FORM_flag_present,
					  0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
					  0xff, 0x7f, 0,    0,    0,    0};
	static const struct {
		const uint8_t *bytes;
		size_t length;
	} tables[] = {{longer, sizeof(longer)},
		      {version_9, sizeof(version_9)},
		      {version_260, sizeof(version_260)},
		      {no_range, sizeof(no_range)},
		      {endless, sizeof(endless)}};

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		struct dwarf_lines lines = {0};
		struct opened *opened = unit_with_lines(tables[i].bytes, tables[i].length, &lines,
							false);

		CHECK_NUMBER(lines.row_count, 0);
		dwarf_lines_release(&lines);
		close_parts(opened);
	}
}

static void a_sequence_that_runs_backwards(void)
{
	static const uint8_t program[] = {LINES_4(32 + 42), SET_ADDRESS(0, 0x30), DW_LNS_copy,
					  /* by 0x1000 less */
					  DW_LNS_advance_pc, 0x80, 0xe0, 0xff, 0xff, 0xff, 0xff,
					  0xff, 0xff, 0xff, 1, END_SEQUENCE, SET_ADDRESS(0, 0x40),
					  DW_LNS_copy, 10 + 14 + 5, END_SEQUENCE};
	struct dwarf_lines lines = {0};
	struct opened *opened = unit_with_lines(program, sizeof(program), &lines, false);

	CHECK_NUMBER(lines.row_count, 2);
	CHECK(is_row(&lines, 0, 0x4000, 1) && is_row(&lines, 1, 0x4001, 0));
	dwarf_lines_release(&lines);
	close_parts(opened);
}

/* As BOLT writes them; addr2line has lines on both sides of the step. */
static void a_sequence_that_starts_anew(void)
{
	static const uint8_t program[] = {
		LINES_4(32 + 30),     SET_ADDRESS(0, 0x30), DW_LNS_copy, 10 + 14 + 5, 10 + 14 + 6,
		SET_ADDRESS(0, 0x20), DW_LNS_copy,          10 + 14 + 5, END_SEQUENCE};
	struct dwarf_lines lines = {0};
	struct opened *opened = unit_with_lines(program, sizeof(program), &lines, true);

	CHECK_NUMBER(lines.row_count, 4);
	CHECK(lines.rows[0].address == 0x2000 && lines.rows[1].is_end);
	CHECK(lines.rows[2].address == 0x3000 && !lines.rows[2].is_end);
	CHECK(lines.rows[3].address == 0x3002 && lines.rows[3].is_end);
	CHECK_NUMBER(opened->units.flags, 0);
	dwarf_lines_release(&lines);
	close_parts(opened);
}

int main(void)
{
	a_line_program();
	sequences_that_are_left_out();
	a_sequence_that_runs_backwards();
	a_sequence_that_starts_anew();
	line_tables_of_strangers();
	return checks_done();
}
