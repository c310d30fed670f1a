/* SPDX-License-Identifier: Apache-2.0 */
/* DWARF written byte by byte, as chapter 7 of its versions has it: forms, range lists, line
 * programs, and what strangers may write instead. Whole files against other readers:
 * tests/system/symbols_agree.sh. */
#include "symbol-server/symbolize/dwarf/dwarf_file.h"

#include <elf.h>
#include <stdlib.h>
#include <zlib.h>

#include "symbol-server/symbolize/dwarf/dwarf_constants.h"
#include "symbol-server/symbolize/dwarf/dwarf_line.h"
#include "symbol-server/symbolize/symbol_table.h"
#include "tests/check.h"

enum { PARTS_MAX = 8, FILE_MAX = 64 << 10 };

struct part {
	const char *name;
	const void *bytes;
	size_t length;
	uint64_t flags;
};

#define PART(name_, bytes_) ((struct part){(name_), (bytes_), sizeof(bytes_), 0})

static const struct dwarf_limits limits = {.section_bytes = 1 << 20, .total_bytes = 4 << 20};

/* An ELF file of those sections, little-endian, 64 bit. */
static size_t build_elf(uint8_t *out, const struct part *parts, size_t count)
{
	Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			     .e_type = ET_DYN,
			     .e_machine = EM_X86_64,
			     .e_shentsize = sizeof(Elf64_Shdr),
			     .e_shnum = (uint16_t)(count + 2),
			     .e_shstrndx = (uint16_t)(count + 1)};
	Elf64_Shdr rows[PARTS_MAX + 2] = {0};
	char names[512] = "";
	size_t at = sizeof(header), name = 1;

	for (size_t i = 0; i < count; i++) {
		rows[i + 1] = (Elf64_Shdr){.sh_name = (uint32_t)name,
					   .sh_type = SHT_PROGBITS,
					   .sh_flags = parts[i].flags,
					   .sh_offset = at,
					   .sh_size = parts[i].length};
		memcpy(out + at, parts[i].bytes, parts[i].length);
		at += parts[i].length;
		memcpy(names + name, parts[i].name, strlen(parts[i].name) + 1);
		name += strlen(parts[i].name) + 1;
	}
	rows[count + 1] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = at, .sh_size = name};
	memcpy(out + at, names, name);
	at += name;
	header.e_shoff = at;
	memcpy(out + at, rows, (count + 2) * sizeof(*rows));
	memcpy(out, &header, sizeof(header));
	return at + (count + 2) * sizeof(*rows);
}

struct opened {
	uint8_t bytes[FILE_MAX];
	struct dwarf_file *file;
	struct dwarf_units units;
};

static struct opened *open_parts(const struct part *parts, size_t count)
{
	struct opened *opened = calloc(1, sizeof(*opened));
	size_t length = build_elf(opened->bytes, parts, count);
	struct error err = {0};

	opened->file = dwarf_file_open(opened->bytes, length, &limits, &err);
	CHECK(opened->file && dwarf_units_open(&opened->units, opened->file, &err));
	return opened;
}

static void close_parts(struct opened *opened)
{
	dwarf_units_close(&opened->units);
	dwarf_file_close(opened->file);
	free(opened);
}

/* ---- numbers ---- */

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

/* ---- forms ---- */

