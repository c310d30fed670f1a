/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/convert/gnu_debugdata.h"

#include <lzma.h>

enum { STEP_MIN = 256 << 10 };

static bool explain(lzma_ret result, struct error *err)
{
	switch (result) {
	case LZMA_MEMLIMIT_ERROR:
		return error_set(err, ERROR_LIMIT,
				 "its .gnu_debugdata needs more than %d MB to unpack",
				 GNU_DEBUGDATA_MEMORY_MAX >> 20);
	case LZMA_MEM_ERROR:
		return error_set(err, ERROR_MEMORY, "no memory for its .gnu_debugdata");
	default:
		return error_set(err, ERROR_FORMAT, "its .gnu_debugdata is damaged");
	}
}

/* Twice as much each time, so that what is known so far is copied seldom. */
static bool make_room(struct buffer *out, lzma_stream *stream, struct error *err)
{
	size_t room = out->length < STEP_MIN ? STEP_MIN : out->length;

	if (room > GNU_DEBUGDATA_BYTES_MAX - out->length)
		room = GNU_DEBUGDATA_BYTES_MAX - out->length;
	if (!room)
		return error_set(err, ERROR_LIMIT, "its .gnu_debugdata unpacks to more than %d MB",
				 GNU_DEBUGDATA_BYTES_MAX >> 20);
	stream->next_out = buffer_reserve(out, room);
	stream->avail_out = room;
	return stream->next_out || error_set(err, ERROR_MEMORY, "no memory for its .gnu_debugdata");
}

bool gnu_debugdata_unpack(const void *bytes, size_t length, struct buffer *out, struct error *err)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	lzma_ret result = lzma_stream_decoder(&stream, GNU_DEBUGDATA_MEMORY_MAX, 0);

	if (result != LZMA_OK)
		return explain(result, err);
	stream.next_in = bytes;
	stream.avail_in = length;
	while (result == LZMA_OK) {
		size_t room;

		if (!make_room(out, &stream, err)) {
			lzma_end(&stream);
			return false;
		}
		room = stream.avail_out;
		result = lzma_code(&stream, LZMA_FINISH);
		out->length += room - stream.avail_out;
	}
	lzma_end(&stream);
	return result == LZMA_STREAM_END || explain(result, err);
}
