/* SPDX-License-Identifier: Apache-2.0 */
/* Whole units are walked, DIE by DIE, and flattened; dwarf_getscopes() and its like, asked address
 * by address, lose the inlined functions of half of all LTO and Rust code and take 1000 times as
 * long. Type subtrees are walked too: methods of local classes hang below functions without code.
 */
#include "symbol-server/symbolize/convert/debug_units.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "symbol-server/symbolize/convert/debug_walk.h"
#include "symbol-server/symbolize/dwarf/dwarf_constants.h"

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

static uint32_t file_of(struct walk *walk, uint64_t number)
{
	char path[DWARF_LINE_PATH_MAX];

	if (number >= walk->lines->file_count)
		return 0;
	if (walk->file_texts[number] == UINT32_MAX)
		walk->file_texts[number] =
			file_text(walk, dwarf_lines_path(walk->lines, (uint32_t)number, path));
	return walk->file_texts[number];
}

static bool room_for_files(struct walk *walk)
{
	size_t count = walk->read.file_count;

	if (!ARRAY_RESERVE(walk->file_texts, count, walk->file_room)) {
		walk->no_memory = true;
		return false;
	}
	if (count)
		memset(walk->file_texts, 0xff, count * sizeof(*walk->file_texts));
	return true;
}

static const struct dwarf_lines no_lines;

static bool has_read(const struct walk *walk, const struct dwarf_unit *unit)
{
	const char *root = walk->read.comp_dir, *own = unit->comp_dir;

	return walk->read_of == unit->units && walk->read_at == unit->stmt_list &&
	       walk->read_address_bytes == unit->address_bytes &&
	       (root == own || (root && own && !strcmp(root, own)));
}

/* The unit's file and line tables; what is good of a damaged one is used. False: they have been
 * another unit's before. */
static bool read_unit_lines(struct walk *walk, struct dwarf_unit *unit)
{
	struct dwarf_lines *lines = &walk->read;

	walk->lines = lines;
	if (has_read(walk, unit))
		return false;
	if (lines->program_bytes > LINE_BYTES_FREE &&
	    lines->program_bytes / REPEATED_MAX >
		    dwarf_units_section(unit->units, DWARF_LINE).length) {
		walk->lines = &no_lines;
		walk->flags |= SYMBOL_TABLE_CUT;
		return true;
	}
	dwarf_lines_read(lines, unit, unit->stmt_list);
	walk->read_of = unit->units;
	walk->read_at = unit->stmt_list;
	walk->read_address_bytes = unit->address_bytes;
	walk->no_memory |= lines->no_memory;
	if (!room_for_files(walk)) {
		lines->row_count = lines->file_count = 0;
		return true;
	}
	for (size_t i = 0; i < lines->row_count; i++)
		lines->rows[i].file = file_of(walk, lines->rows[i].file);
	return true;
}

/* ---- functions ---- */

static uint32_t number_of(const struct dwarf_unit *unit, const struct dwarf_die *die,
			  enum dwarf_slot slot)
{
	uint64_t value;

	if (!dwarf_die_has(die, slot) || !dwarf_value_number(unit, &die->values[slot], &value) ||
	    value >= UINT32_MAX)
		return 0;
	return (uint32_t)value;
}

static bool has_code(const struct dwarf_die *die)
{
	return dwarf_die_has(die, DWARF_LOW_PC) || dwarf_die_has(die, DWARF_RANGES_AT);
}

static void add_range(void *context, uint64_t low, uint64_t high)
{
	struct walk *walk = context;
	struct code_range *range = ROW_ADD(walk, walk->ranges, walk->range_count, walk->range_room);

	if (range)
		*range = (struct code_range){low, high, SYMBOL_NONE, 0, 0};
}

static void add_ranges(struct walk *walk, struct dwarf_unit *unit, const struct dwarf_die *die)
{
	if (!has_code(die))
		return;
	if (!dwarf_die_has(die, DWARF_RANGES_AT))
		dwarf_die_ranges(unit, die, add_range, walk);
	else if (walk->listed_ranges > walk->listed_ranges_max)
		walk->flags |= SYMBOL_TABLE_CUT;
	else
		walk->listed_ranges += dwarf_die_ranges(unit, die, add_range, walk);
}

/* A list has less entries than bytes. */
static uint64_t ranges_bytes(struct dwarf_units *units)
{
	return dwarf_units_section(units, DWARF_RANGES).length +
	       dwarf_units_section(units, DWARF_RNGLISTS).length;
}

static void limit_ranges(struct walk *walk)
{
	uint64_t bytes = ranges_bytes(walk->files->main);

	for (size_t i = 0; i < walk->files->split_count; i++)
		bytes += ranges_bytes(walk->files->splits[i]);
	walk->listed_ranges_max = RANGES_FREE + bytes * REPEATED_MAX / 4;
}

