/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/hotspot_counters.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 16 << 10, LONG_BYTES = 8 };

struct prologue {
	uint8_t magic[4], byte_order, major, minor, accessible;
	uint32_t used, overflow;
	uint64_t time;
	uint32_t entry_offset, entries;
};

struct entry { /* its name and its value are behind it */
	uint32_t length, name_offset, vector_length;
	uint8_t type, flags, units, variability;
	uint32_t data_offset;
};

/* Where it has its value, in so many bytes of entries; 0: nowhere. */
static uint64_t find(const uint8_t *bytes, size_t length, size_t at, uint32_t entries,
		     const char *name)
{
	const size_t name_bytes = strlen(name) + 1;
	struct entry entry;

	for (uint32_t i = 0; i < entries && at <= length && sizeof entry <= length - at; i++) {
		memcpy(&entry, bytes + at, sizeof entry);
		if (entry.length < sizeof entry || entry.length > length - at)
			return 0;
		if (entry.type == 'J' && !entry.vector_length && entry.name_offset < entry.length &&
		    name_bytes <= entry.length - entry.name_offset &&
		    entry.data_offset < entry.length &&
		    LONG_BYTES <= entry.length - entry.data_offset &&
		    !memcmp(bytes + at + entry.name_offset, name, name_bytes))
			return at + entry.data_offset;
		at += entry.length;
	}
	return 0;
}

uint64_t hotspot_counter_find(const struct python_memory *memory, uint64_t start, const char *name)
{
	static const uint8_t magic[] = {0xca, 0xfe, 0xc0, 0xc0};
	struct prologue prologue;
	uint64_t found = 0;
	size_t have = 0;

	if (!start || !memory->read(memory->context, start, &prologue, sizeof prologue) ||
	    memcmp(prologue.magic, magic, sizeof magic) != 0 ||
	    prologue.used > HOTSPOT_COUNTERS_BYTES)
		return 0;
	uint8_t *bytes = malloc(prologue.used + 1);
	while (bytes && have < prologue.used) {
		const size_t left = prologue.used - have, next = left < CHUNK ? left : CHUNK;

		if (!memory->read(memory->context, start + have, bytes + have, next))
			break;
		have += next;
	}
	if (bytes && have == prologue.used)
		found = find(bytes, have, prologue.entry_offset, prologue.entries, name);
	free(bytes);
	return found ? start + found : 0;
}
