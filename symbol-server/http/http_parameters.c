/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/http/http_parameters.h"

#include <string.h>

#include "common/hex.h"

char *percent_decode(const char *text, size_t length, bool plus_is_space, struct arena *arena,
		     struct error *err)
{
	char *out = arena_alloc(arena, length + 1), *at = out;

	if (!out) {
		error_set(err, ERROR_MEMORY, "the request does not fit its memory");
		return NULL;
	}
	for (size_t i = 0; i < length; i++) {
		char c = text[i];

		if (c == '%') {
			int high = i + 1 < length ? hex_digit(text[i + 1]) : -1;
			int low = i + 2 < length ? hex_digit(text[i + 2]) : -1;

			if (high < 0 || low < 0) {
				error_set(err, ERROR_FORMAT,
					  "'%%' must be followed by two hexadecimal digits");
				return NULL;
			}
			c = (char)(high << 4 | low);
			i += 2;
		} else if (c == '+' && plus_is_space) {
			c = ' ';
		}
		if (!c) {
			error_set(err, ERROR_FORMAT, "a NUL character is not accepted");
			return NULL;
		}
		*at++ = c;
	}
	*at = 0;
	return out;
}

static bool add_piece(const char *piece, size_t length, struct arena *arena,
		      struct http_parameters *out, struct error *err)
{
	const char *equals = memchr(piece, '=', length);
	size_t name_length = equals ? (size_t)(equals - piece) : length;
	struct http_parameter *item;

	if (out->count == HTTP_PARAMETERS_MAX)
		return error_set(err, ERROR_LIMIT, "more than %d parameters", HTTP_PARAMETERS_MAX);
	item = &out->items[out->count];
	item->name = percent_decode(piece, name_length, true, arena, err);
	if (!item->name)
		return false;
	item->value = "";
	if (equals)
		item->value = percent_decode(equals + 1, length - name_length - 1, true, arena,
					     err);
	if (!item->value)
		return error_prefix(err, "parameter '%.60s'", item->name);
	out->count++;
	return true;
}

bool http_parameters_parse(const char *query, size_t length, struct arena *arena,
			   struct http_parameters *out, struct error *err)
{
	const char *at = query, *end = query + length;

	out->count = 0;
	while (at < end) {
		const char *stop = memchr(at, '&', (size_t)(end - at));
		size_t piece = stop ? (size_t)(stop - at) : (size_t)(end - at);

		if (piece && !add_piece(at, piece, arena, out, err))
			return false;
		at += piece + 1;
	}
	return true;
}
