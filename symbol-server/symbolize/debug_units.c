/* SPDX-License-Identifier: Apache-2.0 */
/* Whole units are walked, DIE by DIE, and flattened; dwarf_getscopes() and its like, asked address
 * by address, lose the inlined functions of half of all LTO and Rust code and take 1000 times as
 * long. Type subtrees are walked too: methods of local classes hang below functions without code.
 */
#include "symbol-server/symbolize/debug_units.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "symbol-server/symbolize/debug_walk.h"

#ifndef DW_TAG_skeleton_unit
#define DW_TAG_skeleton_unit 0x4a
#endif

/* ---- files and lines ---- */

/* "/a/./b//c" → "/a/b/c", as compilers that are given relative paths leave them. */
static uint32_t file_text(struct walk *walk, const char *path)
{
	char tidy[4096];
	size_t length = 0;

	if (strlen(path) >= sizeof(tidy))
		return table_builder_text(walk->builder, path);
	for (const char *at = path; *at;) {
		bool starts = at == path || at[-1] == '/';

		if (starts && at[0] == '.' && at[1] == '/')
			at += 2;
		else if (starts && at != path && at[0] == '/')
			at++;
		else
			tidy[length++] = *at++;
	}
	tidy[length] = '\0';
	return table_builder_text(walk->builder, tidy);
}

static uint32_t file_of(struct walk *walk, size_t number)
{
	const char *path;

	/* Before DWARF 5, number 0 means that there is none; libdw has "???" there. */
	if (number >= walk->file_count || (!number && walk->version < 5))
		return 0;
	if (walk->file_texts[number] == UINT32_MAX) {
		path = dwarf_filesrc(walk->files, number, NULL, NULL);
		walk->file_texts[number] = path ? file_text(walk, path) : 0;
	}
	return walk->file_texts[number];
}

static bool read_files(struct walk *walk, Dwarf_Die *unit)
{
	walk->file_count = 0;
	if (dwarf_getsrcfiles(unit, &walk->files, &walk->file_count))
		return false;
	if (walk->file_count > walk->file_room) {
		uint32_t *texts = realloc(walk->file_texts, walk->file_count * sizeof(*texts));

		if (!texts) {
			walk->file_count = 0;
			walk->no_memory = true;
			return false;
		}
		walk->file_texts = texts;
		walk->file_room = walk->file_count;
	}
	memset(walk->file_texts, 0xff, walk->file_count * sizeof(*walk->file_texts));
	return true;
}

static void read_rows(struct walk *walk, Dwarf_Die *unit)
{
	Dwarf_Lines *lines;
	size_t count;

	if (dwarf_getsrclines(unit, &lines, &count)) {
		walk->flags |= SYMBOL_TABLE_DAMAGED;
		return;
	}
	for (size_t i = 0; i < count; i++) {
		Dwarf_Line *line = dwarf_onesrcline(lines, i);
		struct line_row *row = ROW_ADD(walk, walk->rows, walk->row_count, walk->row_room);
		Dwarf_Files *files;
		Dwarf_Addr address;
		size_t file;
		int number;

		if (!row)
			return;
		if (dwarf_lineaddr(line, &address) || dwarf_lineno(line, &number) ||
		    dwarf_lineendsequence(line, &row->is_end) ||
		    dwarf_line_file(line, &files, &file)) {
			walk->row_count--;
			continue;
		}
		row->address = address;
		row->line = number > 0 ? (uint32_t)number : 0;
		row->file = file_of(walk, file);
	}
}

/* The unit's file and line tables, through lines_dwarf. */
static void read_unit_lines(struct walk *walk, Dwarf_Die *unit)
{
	Dwarf_Die there;

	walk->row_count = walk->file_count = 0;
	if (!dwarf_hasattr(unit, DW_AT_stmt_list))
		return;
	if (!walk->lines_dwarf)
		walk->lines_dwarf = dwarf_begin_elf(walk->elf, DWARF_C_READ, NULL);
	if (!walk->lines_dwarf || !dwarf_offdie(walk->lines_dwarf, dwarf_dieoffset(unit), &there) ||
	    !read_files(walk, &there)) {
		walk->flags |= SYMBOL_TABLE_DAMAGED;
		return;
	}
	read_rows(walk, &there);
}

