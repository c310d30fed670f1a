/* SPDX-License-Identifier: Apache-2.0 */
/* When single samples of one (type, series, 60 s) were taken, as bytes. Pure.
 *
 * Packed: LEB128 u = value of one sample; then for each sample in order of time: difference of its
 * time, difference of its thread's string number as zigzag, difference of its stack's number as
 * zigzag × 2 + (1 if its value is not u), and then value − u as zigzag. Times are milliseconds from
 * MOMENT_BEFORE_MS before the minute: a sample is kept with the minute in which its report begins,
 * and its own time may lie outside. Raw, as they are collected: time, thread, stack, value, again
 * and again. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_CELLS_MOMENTS_H
#define SYMBOL_SERVER_STORE_SQLITE_CELLS_MOMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"
#include "symbol-server/store/rules/moment_times.h"

struct moment {
	uint32_t time_ms;       /* since MOMENT_BEFORE_MS before its minute, below MOMENT_SPAN_MS */
	uint32_t thread, stack; /* string and stack numbers of the day's catalog */
	uint64_t value;
};

void moment_encode_raw(const struct moment *moment, struct buffer *out);
/* Sorts by time. */
void moments_encode(struct moment *moments, size_t count, struct buffer *out);

/* Called for each. False stops the reading. */
typedef bool moment_fn(void *context, const struct moment *moment);
/* False: the bytes are not that format, or fn said so. */
bool moments_each(const uint8_t *at, size_t length, moment_fn *fn, void *context);
bool moments_each_raw(const uint8_t *at, size_t length, moment_fn *fn, void *context);

#endif
