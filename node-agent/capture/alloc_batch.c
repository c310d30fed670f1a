/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/capture/alloc_batch.h"

#include <string.h>

#include "bpf/alloc.h"
#include "bpf/frames.h"
#include "bpf/results.h"

enum {
/* DWARF numbers of alloc_record.saved, one after the other */
#if defined(__aarch64__)
	SAVED_FIRST = 19,
	SAVED_NEXT = 20,
#else
	SAVED_FIRST = 3, /* rbx */
	SAVED_NEXT = 12, /* r12 to r15 */
#endif
};

bool alloc_batch_is_whole(const void *record, size_t length)
{
	const struct sample_event *batch = record;

	return length >= sizeof *batch && batch->type == EVENT_ALLOC_BATCH &&
	       batch->size == length && batch->batch.bytes <= length - sizeof *batch;
}

static uint64_t time_within(uint64_t time_ns, uint64_t told_ns)
{
	if (time_ns > told_ns)
		return told_ns;
	return told_ns - time_ns > ALLOC_BATCH_SPAN_NS ? told_ns - ALLOC_BATCH_SPAN_NS : time_ns;
}

static void describe(const struct sample_event *batch, const struct alloc_record *record,
		     struct sample_event *sample)
{
	*sample = *batch;
	sample->type = EVENT_SAMPLE_ALLOC;
	sample->flags = SAMPLE_HAS_COPY;
	sample->time_ns = time_within(record->time_ns, batch->time_ns);
	sample->alloc = (struct alloc_sample){
		.key = record->key,
		.bytes = record->weighted,
		.size = record->bytes >> 32 ? 0 : (uint32_t)record->bytes,
		.source = ALLOC_LIBRARY,
	};
	sample->kernel_count = sample->user_count = 0;
	sample->result = WALK_not_loaded;
	if (batch->batch.number & ALLOC_BATCH_FOREIGN) { /* nobody knows whose it is */
		sample->tid = 0;
		memcpy(sample->comm, batch->process_comm, sizeof sample->comm);
	}
	sample_event_add_native(sample, record->ip);
}

/* False: not all are there. */
static bool words_expand(const struct alloc_record *record, uint64_t *words)
{
	const uint32_t room = (record->size - (uint32_t)sizeof *record) / sizeof(uint64_t);
	uint32_t next = (record->words + 63) / 64;

	if (record->words > ALLOC_STACK_WORDS || next > room)
		return false;
	for (uint32_t i = 0; i < record->words; i++) {
		const bool is_there = record->stack[i / 64] >> i % 64 & 1;

		if (is_there && next == room)
			return false;
		words[i] = is_there ? record->stack[next++] : 0;
	}
	return true;
}

static bool copy_stack(const struct alloc_record *record, struct stack_copy_event *copy)
{
	memset(copy, 0, sizeof *copy);
	copy->type = EVENT_STACK_COPY;
	copy->is_interrupted = 1; /* ip is where the registers were as they are */
	copy->stack_bytes = record->words * (uint32_t)sizeof(uint64_t);
	copy->size = (uint32_t)sizeof *copy + copy->stack_bytes;
	copy->tls = record->tls;
	copy->ip = record->ip;
	copy->sp = record->sp;
	copy->fp = record->fp;
	copy->known = UINT64_C(1) << UNWIND_REGISTER_FP | UINT64_C(1) << UNWIND_REGISTER_SP;
	for (unsigned i = 0; i < ALLOC_SAVED; i++) {
		const unsigned number = i ? SAVED_NEXT + i - 1 : SAVED_FIRST;

		copy->registers[number] = record->saved[i];
		copy->known |= UINT64_C(1) << number;
	}
	return words_expand(record, (uint64_t *)copy->stack);
}

bool alloc_batch_next(const struct sample_event *batch, uint32_t *at,
		      struct alloc_batch_sample *out)
{
	const uint8_t *records = (const uint8_t *)batch->frames;
	const struct alloc_record *record = (const struct alloc_record *)(records + *at);

	if (*at > batch->batch.bytes || batch->batch.bytes - *at < sizeof *record ||
	    record->size > batch->batch.bytes - *at || record->size < sizeof *record ||
	    record->size % sizeof(uint64_t))
		return false;
	*at += record->size;
	describe(batch, record, &out->sample.event);
	return copy_stack(record, &out->copy.event);
}
