/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/formats/json_writer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "symbol-server/formats/utf8.h"

static void before_value(struct json *json)
{
	if (json->needs_comma)
		buffer_append_char(json->out, ',');
	json->needs_comma = true;
}

void json_open(struct json *json, char bracket)
{
	before_value(json);
	buffer_append_char(json->out, bracket);
	json->needs_comma = false;
}

void json_close(struct json *json, char bracket)
{
	buffer_append_char(json->out, bracket);
	json->needs_comma = true;
}

void json_key(struct json *json, const char *key)
{
	before_value(json);
	buffer_append_char(json->out, '"');
	buffer_append_text(json->out, key);
	buffer_append(json->out, "\":", 2);
	json->needs_comma = false;
}

static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* well-formed UTF-8 of 2 to 4 bytes; above U+FFFF as two surrogates (RFC 8259 §7) */
static void put_escaped(struct buffer *out, const unsigned char *text, size_t length)
{
	uint32_t point = utf8_point(text, length);

	if (point > 0xffff)
		buffer_printf(out, "\\u%04x\\u%04x", 0xd7c0 + (point >> 10),
			      0xdc00 | (point & 0x3ff));
	else
		buffer_printf(out, "\\u%04x", point);
}

void json_string(struct json *json, const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	struct buffer *out = json->out;

	before_value(json);
	buffer_append_char(out, '"');
	while (*at) {
		const unsigned char *from = at;
		size_t length, step;

		while (is_plain(*at))
			at++;
		if (at > from)
			buffer_append(out, from, (size_t)(at - from));
		if (!*at)
			break;
		length = utf8_shown(at, &step);
		if (length > 1 && json->is_ascii)
			put_escaped(out, at, length);
		else if (length > 1)
			buffer_append(out, at, length);
		else if (!length)
			buffer_append_text(out, json->is_ascii ? "\\ufffd" : UTF8_REPLACEMENT);
		else if (*at == '"' || *at == '\\')
			buffer_append(out, (const char[]){'\\', (char)*at}, 2);
		else
			buffer_printf(out, "\\u%04x", *at);
		at += step;
	}
	buffer_append_char(out, '"');
}

/* Columns of a million numbers go through here: one append for comma and digits. */
void json_uint(struct json *json, uint64_t number)
{
	char digits[24], *at = digits + sizeof(digits);

	do
		*--at = (char)('0' + number % 10);
	while (number /= 10);
	if (json->needs_comma)
		*--at = ',';
	json->needs_comma = true;
	buffer_append(json->out, at, (size_t)(digits + sizeof(digits) - at));
}

void json_int(struct json *json, int64_t number)
{
	if (number >= 0) {
		json_uint(json, (uint64_t)number);
		return;
	}
	before_value(json);
	buffer_append_char(json->out, '-');
	json->needs_comma = false;
	json_uint(json, -(uint64_t)number);
}

void json_share(struct json *json, double share)
{
	before_value(json);
	buffer_printf(json->out, "%.6f", share >= 0 ? share : 0.0);
}

void json_key_string(struct json *json, const char *key, const char *text)
{
	json_key(json, key);
	json_string(json, text);
}

void json_key_uint(struct json *json, const char *key, uint64_t number)
{
	json_key(json, key);
	json_uint(json, number);
}

void json_key_int(struct json *json, const char *key, int64_t number)
{
	json_key(json, key);
	json_int(json, number);
}

void json_key_flag(struct json *json, const char *key, bool flag)
{
	json_key(json, key);
	buffer_append_text(json->out, flag ? "true" : "false");
	json->needs_comma = true;
}

void json_key_number(struct json *json, const char *key, double number)
{
	json_key(json, key);
	if (isfinite(number))
		buffer_printf(json->out, "%.9g", number);
	else
		buffer_append_text(json->out, "null");
	json->needs_comma = true;
}
