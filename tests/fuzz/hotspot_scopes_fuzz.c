/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are a coding, a bytecode's or instruction's offset, and then in turn a table of lines,
 * a scope and descriptions of instructions. */
#include "node-agent/runtimes/hotspot_scopes.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	enum { HEAD = 1 + sizeof(uint32_t), PC_BYTES = 16 };
	struct hotspot_scope scope;
	uint32_t word, found;

	if (length < HEAD)
		return;
	memcpy(&word, bytes + 1, sizeof word);
	const enum hotspot_coding coding = bytes[0] & 1;
	const size_t rest = length - HEAD;
	uint8_t *table = malloc(rest ? rest : 1);

	memcpy(table, bytes + HEAD, rest);
	const size_t used = hotspot_lines_bytes(coding, table, rest);
	const uint32_t line = hotspot_line_find(coding, table, rest, (int32_t)word);
	if (used > rest || line > UINT16_MAX ||
	    line != hotspot_line_find(coding, table, used, (int32_t)word))
		abort();
	hotspot_scope_read(coding, table, rest, &scope);
	const struct hotspot_pcs pcs = {table, (uint32_t)(rest / PC_BYTES), PC_BYTES, 0, 4};
	if (hotspot_pcs_find(&pcs, word, &found) && found > INT32_MAX)
		abort();
	free(table);
}
