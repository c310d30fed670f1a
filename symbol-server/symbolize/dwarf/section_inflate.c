/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/dwarf/section_inflate.h"

#include <zlib.h>
#include <zstd.h>

bool section_inflate(enum section_compression kind, const uint8_t *bytes, size_t length,
		     uint8_t *out, size_t room)
{
	uLong filled = room, taken = length;

	switch (kind) {
	case COMPRESSION_ZLIB: /* what follows the stream is padding */
		return uncompress2(out, &filled, bytes, &taken) == Z_OK && filled == room;
	case COMPRESSION_ZSTD:
		return ZSTD_decompress(out, room, bytes, length) == room;
	default:
		return false;
	}
}
