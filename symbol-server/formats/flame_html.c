/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "symbol-server/formats/flame_formats.h"
#include "symbol-server/formats/report_files.h"

enum { TEXT_BYTES = 64 << 10, SEPARATOR_BYTES = 3 };

/* In a script element that holds data only its end tag and comments mean anything, and in scripts
 * of old U+2028 and U+2029; JSON can spell them all. They occur in strings only. What may be the
 * start of one of these two is left for later; returns what was taken. */
static size_t put_harmless(struct buffer *out, const uint8_t *bytes, size_t length)
{
	size_t from = 0, i = 0;

	for (; i < length; i++) {
		bool is_separator = i + 2 < length && bytes[i] == 0xe2 && bytes[i + 1] == 0x80 &&
				    (bytes[i + 2] & 0xfe) == 0xa8;

		if (bytes[i] == 0xe2 && i + 2 >= length)
			break;
		if (!is_separator && bytes[i] != '<' && bytes[i] != '>' && bytes[i] != '&')
			continue;
		buffer_append(out, bytes + from, i - from);
		buffer_printf(out, "\\u%04x",
			      is_separator ? 0x2028u + (bytes[i + 2] & 1) : bytes[i]);
		i += is_separator ? 2 : 0;
		from = i + 1;
	}
	buffer_append(out, bytes + from, i - from);
	return i;
}

struct page {
	struct buffer *out;
	uint8_t left[SEPARATOR_BYTES * 2]; /* of the bytes before */
	size_t left_length;
};

static bool drain_text(struct buffer *text)
{
	struct page *page = text->drain_context;
	const uint8_t *bytes = text->bytes;
	size_t length = text->length, taken;

	while (page->left_length && length) { /* a byte at a time until it is decided */
		page->left[page->left_length++] = *bytes++;
		length--;
		taken = put_harmless(page->out, page->left, page->left_length);
		page->left_length -= taken;
		memmove(page->left, page->left + taken, page->left_length);
	}
	taken = put_harmless(page->out, bytes, length);
	if (!page->left_length) {
		page->left_length = length - taken;
		memcpy(page->left, bytes + taken, page->left_length);
	}
	return !page->out->failed;
}

bool flame_html(const struct flame_answer *answer, struct buffer *out)
{
	const char *data = strstr(report_page, REPORT_PAGE_DATA);
	struct page page = {.out = out};
	struct buffer text;
	struct json json;
	bool ok;

	if (!data)
		return false;
	buffer_append(out, report_page, (size_t)(data - report_page));
	buffer_init(&text, TEXT_BYTES);
	text.drain = drain_text;
	text.drain_context = &page;
	buffer_append_text(&text, "{\"graph\":");
	ok = flame_json(answer, &text);
	json = (struct json){.out = &text, .needs_comma = true};
	json_key_string(&json, "match", answer->match ? answer->match : "");
	json_key(&json, "functions");
	top_functions_json(&json, answer);
	json_key_uint(&json, "function_count", answer->top->count);
	json_close(&json, '}');
	ok = buffer_flush(&text) && ok; /* it ends in '}': nothing is left */
	buffer_release(&text);
	buffer_append_text(out, data + strlen(REPORT_PAGE_DATA));
	return ok && !out->failed;
}
