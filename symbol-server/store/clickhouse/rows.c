/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/clickhouse/rows.h"

#include <string.h>

void row_put_bytes(struct buffer *out, const void *bytes, size_t length)
{
	buffer_append_varint(out, length);
	if (length)
		buffer_append(out, bytes, length);
}

uint64_t row_number(struct row_reader *row, unsigned bytes)
{
	uint64_t value = 0;

	if ((size_t)(row->end - row->at) < bytes) {
		row->is_short = true;
		return 0;
	}
	memcpy(&value, row->at, bytes);
	row->at += bytes;
	return value;
}

static uint32_t read_length(struct row_reader *row, uint32_t most)
{
	const uint8_t *before = row->at;
	uint64_t length = 0;

	if (row->is_short || !varint_read(&row->at, row->end, &length)) {
		row->is_bad |= !row->is_short && row->end - before >= 10;
		row->is_short = true;
		return 0;
	}
	if (length > most) {
		row->is_bad = row->is_short = true;
		return 0;
	}
	return (uint32_t)length;
}

struct text row_fixed(struct row_reader *row, uint32_t length)
{
	struct text text = {(const char *)row->at, length};

	if (row->is_short || (size_t)(row->end - row->at) < length) {
		row->is_short = true;
		return (struct text){"", 0};
	}
	row->at += length;
	return text;
}

struct text row_text(struct row_reader *row)
{
	return row_fixed(row, read_length(row, ROW_TEXT_MAX));
}

uint32_t row_array(struct row_reader *row)
{
	return read_length(row, ROW_ARRAY_MAX);
}
