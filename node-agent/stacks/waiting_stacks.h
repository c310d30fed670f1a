/* SPDX-License-Identifier: Apache-2.0 */
/* Samples that wait, in order of arrival: with copied stacks for a page of rows or for what a file
 * is; without, for names. */
#ifndef NODE_AGENT_STACKS_WAITING_STACKS_H
#define NODE_AGENT_STACKS_WAITING_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/events.h"

enum { WAITING_STACKS_MAX = 256, WAITING_BYTES_MAX = 2 << 20 };

struct waiting_stack {
	struct sample_event *sample;
	struct stack_copy_event *copy; /* NULL: for names; the next are only then set */
	bool is_finished;              /* from a copy, … */
	uint32_t kernel_side_count;    /* … of which the kernel side had so many frames */
	uint32_t generation;           /* of the process' mappings when it came */
	struct unwind_page_key page;   /* executable 0: for an answer about a file */
	uint32_t files;                /* so many were there then */
	uint32_t bytes;
};

struct waiting_stacks {
	struct waiting_stack *items[WAITING_STACKS_MAX];
	uint32_t count, bytes;
};

/* Copies both; copy may be NULL. NULL: no room, or no memory. One process has three quarters of the
 * room at most, and a quarter while others wait. */
struct waiting_stack *waiting_stacks_add(struct waiting_stacks *stacks,
					 const struct sample_event *sample,
					 const struct stack_copy_event *copy);
void waiting_stacks_remove(struct waiting_stacks *stacks, uint32_t at);
void waiting_stacks_release(struct waiting_stacks *stacks);

#endif
