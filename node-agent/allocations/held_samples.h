/* SPDX-License-Identifier: Apache-2.0 */
/* Samples held back until it is known how much each of them stands for. */
#ifndef NODE_AGENT_ALLOCATIONS_HELD_SAMPLES_H
#define NODE_AGENT_ALLOCATIONS_HELD_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node-agent/capture/capture.h"

enum { HELD_MAX = 512 };

struct held_samples { /* zeros: none */
	struct sample_event **items;
	size_t *walked; /* of each: its frames, as samples_add_held() takes them */
	size_t count;
	double part; /* each stands for so many that were held */
};

/* Copies the sample, with its thread's context if that is whole. False: there is no room; bytes
 * counts what all such sets hold, bytes_max is their limit. */
bool held_add(struct held_samples *held, const struct sample_event *sample, size_t walked,
	      uint64_t *bytes, uint64_t bytes_max);
/* Keeps so many at most, evenly chosen; 0: none. */
void held_thin(struct held_samples *held, size_t count, uint64_t *bytes);
void held_free(struct held_samples *held, uint64_t *bytes);

#endif
