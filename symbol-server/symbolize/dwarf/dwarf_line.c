/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/dwarf/dwarf_line.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/array.h"
#include "symbol-server/symbolize/dwarf/dwarf_abbreviation.h"
#include "symbol-server/symbolize/dwarf/dwarf_constants.h"
#include "symbol-server/symbolize/symbol_table.h"

enum { FORMATS_MAX = 16, OPCODE_LENGTHS = 256 };

struct dwarf_sequence {
	uint64_t first_address;
	size_t first_row, row_count;
};

struct program {
	struct dwarf_lines *lines;
	struct dwarf_unit form; /* how values are stored in this table */
	struct dwarf_cursor cursor;
	uint8_t min_instruction, max_operations, line_range, opcode_base;
	int8_t line_base;
	uint8_t operands[OPCODE_LENGTHS];
	/* registers: DWARF 5, 6.2.2 */
	uint64_t address;
	uint32_t operation, file;
	int64_t line;
	size_t sequence_start;
	bool is_damaged; /* some rows are lost */
};

static bool has_room(struct dwarf_lines *lines, bool has_grown)
{
	lines->no_memory |= !has_grown;
	return has_grown;
}

static void add_directory(struct dwarf_lines *lines, const char *text)
{
	if (lines->directory_count == DWARF_LINE_FILES_MAX ||
	    !has_room(lines, ARRAY_GROW(lines->directories, lines->directory_count,
					lines->directory_room)))
		return;
	lines->directories[lines->directory_count++] = text;
}

static void add_file(struct dwarf_lines *lines, const char *name, uint64_t directory)
{
	if (lines->file_count == DWARF_LINE_FILES_MAX ||
	    !has_room(lines, ARRAY_GROW(lines->files, lines->file_count, lines->file_room)))
		return;
	lines->files[lines->file_count++] = (struct dwarf_line_file){
		.directory = directory < lines->directory_count ? lines->directories[directory]
								: NULL,
		.name = name,
	};
}

/* ---- header ---- */

/* Versions 2 to 4: numbers begin with 1, directory 0 is where the compiler ran. */
static void read_old_tables(struct program *program)
{
	struct dwarf_cursor *cursor = &program->cursor;
	struct dwarf_lines *lines = program->lines;
	const char *text;

	add_directory(lines, NULL);
	while (*(text = dwarf_text(cursor)) && !cursor->failed)
		add_directory(lines, text);
	add_file(lines, NULL, 0);
	while (*(text = dwarf_text(cursor)) && !cursor->failed) {
		uint64_t directory = dwarf_uleb(cursor);

		dwarf_uleb(cursor); /* time */
		dwarf_uleb(cursor); /* size */
		add_file(lines, text, directory);
	}
}

struct entry_formats {
	unsigned count;
	uint64_t content[FORMATS_MAX], form[FORMATS_MAX];
};

static void read_formats(struct dwarf_cursor *cursor, struct entry_formats *formats)
{
	unsigned count = dwarf_u8(cursor);

	formats->count = 0;
	for (unsigned i = 0; i < count && !cursor->failed; i++) {
		uint64_t content = dwarf_uleb(cursor), form = dwarf_uleb(cursor);

		if (i == FORMATS_MAX) {
			dwarf_fail(cursor);
			return;
		}
		formats->content[i] = content;
		formats->form[i] = form;
		formats->count = i + 1;
	}
}

/* One row of version 5's tables. Its value is read like an attribute's. */
static const char *read_entry(struct program *program, const struct entry_formats *formats,
			      uint64_t *directory)
{
	const uint8_t *start = program->cursor.at;
	const char *path = NULL;

	*directory = 0;
	for (unsigned i = 0; i < formats->count; i++) {
		struct dwarf_value value = {.form = (uint16_t)formats->form[i],
					    .at = program->cursor.at};

		if (formats->content[i] == DW_LNCT_path)
			path = dwarf_value_text(&program->form, &value);
		else if (formats->content[i] == DW_LNCT_directory_index)
			dwarf_value_number(&program->form, &value, directory);
		dwarf_form_skip(&program->form, formats->form[i], &program->cursor);
	}
	if (program->cursor.at == start) /* any number of rows would fit */
		dwarf_fail(&program->cursor);
	return path;
}

