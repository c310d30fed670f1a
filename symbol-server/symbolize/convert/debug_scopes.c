/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "symbol-server/symbolize/convert/debug_walk.h"
#include "symbol-server/symbolize/dwarf/dwarf_constants.h"

void *debug_walk_row(struct walk *walk, void **rows, size_t *count, size_t *room, size_t size)
{
	if (*count == NAMES_MAX ||
	    (*count == *room && !array_grow(NULL, rows, size, *count + 1, room, SIZE_MAX))) {
		walk->no_memory = true;
		return NULL;
	}
	return (uint8_t *)*rows + (*count)++ * size;
}

static uint64_t key_hash(uint64_t key)
{
	return hash_word(0x9e3779b97f4a7c15u, key);
}

/* Which DIE: of which file, which section and where; sections are shorter than 4 GiB. */
static uint64_t key_of(const struct dwarf_unit *unit, uint64_t offset)
{
	return offset << 16 | (uint64_t)unit->units->number << 1 | (unit->section == DWARF_TYPES);
}

static const char *text_of(struct dwarf_unit *unit, const struct dwarf_die *die,
			   enum dwarf_slot slot)
{
	return dwarf_die_has(die, slot) ? dwarf_value_text(unit, &die->values[slot]) : NULL;
}

/* Where the DIE is that this one is an instance or the definition of. */
static bool origin_of(struct dwarf_unit *unit, const struct dwarf_die *die, struct dwarf_unit **of,
		      uint64_t *offset)
{
	if (dwarf_die_has(die, DWARF_ORIGIN))
		return dwarf_value_reference(unit, &die->values[DWARF_ORIGIN], of, offset);
	return dwarf_die_has(die, DWARF_SPECIFICATION) &&
	       dwarf_value_reference(unit, &die->values[DWARF_SPECIFICATION], of, offset);
}

/* A number for "the qualified name of that DIE", whose scope may be walked only later. */
static uint32_t pending_name(struct walk *walk, uint64_t key, uint32_t plain)
{
	size_t room = walk->pending_room;
	uint64_t *added = ROW_ADD(walk, walk->pending, walk->pending_count, walk->pending_room);

	if (!added)
		return plain;
	if (!ARRAY_RESERVE(walk->pending_plain, walk->pending_room, room)) {
		walk->no_memory = true;
		walk->pending_room = room;
		walk->pending_count--;
		return plain;
	}
	*added = key;
	walk->pending_plain[walk->pending_count - 1] = plain;
	return (uint32_t)(walk->pending_count - 1) | TABLE_NAME_PENDING;
}

static uint32_t find_name(struct walk *walk, uint64_t key)
{
	HASH_TABLE_EACH(i, &walk->name_table, key_hash(key))
		if (walk->names[i].key == key)
			return walk->names[i].name;
	return SYMBOL_NONE;
}

static void keep_name(struct walk *walk, uint64_t key, uint32_t name)
{
	struct die_name *added = ROW_ADD(walk, walk->names, walk->name_count, walk->name_room);

	if (!added)
		return;
	*added = (struct die_name){key, name};
	if (!hash_table_add(&walk->name_table, key_hash(key), (uint32_t)walk->name_count - 1))
		walk->no_memory = true;
}

uint32_t debug_name(struct walk *walk, struct dwarf_unit *unit, const struct dwarf_die *die,
		    uint64_t address)
{
	uint64_t key = key_of(unit, die->offset), offset = die->offset;
	uint32_t name = address ? SYMBOL_NONE : find_name(walk, key);
	const char *linkage = NULL, *plain = NULL;
	struct dwarf_unit *of = unit, *next;
	struct dwarf_die at;

	if (name != SYMBOL_NONE)
		return name;
	for (unsigned i = 0; i < ORIGIN_CHAIN_MAX; i++) {
		linkage = text_of(of, die, DWARF_LINKAGE_NAME);
		if (!plain)
			plain = text_of(of, die, DWARF_NAME);
		if (linkage || !origin_of(of, die, &next, &offset) ||
		    !dwarf_die_read(next, offset, &at))
			break;
		of = next;
		die = &at;
	}
	/* One name for all aliases, the one that it has without debug information as well:
	 * "clock_gettime", not "__GI___clock_gettime", as which it was compiled. */
	name = address ? table_builder_symbol_at(walk->builder, address) : 0;
	if (!name && linkage && *linkage)
		name = table_builder_text(walk->builder, linkage);
	if (!name && plain) {
		name = table_builder_text(walk->builder, plain);
		if (name && !walk->is_c)
			name = pending_name(walk, key_of(of, die->offset), name);
	}
	if (!address)
		keep_name(walk, key, name);
	return name;
}

