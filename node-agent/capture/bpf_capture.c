/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/capture/bpf_capture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "bpf/results.h"
#include "bpf/thread_context.h"
#include "common/log.h"
#include "node-agent/capture/cpu_list.h"
#include "node-agent/capture/fault_events.h"
#include "node-agent/capture/process_events.h"
#include "node-agent/capture/record_wait.h"
#include "node-agent/capture/stack_copies.h"
#include "node-agent/capture/switch_sweeps.h"
#include "node-agent/capture/tick_account.h"
#include "node-agent/kernel/bpf_map.h"
#include "node-agent/kernel/perf_event.h"
#include "node-agent/kernel/sample_ring.h"

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
	COUNTED_OLD_MS = 1000,
};

struct cpu {
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
	bool is_stopped;
	int64_t cpus_checked_ms, counted_ms;
	uint64_t stacks_by_result[32];
	unsigned cpu_count, possible_count; /* highest number + 1; how many */
	bool *is_online;
	uint64_t *per_cpu_values; /* two counters', for reading */
	struct cpu *cpus;
	int links[KERNEL_PROGRAM_COUNT]; /* attached programs; −1: not */
	struct switch_sweeps *sweeps;    /* NULL: none */
	struct fault_events *faults;     /* the same */
};

_Static_assert(WALK_RESULT_COUNT <= 32,
	       "capture_totals.stacks_by_result has room for every result");

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int64_t now_ms(void)
{
	return (int64_t)(now_ns() / 1000000);
}

/* --- what became of the ticks --- */

/* values: one for every possible CPU. */
static bool counter_read(const struct bpf_capture *capture, enum kernel_counter counter,
			 uint64_t *values)
{
	uint32_t key = counter;

	return bpf_map_read(capture->programs.maps[KERNEL_MAP_COUNTERS], &key, values, NULL);
}

static uint64_t counter_sum(const struct bpf_capture *capture, enum kernel_counter counter)
{
	uint64_t sum = 0;

	if (!counter_read(capture, counter, capture->per_cpu_values))
		return 0;
	for (unsigned i = 0; i < capture->possible_count; i++)
		sum += capture->per_cpu_values[i];
	return sum;
}

/* Both counters of every CPU that has a timer, now; what: tick_account_begin() or …_ticks(). */
static void ticks_read(struct bpf_capture *capture, bool are_new,
		       void (*what)(struct tick_account *account, unsigned cpu, uint64_t ticks,
				    uint64_t idle_ticks))
{
	uint64_t *ticks = capture->per_cpu_values, *idle = ticks + capture->cpu_count;

	if (!counter_read(capture, COUNT_ticks, ticks) || !counter_read(capture, COUNT_idle, idle))
		return;
	for (unsigned number = 0; number < capture->cpu_count; number++) {
		const struct cpu *cpu = &capture->cpus[number];

		if (cpu->timer >= 0 && cpu->is_new == are_new)
			what(capture->account, number, ticks[cpu->map_index], idle[cpu->map_index]);
	}
}

static void ticks_look(struct bpf_capture *capture)
{
	tick_account_look(capture->account);
	ticks_read(capture, false, tick_account_ticks);
}

/* False: its timer stands still, the CPU was away. */
static bool timer_look(struct bpf_capture *capture, unsigned number)
{
	return tick_account_count(capture->account, number,
				  perf_timer_count(capture->cpus[number].timer));
}

/* --- CPUs that come and go --- */

static void cpu_remove(struct bpf_capture *capture, unsigned number)
{
	struct cpu *cpu = &capture->cpus[number];

	log_info("cpu gone", "cpu=%u", number);
	ticks_look(capture);
	tick_account_end(capture->account, number);
	close(cpu->timer);
	cpu->timer = -1;
	process_events_remove_cpu(capture->events, number);
	fault_events_remove_cpu(capture->faults, number);
}

/* True also when the CPU is offline again already. */
static bool cpu_add(struct bpf_capture *capture, unsigned number, struct error *err)
{
	struct cpu *cpu = &capture->cpus[number];
	struct error failed = {0};

	if (process_events_add_cpu(capture->events, number, &failed) &&
	    fault_events_add_cpu(capture->faults, number, &failed))
		cpu->timer = perf_timer_open(number, capture->period_ns,
					     capture->programs.programs[KERNEL_PROGRAM_SAMPLE_CPU],
					     &failed);
	cpu->is_new = cpu->timer >= 0;
	if (cpu->is_new)
		return true;
	process_events_remove_cpu(capture->events, number);
	fault_events_remove_cpu(capture->faults, number);
	if (failed.kind == ERROR_NOT_FOUND)
		return true;
	if (err)
		*err = failed;
	return false;
}

