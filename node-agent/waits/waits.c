/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/waits/waits.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/hash_table.h"

enum {
	WAITS_MAX = 16384,
	WAITS_BYTES_MAX = 4 << 20, /* of stacks */
	SWEEPS_KEPT = 64,          /* ends of waits are known sooner than so many later */
};

#define STILL_BLOCKED_NS (10 * UINT64_C(1000000000))

struct held_stack {
	struct sample_event *sample; /* NULL: it has not come, or there was no room */
	size_t walked;
	bool is_coming;
};

struct wait { /* one block */
	uint32_t tid, block;
	uint32_t next_free; /* index + 1 */
	bool is_used, has_ended;
	struct held_stack own, waker;
	uint64_t told_ns; /* still-blocked up to then; 0: not yet */
	struct switch_in_event end;
};

struct waits {
	struct waits_sources from;
	struct waits_counters counters;
	struct hash_table index;
	struct wait *items;
	uint32_t count, room, free; /* free: index + 1 */
	struct sweep {
		uint64_t start_ns, end_ns;
	} sweeps[SWEEPS_KEPT];
	uint32_t sweep_count;
};

struct waits *waits_new(const struct waits_sources *from, struct error *err)
{
	struct waits *waits = calloc(1, sizeof *waits);

	if (!waits) {
		error_set(err, ERROR_MEMORY, "no memory for threads off their CPU");
		return NULL;
	}
	waits->from = *from;
	hash_table_init(&waits->index, WAITS_MAX);
	return waits;
}

static uint64_t hash_of(uint32_t tid, uint32_t block)
{
	return hash_word(tid, block);
}

/* --- blocks --- */

static struct wait *find(struct waits *waits, uint32_t tid, uint32_t block)
{
	uint64_t hash = hash_of(tid, block);

	HASH_TABLE_EACH(i, &waits->index, hash)
		if (waits->items[i].tid == tid && waits->items[i].block == block)
			return &waits->items[i];
	return NULL;
}

/* NULL: no room. */
static struct wait *take_item(struct waits *waits)
{
	struct wait *item;

	if (waits->free) {
		item = &waits->items[waits->free - 1];
		waits->free = item->next_free;
		return item;
	}
	if (waits->count == WAITS_MAX || !ARRAY_GROW(waits->items, waits->count, waits->room))
		return NULL;
	return &waits->items[waits->count++];
}

static void give_back(struct waits *waits, struct wait *wait)
{
	wait->is_used = false;
	wait->next_free = waits->free;
	waits->free = (uint32_t)(wait - waits->items) + 1;
}

static struct wait *find_or_add(struct waits *waits, uint32_t tid, uint32_t block)
{
	struct wait *wait = find(waits, tid, block);

	if (wait)
		return wait;
	wait = take_item(waits);
	if (!wait)
		return NULL;
	*wait = (struct wait){.tid = tid, .block = block, .is_used = true};
	if (hash_table_add(&waits->index, hash_of(tid, block), (uint32_t)(wait - waits->items))) {
		waits->counters.kept++;
		return wait;
	}
	give_back(waits, wait);
	return NULL;
}

static void drop_stack(struct waits *waits, struct held_stack *stack)
{
	if (stack->sample)
		waits->counters.kept_bytes -= stack->sample->size;
	free(stack->sample);
	stack->sample = NULL;
}

static void drop(struct waits *waits, struct wait *wait)
{
	drop_stack(waits, &wait->own);
	drop_stack(waits, &wait->waker);
	hash_table_remove(&waits->index, hash_of(wait->tid, wait->block),
			  (uint32_t)(wait - waits->items));
	give_back(waits, wait);
	waits->counters.kept--;
}

void waits_free(struct waits *waits)
{
	if (!waits)
		return;
	for (uint32_t i = 0; i < waits->count; i++)
		if (waits->items[i].is_used)
			drop(waits, &waits->items[i]);
	hash_table_release(&waits->index);
	free(waits->items);
	free(waits);
}

/* --- what a block was worth --- */

static bool is_wanted(const struct waits *waits, enum sample_type type)
{
	return waits->from.types >> type & 1;
}

static void add(struct waits *waits, const struct held_stack *stack, enum sample_type type,
		uint64_t value, const struct sample_event *other)
{
	const struct sample_worth worth = {.type = type, .value = value, .other = other};

	if (stack->sample && value && is_wanted(waits, type))
		samples_add_held(waits->from.samples, stack->sample, stack->walked, &worth);
}

void waits_swept(struct waits *waits, uint64_t start_ns, uint64_t end_ns)
{
	waits->sweeps[waits->sweep_count++ % SWEEPS_KEPT] = (struct sweep){start_ns, end_ns};
}

static bool was_swept(const struct waits *waits, const struct switch_in_event *end)
{
	const uint64_t from_ns = end->since_ns + SWITCH_SWEEP_MS * UINT64_C(1000000);

	for (uint32_t i = 0; i < SWEEPS_KEPT; i++)
		if (waits->sweeps[i].end_ns && waits->sweeps[i].start_ns >= from_ns &&
		    waits->sweeps[i].end_ns <= end->time_ns)
			return true;
	return false;
}

/* How many such blocks one stands for: all that were in a whole sweep have a stack; of the others
 * those that chance chose, and what some sweep found besides does not count. */
static uint64_t weight_of(const struct waits *waits, const struct wait *wait)
{
	if (wait->end.state != SWITCH_RUNNABLE && was_swept(waits, &wait->end))
		return 1;
	return wait->own.sample && wait->own.sample->wait.is_swept ? 0
								   : 1ULL << wait->end.weight_log2;
}

