/* SPDX-License-Identifier: Apache-2.0 */
/* The kallsyms text an agent uploads for a kernel without debug information (schema/README.md):
 *
 *	farflame-kallsyms 1
 *	module NAME			(only a module's)
 *	<hex offset> <type> <name>	from _text, or from the module's .text; in any order
 */
#ifndef SYMBOL_SERVER_SYMBOLIZE_CONVERT_KALLSYMS_H
#define SYMBOL_SERVER_SYMBOLIZE_CONVERT_KALLSYMS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "symbol-server/symbolize/convert/table_builder.h"

/* By its first line. */
bool kallsyms_is_one(const void *bytes, size_t length);

/* Functions (types t, T, w, W) go to builder, each up to the next symbol and at most
 * KALLSYMS_EXTENT_MAX bytes: kallsyms has no sizes. Other types only end them. ERROR_FORMAT names
 * the line. */
enum { KALLSYMS_EXTENT_MAX = 256 << 10, KALLSYMS_SYMBOLS_MAX = 4000000 };
bool kallsyms_read(const void *bytes, size_t length, struct table_builder *builder, bool *is_module,
		   struct error *err);

#endif
