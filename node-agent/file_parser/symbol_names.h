/* SPDX-License-Identifier: Apache-2.0 */
/* Symbols of a stranger's file by their names: few bytes are read of long tables, and no more than
 * a bound. Formats: System V ABI, chapter 4; the hash table of GNU ld, as glibc's
 * elf/dl-lookup.c and sysdeps/generic/dl-hash.h read it. */
#ifndef NODE_AGENT_FILE_PARSER_SYMBOL_NAMES_H
#define NODE_AGENT_FILE_PARSER_SYMBOL_NAMES_H

#include "node-agent/file_parser/code/code_file.h"

enum { SYMBOL_NAMES_MAX = 16, SYMBOL_ROWS_MAX = 1 << 20 };

/* Places in a table of strings. */
struct symbol_names {
	uint32_t offsets[SYMBOL_NAMES_MAX];
	unsigned count;
};

/* Where those bytes stand. With its '\0' a name may be the end of another's: a table may share
 * ends of strings. */
void symbol_names_find(const struct code_file *file, const Elf64_Shdr *strings, const char *name,
		       size_t length, struct symbol_names *names);
bool symbol_names_have(const struct symbol_names *names, uint32_t offset);

/* Rows of a table, in their order. False: one of them did not want more. */
typedef bool symbol_row(void *context, const void *row, uint32_t number);
bool symbol_rows_each(const struct code_file *file, const Elf64_Shdr *table, size_t row_bytes,
		      uint64_t limit, symbol_row *each, void *context);

/* The section of symbols of that type; NULL: none, or without a table of names. */
const Elf64_Shdr *symbol_table(const struct code_file *file, uint32_t type);

/* The first symbol of that name that the table defines: by its hash table where it has one. */
bool symbol_find(const struct code_file *file, const Elf64_Shdr *table, const char *name,
		 Elf64_Sym *symbol);

#endif