static void read_new_tables(struct program *program)
{
	struct dwarf_cursor *cursor = &program->cursor;
	struct entry_formats formats;
	uint64_t count, directory;

	read_formats(cursor, &formats);
	count = dwarf_uleb(cursor);
	for (uint64_t i = 0; i < count && !cursor->failed && formats.count; i++)
		add_directory(program->lines, read_entry(program, &formats, &directory));
	read_formats(cursor, &formats);
	count = dwarf_uleb(cursor);
	for (uint64_t i = 0; i < count && !cursor->failed && formats.count; i++) {
		const char *name = read_entry(program, &formats, &directory);

		add_file(program->lines, name, directory);
	}
}

/* DWARF 5, 6.2.4. The cursor is at the program afterwards. */
static bool read_header(struct program *program, struct dwarf_bytes section)
{
	struct dwarf_cursor *cursor = &program->cursor;
	const uint8_t *start;
	uint64_t length, version;

	program->form.offset_bytes = (uint8_t)dwarf_initial_length(cursor, &length);
	if (cursor->failed || length > dwarf_left(cursor))
		return false;
	cursor->end = cursor->at + length;
	/* Values of this table end with it. */
	program->form.end = (uint64_t)(cursor->end - section.at);
	version = dwarf_number(cursor, 2);
	if (version < 2 || version > 5)
		return false;
	program->form.version = (uint8_t)version;
	if (program->form.version == 5) {
		program->form.address_bytes = dwarf_u8(cursor);
		dwarf_u8(cursor); /* segment selectors */
	}
	length = dwarf_number(cursor, program->form.offset_bytes);
	if (cursor->failed || length > dwarf_left(cursor) ||
	    !dwarf_is_address_size(program->form.address_bytes))
		return false;
	start = cursor->at + length;
	program->min_instruction = dwarf_u8(cursor);
	program->max_operations = program->form.version >= 4 ? dwarf_u8(cursor) : 1;
	dwarf_u8(cursor); /* default_is_stmt: rows count whatever it says */
	program->line_base = (int8_t)dwarf_u8(cursor);
	program->line_range = dwarf_u8(cursor);
	program->opcode_base = dwarf_u8(cursor);
	for (unsigned i = 1; i < program->opcode_base; i++)
		program->operands[i] = dwarf_u8(cursor);
	if (program->form.version == 5)
		read_new_tables(program);
	else
		read_old_tables(program);
	cursor->at = start;
	return !cursor->failed && program->line_range && program->max_operations;
}

/* ---- program ---- */

static void begin_sequence(struct program *program)
{
	program->address = 0;
	program->operation = 0;
	program->file = 1;
	program->line = 1;
	program->sequence_start = program->lines->row_count;
}

static void emit_row(struct program *program, bool is_end)
{
	struct dwarf_lines *lines = program->lines;
	struct line_row *row = NULL;
	struct line_row now = {.address = program->address, .is_end = is_end};

	now.file = program->file < lines->file_count ? program->file : UINT32_MAX;
	now.line = program->line > 0 && program->line <= UINT32_MAX ? (uint32_t)program->line : 0;
	if (lines->row_count > program->sequence_start)
		row = &lines->rows[lines->row_count - 1];
	if (row && row->address == now.address) {
		*row = now;
		return;
	}
	/* The same line goes on. */
	if (row && !is_end && row->file == now.file && row->line == now.line)
		return;
	if (lines->row_count == DWARF_LINE_ROWS_MAX) {
		dwarf_fail(&program->cursor);
		return;
	}
	if (has_room(lines, ARRAY_GROW(lines->rows, lines->row_count, lines->row_room)))
		lines->rows[lines->row_count++] = now;
}

static bool is_tombstone(const struct program *program, uint64_t address)
{
	uint64_t highest = program->form.address_bytes == 8
				   ? UINT64_MAX
				   : (UINT64_C(1) << 8 * program->form.address_bytes) - 1;

	return !address || address >= highest - 1;
}

