/* SPDX-License-Identifier: Apache-2.0 */
/* ELF files and their DWARF → packed symbol table, the whole file at once; debug_units and
 * debug_names are its other files. Door to libelf, for symbols. Runs in the conversion worker only:
 * nothing here bounds the time but the worker's limits. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_CONVERT_DEBUG_READER_H
#define SYMBOL_SERVER_SYMBOLIZE_CONVERT_DEBUG_READER_H

#include <stdbool.h>
#include <stddef.h>

#include "common/buffer.h"
#include "common/error.h"

struct debug_input { /* one file of the module; writable memory, libelf may convert it in place */
	void *bytes;
	size_t length;
	bool is_mapping; /* private, of a file: what is done with may be given back */
};

enum { DEBUG_INPUTS_MAX = 1024 };

/* Symbols of every file, DWARF of the first one that has any; of a .dwo or .dwp the units that it
 * refers to, of a dwz file what it imports by build-id. names_only: .symtab and .dynsym only,
 * for a first answer. A kallsyms text is taken too. ERROR_NOT_FOUND: no names in them;
 * ERROR_FORMAT: not an ELF file. The damage of single units is a flag of the table. */
bool debug_reader_convert(const struct debug_input *inputs, size_t count, bool names_only,
			  struct buffer *packed, struct error *err);

#endif
