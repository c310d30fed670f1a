/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/stacks/waiting_stacks.h"

#include <stdlib.h>
#include <string.h>

/* A process may have what leaves the others their part: while any of them waits, a quarter. */
static bool has_share(const struct waiting_stacks *stacks, uint32_t tgid, uint32_t bytes)
{
	uint32_t own = 0, own_bytes = bytes, quarters;

	for (uint32_t i = 0; i < stacks->count; i++) {
		if (stacks->items[i]->sample->tgid != tgid)
			continue;
		own++;
		own_bytes += stacks->items[i]->bytes;
	}
	quarters = own < stacks->count ? 1 : 3;
	return own < quarters * (WAITING_STACKS_MAX / 4) &&
	       own_bytes <= quarters * (WAITING_BYTES_MAX / 4);
}

/* Both records are sizes of whole words. */
struct waiting_stack *waiting_stacks_add(struct waiting_stacks *stacks,
					 const struct sample_event *sample,
					 const struct stack_copy_event *copy)
{
	uint32_t copy_bytes = copy ? (uint32_t)sizeof(*copy) + (copy->stack_bytes + 7) / 8 * 8 : 0;
	uint32_t bytes = (uint32_t)sizeof(struct waiting_stack) + sample->size + copy_bytes;
	struct waiting_stack *stack;

	if (stacks->count == WAITING_STACKS_MAX || bytes > WAITING_BYTES_MAX - stacks->bytes ||
	    !has_share(stacks, sample->tgid, bytes))
		return NULL;
	stack = malloc(bytes);
	if (!stack)
		return NULL;
	memset(stack, 0, sizeof *stack);
	stack->sample = (struct sample_event *)(stack + 1);
	if (copy)
		stack->copy = (struct stack_copy_event *)((uint8_t *)stack->sample + sample->size);
	stack->bytes = bytes;
	memcpy(stack->sample, sample, sample->size);
	if (copy)
		memcpy(stack->copy, copy, sizeof(*copy) + copy->stack_bytes);
	stacks->items[stacks->count++] = stack;
	stacks->bytes += bytes;
	return stack;
}

void waiting_stacks_remove(struct waiting_stacks *stacks, uint32_t at)
{
	stacks->bytes -= stacks->items[at]->bytes;
	free(stacks->items[at]);
	memmove(&stacks->items[at], &stacks->items[at + 1],
		(--stacks->count - at) * sizeof(stacks->items[0]));
}

void waiting_stacks_release(struct waiting_stacks *stacks)
{
	while (stacks->count)
		waiting_stacks_remove(stacks, stacks->count - 1);
}
