/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/ingest/texts.h"

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

/* True when eight bytes at a time show neither a set high bit nor a zero byte. */
static bool is_plain(const uint8_t *at, size_t length)
{
	for (; length >= 8; at += 8, length -= 8) {
		uint64_t word;

		memcpy(&word, at, 8);
		if ((word | (word - 0x0101010101010101ull)) & 0x8080808080808080ull)
			return false;
	}
	for (; length; at++, length--)
		if (!*at || *at >= 0x80)
			return false;
	return true;
}

/* Bytes of the character at at; 0: not one (overlong, surrogate, beyond U+10FFFF, cut short, NUL).
 */
static unsigned character_length(const uint8_t *at, const uint8_t *end)
{
	static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned length = *at < 0x80   ? 1
			  : *at < 0xc2 ? 0
			  : *at < 0xe0 ? 2
			  : *at < 0xf0 ? 3
			  : *at < 0xf5 ? 4
				       : 0;
	uint32_t code;

	if (length <= 1)
		return *at && length;
	if ((size_t)(end - at) < length)
		return 0;
	code = *at & (0x7f >> length);
	for (unsigned i = 1; i < length; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (at[i] & 0x3f);
	}
	return code < smallest[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)
		       ? 0
		       : length;
}

static size_t count_invalid(const uint8_t *at, const uint8_t *end)
{
	size_t invalid = 0;

	while (at < end) {
		unsigned length = character_length(at, end);

		invalid += !length;
		at += length ? length : 1;
	}
	return invalid;
}

struct text text_repair(struct arena *arena, struct wire bytes)
{
	size_t length = (size_t)(bytes.end - bytes.at), invalid, room;
	char *copy, *to;

	if (!length)
		return (struct text){"", 0};
	if (is_plain(bytes.at, length))
		return (struct text){(const char *)bytes.at, (uint32_t)length};
	invalid = count_invalid(bytes.at, bytes.end);
	if (!invalid)
		return (struct text){(const char *)bytes.at, (uint32_t)length};
	room = length + invalid * (sizeof replacement - 2);
	copy = to = arena_alloc(arena, room);
	if (!copy)
		return (struct text){"", 0};
	for (const uint8_t *at = bytes.at; at < bytes.end;) {
		unsigned step = character_length(at, bytes.end);
		size_t size = step ? step : sizeof replacement - 1;

		memcpy(to, step ? (const char *)at : replacement, size);
		to += size;
		at += step ? step : 1;
	}
	return (struct text){copy, (uint32_t)(to - copy)};
}

struct text text_cut(struct text text, uint32_t limit)
{
	if (text.length <= limit)
		return text;
	while (limit && ((uint8_t)text.at[limit] & 0xc0) == 0x80)
		limit--;
	text.length = limit;
	return text;
}

bool text_is(struct text text, const char *other)
{
	return strlen(other) == text.length && !memcmp(text.at, other, text.length);
}

struct text text_base_name(struct text path)
{
	for (uint32_t i = path.length; i-- > 0;)
		if (path.at[i] == '/')
			return (struct text){path.at + i + 1, path.length - i - 1};
	return path;
}

struct text text_of(const char *literal)
{
	return (struct text){literal, (uint32_t)strlen(literal)};
}
