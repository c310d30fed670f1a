/* SPDX-License-Identifier: Apache-2.0 */
/* A symbol table's entries → disjoint extents with one name each. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_CONVERT_CODE_SYMBOLS_H
#define SYMBOL_SERVER_SYMBOLIZE_CONVERT_CODE_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "symbol-server/symbolize/convert/table_builder.h"

struct code_section {
	uint64_t start, end;
};

struct code_extent {
	uint64_t low, high;
	uint32_t name;
};

/* Sorts by address, longest first, best name first; of equal address and size only the best stays.
 * Returns how many are left. texts: what names are offsets into. */
size_t code_symbols_sort(struct code_symbol *symbols, size_t count, const char *texts);

/* Disjoint extents, ascending: the innermost of the sized symbols, size 0 where no sized one is. At
 * most 2 × count go to extents. sections: disjoint, ascending; nothing reaches out of one. */
size_t code_symbols_extents(const struct code_symbol *symbols, size_t count,
			    const struct code_section *sections, size_t section_count,
			    struct code_extent *extents);

/* The section that holds the address, or NULL. */
const struct code_section *code_section_find(const struct code_section *sections, size_t count,
					     uint64_t address);

#endif
