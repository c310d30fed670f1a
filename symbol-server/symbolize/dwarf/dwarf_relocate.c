/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/dwarf/dwarf_relocate.h"

#include <elf.h>

/* Sources: the psABIs of x86-64, i386, AArch64, ARM, RISC-V, s390x, Power and MIPS. */
enum what { NOTHING, STORE, ADD, SUBTRACT, SET_ULEB, SUBTRACT_ULEB };

struct kind {
	enum what what; /* NOTHING: of thread-local variables, say, and nothing that names or lines
			   need */
	unsigned width; /* bytes; of a ULEB128 as many as there are */
};

struct machine {
	uint16_t number;
	uint32_t absolute_4, absolute_4_too, absolute_8; /* types of relocations; 0: none */
};

static const struct machine machines[] = {
	{EM_X86_64, R_X86_64_32, R_X86_64_32S, R_X86_64_64},
	{EM_386, R_386_32, 0, 0},
	{EM_AARCH64, R_AARCH64_ABS32, 0, R_AARCH64_ABS64},
	{EM_ARM, R_ARM_ABS32, 0, 0},
	{EM_RISCV, R_RISCV_32, 0, R_RISCV_64},
	{EM_S390, R_390_32, 0, R_390_64},
	{EM_PPC, R_PPC_ADDR32, 0, 0},
	{EM_PPC64, R_PPC64_ADDR32, 0, R_PPC64_ADDR64},
	{EM_MIPS, R_MIPS_32, 0, R_MIPS_64},
};

static const struct machine *machine_of(const struct elf_view *view)
{
	for (size_t i = 0; i < sizeof(machines) / sizeof(*machines); i++)
		if (machines[i].number == view->machine)
			return &machines[i];
	return NULL;
}

bool dwarf_can_relocate(const struct elf_view *view)
{
	return machine_of(view) != NULL;
}

/* RISC-V's linkers shorten code, so differences of addresses are relocations, too. */
static struct kind riscv_kind(uint32_t type)
{
	enum {
		ADD8 = 33,
		SUB8 = 37,
		SUB64 = 40,
		SET8 = 54,
		SET32 = 56,
		SET_128 = 60,
		SUB_128 = 61
	};

	if (type >= ADD8 && type < SUB8)
		return (struct kind){ADD, 1u << (type - ADD8)};
	if (type >= SUB8 && type <= SUB64)
		return (struct kind){SUBTRACT, 1u << (type - SUB8)};
	if (type >= SET8 && type <= SET32)
		return (struct kind){STORE, 1u << (type - SET8)};
	if (type == SET_128 || type == SUB_128)
		return (struct kind){type == SET_128 ? SET_ULEB : SUBTRACT_ULEB, 1};
	return (struct kind){0};
}

static struct kind kind_of(const struct machine *machine, uint32_t type)
{
	if (type && (type == machine->absolute_4 || type == machine->absolute_4_too))
		return (struct kind){STORE, 4};
	if (type && type == machine->absolute_8)
		return (struct kind){STORE, 8};
	if (machine->number == EM_RISCV)
		return riscv_kind(type);
	return (struct kind){0};
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

/* MIPS has three types in one word of 64 bits, and the symbol always in front. */
static void split_info(const struct elf_view *view, uint64_t info, struct relocation *row)
{
	if (!view->is_64) {
		row->symbol = info >> 8;
		row->type = info & 0xff;
	} else if (view->machine != EM_MIPS) {
		row->symbol = info >> 32;
		row->type = (uint32_t)info;
	} else if (view->is_big_endian) {
		row->symbol = info >> 32;
		row->type = info & 0xff;
	} else {
		row->symbol = info & 0xffffffff;
		row->type = (uint32_t)(info >> 56);
	}
}

static bool read_relocation(const struct elf_view *view, struct dwarf_cursor *cursor,
			    bool has_addend, struct relocation *row)
{
	unsigned size = view->is_64 ? 8 : 4;

	row->offset = dwarf_number(cursor, size);
	split_info(view, dwarf_number(cursor, size), row);
	row->addend = has_addend ? dwarf_number(cursor, size) : 0;
	return !cursor->failed;
}

static void store(const struct elf_view *view, uint8_t *at, unsigned width, uint64_t value)
{
	for (unsigned i = 0; i < width; i++)
		at[view->is_big_endian ? width - 1 - i : i] = (uint8_t)(value >> 8 * i);
}

/* As long as it was: a linker leaves room. */
static void store_uleb(uint8_t *at, const uint8_t *end, uint64_t value)
{
	bool goes_on = true;

	for (; at < end && goes_on; at++, value >>= 7) {
		goes_on = *at & 0x80;
		*at = (uint8_t)((value & 0x7f) | (goes_on ? 0x80 : 0));
	}
}

/* value: symbol and addend; without addends in the table they are in the place itself. */
static void apply(const struct elf_view *view, struct kind kind, bool has_addend, uint64_t value,
		  uint8_t *at, const uint8_t *end)
{
	struct dwarf_cursor there = {.at = at, .end = end, .is_big_endian = view->is_big_endian};

	switch (kind.what) {
	case STORE:
		store(view, at, kind.width,
		      has_addend ? value : value + dwarf_number(&there, kind.width));
		break;
	case ADD:
		store(view, at, kind.width, dwarf_number(&there, kind.width) + value);
		break;
	case SUBTRACT:
		store(view, at, kind.width, dwarf_number(&there, kind.width) - value);
		break;
	case SET_ULEB:
		store_uleb(at, end, value);
		break;
	case SUBTRACT_ULEB:
		store_uleb(at, end, dwarf_uleb(&there) - value);
		break;
	case NOTHING:
		break;
	}
}

static bool apply_rows(const struct elf_view *view, const struct elf_section *table, uint32_t own,
		       const uint64_t *addresses, uint8_t *bytes, size_t length)
{
	bool has_addend = table->type == SHT_RELA;
	struct dwarf_bytes rows = elf_section_bytes(view, own);
	struct dwarf_cursor cursor = dwarf_cursor_at(rows, 0, view->is_big_endian);
	const struct machine *machine = machine_of(view);
	struct symbols symbols = symbols_of(view, table->link);
	struct relocation row;
	bool is_good = rows.at && machine;

	while (is_good && dwarf_left(&cursor) && read_relocation(view, &cursor, has_addend, &row)) {
		struct kind kind = kind_of(machine, row.type);
		uint64_t address;

		if (!kind.what)
			continue;
		if (row.offset > length || kind.width > length - row.offset ||
		    !symbol_address(view, &symbols, addresses, row.symbol, &address))
			return false;
		apply(view, kind, has_addend, address + row.addend, bytes + row.offset,
		      bytes + length);
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
