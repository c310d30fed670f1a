/* SPDX-License-Identifier: Apache-2.0 */
#include "common/buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buffer_init(struct buffer *buffer, size_t limit)
{
	*buffer = (struct buffer){ .limit = limit };
}

bool buffer_flush(struct buffer *buffer)
{
	if (buffer->length && !buffer->failed)
		buffer->failed = !buffer->drain(buffer);
	buffer->length = 0;
	return !buffer->failed;
}

static bool does_not_fit(const struct buffer *buffer, size_t length)
{
	return length > buffer->limit || buffer->length > buffer->limit - length;
}

uint8_t *buffer_reserve(struct buffer *buffer, size_t length)
{
	size_t capacity = buffer->capacity ? buffer->capacity : 256;
	uint8_t *grown;

	if (buffer->drain && does_not_fit(buffer, length))
		buffer_flush(buffer);
	if (buffer->failed || does_not_fit(buffer, length)) {
		buffer->failed = true;
		return NULL;
	}
	if (buffer->capacity - buffer->length >= length && buffer->bytes)
		return buffer->bytes + buffer->length;
	while (capacity < buffer->length + length)
		capacity *= 2;
	if (capacity > buffer->limit)
		capacity = buffer->limit ? buffer->limit : 1;
	grown = realloc(buffer->bytes, capacity);
	if (!grown) {
		buffer->failed = true;
		return NULL;
	}
	buffer->bytes = grown;
	buffer->capacity = capacity;
	return buffer->bytes + buffer->length;
}

/* Longer than a buffer that passes on holds at a time. */
static void append_pieces(struct buffer *buffer, const uint8_t *bytes, size_t length)
{
	while (length && !buffer->failed) {
		size_t piece = length < buffer->limit ? length : buffer->limit;

		buffer_append(buffer, bytes, piece);
		bytes += piece;
		length -= piece;
	}
}

void buffer_append(struct buffer *buffer, const void *bytes, size_t length)
{
	uint8_t *at;

	if (length <= buffer->capacity - buffer->length && length && !buffer->failed) {
		memcpy(buffer->bytes + buffer->length, bytes, length);
		buffer->length += length;
		return;
	}
	if (length > buffer->limit && buffer->drain && buffer->limit) {
		append_pieces(buffer, bytes, length);
		return;
	}
	at = buffer_reserve(buffer, length);
	if (!at)
		return;
	if (length)
		memcpy(at, bytes, length);
	buffer->length += length;
}

void buffer_append_text(struct buffer *buffer, const char *text)
{
	buffer_append(buffer, text, strlen(text));
}

void buffer_append_char(struct buffer *buffer, char c)
{
	buffer_append(buffer, &c, 1);
}

void buffer_append_label_value(struct buffer *buffer, const char *text)
{
	for (; *text; text++)
		if (*text == '\\' || *text == '"')
			buffer_printf(buffer, "\\%c", *text);
		else
			buffer_append_char(buffer, (unsigned char)*text < 0x20 ? '?' : *text);
}

void buffer_printf(struct buffer *buffer, const char *format, ...)
{
	char room[512];
	va_list args;
	int length;
	uint8_t *at;

	va_start(args, format);
	length = vsnprintf(room, sizeof room, format, args);
	va_end(args);
	if (length < 0) {
		buffer->failed = true;
		return;
	}
	if ((size_t)length < sizeof room) {
		buffer_append(buffer, room, (size_t)length);
		return;
	}
	at = malloc((size_t)length + 1); /* vsnprintf ends it with NUL */
	if (!at) {
		buffer->failed = true;
		return;
	}
	va_start(args, format);
	vsnprintf((char *)at, (size_t)length + 1, format, args);
	va_end(args);
	buffer_append(buffer, at, (size_t)length);
	free(at);
}

void buffer_append_varint(struct buffer *buffer, uint64_t value)
{
	uint8_t bytes[10];
	size_t length = 0;

	while (value >= 0x80) {
		bytes[length++] = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	bytes[length++] = (uint8_t)value;
	buffer_append(buffer, bytes, length);
}

void buffer_clear(struct buffer *buffer)
{
	buffer->length = 0;
	buffer->failed = false;
}

uint8_t *buffer_take(struct buffer *buffer, size_t *length)
{
	uint8_t *bytes = buffer->bytes;

	*length = buffer->length;
	buffer_init(buffer, buffer->limit);
	return bytes;
}

void buffer_release(struct buffer *buffer)
{
	if (!buffer)
		return;
	free(buffer->bytes);
	buffer_init(buffer, buffer->limit);
}

bool varint_read(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
	const uint8_t *p = *at;
	uint64_t result = 0;

	for (unsigned shift = 0; p < end && shift < 70; shift += 7) {
		uint8_t byte = *p++;

		if (shift == 63 && byte > 1)
			return false;
		result |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*at = p;
			*value = result;
			return true;
		}
	}
	return false;
}
