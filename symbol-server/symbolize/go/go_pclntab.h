/* SPDX-License-Identifier: Apache-2.0 */
/* A Go program's functions, lines and inlined calls from its own table (.gopclntab), which stripped
 * programs have too. Go 1.16 and later in full; of Go 1.2 to 1.15 without inlined calls. Since 1.21
 * generic functions are named with their types, as the linker names them, before as "f[...]".
 * Runs in the conversion worker. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_GO_GO_PCLNTAB_H
#define SYMBOL_SERVER_SYMBOLIZE_GO_GO_PCLNTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol-server/symbolize/convert/table_builder.h"

/* Puts the functions of the ELF file's table into the builder, which knows where there is code
 * already. False: it has no such table, none that can be believed, or the builder has most of its
 * functions, from DWARF. flags: SYMBOL_TABLE_DAMAGED when some functions could not be read,
 * _NO_INLINES when inlined calls could not be found. */
bool go_pclntab_read(const uint8_t *bytes, size_t length, struct table_builder *builder,
		     uint32_t *flags);

#endif
