/* SPDX-License-Identifier: Apache-2.0 */
/* debug_reader's walk over all units of one module's DWARF, versions 2 to 5. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_CONVERT_DEBUG_UNITS_H
#define SYMBOL_SERVER_SYMBOLIZE_CONVERT_DEBUG_UNITS_H

#include <stdbool.h>

#include "common/error.h"
#include "symbol-server/symbolize/dwarf/dwarf_unit.h"
#include "symbol-server/symbolize/convert/table_builder.h"

enum { DEBUG_SPLITS_MAX = 1024 };

struct debug_files {
	struct dwarf_units *main;                     /* its alt is set where there is one */
	struct dwarf_units *splits[DEBUG_SPLITS_MAX]; /* .dwo and .dwp */
	size_t split_count;
};

struct debug_units_result {
	uint32_t flags;    /* enum symbol_table_flags */
	uint32_t *pending; /* texts of pending names, for table_builder_finish(); free() */
};

/* Puts functions, inlined functions and lines of the files into builder, whose symbols are sorted
 * already. False: memory; damaged units are skipped and flagged. */
bool debug_units_read(const struct debug_files *files, struct table_builder *builder,
		      struct debug_units_result *result, struct error *err);

#endif