/* ---- functions ---- */

static uint32_t number_attribute(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (!dwarf_attr(die, name, &attribute) || dwarf_formudata(&attribute, &value) ||
	    value >= UINT32_MAX)
		return 0;
	return (uint32_t)value;
}

static bool has_code(Dwarf_Die *die)
{
	return dwarf_hasattr(die, DW_AT_low_pc) || dwarf_hasattr(die, DW_AT_ranges);
}

static void add_ranges(struct walk *walk, Dwarf_Die *die, uint32_t node, uint32_t depth)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &low, &high)) > 0) {
		struct code_range *range = ROW_ADD(walk, walk->ranges, walk->range_count,
						   walk->range_room);

		if (!range)
			return;
		*range = (struct code_range){low, high, node, depth};
	}
	if (at < 0)
		walk->flags |= SYMBOL_TABLE_DAMAGED;
}

static void walk_children(struct walk *walk, Dwarf_Die *parent, const struct place *place);

/* Where the function starts, for its symbol: hot part first, as compilers write ranges. */
static uint64_t first_address(Dwarf_Die *die)
{
	Dwarf_Addr base, low, high;

	if (dwarf_ranges(die, 0, &base, &low, &high) > 0 && high > low)
		return low;
	return 0;
}

static void walk_function(struct walk *walk, Dwarf_Die *die, const struct place *place)
{
	struct place inside = {.node = SYMBOL_NONE, .die_depth = place->die_depth + 1};
	size_t first = walk->range_count;
	uint64_t address;
	uint32_t name = 0;

	debug_note_scope(walk, die, place->scope);
	inside.scope = place->scope;
	if (dwarf_haschildren(die))
		inside.scope = debug_scope_inside(walk, place->scope, die);
	if (has_code(die) && (address = first_address(die)) != 0)
		name = debug_name(walk, die, address);
	if (name) {
		inside.node = table_builder_node(walk->builder, name, SYMBOL_NONE, 0, 0);
		inside.depth = 1;
		add_ranges(walk, die, inside.node, 0);
	}
	if (dwarf_haschildren(die))
		walk_children(walk, die, &inside);
	if (name)
		table_builder_function(walk->builder, walk->ranges + first,
				       walk->range_count - first, walk->rows, walk->row_count);
	walk->range_count = first;
}

static void walk_inlined(struct walk *walk, Dwarf_Die *die, const struct place *place)
{
	struct place inside = *place;

	inside.die_depth++;
	if (place->node != SYMBOL_NONE && has_code(die)) {
		Dwarf_Die origin;
		/* Many DIEs are instances of one: the names kept are the origins'. */
		uint32_t name = debug_name(walk, debug_origin(walk, die, &origin) ? &origin : die,
					   0);

		/* dwz: the name is in a file that was not there. The frame is there all the same.
		 */
		if (!name)
			name = table_builder_text(walk->builder, "??");
		inside.node =
			table_builder_node(walk->builder, name, place->node,
					   file_of(walk, number_attribute(die, DW_AT_call_file)),
					   number_attribute(die, DW_AT_call_line));
		inside.depth++;
		add_ranges(walk, die, inside.node, place->depth);
	}
	if (dwarf_haschildren(die))
		walk_children(walk, die, &inside);
}

static void walk_die(struct walk *walk, Dwarf_Die *die, const struct place *place)
{
	struct place inside = *place;

	inside.die_depth++;
	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram:
		walk_function(walk, die, place);
		break;
	case DW_TAG_inlined_subroutine:
		walk_inlined(walk, die, place);
		break;
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
	case DW_TAG_enumeration_type: /* Rust: methods of enums */
		if (!dwarf_haschildren(die))
			break;
		inside.scope = debug_scope_inside(walk, place->scope, die);
		walk_children(walk, die, &inside);
		break;
	case DW_TAG_variant_part:
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
		if (dwarf_haschildren(die))
			walk_children(walk, die, &inside);
		break;
	default:
		break;
	}
}