/* One look for all that were added: what they had ticked and idled before does not count. Their
 * timers start only then, so that every tick since does. */
static bool cpus_begin(struct bpf_capture *capture, struct error *err)
{
	struct error failed = {0};

	tick_account_look(capture->account);
	ticks_read(capture, true, tick_account_begin);
	for (unsigned number = 0; number < capture->cpu_count; number++) {
		struct cpu *cpu = &capture->cpus[number];

		if (!cpu->is_new)
			continue;
		cpu->is_new = false;
		if (perf_timer_enable(cpu->timer, true, &failed))
			continue;
		cpu_remove(capture, number);
		if (failed.kind != ERROR_NOT_FOUND) {
			if (err)
				*err = failed;
			return error_prefix(err, "CPU %u", number);
		}
	}
	return true;
}

static bool cpus_check(struct bpf_capture *capture, struct error *err)
{
	bool is_any_new = false;

	if (!cpu_list_read("/sys/devices/system/cpu/online", capture->is_online, capture->cpu_count,
			   err))
		return false;
	for (unsigned number = 0; number < capture->cpu_count; number++) {
		struct cpu *cpu = &capture->cpus[number];

		/* A CPU that was away in between looks online, but its timer stands still. */
		if (cpu->timer >= 0 &&
		    (!timer_look(capture, number) || !capture->is_online[number]))
			cpu_remove(capture, number);
		if (cpu->timer < 0 && capture->is_online[number] && !cpu_add(capture, number, err))
			return error_prefix(err, "CPU %u", number);
		is_any_new |= cpu->is_new;
	}
	return !is_any_new || cpus_begin(capture, err);
}

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

static bool cpus_allocate(struct bpf_capture *capture, struct error *err)
{
	bool *possible = calloc(CPU_LIMIT, sizeof *possible);
	unsigned limit;
	bool ok = false;

	if (!possible) {
		error_set(err, ERROR_MEMORY, "list of CPUs");
		goto out;
	}
	limit = cpu_list_read("/sys/devices/system/cpu/possible", possible, CPU_LIMIT, err);
	if (!limit)
		goto out;
	capture->cpu_count = limit;
	capture->possible_count = cpu_list_count(possible, limit);
	capture->is_online = calloc(limit, sizeof *capture->is_online);
	capture->cpus = calloc(limit, sizeof *capture->cpus);
	capture->per_cpu_values = calloc(2 * limit, sizeof *capture->per_cpu_values);
	if (!capture->is_online || !capture->cpus || !capture->per_cpu_values) {
		error_set(err, ERROR_MEMORY, "state of %u CPUs", limit);
		goto out;
	}
	for (unsigned number = 0, index = 0; number < limit; number++) {
		capture->cpus[number].timer = -1;
		capture->cpus[number].map_index = index;
		index += possible[number] && index + 1 < capture->possible_count;
	}
	capture->account = tick_account_new(limit, capture->period_ns, err);
	ok = capture->account;
out:
	free(possible);
	return ok;
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
		.take_ticks = !options->no_on_cpu,
		.off_cpu = options->off_cpu,
		.off_cpu_budget_ns =
			(uint32_t)(options->off_cpu_budget / 2 * SWITCH_WINDOW_MS * 1e6),
		.threads_max = options->off_cpu ? threads_max() : 1,
		.allocs = options->allocs,
		.alloc_budget_ns = (uint32_t)(options->alloc_budget * STACK_RATE_WINDOW_MS * 1e6),
		.page_faults = options->page_faults,
		.fault_budget_ns = (uint32_t)(options->fault_budget * STACK_RATE_WINDOW_MS * 1e6),
	};
	const uint8_t wanted = 1;

	if (!cpu_list_read("/sys/devices/system/cpu/online", capture->is_online, capture->cpu_count,
			   err))
		return false;
	load.ring_bytes = ring_bytes(cpu_list_count(capture->is_online, capture->cpu_count),
				     options->off_cpu || options->allocs || options->page_faults);
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
	static const enum kernel_program order[] = {KERNEL_PROGRAM_EXIT, KERNEL_PROGRAM_WAKING,
						    KERNEL_PROGRAM_SWITCH};

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

	if (!(options->off_cpu & ~(uint32_t)KERNEL_OFF_CPU_RUN_QUEUE))
		return;
	capture->sweeps =
		switch_sweeps_open(&capture->programs, &capture->callbacks,
				   options->off_cpu_budget / 2 *
					   cpu_list_count(capture->is_online, capture->cpu_count),
				   &err);
	if (!capture->sweeps)
		log_warn("long waits are not swept", "why=\"%s\"",
			 err.kind ? err.message : "this kernel has no iterator over threads");
}

