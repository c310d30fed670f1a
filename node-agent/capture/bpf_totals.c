/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/capture/bpf_state.h"

#include <string.h>

#include "node-agent/capture/fault_events.h"
#include "node-agent/capture/process_events.h"
#include "node-agent/capture/switch_sweeps.h"
#include "node-agent/capture/tick_account.h"
#include "node-agent/kernel/bpf_map.h"

enum {
	COUNTED_OLD_MS = 1000, /* reading a timer interrupts its CPU */
};

_Static_assert(WALK_RESULT_COUNT <= 32,
	       "capture_totals.stacks_by_result has room for every result");

static uint64_t counter_sum(const struct bpf_capture *capture, enum kernel_counter counter)
{
	uint64_t sum = 0;

	if (!bpf_counter_read(capture, counter, capture->per_cpu_values))
		return 0;
	for (unsigned i = 0; i < capture->possible_count; i++)
		sum += capture->per_cpu_values[i];
	return sum;
}

static void switch_totals(const struct bpf_capture *capture, struct switch_totals *totals)
{
	if (!capture->options.off_cpu)
		return;
	*totals = (struct switch_totals){
		.waits = counter_sum(capture, COUNT_waits),
		.waited_ns = counter_sum(capture, COUNT_waited_ns),
		.waited_disk_ns = counter_sum(capture, COUNT_waited_disk_ns),
		.run_queue_ns = counter_sum(capture, COUNT_run_queue_ns),
		.too_long = counter_sum(capture, COUNT_waits_too_long),
		.no_user = counter_sum(capture, COUNT_waits_no_user),
		.threads_full = counter_sum(capture, COUNT_threads_full),
		.escaped = counter_sum(capture, COUNT_waits_escaped),
		.stacks = counter_sum(capture, COUNT_switch_stacks),
		.stacks_lost = counter_sum(capture, COUNT_switch_ring_full),
		.ends_lost = counter_sum(capture, COUNT_wakes_ring_full),
		.ends_unseen = counter_sum(capture, COUNT_ends_unseen),
	};
	switch_sweeps_total(capture->sweeps, totals);
}

static void alloc_totals(const struct bpf_capture *capture, struct alloc_totals *totals)
{
	if (!capture->options.allocs)
		return;
	*totals = (struct alloc_totals){
		.stacks = counter_sum(capture, COUNT_allocs),
		.frees = counter_sum(capture, COUNT_frees),
		.stacks_lost = counter_sum(capture, COUNT_alloc_ring_full) +
			       counter_sum(capture, COUNT_alloc_no_scratch) +
			       counter_sum(capture, COUNT_alloc_unreadable),
		.frees_lost = counter_sum(capture, COUNT_frees_ring_full),
		.thinned = counter_sum(capture, COUNT_allocs_thinned),
		.batches = counter_sum(capture, COUNT_alloc_batches),
	};
}

static void fault_totals(const struct bpf_capture *capture, struct fault_totals *totals)
{
	struct fault_counts counts;

	if (!capture->faults)
		return;
	fault_events_count(capture->faults, &counts);
	*totals = (struct fault_totals){
		.minor = counts.minor,
		.major = counts.major,
		.stacks = counter_sum(capture, COUNT_fault_stacks),
		.stacks_lost = counter_sum(capture, COUNT_fault_ring_full),
	};
}

void bpf_capture_totals(struct bpf_capture *capture, struct capture_totals *totals)
{
	struct tick_totals ticks;

	if (!capture->is_stopped && bpf_now_ms() - capture->counted_ms >= COUNTED_OLD_MS)
		bpf_capture_count(capture);
	if (!capture->is_stopped)
		bpf_ticks_look(capture);
	tick_account_total(capture->account, &ticks);
	*totals = (struct capture_totals){
		.ticks = ticks.seen + ticks.idle - ticks.idle_seen,
		.idle = ticks.idle,
		.missed = ticks.missed,
		.filtered = counter_sum(capture, COUNT_filtered),
		.copies = capture->copies.taken,
		.copy_bytes = capture->copies.bytes,
		.copies_unmatched = capture->copies.unmatched,
		.copies_rate = counter_sum(capture, COUNT_copies_rate),
		.copies_ring = counter_sum(capture, COUNT_copies_ring),
		.process_events_lost = process_events_lost(capture->events),
		.malformed = capture->malformed,
		.perf_count_ns = ticks.counted_ns,
	};
	switch_totals(capture, &totals->switches);
	alloc_totals(capture, &totals->allocs);
	fault_totals(capture, &totals->faults);
	totals->contexts = (struct context_totals){
		.read = counter_sum(capture, COUNT_contexts) + totals->switches.sweep_contexts,
		.unread = counter_sum(capture, COUNT_contexts_unread) +
			  totals->switches.sweep_contexts_unread,
	};
	memcpy(totals->stacks_by_result, capture->stacks_by_result,
	       sizeof totals->stacks_by_result);
	for (unsigned number = 0; number < capture->cpu_count; number++) {
		const struct captured_cpu *cpu = &capture->cpus[number];

		totals->taken += cpu->taken;
		totals->delivered += cpu->delivered;
		totals->ring_full += cpu->ring_full;
	}
	if (capture->is_stopped) { /* with what was lost after the last sample */
		totals->taken = counter_sum(capture, COUNT_taken);
		totals->ring_full = counter_sum(capture, COUNT_ring_full);
		totals->no_scratch = counter_sum(capture, COUNT_no_scratch);
	} else {
		const uint64_t ring_full = counter_sum(capture, COUNT_ring_full);
		uint64_t rest = totals->taken - totals->ring_full - totals->delivered;

		/* A damaged one is counted at once, those taken with the next whole one. */
		if (totals->malformed > rest)
			totals->malformed = rest;
		totals->no_scratch = rest - totals->malformed;
		/* The sample behind a gap tells of it; when the ring is full it comes after the
		 * report in whose time the gap is. */
		if (ring_full > totals->ring_full) {
			totals->taken += ring_full - totals->ring_full;
			totals->ring_full = ring_full;
		}
	}
}

uint64_t bpf_capture_map_bytes(const struct bpf_capture *capture)
{
	uint64_t bytes = 0;

	for (int map = 0; map < KERNEL_MAP_COUNT; map++)
		if (capture->programs.maps[map] >= 0)
			bytes += bpf_map_bytes(capture->programs.maps[map]);
	return bytes;
}