/* Many DIEs are instances of one: the names kept are the origins', which need not be read again. */
uint32_t debug_inlined_name(struct walk *walk, struct dwarf_unit *unit, const struct dwarf_die *die)
{
	struct dwarf_unit *of;
	struct dwarf_die origin;
	uint64_t offset;
	uint32_t name;

	if (!origin_of(unit, die, &of, &offset))
		return debug_name(walk, unit, die, 0);
	name = find_name(walk, key_of(of, offset));
	if (name != SYMBOL_NONE)
		return name;
	if (!dwarf_die_read(of, offset, &origin))
		return debug_name(walk, unit, die, 0);
	return debug_name(walk, of, &origin, 0);
}

/* ---- scopes ---- */

static uint32_t add_scope(struct walk *walk, uint32_t parent, struct dwarf_unit *unit,
			  const struct dwarf_die *die)
{
	const char *name = text_of(unit, die, DWARF_NAME);
	struct scope *scope;

	if (!name && die->tag == DW_TAG_namespace)
		name = "(anonymous namespace)";
	if (!name)
		return parent;
	scope = ROW_ADD(walk, walk->scopes, walk->scope_count, walk->scope_room);
	if (!scope)
		return parent;
	*scope = (struct scope){parent, name};
	return (uint32_t)walk->scope_count - 1;
}

/* As deep as DIEs are, which is DIE_DEPTH_MAX at most. */
static uint32_t scope_of(struct walk *walk, struct place *place)
{
	if (!place)
		return 0;
	if (!place->has_scope) {
		place->scope = scope_of(walk, place->parent);
		if (place->die)
			place->scope = add_scope(walk, place->scope, place->unit, place->die);
		place->has_scope = true;
	}
	return place->scope;
}

void debug_note_scope(struct walk *walk, struct dwarf_unit *unit, const struct dwarf_die *die,
		      struct place *place)
{
	struct die_scope *added;
	uint32_t scope;
	uint64_t key;

	if (walk->is_c || dwarf_die_has(die, DWARF_LINKAGE_NAME) || !dwarf_die_has(die, DWARF_NAME))
		return;
	scope = scope_of(walk, place);
	if (!scope)
		return;
	key = key_of(unit, die->offset);
	added = ROW_ADD(walk, walk->die_scopes, walk->die_scope_count, walk->die_scope_room);
	if (!added)
		return;
	*added = (struct die_scope){key, scope};
	if (!hash_table_add(&walk->scope_table, key_hash(key), (uint32_t)walk->die_scope_count - 1))
		walk->no_memory = true;
}

static uint32_t find_scope(const struct walk *walk, uint64_t key)
{
	HASH_TABLE_EACH(i, &walk->scope_table, key_hash(key))
		if (walk->die_scopes[i].key == key)
			return walk->die_scopes[i].scope;
	return 0;
}

static uint32_t qualified_name(struct walk *walk, uint32_t scope, uint32_t plain)
{
	const char *chain[32];
	uint32_t depth = 0;
	struct buffer text;
	uint32_t name = plain;

	for (; scope && depth < 32; scope = walk->scopes[scope].parent)
		chain[depth++] = walk->scopes[scope].name;
	if (!depth)
		return plain;
	buffer_init(&text, QUALIFIED_MAX);
	while (depth-- > 0) {
		buffer_append_text(&text, chain[depth]);
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