/* Sequences of code that was thrown away, and those that run backwards, are left out. */
static void keep_sequence(struct program *program)
{
	struct dwarf_lines *lines = program->lines;
	size_t first = program->sequence_start, count = lines->row_count - first;
	bool ascends = true;

	for (size_t i = 1; i < count; i++)
		ascends &= lines->rows[first + i].address > lines->rows[first + i - 1].address;
	if (!ascends && !is_tombstone(program, lines->rows[first].address))
		program->is_damaged = true;
	if (count < 2 || !ascends || is_tombstone(program, lines->rows[first].address)) {
		lines->row_count = first;
	} else if (has_room(lines, ARRAY_GROW(lines->sequences, lines->sequence_count,
					      lines->sequence_room))) {
		lines->sequences[lines->sequence_count++] =
			(struct dwarf_sequence){lines->rows[first].address, first, count};
	}
}

static void end_sequence(struct program *program)
{
	emit_row(program, true);
	keep_sequence(program);
	begin_sequence(program);
}

/* A sequence may not go back, but BOLT's do, by a new address without an end before it: what begins
 * there is one of its own, and how far the last row before reaches is not known. */
static void set_address(struct program *program, uint64_t address)
{
	struct dwarf_lines *lines = program->lines;

	if (lines->row_count > program->sequence_start &&
	    address < lines->rows[lines->row_count - 1].address) {
		lines->rows[lines->row_count - 1].is_end = true;
		keep_sequence(program);
		program->sequence_start = lines->row_count;
	}
	program->address = address;
	program->operation = 0;
}

static void advance(struct program *program, uint64_t operations)
{
	if (program->max_operations == 1) {
		program->address += operations * program->min_instruction;
		return;
	}
	operations += program->operation;
	program->address += operations / program->max_operations * program->min_instruction;
	program->operation = (uint32_t)(operations % program->max_operations);
}

static void extended_opcode(struct program *program)
{
	struct dwarf_cursor *cursor = &program->cursor;
	uint64_t length = dwarf_uleb(cursor);
	const uint8_t *next;

	if (cursor->failed || length > dwarf_left(cursor) || !length) {
		dwarf_fail(cursor);
		return;
	}
	next = cursor->at + length;
	switch (dwarf_u8(cursor)) {
	case DW_LNE_end_sequence:
		end_sequence(program);
		break;
	case DW_LNE_set_address:
		if (length - 1 <= 8)
			set_address(program, dwarf_number(cursor, (unsigned)length - 1));
		break;
	default: /* set_discriminator, define_file (nobody writes it), vendors' */
		break;
	}
	cursor->at = next;
}

static void standard_opcode(struct program *program, uint8_t opcode)
{
	struct dwarf_cursor *cursor = &program->cursor;
	uint64_t value;

	switch (opcode) {
	case DW_LNS_copy:
		emit_row(program, false);
		break;
	case DW_LNS_advance_pc:
		advance(program, dwarf_uleb(cursor));
		break;
	case DW_LNS_advance_line:
		program->line += dwarf_sleb(cursor);
		break;
	case DW_LNS_set_file:
		value = dwarf_uleb(cursor);
		program->file = value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
		break;
	case DW_LNS_const_add_pc:
		advance(program, (uint64_t)(255 - program->opcode_base) / program->line_range);
		break;
	case DW_LNS_fixed_advance_pc:
		program->address += dwarf_number(cursor, 2);
		program->operation = 0;
		break;
	default: /* columns, statements, blocks, prologues; and opcodes of other versions */
		for (unsigned i = 0; i < program->operands[opcode]; i++)
			dwarf_uleb(cursor);
	}
}

