/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/allocations/held_samples.h"

#include <stdlib.h>
#include <string.h>

#include "bpf/thread_context.h"

/* With what the thread said of its request; *has_context: it is there. */
static uint32_t bytes_of(const struct sample_event *sample, bool *has_context)
{
	uint32_t bytes;

	*has_context = sample_event_context(sample, &bytes) && bytes <= THREAD_CONTEXT_MAX;
	return sample_event_frames_end(sample) + (*has_context ? bytes : 0);
}

/* What is left out is not said to be there. NULL: no memory. */
static struct sample_event *copy_of(const struct sample_event *sample, uint32_t bytes,
				    bool has_context)
{
	struct sample_event *copy = malloc(bytes);

	if (!copy)
		return NULL;
	memcpy(copy, sample, bytes);
	copy->size = bytes;
	if (!has_context)
		copy->flags &= (uint16_t)~SAMPLE_HAS_CONTEXT;
	return copy;
}

bool held_add(struct held_samples *held, const struct sample_event *sample, size_t walked,
	      uint64_t *bytes, uint64_t bytes_max)
{
	bool has_context;
	const uint32_t size = bytes_of(sample, &has_context);

	if (!held->items)
		held->items = calloc(HELD_MAX, sizeof *held->items);
	if (!held->walked)
		held->walked = calloc(HELD_MAX, sizeof *held->walked);
	if (!held->items || !held->walked || held->count == HELD_MAX || *bytes + size > bytes_max)
		return false;
	held->items[held->count] = copy_of(sample, size, has_context);
	if (!held->items[held->count])
		return false;
	held->walked[held->count++] = walked;
	held->part = 1;
	*bytes += size;
	return true;
}

void held_thin(struct held_samples *held, size_t count, uint64_t *bytes)
{
	const size_t step = count ? (held->count + count - 1) / count : 0;
	size_t kept = 0;

	for (size_t i = 0; i < held->count; i++) {
		if (step && i % step == 0) {
			held->items[kept] = held->items[i];
			held->walked[kept++] = held->walked[i];
			continue;
		}
		*bytes -= held->items[i]->size;
		free(held->items[i]);
	}
	held->part = kept ? (double)held->count / (double)kept : 1;
	held->count = kept;
}

void held_free(struct held_samples *held, uint64_t *bytes)
{
	held_thin(held, 0, bytes);
	free(held->items);
	free(held->walked);
	*held = (struct held_samples){0};
}
