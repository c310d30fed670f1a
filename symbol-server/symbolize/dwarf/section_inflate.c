/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/dwarf/section_inflate.h"

#include <libdeflate.h>
#include <zstd.h>

/* libdeflate: twice as fast as zlib, a sixth of whole conversions. What follows the stream is
 * padding. */
static bool inflate_zlib(const uint8_t *bytes, size_t length, uint8_t *out, size_t room)
{
	struct libdeflate_decompressor *state = libdeflate_alloc_decompressor();
	size_t taken;
	bool ok = state && libdeflate_zlib_decompress_ex(state, bytes, length, out, room, &taken,
							 NULL) == LIBDEFLATE_SUCCESS;

	libdeflate_free_decompressor(state);
	return ok;
}

bool section_inflate(enum section_compression kind, const uint8_t *bytes, size_t length,
		     uint8_t *out, size_t room)
{
	switch (kind) {
	case COMPRESSION_ZLIB:
		return inflate_zlib(bytes, length, out, room);
	case COMPRESSION_ZSTD:
		return ZSTD_decompress(out, room, bytes, length) == room;
	default:
		return false;
	}
}
