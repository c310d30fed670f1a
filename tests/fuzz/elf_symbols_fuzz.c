/* SPDX-License-Identifier: Apache-2.0 */
/* An ELF file's symbols, stubs, descriptors and .gnu_debugdata, as the conversion reads them first:
 * whatever the file, a table that comes out is one that the loader takes. */
#include "symbol-server/symbolize/convert/debug_reader.h"
#include "symbol-server/symbolize/symbol_table.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

static void look_up(const struct symbol_table *table)
{
	struct symbol_frame frames[SYMBOL_CHAIN_MAX];

	for (uint32_t i = 0; i < table->range_count; i++) {
		uint64_t address = table->first + table->starts[i];

		for (unsigned base = 0; base <= ADDRESS_MODULE_TEXT; base++)
			if (symbol_table_lookup(table, (enum address_base)base, address, frames) >
			    1)
				abort(); /* symbols have no inlined functions */
	}
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	struct debug_input input = {.length = length};
	struct symbol_table *table;
	struct buffer packed;

	input.bytes = malloc(length ? length : 1);
	if (!input.bytes)
		return;
	memcpy(input.bytes, bytes, length);
	buffer_init(&packed, 64 << 20);
	if (debug_reader_convert(&input, 1, true, &packed, NULL)) {
		table = symbol_table_unpack(packed.bytes, packed.length, SIZE_MAX, NULL);
		if (!table)
			abort();
		look_up(table);
		symbol_table_release(table);
	}
	buffer_release(&packed);
	free(input.bytes);
}
