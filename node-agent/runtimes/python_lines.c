/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/python_lines.h"

#include <stdbool.h>

static uint32_t line_of(int64_t line)
{
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

/* Pairs: so many bytes later begins what is so many lines further. */
static uint32_t lnotab_find(const uint8_t *table, size_t length, int64_t line, int64_t position)
{
	int64_t start = 0;

	for (size_t i = 0; i + 2 <= length; i += 2) {
		start += table[i];
		if (start > position)
			break;
		line += (int8_t)table[i + 1];
	}
	return line_of(line);
}

/* Pairs: so many bytes are of what is so many lines further, or (-128) of no line. */
static uint32_t ranges_find(const uint8_t *table, size_t length, int64_t line, int64_t position)
{
	int64_t end = 0;

	for (size_t i = 0; i + 2 <= length; i += 2) {
		const int8_t delta = (int8_t)table[i + 1];

		end += table[i];
		line += delta == INT8_MIN ? 0 : delta;
		if (position < end)
			return delta == INT8_MIN ? 0 : line_of(line);
	}
	return 0;
}

/* Six bits a byte, the lowest first; bit 6: there are more. */
static bool varint_read(const uint8_t *table, size_t length, size_t *at, uint64_t *value)
{
	*value = 0;
	for (unsigned shift = 0; *at < length && shift < 36; shift += 6) {
		const uint8_t byte = table[(*at)++];

		*value |= (uint64_t)(byte & 0x3f) << shift;
		if (!(byte & 0x40))
			return true;
	}
	return false;
}

enum location_kind { /* below: by columns, and their line is the last one's */
		     LOCATION_ONE_LINE = 10,
		     LOCATION_NO_COLUMNS = 13,
		     LOCATION_LONG = 14,
		     LOCATION_NONE = 15,
};

/* Entries, whose first byte alone has bit 7: kind, and how many units of two bytes are of it. */
static uint32_t locations_find(const uint8_t *table, size_t length, int64_t line, int64_t position)
{
	int64_t end = 0;

	for (size_t at = 0; at < length;) {
		const uint8_t first = table[at++], kind = first >> 3 & 15;
		uint64_t delta;

		if (kind >= LOCATION_ONE_LINE && kind < LOCATION_NO_COLUMNS) {
			line += kind - LOCATION_ONE_LINE;
		} else if (kind == LOCATION_NO_COLUMNS || kind == LOCATION_LONG) {
			if (!varint_read(table, length, &at, &delta))
				return 0;
			line += delta & 1 ? -(int64_t)(delta >> 1) : (int64_t)(delta >> 1);
		}
		end += ((first & 7) + 1) * 2;
		if (position < end)
			return kind == LOCATION_NONE ? 0 : line_of(line);
		while (at < length && !(table[at] & 0x80))
			at++;
	}
	return 0;
}

uint32_t python_line_find(enum python_line_format format, const uint8_t *table, size_t length,
			  uint32_t first_line, int64_t position)
{
	if (position < 0)
		return line_of(first_line);
	switch (format) {
	case PYTHON_LINES_LNOTAB:
		return lnotab_find(table, length, first_line, position);
	case PYTHON_LINES_RANGES:
		return ranges_find(table, length, first_line, position);
	case PYTHON_LINES_LOCATIONS:
		return locations_find(table, length, first_line, position);
	}
	return 0;
}
