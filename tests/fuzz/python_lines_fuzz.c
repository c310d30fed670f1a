/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are a format, a first line, a position, and a code object's table of lines. */
#include "node-agent/runtimes/python_lines.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	uint32_t words[2];

	if (length < 1 + sizeof words)
		return;
	memcpy(words, bytes + 1, sizeof words);
	const enum python_line_format format = bytes[0] % (PYTHON_LINES_LOCATIONS + 1);
	const size_t rest = length - 1 - sizeof words;
	uint8_t *table = malloc(rest ? rest : 1);

	memcpy(table, bytes + length - rest, rest);
	if (python_line_find(format, table, rest, words[0], (int32_t)words[1]) > INT32_MAX ||
	    python_line_find(format, table, rest, words[0], INT64_MAX) > INT32_MAX)
		abort();
	free(table);
}
