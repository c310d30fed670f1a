/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of real machines as tests/tools/hotspot_tables.py keeps them: an image of memory at
 * TABLES_AT, with the variables of HOTSPOT_SYMBOLS in front. What lies behind the end, up to
 * the end of its page, is 0. */
#ifndef TESTS_UNIT_RUNTIMES_HOTSPOT_TABLES_H
#define TESTS_UNIT_RUNTIMES_HOTSPOT_TABLES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "node-agent/file_parser/runtime_symbols.h"
#include "node-agent/runtimes/python_memory.h"

enum { TABLES_AT = 0x10000, TABLES_PAGE = 4096 };

struct tables_image {
	const uint8_t *bytes;
	size_t length;
};

static inline bool tables_read(void *context, uint64_t address, void *to, size_t bytes)
{
	const struct tables_image *image = context;
	const size_t end = (image->length + TABLES_PAGE - 1) / TABLES_PAGE * TABLES_PAGE;
	const uint64_t at = address - TABLES_AT;

	if (address < TABLES_AT || at > end || bytes > end - at)
		return false;
	memset(to, 0, bytes);
	if (at < image->length)
		memcpy(to, image->bytes + at,
		       bytes < image->length - at ? bytes : image->length - at);
	return true;
}

static inline struct runtime_symbols tables_symbols(void)
{
	struct runtime_symbols symbols = {.language = RUNTIME_HOTSPOT};

	for (uint32_t i = 0; i < HOTSPOT_SYMBOL_COUNT; i++)
		symbols.hotspot[i] = i * sizeof(uint64_t);
	return symbols;
}

#endif
