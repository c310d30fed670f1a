/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/capture/bpf_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/log.h"
#include "node-agent/capture/fault_events.h"
#include "node-agent/capture/process_events.h"
#include "node-agent/capture/switch_sweeps.h"
#include "node-agent/capture/tick_account.h"
#include "node-agent/kernel/bpf_map.h"
#include "node-agent/kernel/cpu_list.h"
#include "node-agent/kernel/perf_event.h"

enum {
	RING_BYTES_PER_CPU = 128 << 10,
	RING_BYTES_PER_CPU_MORE = 256 << 10, /* with other types than on-cpu */
	RING_BYTES_MIN = 256 << 10,
	RING_BYTES_MAX = 8 << 20,
	COPIES_BYTES = 512 << 10,
	IN_FLIGHT_MS = 5,   /* a sample may still be on its way into the ring for this long */
	THREADS_MIN = 4096, /* that are followed off their CPU */
	THREADS_MAX = 65536,
	CPUS_CHECK_MS = 5000, /* reading a timer interrupts its CPU */
};

/* --- start --- */

static uint32_t ring_bytes(unsigned online_cpus, bool takes_more)
{
	uint64_t wanted = (uint64_t)online_cpus *
			  (takes_more ? RING_BYTES_PER_CPU_MORE : RING_BYTES_PER_CPU);
	uint32_t bytes = RING_BYTES_MIN;

	while (bytes < wanted && bytes < RING_BYTES_MAX)
		bytes *= 2;
	return bytes;
}

/* Twice what there are now. */
static uint32_t threads_max(void)
{
	FILE *file = fopen("/proc/loadavg", "re");
	unsigned threads = 0, most = THREADS_MIN;

	if (file && fscanf(file, "%*s %*s %*s %*u/%u", &threads) != 1)
		threads = THREADS_MAX;
	if (file)
		fclose(file);
	while (most < 2 * threads && most < THREADS_MAX)
		most *= 2;
	return most;
}

static bool programs_load(struct bpf_capture *capture, struct error *err)
{
	const struct capture_options *options = &capture->options;
	struct sample_ring copies;
	struct kernel_load_options load = {
		.copies_bytes = COPIES_BYTES,
		.max_frames = options->max_frames,
		.period_ns = capture->period_ns,
		.filter_pids = (uint32_t)options->pid_count,
		.use_rows = options->use_rows,
		.stop_after_sample = options->stop_after_sample,
		.wants = options->wants,
		.threads_max = options->wants & KERNEL_WANTS_OFF_CPU ? threads_max() : 1,
	};
	const uint8_t wanted = 1;

	if (!cpu_list_read("/sys/devices/system/cpu/online", capture->is_online, capture->cpu_count,
			   err))
		return false;
	for (int i = 0; i < KERNEL_SOURCE_COUNT; i++)
		load.budgets_ns[i] = (uint64_t)(options->budgets[i] * STACK_RATE_WINDOW_MS * 1e6);
	load.ring_bytes = ring_bytes(cpu_list_count(capture->is_online, capture->cpu_count),
				     options->wants & ~(uint32_t)KERNEL_WANTS_TICKS);
	if (!kernel_load(&load, capture->callbacks.on_loading, capture->callbacks.context,
			 &capture->programs, err))
		return false;
	for (size_t i = 0; i < options->pid_count; i++)
		if (!bpf_map_write(capture->programs.maps[KERNEL_MAP_FILTER_PIDS],
				   &options->pids[i], &wanted, err))
			return error_prefix(err, "filter process %u", options->pids[i]);
	if (!sample_ring_open(&copies, capture->programs.maps[KERNEL_MAP_COPIES], load.copies_bytes,
			      err))
		return false;
	stack_copies_init(&capture->copies, &copies);
	return sample_ring_open(&capture->ring, capture->programs.maps[KERNEL_MAP_SAMPLES],
				load.ring_bytes, err);
}

/* --- threads off their CPU --- */

static void switches_detach(struct bpf_capture *capture)
{
	for (int i = 0; i < KERNEL_PROGRAM_COUNT; i++) {
		if (capture->links[i] >= 0)
			close(capture->links[i]);
		capture->links[i] = -1;
	}
}

/* Exits first: whoever is followed is forgotten in time. */
static bool switches_attach(struct bpf_capture *capture, struct error *err)
{
	static const enum kernel_program order[] = {KERNEL_PROGRAM_EXIT, KERNEL_PROGRAM_FREE,
						    KERNEL_PROGRAM_WAKING,
						    KERNEL_PROGRAM_SWITCH_TYPED,
						    KERNEL_PROGRAM_SWITCH_RAW};

	for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
		if (capture->programs.programs[order[i]] < 0)
			continue;
		capture->links[order[i]] = kernel_program_attach(&capture->programs, order[i], err);
		if (capture->links[order[i]] < 0)
			return false;
	}
	return true;
}

/* The budget's other half. Without sweeps it works too: each stack stands for more. */
static void sweeps_open(struct bpf_capture *capture)
{
	const struct capture_options *options = &capture->options;
	struct error err = {0};

	if (!(options->wants & (KERNEL_WANTS_WAITS | KERNEL_WANTS_WAKERS)))
		return;
	capture->sweeps =
		switch_sweeps_open(&capture->programs, &capture->callbacks,
				   options->budgets[KERNEL_SOURCE_off_cpu] / 2 *
					   cpu_list_count(capture->is_online, capture->cpu_count),
				   &err);
	if (!capture->sweeps)
		log_warn("long waits are not swept", "why=\"%s\"",
			 err.kind ? err.message : "this kernel has no iterator over threads");
}

