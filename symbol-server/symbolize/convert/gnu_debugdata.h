/* SPDX-License-Identifier: Apache-2.0 */
/* MiniDebugInfo: a stripped file's own .symtab as an ELF file in its section .gnu_debugdata, packed
 * with xz. gdb's manual, "Debugging information in a special section". Door to liblzma. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_CONVERT_GNU_DEBUGDATA_H
#define SYMBOL_SERVER_SYMBOLIZE_CONVERT_GNU_DEBUGDATA_H

#include <stdbool.h>
#include <stddef.h>

#include "common/buffer.h"
#include "common/error.h"

/* Memory of the decoder, and size of what comes out. xz packs zeros seven thousandfold. */
enum { GNU_DEBUGDATA_MEMORY_MAX = 256 << 20, GNU_DEBUGDATA_BYTES_MAX = 256 << 20 };

/* Appends to out what the section's bytes are packed from. ERROR_FORMAT: damaged, cut short or not
 * xz; ERROR_LIMIT: it needs more than one of the two; ERROR_MEMORY. */
bool gnu_debugdata_unpack(const void *bytes, size_t length, struct buffer *out, struct error *err);

#endif
