/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "symbol-server/formats/flame_formats.h"
#include "symbol-server/formats/report_files.h"

/* In a script element that holds data only its end tag and comments mean anything, and in scripts
 * of old U+2028 and U+2029; JSON can spell them all. They occur in strings only. */
static void put_harmless(struct buffer *out, const uint8_t *bytes, size_t length)
{
	size_t from = 0;

	for (size_t i = 0; i < length; i++) {
		bool is_separator = i + 2 < length && bytes[i] == 0xe2 && bytes[i + 1] == 0x80 &&
				    (bytes[i + 2] & 0xfe) == 0xa8;

		if (!is_separator && bytes[i] != '<' && bytes[i] != '>' && bytes[i] != '&')
			continue;
		buffer_append(out, bytes + from, i - from);
		buffer_printf(out, "\\u%04x",
			      is_separator ? 0x2028u + (bytes[i + 2] & 1) : bytes[i]);
		i += is_separator ? 2 : 0;
		from = i + 1;
	}
	buffer_append(out, bytes + from, length - from);
}

bool flame_html(const struct flame_answer *answer, struct buffer *out)
{
	const char *data = strstr(report_page, REPORT_PAGE_DATA);
	struct buffer text;
	struct json json;
	bool ok;

	buffer_init(&text, out->limit);
	buffer_append_text(&text, "{\"graph\":");
	ok = flame_json(answer, &text);
	json = (struct json){.out = &text, .needs_comma = true};
	json_key_string(&json, "match", answer->match ? answer->match : "");
	json_key(&json, "functions");
	top_functions_json(&json, answer);
	json_key_uint(&json, "function_count", answer->top->count);
	json_close(&json, '}');
	ok = ok && data && !text.failed;
	if (ok) {
		buffer_append(out, report_page, (size_t)(data - report_page));
		put_harmless(out, text.bytes, text.length);
		buffer_append_text(out, data + strlen(REPORT_PAGE_DATA));
	}
	buffer_release(&text);
	return ok && !out->failed;
}
