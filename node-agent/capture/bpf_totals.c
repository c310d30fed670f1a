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

static void read_counters(const struct bpf_capture *capture, uint64_t *sums)
{
	for (int counter = 0; counter < KERNEL_COUNTER_COUNT; counter++) {
		if (!bpf_counter_read(capture, (enum kernel_counter)counter,
				      capture->per_cpu_values))
			continue;
		for (unsigned i = 0; i < capture->possible_count; i++)
			sums[counter] += capture->per_cpu_values[i];
	}
}

void bpf_capture_totals(struct bpf_capture *capture, struct capture_totals *totals)
{
	struct tick_totals ticks;

	if (!capture->is_stopped && monotonic_ms() - capture->counted_ms >= COUNTED_OLD_MS)
		bpf_capture_count(capture);
	if (!capture->is_stopped)
		bpf_ticks_look(capture);
	tick_account_total(capture->account, &ticks);
	*totals = (struct capture_totals){
		.ticks = ticks.seen + ticks.idle - ticks.idle_seen,
		.idle = ticks.idle,
		.missed = ticks.missed,
		.copies = capture->copies.taken,
		.copy_bytes = capture->copies.bytes,
		.copies_unmatched = capture->copies.unmatched,
		.process_events_lost = process_events_lost(capture->events),
		.malformed = capture->malformed,
		.perf_count_ns = ticks.counted_ns,
	};
	read_counters(capture, totals->kernel);
	totals->filtered = totals->kernel[COUNT_filtered];
	switch_sweeps_total(capture->sweeps, &totals->sweeps);
	fault_events_count(capture->faults, &totals->faults);
	memcpy(totals->stacks_by_result, capture->stacks_by_result,
	       sizeof totals->stacks_by_result);
	for (unsigned number = 0; number < capture->cpu_count; number++) {
		const struct captured_cpu *cpu = &capture->cpus[number];

		totals->taken += cpu->taken;
		totals->delivered += cpu->delivered;
		totals->ring_full += cpu->ring_full;
	}
	if (capture->is_stopped) { /* with what was lost after the last sample */
		totals->taken = totals->kernel[COUNT_taken];
		totals->ring_full = totals->kernel[COUNT_ring_full];
		totals->no_scratch = totals->kernel[COUNT_no_scratch];
	} else {
		const uint64_t ring_full = totals->kernel[COUNT_ring_full];
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
