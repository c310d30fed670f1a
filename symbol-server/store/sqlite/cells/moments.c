/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/cells/moments.h"

#include <stdlib.h>

void moment_encode_raw(const struct moment *moment, struct buffer *out)
{
	buffer_append_varint(out, moment->time_ms);
	buffer_append_varint(out, moment->thread);
	buffer_append_varint(out, moment->stack);
	buffer_append_varint(out, moment->value);
}

static int compare_times(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;

	if (x->time_ms != y->time_ms)
		return x->time_ms < y->time_ms ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x->stack > y->stack) - (x->stack < y->stack);
}

void moments_encode(struct moment *moments, size_t count, struct buffer *out)
{
	uint64_t one = count ? moments[0].value : 0;
	struct moment last = {0};

	if (count)
		qsort(moments, count, sizeof *moments, compare_times);
	buffer_append_varint(out, one);
	for (size_t i = 0; i < count; i++) {
		const struct moment *moment = &moments[i];
		int64_t rest = (int64_t)(moment->value - one);

		buffer_append_varint(out, moment->time_ms - last.time_ms);
		buffer_append_varint(out, zigzag_encode((int64_t)moment->thread - last.thread));
		buffer_append_varint(out, zigzag_encode((int64_t)moment->stack - last.stack) << 1 |
						  (rest != 0));
		if (rest)
			buffer_append_varint(out, zigzag_encode(rest));
		last = *moment;
	}
}

/* moment holds the previous one. */
static bool decode(const uint8_t **at, const uint8_t *end, uint64_t one, struct moment *moment)
{
	uint64_t time, thread, stack, rest = 0;
	int64_t thread_number, stack_number;

	if (!varint_read(at, end, &time) || !varint_read(at, end, &thread) ||
	    !varint_read(at, end, &stack) || (stack & 1 && !varint_read(at, end, &rest)))
		return false;
	thread_number = moment->thread + zigzag_decode(thread & UINT64_C(0x3ffffffff));
	stack_number = moment->stack + zigzag_decode(stack >> 1 & UINT64_C(0x3ffffffff));
	if (time >= MOMENT_SPAN_MS - moment->time_ms || thread_number < 0 ||
	    thread_number > UINT32_MAX || stack_number < 0 || stack_number > UINT32_MAX)
		return false;
	moment->time_ms += (uint32_t)time;
	moment->thread = (uint32_t)thread_number;
	moment->stack = (uint32_t)stack_number;
	moment->value = one + (uint64_t)zigzag_decode(rest);
	return true;
}

bool moments_each(const uint8_t *at, size_t length, moment_fn *fn, void *context)
{
	const uint8_t *end = length ? at + length : at;
	struct moment moment = {0};
	uint64_t one;

	if (!varint_read(&at, end, &one))
		return false;
	while (at < end)
		if (!decode(&at, end, one, &moment) || !fn(context, &moment))
			return false;
	return true;
}

bool moments_each_raw(const uint8_t *at, size_t length, moment_fn *fn, void *context)
{
	const uint8_t *end = length ? at + length : at;

	while (at < end) {
		uint64_t time, thread, stack;
		struct moment moment;

		if (!varint_read(&at, end, &time) || !varint_read(&at, end, &thread) ||
		    !varint_read(&at, end, &stack) || !varint_read(&at, end, &moment.value) ||
		    time >= MOMENT_SPAN_MS || thread > UINT32_MAX || stack > UINT32_MAX)
			return false;
		moment.time_ms = (uint32_t)time;
		moment.thread = (uint32_t)thread;
		moment.stack = (uint32_t)stack;
		if (!fn(context, &moment))
			return false;
	}
	return true;
}
