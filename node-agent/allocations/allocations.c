/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/allocations/allocations.h"

#include <stdlib.h>

#include "bpf/alloc_batch.h"
#include "common/clock.h"

#define BYTES_MAX (UINT64_C(1) << 47) /* an address space */

enum { WEIGHT_LOG2_MAX = 15 };

struct allocations {
	struct allocations_sources from;
	struct live_set *live;
	uint64_t samples, untracked;
};

struct allocations *allocations_new(const struct allocations_sources *from, struct error *err)
{
	struct allocations *allocations = calloc(1, sizeof *allocations);

	if (!allocations) {
		error_set(err, ERROR_MEMORY, "no memory for sampled memory");
		return NULL;
	}
	allocations->from = *from;
	allocations->live = live_set_new(from->processes, err);
	if (allocations->live)
		return allocations;
	free(allocations);
	return NULL;
}

void allocations_free(struct allocations *allocations)
{
	if (!allocations)
		return;
	live_set_free(allocations->live);
	free(allocations);
}

static bool takes(const struct allocations *allocations, enum sample_type type)
{
	return allocations->from.types >> type & 1;
}

/* --- weights --- */

/* 1 − exp(−x), of 0 ≤ x. By its series where that is short; from there on by squares. */
static double chance_of(double x)
{
	enum { TERMS = 16 };
	double term = 1, kept = 0;
	unsigned halved = 0;

	if (x > 40)
		return 1;
	while (x > 0.5) {
		x /= 2;
		halved++;
	}
	for (int i = 1; i <= TERMS; i++) {
		term *= -x / i;
		kept -= term;
	}
	/* 1 − (1 − p)² = p (2 − p) */
	while (halved--)
		kept *= 2 - kept;
	return kept;
}

/* Sizes and rates are what strangers' memory says: beyond these they are of no program, and would
 * drown what others have. */
static uint64_t bounded(uint64_t bytes)
{
	return bytes < BYTES_MAX ? bytes : BYTES_MAX;
}

uint64_t allocations_weight(uint64_t bytes, uint64_t rate)
{
	if (!bytes || rate <= 1)
		return LIVE_OBJECT;
	return (uint64_t)(LIVE_OBJECT / chance_of((double)bytes / (double)bounded(rate)) + 0.5);
}

static uint64_t weighted(const struct allocations *allocations, const struct sample_event *sample,
			 uint64_t *objects)
{
	if (sample->alloc.source == ALLOC_LIBRARY) { /* it has weighed it */
		*objects = sample->alloc.size && sample->alloc.bytes >> 40 == 0
				   ? sample->alloc.bytes * LIVE_OBJECT / sample->alloc.size
				   : LIVE_OBJECT;
		*objects = bounded(*objects << (sample->weight_log2 & WEIGHT_LOG2_MAX));
		return bounded(bounded(sample->alloc.bytes)
			       << (sample->weight_log2 & WEIGHT_LOG2_MAX));
	}
	*objects = allocations_weight(sample->alloc.bytes,
				      allocations->from.rate(allocations->from.context, sample));
	return bounded(
		(uint64_t)((double)bounded(sample->alloc.bytes) * (double)*objects / LIVE_OBJECT +
			   0.5));
}

/* --- what comes --- */

void allocations_expect(struct allocations *allocations, const struct sample_event *sample)
{
	struct live_piece piece = {
		.owner = process_key_of(sample),
		.key = sample->alloc.key,
		.time_ns = sample->time_ns,
		.is_bucket = sample->alloc.source == ALLOC_GO,
	};

	if (!takes(allocations, SAMPLE_TYPE_mem_inuse))
		return;
	if (sample->alloc.source == ALLOC_LIBRARY && piece.key == ALLOC_KEY_ENDED)
		return;
	if (!piece.key) { /* nobody will say when it is given back */
		allocations->untracked++;
		return;
	}
	piece.bytes = weighted(allocations, sample, &piece.objects);
	live_set_take(allocations->live, &piece);
}

void allocations_hold(struct allocations *allocations, const struct sample_event *sample,
		      size_t walked)
{
	struct sample_worth worth = {.type = SAMPLE_TYPE_mem_alloc};
	uint64_t objects;

	if (takes(allocations, SAMPLE_TYPE_mem_inuse))
		live_set_stack(allocations->live, sample->alloc.key, sample, walked);
	if (!takes(allocations, SAMPLE_TYPE_mem_alloc))
		return;
	worth.value = weighted(allocations, sample, &objects);
	samples_add_held(allocations->from.samples, sample, walked, &worth);
	allocations->samples++;
}

void allocations_give(struct allocations *allocations, const struct alloc_free_event *event)
{
	const struct process_key owner = {event->tgid, event->exec_id, event->start_time_ns};

	if (takes(allocations, SAMPLE_TYPE_mem_inuse))
		live_set_give(allocations->live, &owner, event->key, event->time_ns);
}

uint64_t allocations_bound(struct allocations *allocations, uint32_t tgid, live_set_most most,
			   void *context)
{
	return live_set_bound(allocations->live, tgid, most, context, monotonic_ns());
}

void allocations_end(struct allocations *allocations, uint32_t tgid)
{
	live_set_end(allocations->live, tgid);
}

/* --- what is in use --- */

static void add_live(void *context, const struct sample_event *sample, size_t walked,
		     uint64_t bytes, uint64_t objects)
{
	struct allocations *allocations = context;
	const struct sample_worth worth = {
		.type = SAMPLE_TYPE_mem_inuse,
		.value = bytes,
		.count = objects < LIVE_OBJECT ? 1 : (objects + LIVE_OBJECT / 2) / LIVE_OBJECT,
	};

	samples_add_held(allocations->from.samples, sample, walked, &worth);
}

void allocations_report(struct allocations *allocations)
{
	if (!takes(allocations, SAMPLE_TYPE_mem_inuse))
		return;
	live_set_report(allocations->live, add_live, allocations);
}

void allocations_counters(const struct allocations *allocations, struct allocations_counters *out)
{
	out->samples = allocations->samples;
	live_set_counters(allocations->live, &out->live);
	out->live.refused += allocations->untracked;
}
