/* SPDX-License-Identifier: Apache-2.0 */
/* Samples that their sender gave a trace and a span, of one (type, series, 60 s), as bytes. Pure.
 *
 * Raw, as they are collected: 24 bytes of ids, then thread, stack, samples, value as LEB128, again
 * and again. Stored: in the order of their ids; thread × 2 + (1: the ids are those of the one
 * before), else the ids, then stack, samples, value. The filter of a row (B. Bloom, CACM 13(7),
 * 1970) has its trace ids and its span ids: 10 bits each, 4 of them set. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_CELLS_SPANS_H
#define SYMBOL_SERVER_STORE_SQLITE_CELLS_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"
#include "symbol-server/store/sample_batch.h"

struct span_sample {
	uint8_t ids[SPAN_IDS_BYTES]; /* trace, span */
	uint32_t thread, stack;      /* string and stack numbers of the day's catalog */
	uint64_t samples, value;
};

void span_encode_raw(const struct span_sample *span, struct buffer *out);
void spans_sort(struct span_sample *spans, size_t count); /* by ids, thread, stack */
/* Sorts them. */
void spans_encode(struct span_sample *spans, size_t count, struct buffer *out);
/* spans sorted. */
void spans_filter(const struct span_sample *spans, size_t count, struct buffer *out);
/* False: no sample of the row has that id. */
bool spans_may_have(const uint8_t *filter, size_t length, const uint8_t *id, size_t id_length);

/* Called for each. False stops the reading. */
typedef bool span_fn(void *context, const struct span_sample *span);
/* False: the bytes are not that format, or fn said so. */
bool spans_each(const uint8_t *at, size_t length, span_fn *fn, void *context);
bool spans_each_raw(const uint8_t *at, size_t length, span_fn *fn, void *context);

#endif
