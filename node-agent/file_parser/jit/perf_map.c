/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/jit/perf_map.h"

#include <string.h>

#include "common/hex.h"
#include "node-agent/file_parser/jit/jit_name.h"

/* What an entry takes of the text at most: a name, a file. */
enum { ENTRY_TEXT = 2 * (JIT_NAME_MAX + 1) };

static bool read_number(const char **at, const char *end, uint64_t *value)
{
	const char *begin;

	while (*at < end && **at == ' ')
		++*at;
	if (end - *at > 2 && (*at)[0] == '0' && ((*at)[1] | 0x20) == 'x')
		*at += 2;
	*value = 0;
	for (begin = *at; *at < end && hex_digit(**at) >= 0; ++*at) {
		if (*value >> 60)
			return false;
		*value = *value << 4 | (unsigned)hex_digit(**at);
	}
	return *at > begin && *at < end && **at == ' ';
}

static bool read_line(const char *at, const char *end, struct jit_chunk *chunk)
{
	struct jit_entry *entry;
	uint64_t start, size;

	if (!read_number(&at, end, &start) || !read_number(&at, end, &size))
		return false;
	while (at < end && *at == ' ')
		at++;
	while (end > at && (end[-1] == '\r' || end[-1] == ' '))
		end--;
	entry = at < end ? jit_chunk_add(chunk, start, size) : NULL;
	if (!entry)
		return false;
	if (jit_name_set(chunk, entry, at, (uint64_t)(end - at)))
		return true;
	chunk->head.count--;
	return false;
}

size_t perf_map_parse(const char *text, size_t length, struct jit_chunk *chunk)
{
	const char *at = text, *end = text + length;

	while (at < end && chunk->head.count < JIT_ENTRIES_MAX &&
	       JIT_TEXT_MAX - chunk->head.text_bytes > ENTRY_TEXT) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));

		if (!newline && (size_t)(end - at) < PERF_MAP_STEP)
			break;
		chunk->head.refused += !newline || (newline > at && !read_line(at, newline, chunk));
		at = newline ? newline + 1 : end;
	}
	return (size_t)(at - text);
}
