/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as ClickHouse's RowBinary has them: little-endian numbers, LEB128 lengths before texts and
 * arrays ("Input and Output Formats", RowBinary). Pure. */
#ifndef SYMBOL_SERVER_STORE_CLICKHOUSE_ROWS_H
#define SYMBOL_SERVER_STORE_CLICKHOUSE_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buffer.h"
#include "symbol-server/store/samples.h"

enum { ROW_TEXT_MAX = 1 << 20, ROW_ARRAY_MAX = 1 << 20 };

static inline void row_put(struct buffer *out, uint64_t value, unsigned bytes)
{
	buffer_append(out, &value, bytes); /* all machines this runs on are little-endian */
}

static inline void row_put_u8(struct buffer *out, uint8_t value)
{
	row_put(out, value, 1);
}

static inline void row_put_u32(struct buffer *out, uint32_t value)
{
	row_put(out, value, 4);
}

static inline void row_put_u64(struct buffer *out, uint64_t value)
{
	row_put(out, value, 8);
}

void row_put_bytes(struct buffer *out, const void *bytes, size_t length);

static inline void row_put_text(struct buffer *out, struct text text)
{
	row_put_bytes(out, text.at, text.length);
}

/* Reads a row that may not have come whole: every function then sets is_short and gives 0; the
 * caller looks at it once, before it believes anything. */
struct row_reader {
	const uint8_t *at, *end;
	bool is_short;
	bool is_bad; /* longer than any text or array of ours */
};

uint64_t row_number(struct row_reader *row, unsigned bytes);
/* Borrowed. */
struct text row_text(struct row_reader *row);
struct text row_fixed(struct row_reader *row, uint32_t length);
/* Number of elements that follow. */
uint32_t row_array(struct row_reader *row);

#endif
