/* SPDX-License-Identifier: Apache-2.0 */
/* In which order a profile's rows go out. OTLP leaves it free, and gzip makes less of neighbours
 * that share bytes: with this order and a block per table a report is a fifth shorter than in the
 * order of arrival (recorded reports of a mixed load, 19 and 99 Hz). */
#ifndef COMMON_OTLP_ORDER_H
#define COMMON_OTLP_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/profile.h"

struct otlp_order {
	const struct profile *profile;
	uint32_t *frames;    /* by mapping and address: neighbours share the address' high bytes;
			      * named ones as they stand in their files;
			      * an interpreter's own apart, which have an attribute more;
			      * frames[0] is frame 0, row i of location_table is frames[i] */
	int32_t *locations;  /* frame_indices, with each frame's row of location_table */
	uint32_t *stacks;    /* from the root: what a stack shares with others is right before it */
	int32_t *stack_rows; /* stack → its row of stack_table, counted from 1 */
	struct profile_sample *samples; /* of a process, those with equal attributes and values */
};

/* False: the arena is full. */
bool otlp_order_make(struct otlp_order *order, const struct profile *profile, struct arena *arena);

#endif
