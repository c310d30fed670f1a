/* SPDX-License-Identifier: Apache-2.0 */
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "symbol-server/symbolize/debug_walk.h"

void *debug_walk_row(struct walk *walk, void **rows, size_t *count, size_t *room, size_t size)
{
	if (*count == *room) {
		size_t more = *room ? *room * 2 : 256;
		void *at = *count < NAMES_MAX ? realloc(*rows, more * size) : NULL;

		if (!at) {
			walk->no_memory = true;
			return NULL;
		}
		*rows = at;
		*room = more;
	}
	return (uint8_t *)*rows + (*count)++ * size;
}

static uint64_t offset_hash(uint64_t offset)
{
	return hash_word(0x9e3779b97f4a7c15u, offset);
}

static const char *text_attribute(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;

	return dwarf_attr(die, name, &attribute) ? dwarf_formstring(&attribute) : NULL;
}

static const char *linkage_name(Dwarf_Die *die)
{
	const char *name = text_attribute(die, DW_AT_linkage_name);

	return name ? name : text_attribute(die, DW_AT_MIPS_linkage_name);
}

bool debug_origin(struct walk *walk, Dwarf_Die *die, Dwarf_Die *origin)
{
	Dwarf_Attribute attribute;

	if (!dwarf_attr(die, DW_AT_abstract_origin, &attribute) &&
	    !dwarf_attr(die, DW_AT_specification, &attribute))
		return false;
	if (dwarf_formref_die(&attribute, origin))
		return true;
	if (dwarf_whatform(&attribute) == DW_FORM_GNU_ref_alt ||
	    dwarf_whatform(&attribute) == DW_FORM_ref_sup4 ||
	    dwarf_whatform(&attribute) == DW_FORM_ref_sup8)
		walk->flags |= SYMBOL_TABLE_ALT_MISSING;
	else
		walk->flags |= SYMBOL_TABLE_DAMAGED;
	return false;
}

/* A number for "the qualified name of that DIE", whose scope may be walked only later. */
static uint32_t pending_name(struct walk *walk, uint64_t offset, uint32_t plain)
{
	size_t room = walk->pending_room;
	uint64_t *added = ROW_ADD(walk, walk->pending, walk->pending_count, walk->pending_room);

	if (!added)
		return plain;
	if (walk->pending_room != room) {
		uint32_t *texts = realloc(walk->pending_plain,
					  walk->pending_room * sizeof(*walk->pending_plain));

		if (!texts) {
			walk->no_memory = true;
			walk->pending_room = room;
			walk->pending_count--;
			return plain;
		}
		walk->pending_plain = texts;
	}
	*added = offset;
	walk->pending_plain[walk->pending_count - 1] = plain;
	return (uint32_t)(walk->pending_count - 1) | TABLE_NAME_PENDING;
}

static uint32_t find_name(struct walk *walk, uint64_t offset)
{
	uint32_t probe;

	for (uint32_t i = hash_table_first(&walk->name_table, offset_hash(offset), &probe);
	     i != HASH_TABLE_NONE;
	     i = hash_table_next(&walk->name_table, offset_hash(offset), &probe))
		if (walk->names[i].offset == offset)
			return walk->names[i].name;
	return SYMBOL_NONE;
}

static void keep_name(struct walk *walk, uint64_t offset, uint32_t name)
{
	struct die_name *added = ROW_ADD(walk, walk->names, walk->name_count, walk->name_room);

	if (!added)
		return;
	*added = (struct die_name){offset, name};
	if (!hash_table_add(&walk->name_table, offset_hash(offset), (uint32_t)walk->name_count - 1))
		walk->no_memory = true;
}

