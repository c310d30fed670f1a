/* SPDX-License-Identifier: Apache-2.0 */
/* What a library that samples has told in one trap, bpf/alloc_batch.h, as the samples that it is:
 * each with its registers and stack as a copy of which not a frame has been walked. The bytes are
 * its program's, which may have written there anything. */
#ifndef NODE_AGENT_CAPTURE_ALLOC_BATCH_H
#define NODE_AGENT_CAPTURE_ALLOC_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/alloc_batch.h"
#include "bpf/events.h"

struct alloc_batch_sample {
	union {
		struct sample_event event;
		uint8_t room[sizeof(struct sample_event) + sizeof(uint64_t)];
	} sample;
	union {
		struct stack_copy_event event;
		uint8_t room[sizeof(struct stack_copy_event) +
			     ALLOC_STACK_WORDS * sizeof(uint64_t)];
	} copy;
};

/* Whether a record of the ring is one. */
bool alloc_batch_is_whole(const void *record, size_t length);

/* The next sample from *at on, 0 at first, which is moved behind it. False: there is none. Its time
 * is before the batch's, by SPAN_NS at most. */
bool alloc_batch_next(const struct sample_event *batch, uint32_t *at,
		      struct alloc_batch_sample *out);

#define ALLOC_BATCH_SPAN_NS (UINT64_C(3600) * 1000000000)

#endif
