/* SPDX-License-Identifier: Apache-2.0 */
/* An uploaded kallsyms text. */
#include "symbol-server/symbolize/convert/kallsyms.h"

#include "tests/fuzz/fuzz.h"

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	struct table_builder *builder = table_builder_new();
	struct symbol_table table = {0};
	bool is_module;

	if (builder && kallsyms_read(bytes, length, builder, &is_module, NULL))
		table_builder_finish(builder, NULL, &table, NULL);
	table_builder_free(builder);
}
