/* SPDX-License-Identifier: Apache-2.0 */
#include "common/gzip.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
	ZLIB_WINDOW = 15,
	GZIP_WINDOW = 15 + 16, /* 16: gzip's header, zlib.h */
	STEP = 64 << 10,
	STREAM_STEP = 16 << 10,
	PART_MIN = 256, /* bytes; a block's own codes take some 50 */
};

static bool stream_run(z_stream *stream, int (*turn)(z_stream *, int), int flush,
		       struct buffer *out, int *state, struct error *err)
{
	do {
		size_t left = out->limit - out->length;
		size_t room = left < STEP ? left : STEP;
		/* At the limit one byte of room outside tells "just fits" from "too much". */
		uint8_t beyond;
		uint8_t *at = room ? buffer_reserve(out, room) : &beyond;

		if (!at)
			return error_set(err, ERROR_MEMORY, "no memory for %zu more bytes", room);
		stream->next_out = at;
		stream->avail_out = room ? (uInt)room : 1;
		*state = turn(stream, flush);
		if (!room && stream->avail_out == 0)
			return error_set(err, ERROR_LIMIT, "more than %zu bytes", out->limit);
		if (room)
			out->length += room - stream->avail_out;
	} while ((*state == Z_OK || *state == Z_BUF_ERROR) && stream->avail_out == 0);
	return true;
}

static bool compress_parts(z_stream *stream, const size_t *ends, size_t count, struct buffer *out,
			   struct error *err)
{
	size_t done = 0;
	int state = Z_OK;

	for (size_t i = 0; i < count; i++) {
		bool is_last = i + 1 == count;

		if (!is_last && ends[i] - done < PART_MIN)
			continue;
		stream->avail_in = (uInt)(ends[i] - done);
		done = ends[i];
		if (!stream_run(stream, deflate, is_last ? Z_FINISH : Z_BLOCK, out, &state, err))
			return false;
	}
	return state == Z_STREAM_END ||
	       error_set(err, ERROR_FORMAT, "compression ended early (%d)", state);
}

bool gzip_compress_parts(const void *bytes, const size_t *ends, size_t count, int level,
			 struct buffer *out, struct error *err)
{
	z_stream stream = {.next_in = (Bytef *)bytes};
	bool ok;

	if (ends[count - 1] > UINT32_MAX)
		return error_set(err, ERROR_LIMIT, "%zu bytes are too many to compress",
				 ends[count - 1]);
	if (deflateInit2(&stream, level, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return error_set(err, ERROR_MEMORY, "no memory to compress");
	ok = compress_parts(&stream, ends, count, out, err);
	deflateEnd(&stream);
	return ok;
}

bool gzip_compress(const void *bytes, size_t length, int level, struct buffer *out,
		   struct error *err)
{
	return gzip_compress_parts(bytes, &length, 1, level, out, err);
}

struct gzip_stream {
	z_stream z;
};

struct gzip_stream *gzip_stream_new(int level)
{
	struct gzip_stream *stream = calloc(1, sizeof(*stream));

	if (stream && deflateInit2(&stream->z, level, Z_DEFLATED, GZIP_WINDOW, 8,
				   Z_DEFAULT_STRATEGY) != Z_OK) {
		free(stream);
		return NULL;
	}
	return stream;
}

bool gzip_stream_put(struct gzip_stream *stream, const void *bytes, size_t length, bool is_last,
		     struct buffer *out)
{
	z_stream *z = &stream->z;
	const uint8_t *at = bytes;

	do {
		size_t piece = length < UINT32_MAX ? length : UINT32_MAX;

		z->next_in = (Bytef *)at;
		z->avail_in = (uInt)piece;
		at += piece;
		length -= piece;
		do {
			uint8_t *room = buffer_reserve(out, STREAM_STEP);

			if (!room)
				return false;
			z->next_out = room;
			z->avail_out = STREAM_STEP;
			deflate(z, is_last && !length ? Z_FINISH : Z_NO_FLUSH);
			out->length += STREAM_STEP - z->avail_out;
		} while (!z->avail_out);
	} while (length);
	return true;
}

void gzip_stream_free(struct gzip_stream *stream)
{
	if (stream)
		deflateEnd(&stream->z);
	free(stream);
}

static bool inflate_bytes(const void *bytes, size_t length, int window, struct buffer *out,
			  struct error *err)
{
	z_stream stream = {.next_in = (Bytef *)bytes, .avail_in = (uInt)length};
	const char *format = window == GZIP_WINDOW ? "gzip" : "zlib";
	int state = Z_OK;
	bool ok = false;

	if (length > UINT32_MAX)
		return error_set(err, ERROR_LIMIT, "%zu bytes are too many to inflate", length);
	if (inflateInit2(&stream, window) != Z_OK)
		return error_set(err, ERROR_MEMORY, "no memory to inflate");
	do {
		if (!stream_run(&stream, inflate, Z_FINISH, out, &state, err))
			goto out;
		if (state != Z_STREAM_END) {
			if (state == Z_BUF_ERROR)
				error_set(err, ERROR_FORMAT, "%s data ends early", format);
			else
				error_set(err, ERROR_FORMAT, "not %s: %s", format,
					  stream.msg ? stream.msg : "damaged data");
			goto out;
		}
	} while (stream.avail_in && inflateReset(&stream) == Z_OK);
	ok = true;
out:
	inflateEnd(&stream);
	return ok;
}

bool gzip_inflate(const void *bytes, size_t length, struct buffer *out, struct error *err)
{
	return inflate_bytes(bytes, length, GZIP_WINDOW, out, err);
}

bool zlib_inflate(const void *bytes, size_t length, struct buffer *out, struct error *err)
{
	return inflate_bytes(bytes, length, ZLIB_WINDOW, out, err);
}

uint32_t gzip_crc(uint32_t crc, const void *bytes, size_t length)
{
	return (uint32_t)crc32_z(crc, bytes, length);
}