static void own_ranges(struct walk *walk, size_t first, uint32_t node, uint32_t depth)
{
	for (size_t i = first; i < walk->range_count; i++) {
		walk->ranges[i].node = node;
		walk->ranges[i].depth = depth;
	}
}

static uint64_t walk_children(struct walk *walk, struct dwarf_unit *unit, uint64_t at,
			      struct place *place);

/* For what is inside of that DIE; die NULL: names in there are in the scope that it is in. */
static struct place place_inside(struct place *place, struct dwarf_unit *unit,
				 const struct dwarf_die *die)
{
	return (struct place){
		.parent = place,
		.unit = unit,
		.die = die,
		.node = place->node,
		.depth = place->depth,
		.die_depth = place->die_depth + 1,
	};
}

/* All walk_…() return where the next sibling is. */
static uint64_t walk_function(struct walk *walk, struct dwarf_unit *unit,
			      const struct dwarf_die *die, struct place *place)
{
	struct place inside = place_inside(place, unit, die);
	size_t first = walk->range_count;
	uint64_t next = die->next;
	uint32_t name = 0;

	debug_note_scope(walk, unit, die, place);
	inside.node = SYMBOL_NONE;
	add_ranges(walk, unit, die);
	/* Its symbol is where it starts: hot part first, as compilers write ranges. */
	if (walk->range_count > first)
		name = debug_name(walk, unit, die, walk->ranges[first].low);
	if (name) {
		inside.node = table_builder_node(walk->builder, name, SYMBOL_NONE, 0, 0);
		inside.depth = 1;
		own_ranges(walk, first, inside.node, 0);
	} else {
		walk->range_count = first;
	}
	if (die->has_children)
		next = walk_children(walk, unit, next, &inside);
	if (name)
		table_builder_function(walk->builder, walk->ranges + first,
				       walk->range_count - first, walk->lines->rows,
				       walk->lines->row_count);
	walk->range_count = first;
	return next;
}

static uint64_t walk_inlined(struct walk *walk, struct dwarf_unit *unit,
			     const struct dwarf_die *die, struct place *place)
{
	struct place inside = place_inside(place, unit, NULL);

	if (place->node != SYMBOL_NONE && has_code(die)) {
		size_t first = walk->range_count;
		uint32_t name = debug_inlined_name(walk, unit, die);

		/* dwz: the name is in a file that was not there. The frame is there all the same.
		 */
		if (!name)
			name = table_builder_text(walk->builder, "??");
		inside.node =
			table_builder_node(walk->builder, name, place->node,
					   file_of(walk, number_of(unit, die, DWARF_CALL_FILE)),
					   number_of(unit, die, DWARF_CALL_LINE));
		inside.depth++;
		add_ranges(walk, unit, die);
		own_ranges(walk, first, inside.node, place->depth);
	}
	return die->has_children ? walk_children(walk, unit, die->next, &inside) : die->next;
}

/* Over what is of no interest: by the sibling where the DIE names one that lies ahead. */
static uint64_t pass_children(struct dwarf_unit *unit, const struct dwarf_die *parent)
{
	uint64_t at = parent->next;
	struct dwarf_unit *of;
	struct dwarf_die die;
	uint64_t depth = 1;

	if (dwarf_die_has(parent, DWARF_SIBLING) &&
	    dwarf_value_reference(unit, &parent->values[DWARF_SIBLING], &of, &at) && of == unit &&
	    at > parent->next)
		return at;
	at = parent->next;
	while (depth) {
		if (!dwarf_die_read(unit, at, &die))
			return unit->end;
		at = die.next;
		if (!die.tag)
			depth--;
		else if (die.has_children)
			depth++;
	}
	return at;
}

static uint64_t walk_die(struct walk *walk, struct dwarf_unit *unit, const struct dwarf_die *die,
			 struct place *place)
{
	struct place inside = place_inside(place, unit, NULL);

	if (dwarf_tag_is_scope(die->tag)) {
		inside.die = die;
		return die->has_children ? walk_children(walk, unit, die->next, &inside)
					 : die->next;
	}
	switch (die->tag) {
	case DW_TAG_subprogram:
		return walk_function(walk, unit, die, place);
	case DW_TAG_inlined_subroutine:
		return walk_inlined(walk, unit, die, place);
	case DW_TAG_variant_part:
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
		return die->has_children ? walk_children(walk, unit, die->next, &inside)
					 : die->next;
	default:
		return die->has_children ? pass_children(unit, die) : die->next;
	}
}

static uint64_t walk_children(struct walk *walk, struct dwarf_unit *unit, uint64_t at,
			      struct place *place)
{
	struct dwarf_die die;

	if (place->die_depth >= DIE_DEPTH_MAX) {
		walk->flags |= SYMBOL_TABLE_DAMAGED;
		return pass_children(unit, &(struct dwarf_die){.next = at});
	}
	while (!walk->no_memory && dwarf_die_read(unit, at, &die)) {
		if (!die.tag)
			return die.next;
		at = walk_die(walk, unit, &die, place);
	}
	return unit->end;
}

