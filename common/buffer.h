/* SPDX-License-Identifier: Apache-2.0 */
/* A growing run of bytes with a ceiling stated at birth. */
#ifndef COMMON_BUFFER_H
#define COMMON_BUFFER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer {
	uint8_t *bytes; /* NULL while empty */
	size_t length;
	size_t capacity;
	size_t limit;
	bool failed; /* an append did not fit or memory was short; sticky, ask once at the end */
	/* Set: a buffer that passes on. When it is full drain() is called, takes all there is, and the
	 * buffer goes on empty; limit is then what it holds at a time, and appends may be longer.
	 * False: the bytes can go nowhere, and the buffer has failed. */
	bool (*drain)(struct buffer *buffer);
	void *drain_context;
};

/* Nothing is allocated until the first append. */
void buffer_init(struct buffer *buffer, size_t limit);
void buffer_append(struct buffer *buffer, const void *bytes, size_t length);
void buffer_append_text(struct buffer *buffer, const char *text);
void buffer_append_char(struct buffer *buffer, char c);
/* As a label's value in a Prometheus exposition: backslash and quote are escaped, other control
 * characters, which have no place in one, become '?'. */
void buffer_append_label_value(struct buffer *buffer, const char *text);
void buffer_printf(struct buffer *buffer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* LEB128, as protobuf and DWARF have it; at most 10 bytes. */
void buffer_append_varint(struct buffer *buffer, uint64_t value);
/* Calls drain() with what there is. False: it has failed, now or before. */
bool buffer_flush(struct buffer *buffer);
/* Room for length more bytes to be written at the returned place; NULL (and failed) when over the
 * limit. The caller then adds what it used to buffer->length. */
uint8_t *buffer_reserve(struct buffer *buffer, size_t length);
/* Empties it, keeps the memory, clears failed. */
void buffer_clear(struct buffer *buffer);
/* Moves the bytes to the caller (free()); the buffer is empty afterwards. */
uint8_t *buffer_take(struct buffer *buffer, size_t *length);
void buffer_release(struct buffer *buffer); /* and it passes on no more */

/* A borrowed run of bytes. */
struct bytes {
	const uint8_t *at;
	size_t length;
};

/* Reads one LEB128 of at most 10 bytes. False: it does not end before end, or does not fit 64 bits. */
bool varint_read(const uint8_t **at, const uint8_t *end, uint64_t *value);

static inline uint64_t zigzag_encode(int64_t value)
{
	return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}

static inline int64_t zigzag_decode(uint64_t value)
{
	return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

#endif
