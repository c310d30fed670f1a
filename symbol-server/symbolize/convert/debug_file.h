/* SPDX-License-Identifier: Apache-2.0 */
/* One ELF file of a conversion, as debug_reader opened it, for those who read symbols from it:
 * debug_symbols, debug_plt. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_CONVERT_DEBUG_FILE_H
#define SYMBOL_SERVER_SYMBOLIZE_CONVERT_DEBUG_FILE_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"
#include "symbol-server/symbolize/convert/code_symbols.h"
#include "symbol-server/symbolize/dwarf/dwarf_file.h"
#include "symbol-server/symbolize/dwarf/dwarf_unit.h"

struct elf_file {
	Elf *elf;
	GElf_Ehdr header;
	bool is_relocatable;
	bool is_minidebug;         /* was inside of another file, as its .gnu_debugdata */
	struct buffer unpacked;    /* its bytes, then */
	struct code_section *code; /* by section number; of no length where it is not code */
	size_t section_count;

	struct dwarf_file *dwarf;
	struct dwarf_units units;
	bool has_units;
};

/* Relocatable objects begin with 0, which is where thrown away code is: theirs is put elsewhere. */
static inline uint64_t elf_file_base(const struct elf_file *file)
{
	return file->is_relocatable ? DWARF_TEXT_BASE : 0;
}

#endif
