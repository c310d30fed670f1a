/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/go/go_pclntab.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "symbol-server/symbolize/go/go_inline_tree.h"
#include "symbol-server/symbolize/symbol_table.h"

struct reader {
	struct go_image image;
	struct go_module module;
	struct table_builder *builder;
	uint32_t *flags;
	uint32_t *files; /* text of each file, by its index; SYMBOL_NONE: not asked yet */
	uint32_t file_count;
	struct go_rows rows;
	bool no_memory, taken;

	/* of the function at hand */
	uint32_t *nodes; /* by number in its inline tree; SYMBOL_NONE: not made yet */
	size_t node_room;
	struct line_row *lines;
	struct code_range *ranges;
	size_t room; /* of lines and ranges */
};

static uint32_t file_text(struct reader *reader, uint32_t file)
{
	if (file >= reader->file_count)
		return 0;
	if (reader->files[file] == SYMBOL_NONE)
		reader->files[file] = table_builder_text(reader->builder,
							 go_module_file(&reader->module, file));
	return reader->files[file];
}

/* ---- inlined calls ---- */

static uint32_t node_count(const struct go_rows *rows)
{
	int32_t last = -1;

	for (size_t i = 0; i < rows->count; i++)
		if (rows->rows[i].inlined > last)
			last = rows->rows[i].inlined;
	return (uint32_t)(last + 1);
}

/* No node is known yet. False: there cannot be as many, or memory is short. */
static bool clear_nodes(struct reader *reader, uint32_t count)
{
	if (count > reader->rows.size)
		return false;
	if (!ARRAY_RESERVE(reader->nodes, count, reader->node_room)) {
		reader->no_memory = true;
		return false;
	}
	if (count)
		memset(reader->nodes, 0xff, count * sizeof(*reader->nodes));
	return true;
}

/* The call's node and before it those that it is inlined into, whose numbers are smaller. False:
 * the tree is damaged. */
static bool make_node(struct reader *reader, const struct go_function *function, uint32_t root,
		      int32_t number)
{
	int32_t chain[SYMBOL_CHAIN_MAX];
	struct go_inlined_call calls[SYMBOL_CHAIN_MAX];
	unsigned depth = 0;
	uint32_t parent = root;

	for (; number >= 0 && reader->nodes[number] == SYMBOL_NONE;
	     number = calls[depth++].parent) {
		if (depth == SYMBOL_CHAIN_MAX ||
		    !go_inline_tree_call(&reader->module, function, &reader->rows, number,
					 &calls[depth]))
			return false;
		chain[depth] = number;
	}
	if (number >= 0)
		parent = reader->nodes[number];
	while (depth-- > 0) {
		uint32_t name = table_builder_text(reader->builder, calls[depth].name);

		parent = table_builder_node(reader->builder, name, parent,
					    file_text(reader, calls[depth].file),
					    calls[depth].line);
		reader->nodes[chain[depth]] = parent;
	}
	return true;
}

static bool make_nodes(struct reader *reader, const struct go_function *function, uint32_t root)
{
	const struct go_rows *rows = &reader->rows;

	if (!clear_nodes(reader, node_count(rows)))
		return false;
	for (size_t i = 0; i < rows->count; i++)
		if (rows->rows[i].inlined >= 0 &&
		    !make_node(reader, function, root, rows->rows[i].inlined))
			return false;
	return true;
}

/* ---- functions ---- */

static bool make_room(struct reader *reader, size_t count)
{
	size_t room = reader->room;

	reader->no_memory |= !ARRAY_RESERVE(reader->lines, count + 1, room) ||
			     !ARRAY_RESERVE(reader->ranges, count + 1, reader->room);
	return !reader->no_memory;
}

