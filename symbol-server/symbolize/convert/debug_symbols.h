/* SPDX-License-Identifier: Apache-2.0 */
/* The names of an ELF file's symbol tables. What is a name of code, and where, is the gABI's and
 * the processors' supplements'; debug_plt.c is its other file. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_CONVERT_DEBUG_SYMBOLS_H
#define SYMBOL_SERVER_SYMBOLIZE_CONVERT_DEBUG_SYMBOLS_H

#include "symbol-server/store/symbols.h"
#include "symbol-server/symbolize/convert/debug_file.h"
#include "symbol-server/symbolize/symbol_table.h"
#include "symbol-server/symbolize/convert/table_builder.h"

struct debug_symbols {
	struct table_builder *builder;
	enum symbol_quality quality;    /* the best met */
	struct symbol_base kernel_text; /* _text */
	struct code_symbol *indirect;   /* IFUNC, by the address of their resolvers */
	size_t indirect_count, indirect_room;
};

/* .symtab and .dynsym of file. others: all files of the module, where its function descriptors
 * (.opd) are if they are not in this one. */
void debug_symbols_read(struct debug_symbols *symbols, const struct elf_file *file,
			const struct elf_file *others, size_t count);

/* After the symbols of every file: name@plt for the stubs of .plt, .plt.sec and .plt.got, by the
 * slot of the GOT that each one jumps through: no stub is named by its place in the row. A slot of
 * an IFUNC is called like the function, and *ABS*+0x…@plt, as objdump has it, where only its
 * resolver's address is known. x86-64, i386, aarch64, arm, riscv, s390x, loongarch64. Of a file
 * without its code (a separate debug file) and where nothing else is named: none. */
void debug_plt_read(struct debug_symbols *symbols, const struct elf_file *file);

/* The first section of that name with contents, and its header; NULL: none. */
Elf_Scn *debug_section_named(const struct elf_file *file, const char *wanted, GElf_Shdr *header);

void debug_symbols_release(struct debug_symbols *symbols);

#endif