static bool faults_open(struct bpf_capture *capture, struct error *err)
{
	if (!capture->options.page_faults)
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
	if (!cpus_allocate(capture, err) || !programs_load(capture, err))
		goto out;
	capture->events = process_events_new(capture->cpu_count, &capture->callbacks, err);
	if (!capture->events || !faults_open(capture, err) ||
	    !record_wait_open(&capture->wait, capture->programs.maps[KERNEL_MAP_SAMPLES],
			      EPOLLIN | EPOLLET, process_events_descriptor(capture->events), err) ||
	    !cpus_check(capture, err) || !switches_attach(capture, err))
		goto out;
	sweeps_open(capture);
	capture->cpus_checked_ms = capture->counted_ms = now_ms();
	ok = true;
out:
	if (!ok) {
		bpf_capture_close(capture);
		return NULL;
	}
	capture->options.pids = NULL; /* borrowed for the call only */
	return capture;
}

/* --- run --- */

/* SOURCE_COUNT: it is no sample. */
static enum sample_source source_of(const struct sample_event *sample)
{
	switch (sample->type) {
	case EVENT_SAMPLE_CPU:
		return SOURCE_TICKS;
	case EVENT_SAMPLE_SWITCH:
	case EVENT_SAMPLE_WAKER:
		return SOURCE_SWITCHES;
	case EVENT_SAMPLE_FAULT:
		return SOURCE_FAULTS;
	case EVENT_SAMPLE_ALLOC:
		return SOURCE_ALLOCS;
	}
	return SOURCE_COUNT;
}

/* With its frames, or the context behind them. */
static bool sample_ends_well(const struct sample_event *sample)
{
	const uint32_t end = sample_event_frames_end(sample);

	return sample->flags & SAMPLE_HAS_CONTEXT ? sample->size >= end + THREAD_CONTEXT_HEADER &&
							    sample->size <= end + THREAD_CONTEXT_MAX
						  : sample->size == end;
}

static bool sample_is_whole(const struct bpf_capture *capture, const struct sample_event *sample,
			    size_t length)
{
	return length >= sizeof *sample && source_of(sample) < SOURCE_COUNT &&
	       sample->cpu < capture->cpu_count && sample->kernel_count <= KERNEL_FRAMES_MAX &&
	       sample->user_count <= USER_FRAMES_MAX && sample->size == length &&
	       sample_ends_well(sample);
}

static void sample_deliver(struct bpf_capture *capture, const struct sample_event *sample,
			   const struct stack_copy_event *copy)
{
	struct cpu *cpu = &capture->cpus[sample->cpu];

	process_events_deliver(capture->events, sample->time_ns);
	if (sample->type == EVENT_SAMPLE_CPU) {
		cpu->taken = sample->cpu_taken;
		cpu->ring_full = sample->cpu_ring_full;
		cpu->delivered++;
		capture->stacks_by_result[sample->result % 32]++;
	} else {
		cpu->others[source_of(sample)] = sample->cpu_taken;
	}
	if (capture->callbacks.on_sample)
		capture->callbacks.on_sample(capture->callbacks.context, sample, copy);
}

/* The sample's copy, if it has one. False: it is still being written; the sample has to wait. */
static bool sample_copy(struct bpf_capture *capture, const struct sample_event *sample,
			uint64_t now, const struct stack_copy_event **copy)
{
	bool is_coming = false;

	*copy = NULL;
	if (sample->flags & SAMPLE_HAS_COPY)
		*copy = stack_copies_take(&capture->copies,
					  sample->cpu +
						  ((uint32_t)source_of(sample) << SOURCE_SHIFT),
					  sample->cpu_taken, now, &is_coming);
	if (!is_coming) {
		capture->waits_since_ns = 0;
		return true;
	}
	if (!capture->waits_since_ns)
		capture->waits_since_ns = now;
	return now - capture->waits_since_ns > STACK_COPIES_WAIT_MS * UINT64_C(1000000);
}

static uint64_t delivered_of(const void *context, uint32_t cpu)
{
	const struct bpf_capture *capture = context;
	const uint32_t source = cpu >> SOURCE_SHIFT;

	cpu &= (1U << SOURCE_SHIFT) - 1;
	if (cpu >= capture->cpu_count || source >= SOURCE_COUNT)
		return UINT64_MAX;
	return source == SOURCE_TICKS ? capture->cpus[cpu].taken
				      : capture->cpus[cpu].others[source];
}