uint32_t debug_name(struct walk *walk, Dwarf_Die *die, uint64_t address)
{
	uint64_t offset = dwarf_dieoffset(die);
	uint32_t name = address ? SYMBOL_NONE : find_name(walk, offset);
	Dwarf_Die at = *die, origin;
	const char *linkage = NULL, *plain = NULL;

	if (name != SYMBOL_NONE)
		return name;
	for (unsigned i = 0; i < ORIGIN_CHAIN_MAX; i++) {
		linkage = linkage_name(&at);
		if (!plain)
			plain = text_attribute(&at, DW_AT_name);
		if (linkage || !debug_origin(walk, &at, &origin))
			break;
		at = origin;
	}
	name = 0;
	if (linkage && *linkage)
		name = table_builder_text(walk->builder, linkage);
	else if (address)
		name = table_builder_symbol_at(walk->builder, address);
	if (!name && plain) {
		name = table_builder_text(walk->builder, plain);
		if (name && !walk->is_c)
			name = pending_name(walk, dwarf_dieoffset(&at), name);
	}
	if (!address)
		keep_name(walk, offset, name);
	return name;
}

/* ---- scopes ---- */

uint32_t debug_scope_inside(struct walk *walk, uint32_t parent, Dwarf_Die *die)
{
	const char *name = text_attribute(die, DW_AT_name);
	struct scope *scope;

	if (!name && dwarf_tag(die) == DW_TAG_namespace)
		name = "(anonymous namespace)";
	if (!name || walk->is_c)
		return parent;
	scope = ROW_ADD(walk, walk->scopes, walk->scope_count, walk->scope_room);
	if (!scope)
		return parent;
	*scope = (struct scope){parent, table_builder_text(walk->builder, name)};
	return (uint32_t)walk->scope_count - 1;
}

void debug_note_scope(struct walk *walk, Dwarf_Die *die, uint32_t scope)
{
	uint64_t offset = dwarf_dieoffset(die);
	struct die_scope *added;

	if (!scope || linkage_name(die) || !text_attribute(die, DW_AT_name))
		return;
	added = ROW_ADD(walk, walk->die_scopes, walk->die_scope_count, walk->die_scope_room);
	if (!added)
		return;
	*added = (struct die_scope){offset, scope};
	if (!hash_table_add(&walk->scope_table, offset_hash(offset),
			    (uint32_t)walk->die_scope_count - 1))
		walk->no_memory = true;
}

static uint32_t find_scope(const struct walk *walk, uint64_t offset)
{
	uint32_t probe;

	for (uint32_t i = hash_table_first(&walk->scope_table, offset_hash(offset), &probe);
	     i != HASH_TABLE_NONE;
	     i = hash_table_next(&walk->scope_table, offset_hash(offset), &probe))
		if (walk->die_scopes[i].offset == offset)
			return walk->die_scopes[i].scope;
	return 0;
}

static uint32_t qualified_name(struct walk *walk, uint32_t scope, uint32_t plain)
{
	uint32_t chain[32], depth = 0;
	struct buffer text;
	uint32_t name = plain;

	for (; scope && depth < 32; scope = walk->scopes[scope].parent)
		chain[depth++] = walk->scopes[scope].name;
	if (!depth)
		return plain;
	buffer_init(&text, QUALIFIED_MAX);
	while (depth-- > 0) {
		buffer_append_text(&text, table_builder_text_at(walk->builder, chain[depth]));
		buffer_append_text(&text, "::");
	}
	buffer_append_text(&text, table_builder_text_at(walk->builder, plain));
	buffer_append_char(&text, '\0');
	if (!text.failed)
		name = table_builder_text(walk->builder, (const char *)text.bytes);
	buffer_release(&text);
	return name ? name : plain;
}

uint32_t *debug_settle_names(struct walk *walk)
{
	uint32_t *texts = malloc((walk->pending_count + 1) * sizeof(*texts));

	for (size_t i = 0; texts && i < walk->pending_count; i++)
		texts[i] = qualified_name(walk, find_scope(walk, walk->pending[i]),
					  walk->pending_plain[i]);
	return texts;
}