static bool faults_open(struct bpf_capture *capture, struct error *err)
{
	if (!(capture->options.wants & KERNEL_WANTS_FAULTS))
		return true;
	capture->faults = fault_events_new(&capture->programs, capture->cpu_count, err);
	return capture->faults;
}

struct bpf_capture *bpf_capture_open(const struct capture_options *options,
				     const struct capture_callbacks *callbacks, struct error *err)
{
	struct bpf_capture *capture = calloc(1, sizeof *capture);
	bool ok = false;

	if (!capture) {
		error_set(err, ERROR_MEMORY, "capture");
		return NULL;
	}
	capture->options = *options;
	capture->callbacks = *callbacks;
	memset(capture->links, -1, sizeof capture->links);
	record_wait_init(&capture->wait);
	kernel_programs_init(&capture->programs);
	capture->period_ns = 1000000000 / options->frequency_hz;
	if (!bpf_cpus_allocate(capture, err) || !programs_load(capture, err))
		goto out;
	capture->events = process_events_new(capture->cpu_count, &capture->callbacks, err);
	if (!capture->events || !faults_open(capture, err) ||
	    !record_wait_open(&capture->wait, capture->programs.maps[KERNEL_MAP_SAMPLES],
			      EPOLLIN | EPOLLET, process_events_descriptor(capture->events), err) ||
	    !bpf_cpus_check(capture, err) || !switches_attach(capture, err))
		goto out;
	sweeps_open(capture);
	capture->cpus_checked_ms = capture->counted_ms = monotonic_ms();
	ok = true;
out:
	if (!ok) {
		bpf_capture_close(capture);
		return NULL;
	}
	capture->options.pids = NULL; /* borrowed for the call only */
	return capture;
}

bool bpf_capture_try(const struct capture_options *options, struct error *err)
{
	struct bpf_capture *capture = calloc(1, sizeof *capture);
	bool ok;

	if (!capture)
		return error_set(err, ERROR_MEMORY, "capture");
	capture->options = *options;
	memset(capture->links, -1, sizeof capture->links);
	record_wait_init(&capture->wait);
	kernel_programs_init(&capture->programs);
	capture->period_ns = 1000000000 / options->frequency_hz;
	ok = bpf_cpus_allocate(capture, err) && programs_load(capture, err);
	bpf_capture_close(capture);
	return ok;
}

/* --- run --- */

bool bpf_capture_poll(struct bpf_capture *capture, int timeout_ms, struct error *err)
{
	uint64_t before = process_events_delivered(capture->events);
	struct error failed = {0};
	bool is_busy;

	if (capture->is_stopped)
		return true;
	timeout_ms = switch_sweeps_wait(capture->sweeps, monotonic_ns(), timeout_ms);
	if (!record_wait_begin(&capture->wait, timeout_ms, err))
		return false;
	if (monotonic_ms() - capture->cpus_checked_ms >= CPUS_CHECK_MS) {
		capture->cpus_checked_ms = capture->counted_ms = monotonic_ms();
		/* A CPU that cannot be added now may be a second later; the others go on. */
		if (!bpf_cpus_check(capture, &failed))
			log_warn("cpu not sampled", "reason=\"%s\"", failed.message);
	}
	is_busy = bpf_records_drain(capture, IN_FLIGHT_MS * UINT64_C(1000000));
	is_busy |= process_events_delivered(capture->events) != before;
	switch_sweeps_run(capture->sweeps, monotonic_ns());
	return record_wait_end(&capture->wait, is_busy, err);
}

uint64_t bpf_capture_delivered_until_ns(const struct bpf_capture *capture)
{
	return capture->delivered_until_ns;
}

void bpf_capture_watch(struct bpf_capture *capture, int fd)
{
	record_wait_watch(&capture->wait, fd);
}

void bpf_capture_stop(struct bpf_capture *capture)
{
	if (capture->is_stopped)
		return;
	for (unsigned number = 0; number < capture->cpu_count; number++)
		if (capture->cpus[number].timer >= 0)
			perf_timer_enable(capture->cpus[number].timer, false, NULL);
	switches_detach(capture);
	fault_events_stop(capture->faults);
	bpf_records_drain(capture, 0);
	process_events_deliver(capture->events, UINT64_MAX - 1);
	bpf_capture_count(capture);
	capture->is_stopped = true;
	bpf_ticks_look(capture);
}

const struct kernel_programs *bpf_capture_programs(const struct bpf_capture *capture)
{
	return &capture->programs;
}

void bpf_capture_close(struct bpf_capture *capture)
{
	if (!capture)
		return;
	for (unsigned number = 0; capture->cpus && number < capture->cpu_count; number++)
		if (capture->cpus[number].timer >= 0)
			close(capture->cpus[number].timer);
	switches_detach(capture);
	switch_sweeps_close(capture->sweeps);
	fault_events_free(capture->faults);
	process_events_free(capture->events);
	sample_ring_close(&capture->ring);
	sample_ring_close(&capture->copies.ring);
	kernel_programs_close(&capture->programs);
	record_wait_close(&capture->wait);
	tick_account_free(capture->account);
	free(capture->is_online);
	free(capture->per_cpu_values);
	free(capture->cpus);
	free(capture);
}
