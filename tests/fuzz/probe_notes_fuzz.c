/* SPDX-License-Identifier: Apache-2.0 */
/* The notes of a file's probes: each lies behind the one before, its strings end inside. */
#include "node-agent/file_parser/probe_notes.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

static void check_text(const uint8_t *bytes, size_t length, const char *text)
{
	const uint8_t *at = (const uint8_t *)text;

	if (at < bytes || at >= bytes + length || !memchr(at, 0, length - (size_t)(at - bytes)))
		abort();
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	struct probe_note note;
	size_t at = 0, before = 0;

	while (probe_note_next(bytes, length, &at, &note)) {
		if (at <= before || at > length)
			abort();
		before = at;
		check_text(bytes, length, note.provider);
		check_text(bytes, length, note.name);
		check_text(bytes, length, note.arguments);
	}
}
