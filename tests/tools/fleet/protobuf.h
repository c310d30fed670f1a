/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of protobuf (protobuf.dev/programming-guides/encoding) as bytes. */
#ifndef TESTS_TOOLS_FLEET_PROTOBUF_H
#define TESTS_TOOLS_FLEET_PROTOBUF_H

#include <string.h>

#include "common/buffer.h"

enum { RAW_MAX = 8 << 20 };

static inline void put_number(struct buffer *out, unsigned field, uint64_t value)
{
	buffer_append_varint(out, field << 3);
	buffer_append_varint(out, value);
}

static inline void put_bytes(struct buffer *out, unsigned field, const void *bytes, size_t length)
{
	buffer_append_varint(out, field << 3 | 2);
	buffer_append_varint(out, length);
	buffer_append(out, bytes, length);
}

static inline void put_text(struct buffer *out, unsigned field, const char *text)
{
	put_bytes(out, field, text, strlen(text));
}

/* Appends the inner message and empties it. */
static inline void put_message(struct buffer *out, unsigned field, struct buffer *inner)
{
	put_bytes(out, field, inner->bytes, inner->length);
	inner->failed |= out->failed;
	out->failed |= inner->failed;
	buffer_clear(inner);
}

static inline struct buffer message(void)
{
	struct buffer buffer;

	buffer_init(&buffer, RAW_MAX);
	return buffer;
}

#endif
