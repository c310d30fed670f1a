/* SPDX-License-Identifier: Apache-2.0 */
/* What named stacks are, for those who work on them. Of this folder only. */
#ifndef SYMBOL_SERVER_NAMING_NAMED_STACKS_STATE_H
#define SYMBOL_SERVER_NAMING_NAMED_STACKS_STATE_H

#include "symbol-server/naming/incomplete_counts.h"
#include "symbol-server/naming/location_frames.h"
#include "symbol-server/naming/named_stacks.h"

struct named_stacks {
	const struct samples_result *result;
	const struct stack_view *view;
	struct location_frames names;
	struct flame_frame *group_frames; /* group_count for each series */
	uint64_t *unsymbolized, *samples; /* by module */
	uint64_t *nameless;               /* value by module */
	bool *nameless_met;               /* modules, of the stacks that are being shown */
	struct incomplete_counts incomplete;
	const struct result_stack *current;
	struct flame_frame *frames; /* the stack at hand */
	size_t frame_room;
	struct result_stack listed; /* the stack at hand, where nodes say its locations */
	uint32_t *locations;
	uint32_t location_room;
};

/* What stands for an idle stack. */
extern const struct flame_frame named_stacks_idle;
/* The frame of a group level, root first. */
struct flame_frame named_stacks_group(const struct named_stacks *stacks,
				      const struct result_stack *stack, unsigned level);
/* False: no memory. */
bool named_stacks_count_incomplete(struct named_stacks *stacks, const struct result_stack *stack);

#endif