static void run(struct program *program)
{
	struct dwarf_cursor *cursor = &program->cursor;

	begin_sequence(program);
	while (cursor->at < cursor->end && !program->lines->no_memory) {
		uint8_t opcode = *cursor->at++;

		if (opcode >= program->opcode_base) {
			unsigned by = (unsigned)(opcode - program->opcode_base);

			advance(program, by / program->line_range);
			program->line += program->line_base + (int)(by % program->line_range);
			emit_row(program, false);
		} else if (opcode) {
			standard_opcode(program, opcode);
		} else {
			extended_opcode(program);
		}
	}
	program->lines->row_count = program->sequence_start; /* a sequence without an end */
}

/* ---- order ---- */

static int compare_sequences(const void *left, const void *right)
{
	const struct dwarf_sequence *a = left, *b = right;

	if (a->first_address != b->first_address)
		return a->first_address < b->first_address ? -1 : 1;
	return a->first_row < b->first_row ? -1 : a->first_row > b->first_row;
}

static bool are_sorted(const struct dwarf_lines *lines)
{
	for (size_t i = 1; i < lines->sequence_count; i++)
		if (lines->sequences[i].first_address < lines->sequences[i - 1].first_address)
			return false;
	return true;
}

static void sort_sequences(struct dwarf_lines *lines)
{
	struct line_row *swap = lines->rows;
	size_t done = 0, room;

	if (are_sorted(lines))
		return;
	if (!ARRAY_RESERVE(lines->sorted, lines->row_count, lines->sorted_room)) {
		lines->no_memory = true;
		return;
	}
	qsort(lines->sequences, lines->sequence_count, sizeof(*lines->sequences),
	      compare_sequences);
	for (size_t i = 0; i < lines->sequence_count; i++) {
		const struct dwarf_sequence *from = &lines->sequences[i];

		memcpy(lines->sorted + done, lines->rows + from->first_row,
		       from->row_count * sizeof(*lines->rows));
		done += from->row_count;
	}
	lines->rows = lines->sorted;
	lines->sorted = swap;
	room = lines->row_room;
	lines->row_room = lines->sorted_room;
	lines->sorted_room = room;
	lines->row_count = done;
}

/* ---- whole tables ---- */

bool dwarf_lines_read(struct dwarf_lines *lines, struct dwarf_unit *unit, uint64_t offset)
{
	struct dwarf_units *units = unit->units;
	struct dwarf_bytes section = dwarf_units_section(units, DWARF_LINE);
	struct program program = {
		.lines = lines,
		.form = *unit,
		.cursor = dwarf_cursor_at(section, offset, units->is_big_endian),
	};
	bool is_good;

	lines->row_count = lines->sequence_count = 0;
	lines->file_count = lines->directory_count = 0;
	lines->comp_dir = unit->comp_dir;
	program.form.section = DWARF_LINE;
	is_good = read_header(&program, section);
	if (is_good) {
		lines->program_bytes += dwarf_left(&program.cursor);
		run(&program);
		sort_sequences(lines);
	}
	is_good &= !program.cursor.failed && !program.is_damaged;
	if (!is_good)
		units->flags |= SYMBOL_TABLE_DAMAGED;
	return is_good;
}

void dwarf_lines_release(struct dwarf_lines *lines)
{
	free(lines->files);
	free(lines->directories);
	free(lines->rows);
	free(lines->sequences);
	free(lines->sorted);
	*lines = (struct dwarf_lines){0};
}

const char *dwarf_lines_path(const struct dwarf_lines *lines, uint32_t file,
			     char path[DWARF_LINE_PATH_MAX])
{
	const char *directory, *root = lines->comp_dir ? lines->comp_dir : "";
	const struct dwarf_line_file *at;
	int length;

	if (file >= lines->file_count)
		return "";
	at = &lines->files[file];
	if (!at->name || !*at->name)
		return "";
	if (*at->name == '/')
		return at->name;
	directory = at->directory ? at->directory : "";
	if (*directory == '/' || !*root || !strcmp(directory, root))
		root = "";
	length = snprintf(path, DWARF_LINE_PATH_MAX, "%s%s%s%s%s", root, *root ? "/" : "",
			  directory, *directory ? "/" : "", at->name);
	return length < DWARF_LINE_PATH_MAX ? path : at->name;
}
