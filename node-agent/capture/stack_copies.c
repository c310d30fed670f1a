/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/capture/stack_copies.h"

#include <string.h>

void stack_copies_init(struct stack_copies *copies, const struct sample_ring *ring)
{
	memset(copies, 0, sizeof *copies);
	copies->ring = *ring;
	copies->position = sample_ring_start(ring);
}

static bool copy_is_whole(const struct stack_copy_event *copy, size_t length)
{
	return length >= sizeof *copy && copy->type == EVENT_STACK_COPY && copy->size == length &&
	       copy->stack_bytes <= length - sizeof *copy;
}

/* Notes the complete records. Whether more may come: one is being written, or there is no room to
 * note it. */
static bool look(struct stack_copies *copies, uint64_t now_ns)
{
	uint64_t end = sample_ring_end(&copies->ring);

	while (copies->count < STACK_COPIES_HELD) {
		size_t length;
		const struct stack_copy_event *event =
			sample_ring_look(&copies->ring, &copies->position, end, &length);

		if (!event)
			break;
		copies->bytes += length;
		if (!copy_is_whole(event, length)) {
			event = NULL;
			copies->unmatched++;
		}
		copies->held[copies->count++] = (struct held_copy){
			.event = event, .end = copies->position, .seen_ns = now_ns};
	}
	return copies->position < end;
}

const struct stack_copy_event *stack_copies_take(struct stack_copies *copies, uint32_t cpu,
						 uint64_t cpu_taken, uint64_t now_ns,
						 bool *is_coming)
{
	*is_coming = look(copies, now_ns);
	for (unsigned i = 0; i < copies->count; i++) {
		const struct stack_copy_event *event = copies->held[i].event;

		if (event && event->cpu == cpu && event->cpu_taken == cpu_taken) {
			copies->held[i].event = NULL;
			copies->taken++;
			*is_coming = false;
			return event;
		}
	}
	return NULL;
}

static void give_back(struct stack_copies *copies,
		      uint64_t (*delivered)(const void *context, uint32_t cpu), const void *context,
		      uint64_t late_ns)
{
	unsigned done = 0;

	for (unsigned i = 0; i < copies->count; i++) {
		struct held_copy *held = &copies->held[i];

		if (held->event &&
		    (held->seen_ns < late_ns ||
		     delivered(context, held->event->cpu) >= held->event->cpu_taken)) {
			held->event = NULL;
			copies->unmatched++;
		}
		if (!held->event && done == i)
			done++;
	}
	if (!done)
		return;
	sample_ring_release_to(&copies->ring, copies->held[done - 1].end);
	copies->count -= done;
	memmove(copies->held, copies->held + done, copies->count * sizeof copies->held[0]);
}

void stack_copies_release(struct stack_copies *copies,
			  uint64_t (*delivered)(const void *context, uint32_t cpu),
			  const void *context)
{
	give_back(copies, delivered, context, 0);
}

void stack_copies_settle(struct stack_copies *copies,
			 uint64_t (*delivered)(const void *context, uint32_t cpu),
			 const void *context, uint64_t now_ns)
{
	const uint64_t wait_ns = STACK_COPIES_WAIT_MS * UINT64_C(1000000);

	look(copies, now_ns);
	give_back(copies, delivered, context, now_ns > wait_ns ? now_ns - wait_ns : 0);
}
