/* SPDX-License-Identifier: Apache-2.0 */
/* A capture by BPF, for the files that make it up: its CPUs and their timers (bpf_cpus.c), the
 * records that come (bpf_records.c), its figures (bpf_totals.c); bpf_capture.c opens, runs and
 * closes it. */
#ifndef FARFLAME_BPF_STATE_H
#define FARFLAME_BPF_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/results.h"
#include "common/clock.h"
#include "common/error.h"
#include "node-agent/capture/bpf_capture.h"
#include "node-agent/capture/record_wait.h"
#include "node-agent/capture/stack_copies.h"
#include "node-agent/kernel/loader.h"
#include "node-agent/kernel/sample_ring.h"

struct captured_cpu {
	int timer;                 /* −1: offline */
	bool is_new;               /* its counters' state then is still to be noted */
	unsigned map_index;        /* its place in per-CPU maps */
	uint64_t taken, ring_full; /* the kernel's counters as of the last sample delivered */
	uint64_t delivered;
	uint64_t others[SOURCE_COUNT]; /* of other sources' samples, as taken */
};

struct bpf_capture {
	struct capture_options options;
	struct capture_callbacks callbacks;
	uint64_t period_ns;
	struct kernel_programs programs;
	struct sample_ring ring;
	struct stack_copies copies;
	struct process_events *events;
	struct record_wait wait;
	struct tick_account *account;
	uint64_t waits_since_ns; /* the oldest sample, for its copy; 0: it does not */
	uint64_t malformed;      /* records that are no sample */
	uint64_t delivered_until_ns;
	bool is_stopped;
	int64_t cpus_checked_ms, counted_ms;
	uint64_t stacks_by_result[32];
	unsigned cpu_count, possible_count; /* highest number + 1; how many */
	bool *is_online;
	uint64_t *per_cpu_values; /* two counters', for reading */
	struct captured_cpu *cpus;
	int links[KERNEL_PROGRAM_COUNT]; /* attached programs; −1: not */
	struct switch_sweeps *sweeps;    /* NULL: none */
	struct fault_events *faults;     /* the same */
};

/* values: one for every possible CPU. False: the map cannot be read. */
bool bpf_counter_read(const struct bpf_capture *capture, enum kernel_counter counter,
		      uint64_t *values);

/* State for every possible CPU, none sampled yet; bpf_capture_close() frees it. */
bool bpf_cpus_allocate(struct bpf_capture *capture, struct error *err);

/* Timers for the CPUs that are online now and have none; those that are gone, or were away, end. */
bool bpf_cpus_check(struct bpf_capture *capture, struct error *err);

/* Accounts for the ticks until now. */
void bpf_ticks_look(struct bpf_capture *capture);

/* Delivers everything there is, in time order, but process events of the last in_flight_ns, for a
 * sample may still be on its way. True: some of those wait. */
bool bpf_records_drain(struct bpf_capture *capture, uint64_t in_flight_ns);

#endif