/* Rows with the same call are one range. */
static size_t make_ranges(struct reader *reader, uint64_t start, uint32_t root, bool has_nodes)
{
	const struct go_rows *rows = &reader->rows;
	struct code_range *ranges = reader->ranges;
	size_t count = 1;

	ranges[0] = (struct code_range){start, start + rows->size, root, 0};
	for (size_t i = 0; has_nodes && i < rows->count; i++) {
		const struct go_row *row = &rows->rows[i];
		uint64_t low = start + row->at;
		uint64_t high = start + (i + 1 < rows->count ? row[1].at : rows->size);

		if (row->inlined < 0)
			continue;
		if (count > 1 && ranges[count - 1].high == low &&
		    ranges[count - 1].node == reader->nodes[row->inlined])
			ranges[count - 1].high = high;
		else
			ranges[count++] = (struct code_range){low, high,
							      reader->nodes[row->inlined], 1};
	}
	return count;
}

static void take_function(struct reader *reader, const struct go_function *function, bool has_trees)
{
	const struct go_rows *rows = &reader->rows;
	bool damaged = false, has_nodes;
	uint32_t root;

	if (!go_rows_read(&reader->rows, &reader->module, function, &damaged) ||
	    !make_room(reader, rows->count)) {
		reader->no_memory = true;
		return;
	}
	root = table_builder_node(reader->builder,
				  table_builder_text(reader->builder, function->name), SYMBOL_NONE,
				  0, 0);
	has_nodes = has_trees && function->inline_pcs;
	if (has_nodes && !make_nodes(reader, function, root)) {
		has_nodes = false;
		damaged = true;
	}
	for (size_t i = 0; i < rows->count; i++)
		reader->lines[i] = (struct line_row){
			.address = function->start + rows->rows[i].at,
			.file = file_text(reader, rows->rows[i].file),
			.line = rows->rows[i].line,
		};
	table_builder_function(reader->builder, reader->ranges,
			       make_ranges(reader, function->start, root, has_nodes), reader->lines,
			       rows->count);
	table_builder_unit_end(reader->builder, NULL, 0, NULL, 0);
	reader->taken = true;
	if (damaged)
		*reader->flags |= SYMBOL_TABLE_DAMAGED;
}

/* The linker's own names for places in the text, such as go:textfipsstart: padding follows. */
static bool is_marker(const struct go_function *function)
{
	return !function->file_pcs && !function->line_pcs &&
	       (!strncmp(function->name, "go:", 3) || !strncmp(function->name, "go.", 3));
}

static void take_functions(struct reader *reader)
{
	bool has_trees = go_inline_tree_find_base(&reader->module);
	struct go_function function;
	uint64_t reached = 0;

	if (!has_trees)
		*reader->flags |= SYMBOL_TABLE_NO_INLINES;
	for (uint32_t i = 0; i < reader->module.count && !reader->no_memory; i++) {
		if (!go_module_function(&reader->module, i, &function) ||
		    function.start < reached) {
			*reader->flags |= SYMBOL_TABLE_DAMAGED;
			continue;
		}
		reached = function.limit;
		if (function.limit > function.start && !is_marker(&function))
			take_function(reader, &function, has_trees);
	}
}

/* With cgo, C code may have DWARF and Go code none. */
static bool is_known(const struct reader *reader)
{
	enum { ASKED = 5 };
	struct go_function function;
	unsigned known = 0;

	for (unsigned i = 1; i <= ASKED; i++)
		known += go_module_function(
				 &reader->module,
				 (uint32_t)((uint64_t)reader->module.count * i / (ASKED + 1)),
				 &function) &&
			 table_builder_has_function_at(reader->builder, function.start);
	return known > ASKED / 2;
}

bool go_pclntab_read(const uint8_t *bytes, size_t length, struct table_builder *builder,
		     uint32_t *flags)
{
	struct reader reader = {.builder = builder, .flags = flags};
	bool ok = false;

	if (!go_image_open(&reader.image, bytes, length) ||
	    !go_module_find(&reader.image, &reader.module) || is_known(&reader))
		goto out;
	reader.file_count = (uint32_t)(reader.module.units.length / 4);
	reader.files = malloc((reader.file_count + (size_t)1) * sizeof(*reader.files));
	if (!reader.files)
		goto out;
	memset(reader.files, 0xff, reader.file_count * sizeof(*reader.files));
	take_functions(&reader);
	ok = reader.taken;
out:
	free(reader.files);
	free(reader.nodes);
	free(reader.lines);
	free(reader.ranges);
	go_rows_release(&reader.rows);
	go_image_close(&reader.image);
	return ok;
}
