/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/api/top_traces.h"

#include <stdlib.h>
#include <string.h>

#include "common/keyed_hash.h"

enum { SLOTS_MIN = 256, SLOTS_MAX = 1 << 21, PARTS_MAX = 1 << 16 };

struct slot {
	uint8_t id[TOP_TRACE_BYTES];
	uint64_t value; /* + 1; 0: free */
};

struct part { /* of the traces: those whose hashes say so */
	struct top_traces *top;
	top_stack_fn *is_wanted;
	void *context;
	struct slot *slots;
	uint32_t slot_count, used, limit;
	uint32_t number, parts;
	bool is_full, has_no_memory;
};

static bool is_of_part(const struct part *part, uint64_t hash)
{
	return (hash >> 40 & (part->parts - 1)) == part->number;
}

static struct slot *find(struct slot *slots, uint32_t count, const uint8_t *id, uint64_t hash)
{
	uint32_t at = (uint32_t)hash & (count - 1);

	while (slots[at].value && memcmp(slots[at].id, id, TOP_TRACE_BYTES))
		at = (at + 1) & (count - 1);
	return &slots[at];
}

/* Half of the traces met so far, and of those to come, are for a later part. */
static bool split(struct part *part)
{
	struct slot *slots = calloc(part->slot_count, sizeof *slots);

	part->has_no_memory = !slots;
	part->is_full = part->parts == PARTS_MAX;
	if (!slots || part->is_full) {
		free(slots);
		return false;
	}
	part->parts *= 2;
	part->used = 0;
	for (uint32_t i = 0; i < part->slot_count; i++) {
		const struct slot *from = &part->slots[i];
		uint64_t hash = keyed_hash(from->id, TOP_TRACE_BYTES, 0);

		if (!from->value || !is_of_part(part, hash))
			continue;
		*find(slots, part->slot_count, from->id, hash) = *from;
		part->used++;
	}
	free(part->slots);
	part->slots = slots;
	return true;
}

/* The first part decides how many there are; the others, of about its size, have more room. */
static bool make_room(struct part *part)
{
	uint32_t most = part->slot_count / 4 * 3;

	if (part->number) {
		part->is_full = part->used >= part->slot_count / 16 * 15;
		return !part->is_full;
	}
	while (part->used >= most)
		if (!split(part))
			return false;
	return true;
}

static bool add(void *context, const uint8_t *ids, uint64_t stack_id, uint64_t samples,
		uint64_t value)
{
	struct part *part = context;
	uint64_t hash;
	struct slot *slot;

	if (part->is_wanted && !part->is_wanted(part->context, stack_id))
		return true;
	if (!part->number) {
		part->top->value += value;
		part->top->samples += samples;
	}
	hash = keyed_hash(ids, TOP_TRACE_BYTES, 0);
	if (!is_of_part(part, hash))
		return true;
	slot = find(part->slots, part->slot_count, ids, hash);
	if (!slot->value) {
		if (!make_room(part))
			return false;
		if (!is_of_part(part, hash))
			return true;
		slot = find(part->slots, part->slot_count, ids, hash);
		memcpy(slot->id, ids, TOP_TRACE_BYTES);
		slot->value = 1;
		part->used++;
	}
	slot->value += value;
	return true;
}

/* --- the best --- */

/* Equal ones by their ids, as they are shown. */
static bool is_better(const struct top_trace *a, const struct top_trace *b)
{
	return a->value != b->value ? a->value > b->value
				    : memcmp(a->id, b->id, TOP_TRACE_BYTES) < 0;
}

/* A heap with the worst of the best on top. */
static void sink(struct top_trace *heap, uint32_t count, uint32_t at)
{
	for (uint32_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
		struct top_trace moved = heap[at];

		if (child + 1 < count && is_better(&heap[child], &heap[child + 1]))
			child++;
		if (!is_better(&heap[at], &heap[child]))
			return;
		heap[at] = heap[child];
		heap[child] = moved;
		at = child;
	}
}

static void rise(struct top_trace *heap, uint32_t at)
{
	while (at && is_better(&heap[(at - 1) / 2], &heap[at])) {
		struct top_trace moved = heap[at];

		heap[at] = heap[(at - 1) / 2];
		heap[(at - 1) / 2] = moved;
		at = (at - 1) / 2;
	}
}

static void take_best(const struct part *part)
{
	struct top_traces *top = part->top;

	for (uint32_t i = 0; i < part->slot_count; i++) {
		struct top_trace trace = {.value = part->slots[i].value};

		if (!trace.value--)
			continue;
		memcpy(trace.id, part->slots[i].id, TOP_TRACE_BYTES);
		if (top->best_count < part->limit) {
			top->best[top->best_count] = trace;
			rise(top->best, top->best_count++);
		} else if (is_better(&trace, &top->best[0])) {
			top->best[0] = trace;
			sink(top->best, top->best_count, 0);
		}
	}
	top->count += part->used;
}

static int compare_ids(const void *a, const void *b)
{
	return memcmp(((const struct top_trace *)a)->id, ((const struct top_trace *)b)->id,
		      TOP_TRACE_BYTES);
}

/* --- all parts --- */

static bool find_part(struct part *part, struct samples_store *store,
		      const struct samples_query *query, struct query_life *life, struct error *err)
{
	part->used = 0;
	memset(part->slots, 0, part->slot_count * sizeof *part->slots);
	if (!samples_spans(store, query, add, part, err) ||
	    (life && !query_life_is_wanted(life, err)))
		return false;
	if (part->has_no_memory)
		return error_no_memory(err);
	if (part->is_full)
		return error_set(err, ERROR_LIMIT,
				 "there are more traces than can be looked through: narrow the "
				 "time range or the selection");
	part->top->passes++;
	take_best(part);
	return true;
}

static uint32_t slots_within(size_t bytes)
{
	uint32_t slots = SLOTS_MIN;

	/* Twice, when a part is split. */
	while (slots < SLOTS_MAX && 2 * sizeof(struct slot) * 2 * (size_t)slots <= bytes)
		slots *= 2;
	return slots;
}

bool top_traces_find(struct top_traces *top, struct samples_store *store,
		     const struct samples_query *query, top_stack_fn *is_wanted, void *context,
		     uint32_t limit, size_t bytes, struct query_life *life, struct error *err)
{
	struct part part = {.top = top,
			    .is_wanted = is_wanted,
			    .context = context,
			    .slot_count = slots_within(bytes),
			    .limit = limit,
			    .parts = 1};
	bool ok = true;

	*top = (struct top_traces){.best = calloc((size_t)limit + 1, sizeof *top->best)};
	part.slots = calloc(part.slot_count, sizeof *part.slots);
	if (!top->best || !part.slots)
		ok = error_no_memory(err);
	for (; ok && part.number < part.parts; part.number++)
		ok = find_part(&part, store, query, life, err);
	free(part.slots);
	if (ok && top->best_count)
		qsort(top->best, top->best_count, sizeof *top->best, compare_ids);
	return ok;
}

bool top_traces_have(const struct top_traces *top, const uint8_t *id)
{
	struct top_trace key;

	memcpy(key.id, id, TOP_TRACE_BYTES);
	return top->best_count &&
	       bsearch(&key, top->best, top->best_count, sizeof key, compare_ids);
}

void top_traces_release(struct top_traces *top)
{
	free(top->best);
	*top = (struct top_traces){0};
}