static void add_wait(struct waits *waits, const struct wait *wait, uint64_t weight)
{
	const uint64_t ns = wait->end.time_ns - wait->end.since_ns;
	const uint64_t value = ns * weight;

	if (wait->end.state == SWITCH_RUNNABLE)
		return;
	if (ns > SWITCH_WAIT_LIMIT_NS) {
		waits->counters.too_long++;
		return;
	}
	if (!wait->own.sample)
		return; /* a sweep met it, its stack went astray: no chance chose it, no weight
			   holds */
	add(waits, &wait->own, SAMPLE_TYPE_off_cpu, value, wait->waker.sample);
	add(waits, &wait->waker, SAMPLE_TYPE_waker, value, wait->own.sample);
	if (value && is_wanted(waits, SAMPLE_TYPE_off_cpu)) {
		waits->counters.covered_ns += value;
		waits->counters.off_cpu++;
	}
}

static void add_run_queue(struct waits *waits, const struct wait *wait, uint64_t weight)
{
	const struct switch_in_event *end = &wait->end;
	uint64_t value;

	if (!end->runnable_ns || end->time_ns <= end->runnable_ns)
		return;
	value = (end->time_ns - end->runnable_ns) * weight;
	add(waits, &wait->own, SAMPLE_TYPE_run_queue, value, NULL);
	if (wait->own.sample && is_wanted(waits, SAMPLE_TYPE_run_queue))
		waits->counters.run_queue_covered_ns += value;
}

static void settle(struct waits *waits, struct wait *wait)
{
	if (!wait->has_ended || wait->own.is_coming || wait->waker.is_coming)
		return;
	add_wait(waits, wait, weight_of(waits, wait));
	add_run_queue(waits, wait, weight_of(waits, wait));
	drop(waits, wait);
}

/* --- what comes --- */

static struct held_stack *stack_of(struct wait *wait, const struct sample_event *sample)
{
	return sample->type == EVENT_SAMPLE_WAKER ? &wait->waker : &wait->own;
}

void waits_expect(struct waits *waits, const struct sample_event *sample)
{
	struct wait *wait = find_or_add(waits, sample->wait.tid, sample->wait.block);

	if (wait)
		stack_of(wait, sample)->is_coming = true;
	else
		waits->counters.refused++;
}

/* The newest stack of a block, but what a sweep saw stays: it is only asked for where the one that
 * chance chose lacks callers. A block that chance chose remains one, whichever comes first. */
static void keep(struct waits *waits, struct held_stack *stack, const struct sample_event *sample,
		 size_t walked)
{
	const uint32_t bytes = sample->size; /* a stack that was finished has grown */
	const bool is_chosen = !sample->wait.is_swept ||
			       (stack->sample && !stack->sample->wait.is_swept);

	if (!stack->sample || sample->wait.is_swept || !stack->sample->wait.is_swept) {
		drop_stack(waits, stack);
		if (waits->counters.kept_bytes + bytes <= WAITS_BYTES_MAX)
			stack->sample = malloc(bytes);
		if (!stack->sample) {
			waits->counters.refused++;
			return;
		}
		memcpy(stack->sample, sample, bytes);
		stack->walked = walked;
		waits->counters.kept_bytes += bytes;
	}
	stack->sample->wait.is_swept = !is_chosen;
}

void waits_hold(void *context, const struct sample_event *sample, size_t walked)
{
	struct waits *waits = context;
	struct wait *wait = find(waits, sample->wait.tid, sample->wait.block);

	if (!wait)
		return; /* it was refused */
	stack_of(wait, sample)->is_coming = false;
	keep(waits, stack_of(wait, sample), sample, walked);
	settle(waits, wait);
}

void waits_end(struct waits *waits, const struct switch_in_event *event)
{
	struct wait *wait = find(waits, event->tid, event->block);

	if (!wait)
		return; /* its stack was lost or refused */
	wait->end = *event;
	wait->end.weight_log2 &= 31;
	wait->has_ended = true;
	settle(waits, wait);
}

void waits_finish(struct waits *waits)
{
	for (uint32_t i = 0; waits && i < waits->count; i++) {
		struct wait *wait = &waits->items[i];

		if (!wait->is_used)
			continue;
		wait->own.is_coming = wait->waker.is_coming = false;
		settle(waits, wait);
	}
}

/* --- what still waits --- */

static void report(struct waits *waits, struct wait *wait, uint64_t now_ns)
{
	const uint64_t since_ns = wait->own.sample->wait.since_ns;
	struct thread_switch thread;

	if (now_ns < since_ns + STILL_BLOCKED_NS)
		return;
	if (!waits->from.look(waits->from.context, wait->tid, &thread) ||
	    thread.block != wait->block) {
		waits->counters.ends_unknown++;
		drop(waits, wait);
		return;
	}
	if (!thread.since_ns) /* it has just ended, and its record is on its way */
		return;
	add(waits, &wait->own, SAMPLE_TYPE_still_blocked,
	    now_ns - (wait->told_ns ? wait->told_ns : since_ns), NULL);
	wait->told_ns = now_ns;
}

void waits_report(struct waits *waits, uint64_t now_ns)
{
	for (uint32_t i = 0; i < waits->count; i++) {
		struct wait *wait = &waits->items[i];

		if (wait->is_used && !wait->has_ended && wait->own.sample)
			report(waits, wait, now_ns);
	}
}

void waits_counters(const struct waits *waits, struct waits_counters *out)
{
	*out = waits->counters;
}
