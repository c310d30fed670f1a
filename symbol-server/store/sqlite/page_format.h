/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of a database and frames of its write-ahead log as bytes
 * (https://www.sqlite.org/fileformat2.html, 1.3 and 4.1), and the checksum at the end of our pages.
 * Of page_checksums*.c only. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_PAGE_FORMAT_H
#define SYMBOL_SERVER_STORE_SQLITE_PAGE_FORMAT_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/crc32c.h"

enum {
	PAGE_HEADER = 100, /* in front of the first page's cells */
	PAGE_BYTES_MIN = 512,
	PAGE_BYTES_MAX = 65536,
	PAGE_CHECKSUM = 8,
	PAGE_MARK = 0x63706666, /* "ffpc" */
	LOG_HEADER = 32,
	LOG_FRAME = 24, /* in front of each page */
};

static inline uint32_t page_format_be32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof value);
	return be32toh(value);
}

static inline uint32_t page_format_le32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof value);
	return le32toh(value);
}

/* Bytes of a page; 0: no such size. */
static inline uint32_t page_format_bytes(const uint8_t *header)
{
	uint32_t bytes = (uint32_t)header[16] << 8 | header[17];

	bytes = bytes == 1 ? PAGE_BYTES_MAX : bytes;
	return bytes >= PAGE_BYTES_MIN && !(bytes & (bytes - 1)) ? bytes : 0;
}

/* Whether the first page's header says that pages keep room for a checksum. */
static inline bool page_format_keeps(const uint8_t *header)
{
	return header[20] == PAGE_CHECKSUM;
}

/* The same, even when a bit of one of them is wrong. end: the first page's last eight bytes. */
static inline bool page_format_has(const uint8_t *header, const uint8_t *end)
{
	return page_format_keeps(header) || page_format_le32(end + 4) == PAGE_MARK;
}

static inline uint32_t page_format_checksum(const uint8_t *page, uint32_t bytes, uint32_t number)
{
	uint32_t little = htole32(number);

	return crc32c(crc32c(0, page, bytes - PAGE_CHECKSUM), &little, sizeof little);
}

static inline void page_format_seal(uint8_t *page, uint32_t bytes, uint32_t number)
{
	uint32_t end[2] = {htole32(page_format_checksum(page, bytes, number)), htole32(PAGE_MARK)};

	memcpy(page + bytes - PAGE_CHECKSUM, end, sizeof end);
}

#endif
