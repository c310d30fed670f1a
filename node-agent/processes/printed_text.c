/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/processes/printed_text.h"

#include <string.h>

static const char cut_mark[] = "\xe2\x80\xa6"; /* … */

void printed_text_put(struct printed_text *text, const char *at, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		const char c = at[i];

		if (text->length == text->room - 1) {
			text->is_cut = true;
			return;
		}
		text->to[text->length++] = (unsigned char)c < ' ' || c == 0x7f ? '?' : c;
	}
}

/* Between two characters. */
static void mark_cut(struct printed_text *text)
{
	size_t length = text->room - sizeof cut_mark;

	while (length && (text->to[length] & 0xc0) == 0x80)
		length--;
	memcpy(text->to + length, cut_mark, sizeof cut_mark - 1);
	text->length = length + sizeof cut_mark - 1;
}

void printed_text_end(struct printed_text *text)
{
	if (text->is_cut && text->length == text->room - 1)
		mark_cut(text);
	text->to[text->length] = '\0';
}
