/* SPDX-License-Identifier: Apache-2.0 */
/* An ELF file's headers, and the relocations of a relocatable object's debug sections (kernel
 * modules, .o files): absolute addresses and offsets, and RISC-V's differences. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_DWARF_DWARF_RELOCATE_H
#define SYMBOL_SERVER_SYMBOLIZE_DWARF_DWARF_RELOCATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol-server/symbolize/dwarf/dwarf_cursor.h"

struct elf_section { /* header of either class */
	uint32_t name, type, link, info;
	uint64_t flags, address, offset, size, alignment, entry_size;
};

struct elf_view {
	struct dwarf_bytes file;
	bool is_64, is_big_endian;
	uint16_t type, machine;
	uint32_t names; /* number of the section with the names */
	struct elf_section *sections;
	uint32_t count;
};

/* As it is in the file; at NULL: there is none, or it is outside. */
struct dwarf_bytes elf_section_bytes(const struct elf_view *view, uint32_t number);

bool dwarf_can_relocate(const struct elf_view *view);
/* Are there relocations for that section? */
bool dwarf_is_relocated(const struct elf_view *view, uint32_t number);
/* Applies them to its bytes. addresses: where sections were put, by number. False: some are
 * damaged. */
bool dwarf_relocate(const struct elf_view *view, uint32_t number, const uint64_t *addresses,
		    uint8_t *bytes, size_t length);

#endif
