/* SPDX-License-Identifier: Apache-2.0 */
/* The packed table's loader. Its checksum is made right first, so that what is behind it is
 * reached. */
#include "symbol-server/symbolize/symbol_table.h"

#include <string.h>

#include "common/hash_table.h"
#include "tests/fuzz/fuzz.h"

enum { HASH_AT = 8, HASHED_FROM = 16 };

static void look_up(const struct symbol_table *table)
{
	static struct symbol_frame frames[SYMBOL_CHAIN_MAX];
	volatile size_t length = 0;

	for (uint32_t i = 0; i < 1000 && i < table->range_count; i++)
		for (int base = ADDRESS_ELF; base <= ADDRESS_MODULE_TEXT; base++) {
			uint64_t address = table->first + table->starts[i] + i % 3 -
					   table->bases[base].address;
			unsigned count = symbol_table_lookup(table, base, address, frames);

			for (unsigned f = 0; f < count; f++)
				length += strlen(frames[f].name) + strlen(frames[f].file);
		}
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	uint8_t *copy = malloc(length + 1);
	struct symbol_table *table;
	uint64_t hash;

	if (!copy)
		return;
	memcpy(copy, bytes, length);
	if (length >= HASHED_FROM) {
		hash = hash_bytes(copy + HASHED_FROM, length - HASHED_FROM, 0);
		memcpy(copy + HASH_AT, &hash, sizeof(hash));
	}
	table = symbol_table_unpack(copy, length, 64 << 20, NULL);
	if (table)
		look_up(table);
	symbol_table_release(table);
	free(copy);
}