/* Every kind of value between two that are asked for: the second is found behind all of them. */
static void values_behind_others(void)
{
	static const uint8_t abbreviations[] = {1,
						DW_TAG_compile_unit,
						1,
						DW_AT_name,
						DW_FORM_string,
						0,
						0,
						2,
						DW_TAG_subprogram,
						0,
						DW_AT_name,
						DW_FORM_string,
						0x02,
						DW_FORM_block1,
						0x02,
						DW_FORM_block2,
						0x02,
						DW_FORM_block4,
						0x02,
						DW_FORM_block,
						0x02,
						DW_FORM_exprloc,
						0x3a,
						DW_FORM_data1,
						0x3b,
						DW_FORM_data2,
						0x34,
						DW_FORM_data4,
						0x34,
						DW_FORM_data8,
						0x34,
						DW_FORM_data16,
						0x34,
						DW_FORM_sdata,
						0x34,
						DW_FORM_udata,
						0x34,
						DW_FORM_strx3,
						0x34,
						DW_FORM_addrx3,
						0x34,
						DW_FORM_ref_sig8,
						0x34,
						DW_FORM_flag_present,
						0x34,
						DW_FORM_indirect,
						0x34,
						DW_FORM_implicit_const,
						0x7f,
						DW_AT_call_line,
						DW_FORM_implicit_const,
						0xe4,
						0x00,
						DW_AT_low_pc,
						DW_FORM_addr,
						DW_AT_high_pc,
						DW_FORM_indirect,
						0,
						0,
						0};
	static const uint8_t info[] = {
		/* length, version 5, DW_UT_compile, addresses of 8, abbreviations at 0 */
		91,
		0,
		0,
		0,
		5,
		0,
		1,
		8,
		0,
		0,
		0,
		0,
		1,
		'u',
		0,
		2,
		'f',
		0,
		2,
		9,
		9,
		1,
		0,
		9,
		1,
		0,
		0,
		0,
		9,
		0x81,
		0,
		9,
		0,
		1,
		1,
		1,
		1,
		1,
		1,
		1,
		1,
		1,
		1,
		1,
		1,
		1,
		1,
		1,
		1,
		1,
		1,
		1,
		1,
		1,
		1,
		1,
		1,
		1,
		1,
		1,
		1,
		1,
		1,
		1,
		0xff,
		0x7f,
		0xff,
		0x01,
		1,
		2,
		3,
		1,
		2,
		3,
		1,
		2,
		3,
		4,
		5,
		6,
		7,
		8,
		DW_FORM_data2,
		1,
		1,
		0,
		0x10,
		0,
		0,
		0,
		0,
		0,
		0,
		DW_FORM_data1,
		0x20};
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

/* ---- ranges ---- */

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

#define WORD(low_, high_) (low_), (high_), 0, 0, 0, 0, 0, 0
#define ONES              0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff
#define MINUS_2           0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff

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

/* ---- lines ---- */

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

/* ---- units and sections of strangers ---- */

static void units_of_strangers(void)
{
	static const uint8_t abbreviations[] = {1, DW_TAG_compile_unit, 0, 0, 0};
	static const uint8_t zero[16] = {0};
	static const uint8_t longer[] = {200, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 1};
	/* version 261, which is no 5; then a good one */
	static const uint8_t version[] = {8, 0, 0, 0, 5, 1, 1, 8, 0, 0, 0, 0,
					  8, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 1};
	/* an abbreviation that is not there, and a table of them that has no end */
	static const uint8_t code[] = {8, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 2};
	static const struct {
		const uint8_t *bytes;
		size_t length;
		uint32_t units;
		bool opens;
	} cases[] = {{zero, sizeof(zero), 0, false},
		     {longer, sizeof(longer), 0, false},
		     {version, sizeof(version), 1, true},
		     {code, sizeof(code), 1, false}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct part parts[] = {{".debug_info", cases[i].bytes, cases[i].length, 0},
					     PART(".debug_abbrev", abbreviations)};
		struct opened *opened = open_parts(parts, 2);

		CHECK_NUMBER(opened->units.count, cases[i].units);
		if (opened->units.count)
			CHECK(dwarf_unit_open(opened->units.rows) == cases[i].opens);
		CHECK(opened->units.flags & SYMBOL_TABLE_DAMAGED);
		close_parts(opened);
	}
}

static struct dwarf_bytes packed_section(uint64_t size, uint32_t kind, size_t cut, uint32_t *flags)
{
	static uint8_t bytes[FILE_MAX], packed[4096];
	static struct dwarf_file *file;
	Elf64_Chdr header = {.ch_type = kind, .ch_size = size};
	uint8_t plain[1000];
	uLong room = sizeof(packed) - sizeof(header);
	struct part part = {".debug_info", packed, 0, SHF_COMPRESSED};

	dwarf_file_close(file);
	memset(plain, 'x', sizeof(plain));
	memcpy(packed, &header, sizeof(header));
	compress(packed + sizeof(header), &room, plain, sizeof(plain));
	part.length = sizeof(header) + room - cut;
	file = dwarf_file_open(bytes, build_elf(bytes, &part, 1), &limits, NULL);
	*flags = 0;
	CHECK(file && dwarf_file_has(file, DWARF_INFO) && !dwarf_file_has(file, DWARF_LINE));
	return dwarf_file_section(file, DWARF_INFO, flags);
}

static void compressed_sections(void)
{
	uint32_t flags;
	struct dwarf_bytes bytes = packed_section(1000, ELFCOMPRESS_ZLIB, 0, &flags);

	CHECK(bytes.length == 1000 && bytes.at[999] == 'x' && !flags);
	CHECK(!packed_section(999, ELFCOMPRESS_ZLIB, 0, &flags).at &&
	      flags == SYMBOL_TABLE_DAMAGED);
	CHECK(!packed_section(1001, ELFCOMPRESS_ZLIB, 0, &flags).at &&
	      flags == SYMBOL_TABLE_DAMAGED);
	CHECK(!packed_section(1000, ELFCOMPRESS_ZLIB, 3, &flags).at &&
	      flags == SYMBOL_TABLE_DAMAGED);
	CHECK(!packed_section(1000, 2, 0, &flags).at && flags == SYMBOL_TABLE_DAMAGED);
	CHECK(!packed_section(1000, 77, 0, &flags).at && flags == SYMBOL_TABLE_DAMAGED);
	CHECK(!packed_section(0, ELFCOMPRESS_ZLIB, 0, &flags).at && flags == SYMBOL_TABLE_DAMAGED);
	CHECK(!packed_section(limits.section_bytes + 1, ELFCOMPRESS_ZLIB, 0, &flags).at &&
	      flags == SYMBOL_TABLE_CUT);
	CHECK(!packed_section(UINT64_MAX, ELFCOMPRESS_ZLIB, 0, &flags).at &&
	      flags == SYMBOL_TABLE_CUT);
}

/* Every prefix of a file is refused or read, never past its end (AddressSanitizer sees it). */
static void files_that_are_cut_off(void)
{
	static const uint8_t info[] = {8, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 1};
	static const uint8_t abbreviations[] = {1, DW_TAG_compile_unit, 0, 0, 0, 0};
	const struct part parts[] = {PART(".debug_info", info),
				     PART(".debug_abbrev", abbreviations)};
	uint8_t whole[2048];
	size_t length = build_elf(whole, parts, 2);
	unsigned opened = 0;

	for (size_t cut = 0; cut <= length; cut++) {
		uint8_t *bytes = malloc(length - cut + 1);
		struct dwarf_file *file;
		struct dwarf_units units;

		memcpy(bytes, whole, length - cut);
		file = dwarf_file_open(bytes, length - cut, &limits, NULL);
		if (file && dwarf_units_open(&units, file, NULL)) {
			opened += units.count == 1 && dwarf_unit_open(units.rows);
			dwarf_units_close(&units);
		}
		dwarf_file_close(file);
		free(bytes);
	}
	CHECK_NUMBER(opened, 1);
}

int main(void)
{
	numbers_of_any_length();
	lengths_of_both_formats();
	values_behind_others();
	range_lists_of_version_5();
	range_lists_of_version_4();
	a_range_list_without_an_end();
	a_line_program();
	sequences_that_are_left_out();
	a_sequence_that_runs_backwards();
	a_sequence_that_starts_anew();
	line_tables_of_strangers();
	units_of_strangers();
	compressed_sections();
	files_that_are_cut_off();
	return checks_done();
}
