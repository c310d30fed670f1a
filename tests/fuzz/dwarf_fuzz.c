/* SPDX-License-Identifier: Apache-2.0 */
/* An ELF file's DWARF: every DIE, value, range and line of it, then the walk that names are made
 * by. What is read stays inside of the file, in order, and ends. */
#include "symbol-server/symbolize/convert/debug_units.h"
#include "symbol-server/symbolize/dwarf/dwarf_file.h"
#include "symbol-server/symbolize/dwarf/dwarf_line.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

enum { STEPS_MAX = 300000, SECTION_MAX = 1 << 20 };

struct steps {
	unsigned left; /* many units may share one long list */
	size_t text_bytes;
};

static void take_range(void *context, uint64_t low, uint64_t high)
{
	struct steps *steps = context;

	if (low >= high)
		abort();
	steps->left -= steps->left > 0;
}

static void read_values(struct dwarf_unit *unit, const struct dwarf_die *die, struct steps *steps)
{
	for (unsigned slot = 0; slot < DWARF_SLOT_COUNT; slot++) {
		struct dwarf_unit *of;
		const char *text;
		uint64_t number;

		if (!dwarf_die_has(die, (enum dwarf_slot)slot))
			continue;
		text = dwarf_value_text(unit, &die->values[slot]);
		if (text)
			steps->text_bytes += strlen(text);
		dwarf_value_number(unit, &die->values[slot], &number);
		dwarf_value_address(unit, &die->values[slot], &number);
		if (dwarf_value_reference(unit, &die->values[slot], &of, &number) &&
		    number >= of->end)
			abort();
	}
}

static void read_dies(struct dwarf_unit *unit, struct steps *steps)
{
	uint64_t at = unit->first_die;
	struct dwarf_die die;

	while (steps->left && dwarf_die_read(unit, at, &die)) {
		if (die.next <= at || die.next > unit->end)
			abort();
		at = die.next;
		steps->left--;
		if (die.tag) {
			read_values(unit, &die, steps);
			dwarf_die_ranges(unit, &die, take_range, steps);
		}
	}
}

static void read_lines(struct dwarf_lines *lines, struct dwarf_unit *unit, struct steps *steps)
{
	char path[DWARF_LINE_PATH_MAX];

	if (!unit->has_stmt_list || !steps->left)
		return;
	dwarf_lines_read(lines, unit, unit->stmt_list);
	for (size_t i = 0; i < lines->row_count; i++) {
		const struct line_row *row = &lines->rows[i];

		if (row->file != UINT32_MAX && row->file >= lines->file_count)
			abort();
		/* Ascending up to the end of each sequence. */
		if (i + 1 < lines->row_count && !row->is_end && row[1].address <= row->address)
			abort();
		steps->left -= steps->left > 0;
	}
	for (uint32_t i = 0; i < lines->file_count && steps->left; i++) {
		steps->text_bytes += strlen(dwarf_lines_path(lines, i, path));
		steps->left--;
	}
}

static void read_units(struct dwarf_units *units)
{
	struct steps steps = {.left = STEPS_MAX};
	struct dwarf_lines lines = {0};

	for (uint32_t i = 0; i < units->count; i++) {
		struct dwarf_unit *unit = &units->rows[i];

		if (!dwarf_unit_open(unit))
			continue;
		if (unit->dwo_name)
			unit->skeleton = dwarf_unit_of_signature(units, unit->signature);
		read_dies(unit, &steps);
		read_lines(&lines, unit, &steps);
		unit->skeleton = NULL;
	}
	dwarf_lines_release(&lines);
}

static void walk_units(struct dwarf_units *units)
{
	static const uint64_t code[1][2] = {{0x1000, 0x1000000}};
	struct table_builder *builder = table_builder_new();
	struct debug_files files = {.main = units, .splits = {units}, .split_count = 1};
	struct debug_units_result result = {0};

	if (builder && table_builder_sections(builder, code, 1, NULL)) {
		table_builder_sort_symbols(builder);
		debug_units_read(&files, builder, &result, NULL);
	}
	free(result.pending);
	table_builder_free(builder);
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	const struct dwarf_limits limits = {.section_bytes = SECTION_MAX,
					    .total_bytes = 4 * SECTION_MAX};
	struct dwarf_file *file = dwarf_file_open(bytes, length, &limits, NULL);
	struct dwarf_units units;
	uint8_t id[DWARF_ID_MAX];

	if (!file)
		return;
	if (dwarf_file_id(file, id) > sizeof(id) || dwarf_file_alt_id(file, id) > sizeof(id))
		abort();
	if (dwarf_units_open(&units, file, NULL)) {
		units.alt = &units; /* its own supplementary file */
		read_units(&units);
		units.alt = NULL;
		walk_units(&units);
		dwarf_units_close(&units);
	}
	dwarf_file_close(file);
}
