/* SPDX-License-Identifier: Apache-2.0 */
/* Door to zlib: gzip bytes, both ways, and zlib's own, with ceilings. */
#ifndef COMMON_GZIP_H
#define COMMON_GZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/error.h"

/* Appends one gzip member that holds the bytes. level 1–9. */
bool gzip_compress(const void *bytes, size_t length, int level, struct buffer *out,
		   struct error *err);

/* The same bytes in parts, each with codes of its own (a deflate block, RFC 1951, 3.2.3), which
 * pays where the parts are of different kinds: tables of numbers and texts, say. ends: of each
 * part, rising, the last one all there is. Short parts go with their neighbour. */
bool gzip_compress_parts(const void *bytes, const size_t *ends, size_t count, int level,
			 struct buffer *out, struct error *err);

/* One gzip member of bytes that come bit by bit; about 270 KB. NULL: no memory. */
struct gzip_stream;
struct gzip_stream *gzip_stream_new(int level);
/* Appends what comes out by now: with is_last all the rest. False: out has failed. */
bool gzip_stream_put(struct gzip_stream *stream, const void *bytes, size_t length, bool is_last,
		     struct buffer *out);
void gzip_stream_free(struct gzip_stream *stream); /* NULL is fine */

/* Appends the inflated content of one or more gzip members. ERROR_FORMAT: not gzip, truncated or
 * followed by something else; ERROR_LIMIT: out's limit reached (out is then not to be used). */
bool gzip_inflate(const void *bytes, size_t length, struct buffer *out, struct error *err);

/* The same for one zlib stream (RFC 1950), as ELF files have their compressed sections. */
bool zlib_inflate(const void *bytes, size_t length, struct buffer *out, struct error *err);

/* CRC-32 as gzip and .gnu_debuglink have it; crc: of what came before, 0 at the start. */
uint32_t gzip_crc(uint32_t crc, const void *bytes, size_t length);

#endif
