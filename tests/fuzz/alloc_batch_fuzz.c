/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are a batch as a program has written it, behind what the kernel side says of it. */
#include "node-agent/capture/alloc_batch.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

static void check_one(const struct sample_event *batch, const struct alloc_batch_sample *one)
{
	const struct stack_copy_event *copy = &one->copy.event;

	if (copy->size != sizeof *copy + copy->stack_bytes ||
	    copy->stack_bytes > ALLOC_STACK_WORDS * sizeof(uint64_t) ||
	    one->sample.event.user_count != 1 || one->sample.event.time_ns > batch->time_ns)
		abort();
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	static struct alloc_batch_sample one;
	const size_t size = sizeof(struct sample_event) + length;
	struct sample_event *batch = calloc(1, size);
	uint32_t at = 0, before = 0;

	*batch = (struct sample_event){
		.type = EVENT_ALLOC_BATCH,
		.size = (uint32_t)size,
		.time_ns = UINT64_C(1) << 50,
		.batch = {.bytes = length, .number = length % 3 ? 1 : ALLOC_BATCH_FOREIGN}};
	if (length)
		memcpy((uint8_t *)batch + sizeof *batch, bytes, length);
	if (!alloc_batch_is_whole(batch, size) || alloc_batch_is_whole(batch, size - 1))
		abort();
	while (alloc_batch_next(batch, &at, &one)) {
		if (at <= before || at > length)
			abort();
		before = at;
		check_one(batch, &one);
	}
	free(batch);
}