static void walk_children(struct walk *walk, Dwarf_Die *parent, const struct place *place)
{
	Dwarf_Die die, next;
	int rc;

	if (place->die_depth >= DIE_DEPTH_MAX) {
		walk->flags |= SYMBOL_TABLE_DAMAGED;
		return;
	}
	if (dwarf_child(parent, &die))
		return;
	for (;;) {
		walk_die(walk, &die, place);
		rc = dwarf_siblingof(&die, &next);
		/* A sibling that lies before its brother would be walked for ever. */
		if (rc < 0 || (rc == 0 && dwarf_dieoffset(&next) <= dwarf_dieoffset(&die)))
			walk->flags |= SYMBOL_TABLE_DAMAGED;
		if (rc || walk->no_memory || dwarf_dieoffset(&next) <= dwarf_dieoffset(&die))
			return;
		die = next;
	}
}

/* ---- units ---- */

static bool is_c_language(int language)
{
	return language == DW_LANG_C89 || language == DW_LANG_C || language == DW_LANG_C99 ||
	       language == DW_LANG_C11 || language == 0x2c /* C17 */ || language == 0x8001 ||
	       language == DW_LANG_ObjC;
}

static bool is_split(Dwarf_Die *unit, uint8_t type)
{
	return type == DW_UT_skeleton || dwarf_tag(unit) == DW_TAG_skeleton_unit ||
	       dwarf_hasattr(unit, DW_AT_GNU_dwo_name) || dwarf_hasattr(unit, DW_AT_dwo_name);
}

static void walk_unit(struct walk *walk, Dwarf_Die *unit, uint8_t type)
{
	struct place place = {.node = SYMBOL_NONE};

	walk->is_c = is_c_language(dwarf_srclang(unit));
	if (is_split(unit, type))
		walk->flags |= SYMBOL_TABLE_DWO_MISSING;
	read_unit_lines(walk, unit);
	walk->range_count = 0;
	walk_children(walk, unit, &place);
	walk->range_count = 0;
	add_ranges(walk, unit, SYMBOL_NONE, 0);
	table_builder_unit_end(walk->builder, walk->ranges, walk->range_count, walk->rows,
			       walk->row_count);
}

static void walk_units(struct walk *walk, Dwarf *dwarf)
{
	Dwarf_CU *unit = NULL;
	Dwarf_Die die, skeleton;
	uint8_t type;
	uint32_t count = 0, since = 0;
	int rc;

	while (!(
		rc = dwarf_get_units(dwarf, unit, &unit, &walk->version, &type, &die, &skeleton))) {
		if (type == DW_UT_type || type == DW_UT_split_type)
			continue;
		walk_unit(walk, &die, type);
		count++;
		/* Reopened, libdw reads all unit headers up to the one asked for: less and less
		 * often, so that the sum stays linear. */
		if (++since >= LINE_UNITS && since >= count / 8) {
			dwarf_end(walk->lines_dwarf);
			walk->lines_dwarf = NULL;
			since = 0;
		}
		if (walk->no_memory)
			return;
	}
	if (rc < 0)
		walk->flags |= SYMBOL_TABLE_DAMAGED;
}

static void walk_release(struct walk *walk)
{
	if (walk->lines_dwarf)
		dwarf_end(walk->lines_dwarf);
	hash_table_release(&walk->name_table);
	hash_table_release(&walk->scope_table);
	free(walk->file_texts);
	free(walk->rows);
	free(walk->ranges);
	free(walk->names);
	free(walk->die_scopes);
	free(walk->scopes);
	free(walk->pending);
	free(walk->pending_plain);
}

bool debug_units_read(Dwarf *dwarf, struct table_builder *builder,
		      struct debug_units_result *result, struct error *err)
{
	struct walk walk = {.builder = builder, .elf = dwarf_getelf(dwarf)};

	hash_table_init(&walk.name_table, NAMES_MAX);
	hash_table_init(&walk.scope_table, NAMES_MAX);
	walk.scopes = calloc(1, sizeof(*walk.scopes)); /* 0: the root */
	walk.scope_count = walk.scope_room = 1;
	walk.no_memory = !walk.scopes;
	if (!walk.no_memory)
		walk_units(&walk, dwarf);
	result->flags |= walk.flags;
	result->pending = walk.no_memory ? NULL : debug_settle_names(&walk);
	walk_release(&walk);
	return result->pending ||
	       error_set(err, ERROR_MEMORY, "its debug information does not fit the memory limit");
}