/* ---- units ---- */

static bool is_c_language(unsigned language)
{
	return language == DW_LANG_C89 || language == DW_LANG_C || language == DW_LANG_C99 ||
	       language == DW_LANG_C11 || language == DW_LANG_C17 ||
	       language == DW_LANG_Mips_Assembler || language == DW_LANG_ObjC;
}

/* The unit with the functions, of the skeleton's .dwo or .dwp; the unit itself where it has them.
 */
static struct dwarf_unit *whole_unit(struct walk *walk, struct dwarf_unit *unit)
{
	bool is_skeleton = unit->type == DW_UT_skeleton || unit->dwo_name ||
			   unit->root_tag == DW_TAG_skeleton_unit;

	if (!is_skeleton)
		return unit;
	for (size_t i = 0; i < walk->files->split_count; i++) {
		struct dwarf_unit *split = dwarf_unit_of_signature(walk->files->splits[i],
								   unit->signature);

		if (split && !split->skeleton) {
			split->skeleton = unit;
			return split;
		}
	}
	walk->flags |= SYMBOL_TABLE_DWO_MISSING;
	return unit;
}

static void walk_unit(struct walk *walk, struct dwarf_unit *unit)
{
	struct place place = {.node = SYMBOL_NONE};
	struct dwarf_die root, split_root;
	struct dwarf_unit *whole;
	bool is_first = true;
	size_t row_count;

	if (!dwarf_unit_open(unit) || !dwarf_die_read(unit, unit->first_die, &root))
		return;
	whole = whole_unit(walk, unit);
	walk->is_c = is_c_language(whole->language);
	walk->lines = &no_lines;
	if (unit->has_stmt_list && (root.tag != DW_TAG_partial_unit || has_code(&root)))
		is_first = read_unit_lines(walk, unit);
	walk->range_count = 0;
	if (whole == unit && root.has_children)
		walk_children(walk, unit, root.next, &place);
	else if (whole != unit && dwarf_die_read(whole, whole->first_die, &split_root) &&
		 split_root.has_children)
		walk_children(walk, whole, split_root.next, &place);
	walk->range_count = 0;
	add_ranges(walk, unit, &root);
	/* Of rows that were another unit's as well, only what this one says is its own. */
	row_count = is_first || walk->range_count ? walk->lines->row_count : 0;
	table_builder_unit_end(walk->builder, walk->ranges, walk->range_count, walk->lines->rows,
			       row_count);
}

static void walk_units(struct walk *walk, struct dwarf_units *units)
{
	for (uint32_t i = 0; i < units->count && !walk->no_memory; i++) {
		struct dwarf_unit *unit = &units->rows[i];

		if (unit->type != DW_UT_type && unit->type != DW_UT_split_type)
			walk_unit(walk, unit);
	}
	walk->flags |= units->flags;
}

static void walk_release(struct walk *walk)
{
	dwarf_lines_release(&walk->read);
	hash_table_release(&walk->name_table);
	hash_table_release(&walk->scope_table);
	free(walk->file_texts);
	free(walk->ranges);
	free(walk->names);
	free(walk->die_scopes);
	free(walk->scopes);
	free(walk->pending);
	free(walk->pending_plain);
}

/* All that is needed of them is in the table now, which is still to be sorted and packed. */
static void drop_sections(const struct debug_files *files)
{
	if (files->main->alt)
		dwarf_units_drop(files->main->alt);
	dwarf_units_drop(files->main);
	for (size_t i = 0; i < files->split_count; i++)
		dwarf_units_drop(files->splits[i]);
}

bool debug_units_read(const struct debug_files *files, struct table_builder *builder,
		      struct debug_units_result *result, struct error *err)
{
	struct walk walk = {.builder = builder, .files = files, .lines = &no_lines};

	hash_table_init(&walk.name_table, NAMES_MAX);
	hash_table_init(&walk.scope_table, NAMES_MAX);
	walk.scopes = calloc(1, sizeof(*walk.scopes)); /* 0: the root */
	walk.scope_count = walk.scope_room = 1;
	walk.no_memory = !walk.scopes;
	limit_ranges(&walk);
	if (files->main->alt) /* the names of its scopes */
		walk_units(&walk, files->main->alt);
	walk_units(&walk, files->main);
	for (size_t i = 0; i < files->split_count; i++)
		walk.flags |= files->splits[i]->flags;
	result->flags |= walk.flags;
	result->pending = walk.no_memory ? NULL : debug_settle_names(&walk);
	walk_release(&walk);
	drop_sections(files);
	return result->pending ||
	       error_set(err, ERROR_MEMORY, "its debug information does not fit the memory limit");
}
