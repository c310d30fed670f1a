/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/formats/utf8.h"

#include <stdbool.h>

size_t utf8_length(const unsigned char *text)
{
	unsigned char low = 0x80, high = 0xbf;
	size_t more;

	if (text[0] < 0x80)
		return 1;
	if (text[0] < 0xc2 || text[0] > 0xf4)
		return 0;
	more = text[0] < 0xe0 ? 1 : text[0] < 0xf0 ? 2 : 3;
	if (text[0] == 0xe0)
		low = 0xa0;
	if (text[0] == 0xed)
		high = 0x9f;
	if (text[0] == 0xf0)
		low = 0x90;
	if (text[0] == 0xf4)
		high = 0x8f;
	for (size_t i = 1; i <= more; i++) {
		if (text[i] < low || text[i] > high)
			return 0;
		low = 0x80;
		high = 0xbf;
	}
	return more + 1;
}

static bool is_hidden(uint32_t point)
{
	return (point >= 0x80 && point < 0xa0) || point == 0x61c || point == 0x200e ||
	       point == 0x200f || (point >= 0x202a && point <= 0x202e) ||
	       (point >= 0x2066 && point <= 0x2069);
}

size_t utf8_shown(const unsigned char *text, size_t *step)
{
	size_t length = utf8_length(text);

	*step = length ? length : 1;
	return length > 1 && is_hidden(utf8_point(text, length)) ? 0 : length;
}

uint32_t utf8_point(const unsigned char *text, size_t length)
{
	uint32_t point = length == 1 ? text[0] : text[0] & (0x7fu >> length);

	for (size_t i = 1; i < length; i++)
		point = point << 6 | (text[i] & 0x3fu);
	return point;
}
