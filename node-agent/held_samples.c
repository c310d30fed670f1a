/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/held_samples.h"

#include <stdlib.h>
#include <string.h>

static size_t bytes_of(const struct sample_event *sample)
{
	return sizeof *sample +
	       ((size_t)sample->kernel_count + sample->user_count) * sizeof(uint64_t);
}

bool held_add(struct held_samples *held, const struct sample_event *sample, size_t walked,
	      uint64_t *bytes, uint64_t bytes_max)
{
	const size_t size = bytes_of(sample);

	if (!held->items)
		held->items = calloc(HELD_MAX, sizeof *held->items);
	if (!held->walked)
		held->walked = calloc(HELD_MAX, sizeof *held->walked);
	if (!held->items || !held->walked || held->count == HELD_MAX || *bytes + size > bytes_max)
		return false;
	held->items[held->count] = malloc(size);
	if (!held->items[held->count])
		return false;
	memcpy(held->items[held->count], sample, size);
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
		*bytes -= bytes_of(held->items[i]);
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
