/* SPDX-License-Identifier: Apache-2.0 */
/* Reading call frame information byte by byte: what is not there is 0 and makes the cursor bad. */
#ifndef NODE_AGENT_FILE_PARSER_FRAMES_FRAME_BYTES_H
#define NODE_AGENT_FILE_PARSER_FRAMES_FRAME_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct frame_bytes {
	const uint8_t *at, *end;
	uint64_t end_address; /* of the ELF file, where end is */
	bool bad;
};

static inline size_t frame_left(const struct frame_bytes *bytes)
{
	return (size_t)(bytes->end - bytes->at);
}

/* What encodings relative to their own place count from. */
static inline uint64_t frame_address(const struct frame_bytes *bytes)
{
	return bytes->end_address - frame_left(bytes);
}

static inline uint64_t frame_failed(struct frame_bytes *bytes)
{
	bytes->bad = true;
	bytes->at = bytes->end;
	return 0;
}

/* Little-endian, 1 to 8 bytes. */
static inline uint64_t frame_fixed(struct frame_bytes *bytes, size_t length)
{
	uint64_t value = 0;

	if (frame_left(bytes) < length)
		return frame_failed(bytes);
	memcpy(&value, bytes->at, length);
	bytes->at += length;
	return value;
}

static inline int64_t frame_fixed_signed(struct frame_bytes *bytes, size_t length)
{
	unsigned shift = 64 - 8 * (unsigned)length;

	return (int64_t)(frame_fixed(bytes, length) << shift) >> shift;
}

/* LEB128 (DWARF 5, 7.6); more than 64 bits are bad. */
static inline uint64_t frame_number(struct frame_bytes *bytes)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64 && bytes->at < bytes->end; shift += 7) {
		uint8_t byte = *bytes->at++;

		if (shift == 63 && byte > 1)
			break;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	return frame_failed(bytes);
}

static inline int64_t frame_number_signed(struct frame_bytes *bytes)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64 && bytes->at < bytes->end; shift += 7) {
		uint8_t byte = *bytes->at++;

		if (shift == 63 && byte != 0 && byte != 0x7f)
			break;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if (byte & 0x40 && shift < 57)
			value |= ~UINT64_C(0) << (shift + 7);
		return (int64_t)value;
	}
	return (int64_t)frame_failed(bytes);
}

/* Takes the next length bytes out as a cursor of their own. */
static inline struct frame_bytes frame_part(struct frame_bytes *bytes, uint64_t length)
{
	struct frame_bytes part = *bytes;

	if (length > frame_left(bytes)) {
		frame_failed(bytes);
		part.bad = true;
		length = 0;
	}
	part.end = part.at + length;
	part.end_address = frame_address(bytes);
	bytes->at = bytes->bad ? bytes->end : part.end;
	part.end_address += length;
	return part;
}

#endif
