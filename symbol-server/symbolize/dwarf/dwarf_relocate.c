/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/dwarf/dwarf_relocate.h"

#include <elf.h>

bool dwarf_can_relocate(const struct elf_view *view)
{
	return view->machine == EM_X86_64 || view->machine == EM_386 || view->machine == EM_AARCH64;
}

/* Bytes that an absolute relocation fills; 0: it is of another kind, of thread-local variables for
 * one, and nothing that names or lines need. */
static unsigned width_of(uint16_t machine, uint32_t type)
{
	switch (machine) {
	case EM_X86_64:
		if (type == R_X86_64_64)
			return 8;
		return type == R_X86_64_32 || type == R_X86_64_32S ? 4 : 0;
	case EM_AARCH64:
		return type == R_AARCH64_ABS64 ? 8 : type == R_AARCH64_ABS32 ? 4 : 0;
	case EM_386:
		return type == R_386_32 ? 4 : 0;
	default:
		return 0;
	}
}

static bool is_for(const struct elf_section *row, uint32_t number)
{
	return (row->type == SHT_RELA || row->type == SHT_REL) && row->info == number;
}

bool dwarf_is_relocated(const struct elf_view *view, uint32_t number)
{
	for (uint32_t i = 1; i < view->count; i++)
		if (is_for(&view->sections[i], number))
			return true;
	return false;
}

/* ---- symbols ---- */

struct symbols {
	struct dwarf_bytes rows, extended; /* section numbers beyond 65279 */
};

static struct symbols symbols_of(const struct elf_view *view, uint32_t number)
{
	struct symbols symbols = {.rows = elf_section_bytes(view, number)};

	for (uint32_t i = 1; i < view->count; i++)
		if (view->sections[i].type == SHT_SYMTAB_SHNDX && view->sections[i].link == number)
			symbols.extended = elf_section_bytes(view, i);
	return symbols;
}

/* Where the symbol is. What has no place, an undefined one say, is at 0, as if thrown away. */
static bool symbol_address(const struct elf_view *view, const struct symbols *symbols,
			   const uint64_t *addresses, uint64_t index, uint64_t *address)
{
	uint64_t size = view->is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	struct dwarf_cursor cursor;
	uint64_t value, section;

	if (index >= symbols->rows.length / size)
		return false;
	cursor = dwarf_cursor_at(symbols->rows, index * size, view->is_big_endian);
	if (view->is_64) {
		dwarf_skip(&cursor, 6);
		section = dwarf_number(&cursor, 2);
		value = dwarf_number(&cursor, 8);
	} else {
		dwarf_skip(&cursor, 4);
		value = dwarf_number(&cursor, 4);
		dwarf_skip(&cursor, 6);
		section = dwarf_number(&cursor, 2);
	}
	if (section == SHN_XINDEX) {
		cursor = dwarf_cursor_at(symbols->extended,
					 index < SIZE_MAX / 4 ? index * 4 : SIZE_MAX,
					 view->is_big_endian);
		section = dwarf_number(&cursor, 4);
	} else if (section >= SHN_LORESERVE) {
		section = SHN_UNDEF;
	}
	*address = section && section < view->count ? addresses[section] + value : 0;
	return !cursor.failed;
}

/* ---- relocations ---- */

struct relocation {
	uint64_t offset, symbol, addend;
	uint32_t type;
};

static bool read_relocation(const struct elf_view *view, struct dwarf_cursor *cursor,
			    bool has_addend, struct relocation *row)
{
	unsigned size = view->is_64 ? 8 : 4;
	uint64_t info;

	row->offset = dwarf_number(cursor, size);
	info = dwarf_number(cursor, size);
	row->symbol = view->is_64 ? info >> 32 : info >> 8;
	row->type = (uint32_t)(view->is_64 ? info & 0xffffffff : info & 0xff);
	row->addend = has_addend ? dwarf_number(cursor, size) : 0;
	return !cursor->failed;
}

static void store(const struct elf_view *view, uint8_t *at, unsigned width, uint64_t value)
{
	for (unsigned i = 0; i < width; i++)
		at[view->is_big_endian ? width - 1 - i : i] = (uint8_t)(value >> 8 * i);
}

static bool apply_rows(const struct elf_view *view, const struct elf_section *table, uint32_t own,
		       const uint64_t *addresses, uint8_t *bytes, size_t length)
{
	bool has_addend = table->type == SHT_RELA;
	struct dwarf_bytes rows = elf_section_bytes(view, own);
	struct dwarf_cursor cursor = dwarf_cursor_at(rows, 0, view->is_big_endian);
	struct symbols symbols = symbols_of(view, table->link);
	struct relocation row;
	bool is_good = rows.at != NULL;

	while (is_good && dwarf_left(&cursor) && read_relocation(view, &cursor, has_addend, &row)) {
		unsigned width = width_of(view->machine, row.type);
		uint64_t address;

		if (!width)
			continue;
		if (row.offset > length || width > length - row.offset ||
		    !symbol_address(view, &symbols, addresses, row.symbol, &address))
			return false;
		if (!has_addend) {
			struct dwarf_cursor there = {.at = bytes + row.offset,
						     .end = bytes + length,
						     .is_big_endian = view->is_big_endian};

			row.addend = dwarf_number(&there, width);
		}
		store(view, bytes + row.offset, width, address + row.addend);
	}
	return is_good && !cursor.failed;
}

bool dwarf_relocate(const struct elf_view *view, uint32_t number, const uint64_t *addresses,
		    uint8_t *bytes, size_t length)
{
	bool is_good = true;

	for (uint32_t i = 1; i < view->count; i++)
		if (is_for(&view->sections[i], number))
			is_good &= apply_rows(view, &view->sections[i], i, addresses, bytes,
					      length);
	return is_good;
}
