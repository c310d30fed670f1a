/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/cells/spans.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash_table.h"

enum { FILTER_BITS = 10, FILTER_TIMES = 4 };

void span_encode_raw(const struct span_sample *span, struct buffer *out)
{
	buffer_append(out, span->ids, SPAN_IDS_BYTES);
	buffer_append_varint(out, span->thread);
	buffer_append_varint(out, span->stack);
	buffer_append_varint(out, span->samples);
	buffer_append_varint(out, span->value);
}

static int compare_spans(const void *a, const void *b)
{
	const struct span_sample *x = a, *y = b;
	int order = memcmp(x->ids, y->ids, SPAN_IDS_BYTES);

	if (order)
		return order;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x->stack > y->stack) - (x->stack < y->stack);
}

static bool is_same(const struct span_sample *spans, size_t i)
{
	return i && !memcmp(spans[i].ids, spans[i - 1].ids, SPAN_IDS_BYTES);
}

void spans_sort(struct span_sample *spans, size_t count)
{
	if (count)
		qsort(spans, count, sizeof *spans, compare_spans);
}

void spans_encode(struct span_sample *spans, size_t count, struct buffer *out)
{
	spans_sort(spans, count);
	for (size_t i = 0; i < count; i++) {
		bool same = is_same(spans, i);

		buffer_append_varint(out, (uint64_t)spans[i].thread << 1 | same);
		if (!same)
			buffer_append(out, spans[i].ids, SPAN_IDS_BYTES);
		buffer_append_varint(out, spans[i].stack);
		buffer_append_varint(out, spans[i].samples);
		buffer_append_varint(out, spans[i].value);
	}
}

static uint64_t bit_of(const uint8_t *id, size_t id_length, unsigned i, size_t length)
{
	return hash_bytes(id, id_length, i + 1) % (length * 8);
}

static void set_bits(uint8_t *filter, size_t length, const uint8_t *id, size_t id_length)
{
	for (unsigned i = 0; i < FILTER_TIMES; i++) {
		uint64_t bit = bit_of(id, id_length, i, length);

		filter[bit / 8] |= (uint8_t)(1 << bit % 8);
	}
}

void spans_filter(const struct span_sample *spans, size_t count, struct buffer *out)
{
	size_t different = 0, length;
	uint8_t *filter;

	for (size_t i = 0; i < count; i++)
		different += !is_same(spans, i);
	length = different * 2 * FILTER_BITS / 8 + 8;
	filter = calloc(1, length);
	if (!filter) {
		out->failed = true;
		return;
	}
	for (size_t i = 0; i < count; i++) {
		if (is_same(spans, i))
			continue;
		set_bits(filter, length, spans[i].ids, TRACE_ID_BYTES);
		set_bits(filter, length, spans[i].ids + TRACE_ID_BYTES, SPAN_ID_BYTES);
	}
	buffer_append(out, filter, length);
	free(filter);
}

bool spans_may_have(const uint8_t *filter, size_t length, const uint8_t *id, size_t id_length)
{
	for (unsigned i = 0; length && i < FILTER_TIMES; i++) {
		uint64_t bit = bit_of(id, id_length, i, length);

		if (!(filter[bit / 8] & 1 << bit % 8))
			return false;
	}
	return true;
}

static bool get_number(const uint8_t **at, const uint8_t *end, uint32_t *number)
{
	uint64_t value;

	if (!varint_read(at, end, &value) || value > UINT32_MAX)
		return false;
	*number = (uint32_t)value;
	return true;
}

static bool get_ids(const uint8_t **at, const uint8_t *end, struct span_sample *span)
{
	if (end - *at < SPAN_IDS_BYTES)
		return false;
	memcpy(span->ids, *at, SPAN_IDS_BYTES);
	*at += SPAN_IDS_BYTES;
	return true;
}

static bool get_rest(const uint8_t **at, const uint8_t *end, struct span_sample *span)
{
	return get_number(at, end, &span->stack) && varint_read(at, end, &span->samples) &&
	       varint_read(at, end, &span->value);
}

bool spans_each(const uint8_t *at, size_t length, span_fn *fn, void *context)
{
	const uint8_t *end = length ? at + length : at;
	struct span_sample span = {{0}};
	uint64_t thread;

	while (at < end) {
		if (!varint_read(&at, end, &thread) || thread >> 1 > UINT32_MAX)
			return false;
		span.thread = (uint32_t)(thread >> 1);
		if ((!(thread & 1) && !get_ids(&at, end, &span)) || !get_rest(&at, end, &span) ||
		    !fn(context, &span))
			return false;
	}
	return true;
}

bool spans_each_raw(const uint8_t *at, size_t length, span_fn *fn, void *context)
{
	const uint8_t *end = length ? at + length : at;
	struct span_sample span;

	while (at < end)
		if (!get_ids(&at, end, &span) || !get_number(&at, end, &span.thread) ||
		    !get_rest(&at, end, &span) || !fn(context, &span))
			return false;
	return true;
}
