/* SPDX-License-Identifier: Apache-2.0 */
/* debug_reader's walk over all units of one file's DWARF, versions 2 to 5. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_DEBUG_UNITS_H
#define SYMBOL_SERVER_SYMBOLIZE_DEBUG_UNITS_H

#include <elfutils/libdw.h>
#include <stdbool.h>

#include "common/error.h"
#include "symbol-server/symbolize/table_builder.h"

struct debug_units_result {
	uint32_t flags;    /* enum symbol_table_flags */
	uint32_t *pending; /* texts of pending names, for table_builder_finish(); free() */
};

/* Puts functions, inlined functions and lines of the file into builder, whose symbols are sorted
 * already. False: memory; damaged units are skipped and flagged. */
bool debug_units_read(Dwarf *dwarf, struct table_builder *builder,
		      struct debug_units_result *result, struct error *err);

#endif