static bool switch_in_deliver(struct bpf_capture *capture, const void *record, size_t length)
{
	const struct switch_in_event *event = record;

	if (length != sizeof *event || event->type != EVENT_SWITCH_IN)
		return false;
	process_events_deliver(capture->events, event->time_ns);
	if (capture->callbacks.on_switch_in)
		capture->callbacks.on_switch_in(capture->callbacks.context, event);
	return true;
}

static bool free_deliver(struct bpf_capture *capture, const void *record, size_t length)
{
	const struct alloc_free_event *event = record;

	if (length != sizeof *event || event->type != EVENT_ALLOC_FREE)
		return false;
	process_events_deliver(capture->events, event->time_ns);
	if (capture->callbacks.on_free)
		capture->callbacks.on_free(capture->callbacks.context, event);
	return true;
}

/* Everything there is now, in time order. Where the sample ring ends is noted before the process
 * events are looked at, so that whatever happened before one of these samples is known with it.
 * Events later than the samples wait for the next round, for samples that are on their way. Returns
 * whether any do. */
static bool drain(struct bpf_capture *capture, uint64_t in_flight_ns)
{
	uint64_t end = sample_ring_end(&capture->ring), now = now_ns();
	const struct stack_copy_event *copy;
	const struct sample_event *sample;
	size_t length;

	process_events_look(capture->events);
	while ((sample = sample_ring_next(&capture->ring, end, &length)) != NULL) {
		if (!switch_in_deliver(capture, sample, length) &&
		    !free_deliver(capture, sample, length) &&
		    sample_is_whole(capture, sample, length)) {
			if (!sample_copy(capture, sample, now, &copy))
				break;
			sample_deliver(capture, sample, copy);
			if (copy) /* at once: what is full loses stacks meanwhile */
				stack_copies_release(&capture->copies, delivered_of, capture);
		}
		sample_ring_release(&capture->ring);
	}
	if (sample) /* it waits, and those behind it were not looked at */
		stack_copies_release(&capture->copies, delivered_of, capture);
	else
		stack_copies_settle(&capture->copies, delivered_of, capture, now);
	return process_events_deliver(capture->events, now - in_flight_ns);
}

bool bpf_capture_poll(struct bpf_capture *capture, int timeout_ms, struct error *err)
{
	uint64_t before = process_events_delivered(capture->events);
	struct error failed = {0};
	bool is_busy;

	if (capture->is_stopped)
		return true;
	timeout_ms = switch_sweeps_wait(capture->sweeps, now_ns(), timeout_ms);
	if (!record_wait_begin(&capture->wait, timeout_ms, err))
		return false;
	if (now_ms() - capture->cpus_checked_ms >= CPUS_CHECK_MS) {
		capture->cpus_checked_ms = capture->counted_ms = now_ms();
		/* A CPU that cannot be added now may be a second later; the others go on. */
		if (!cpus_check(capture, &failed))
			log_warn("cpu not sampled", "reason=\"%s\"", failed.message);
	}
	is_busy = drain(capture, IN_FLIGHT_MS * UINT64_C(1000000));
	is_busy |= process_events_delivered(capture->events) != before;
	switch_sweeps_run(capture->sweeps, now_ns());
	return record_wait_end(&capture->wait, is_busy, err);
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
	drain(capture, 0);
	process_events_deliver(capture->events, UINT64_MAX - 1);
	bpf_capture_count(capture);
	capture->is_stopped = true;
	ticks_look(capture);
}

/* --- figures --- */

void bpf_capture_count(struct bpf_capture *capture)
{
	for (unsigned number = 0; number < capture->cpu_count; number++)
		if (capture->cpus[number].timer >= 0)
			timer_look(capture, number);
	capture->counted_ms = now_ms();
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

	if (!capture->is_stopped && now_ms() - capture->counted_ms >= COUNTED_OLD_MS)
		bpf_capture_count(capture);
	if (!capture->is_stopped)
		ticks_look(capture);
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
		const struct cpu *cpu = &capture->cpus[number];

		totals->taken += cpu->taken;
		totals->delivered += cpu->delivered;
		totals->ring_full += cpu->ring_full;
	}
	if (capture->is_stopped) { /* with what was lost after the last sample */
		totals->taken = counter_sum(capture, COUNT_taken);
		totals->ring_full = counter_sum(capture, COUNT_ring_full);
		totals->no_scratch = counter_sum(capture, COUNT_no_scratch);
	} else {
		totals->no_scratch = totals->taken - totals->ring_full - totals->delivered;
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

int bpf_capture_map(const struct bpf_capture *capture, enum kernel_map map)
{
	return capture->programs.maps[map];
}

int bpf_capture_program(const struct bpf_capture *capture, enum kernel_program program)
{
	return capture->programs.programs[program];
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
