/* SPDX-License-Identifier: Apache-2.0 */
/* A place in foreign bytes that never leaves them: what would, reads as 0 and sets failed, and from
 * then on everything does. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_DWARF_DWARF_CURSOR_H
#define SYMBOL_SERVER_SYMBOLIZE_DWARF_DWARF_CURSOR_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct dwarf_bytes {
	const uint8_t *at; /* NULL: there is none */
	size_t length;
};

struct dwarf_cursor {
	const uint8_t *at, *end;
	bool is_big_endian, failed;
};

static inline struct dwarf_cursor dwarf_cursor_at(struct dwarf_bytes bytes, uint64_t offset,
						  bool is_big_endian)
{
	bool outside = !bytes.at || offset > bytes.length;

	return (struct dwarf_cursor){
		.at = outside ? NULL : bytes.at + offset,
		.end = outside ? NULL : bytes.at + bytes.length,
		.is_big_endian = is_big_endian,
		.failed = outside,
	};
}

static inline size_t dwarf_left(const struct dwarf_cursor *cursor)
{
	return (size_t)(cursor->end - cursor->at);
}

static inline void dwarf_fail(struct dwarf_cursor *cursor)
{
	cursor->failed = true;
	cursor->at = cursor->end;
}

static inline void dwarf_skip(struct dwarf_cursor *cursor, uint64_t bytes)
{
	if (bytes > dwarf_left(cursor))
		dwarf_fail(cursor);
	else
		cursor->at += bytes;
}

/* 1 to 8 bytes, the file's byte order. */
static inline uint64_t dwarf_number(struct dwarf_cursor *cursor, unsigned bytes)
{
	uint64_t value = 0;

	if (bytes > dwarf_left(cursor)) {
		dwarf_fail(cursor);
		return 0;
	}
	if (cursor->is_big_endian) {
		for (unsigned i = 0; i < bytes; i++)
			value = value << 8 | cursor->at[i];
	} else if (bytes == 4) {
		uint32_t word;

		memcpy(&word, cursor->at, sizeof(word));
		value = le32toh(word);
	} else if (bytes == 8) {
		memcpy(&value, cursor->at, sizeof(value));
		value = le64toh(value);
	} else {
		for (unsigned i = 0; i < bytes; i++)
			value |= (uint64_t)cursor->at[i] << 8 * i;
	}
	cursor->at += bytes;
	return value;
}

static inline uint8_t dwarf_u8(struct dwarf_cursor *cursor)
{
	if (cursor->at == cursor->end) {
		dwarf_fail(cursor);
		return 0;
	}
	return *cursor->at++;
}

/* LEB128; bits beyond the 64th are dropped, as every reader does. */
static inline uint64_t dwarf_uleb(struct dwarf_cursor *cursor)
{
	uint64_t value = 0;

	for (unsigned shift = 0; cursor->at < cursor->end; shift += 7) {
		uint8_t byte = *cursor->at++;

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	dwarf_fail(cursor);
	return 0;
}

static inline int64_t dwarf_sleb(struct dwarf_cursor *cursor)
{
	uint64_t value = 0;
	unsigned shift = 0;

	while (cursor->at < cursor->end) {
		uint8_t byte = *cursor->at++;

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (byte & 0x80)
			continue;
		if (shift < 64 && byte & 0x40)
			value |= ~(uint64_t)0 << shift;
		return (int64_t)value;
	}
	dwarf_fail(cursor);
	return 0;
}

/* A text that ends inside of the bytes; "" where it does not. */
static inline const char *dwarf_text(struct dwarf_cursor *cursor)
{
	const uint8_t *start = cursor->at;
	const uint8_t *zero = dwarf_left(cursor) ? memchr(start, 0, dwarf_left(cursor)) : NULL;

	if (!zero) {
		dwarf_fail(cursor);
		return "";
	}
	cursor->at = zero + 1;
	return (const char *)start;
}

/* DWARF 5, 7.4: the length of a unit or table; 8 bytes follow 0xffffffff. Returns the size of
 * offsets in it, 4 or 8. */
static inline unsigned dwarf_initial_length(struct dwarf_cursor *cursor, uint64_t *length)
{
	*length = dwarf_number(cursor, 4);
	if (*length < 0xfffffff0)
		return 4;
	if (*length != 0xffffffff)
		dwarf_fail(cursor);
	*length = dwarf_number(cursor, 8);
	return 8;
}

#endif
