/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/http/body_inflate.h"

#include <libdeflate.h>

#include "common/gzip.h"

enum {
	TRAILER = 8,      /* CRC and length, RFC 1952 */
	RATIO_MAX = 1032, /* deflate cannot do better */
	RATIO_FIRST = 4,  /* tried when the trailer says nothing likely */
	ROOM_FIRST = 4096,
};

/* The last member's length modulo 2^32, which is all there is in the usual case of one member. */
static size_t announced(struct bytes body)
{
	const uint8_t *at = body.at + body.length - 4;
	size_t length;

	if (body.length <= TRAILER)
		return 0;
	length = (size_t)at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24;
	return length / RATIO_MAX > body.length ? 0 : length;
}

static size_t first_room(struct bytes body, size_t limit)
{
	size_t room = announced(body);

	if (room < ROOM_FIRST || room < body.length)
		room = body.length * RATIO_FIRST;
	return room < ROOM_FIRST ? ROOM_FIRST : room < limit ? room : limit;
}

/* Every member whole; false: not so, or no room, and out is empty again. */
static bool inflate_members(struct libdeflate_decompressor *state, struct bytes body,
			    struct buffer *out)
{
	size_t room = first_room(body, out->limit), start = out->length;

	while (body.length) {
		size_t taken = 0, made = 0;
		uint8_t *to = buffer_reserve(out, room);
		enum libdeflate_result result;

		if (!to)
			break;
		result = libdeflate_gzip_decompress_ex(state, body.at, body.length, to, room,
						       &taken, &made);
		if (result == LIBDEFLATE_SUCCESS) {
			out->length += made;
			body.at += taken;
			body.length -= taken;
			room = out->limit - out->length < room ? out->limit - out->length : room;
		} else if (result == LIBDEFLATE_INSUFFICIENT_SPACE &&
			   room < out->limit - out->length) {
			room = out->limit - out->length < 2 * room ? out->limit - out->length
								   : 2 * room;
		} else {
			break;
		}
	}
	if (!body.length)
		return true;
	out->length = start;
	out->failed = false;
	return false;
}

bool body_inflate(struct bytes body, struct buffer *out, struct error *err)
{
	struct libdeflate_decompressor *state = libdeflate_alloc_decompressor();
	bool ok = state && body.length && inflate_members(state, body, out);

	libdeflate_free_decompressor(state);
	return ok || gzip_inflate(body.at, body.length, out, err);
}
