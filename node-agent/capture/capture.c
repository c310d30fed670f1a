/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/capture/capture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "bpf/results.h"
#include "common/log.h"
#include "node-agent/capture/cpu_list.h"
#include "node-agent/capture/cpu_ticks.h"
#include "node-agent/capture/perf_capture.h"
#include "node-agent/capture/process_events.h"
#include "node-agent/capture/stack_copies.h"
#include "node-agent/kernel/bpf_map.h"
#include "node-agent/kernel/perf_event.h"
#include "node-agent/kernel/sample_ring.h"

enum {
	RING_BYTES_PER_CPU = 128 << 10,
	RING_BYTES_MIN = 256 << 10,
	RING_BYTES_MAX = 8 << 20,
	COPIES_BYTES = 512 << 10,
	POLL_MS = 200,     /* how often the rings are looked at when nothing happens */
	POLL_BUSY_MS = 20, /* while processes come and go: those that live shortly are met alive */
	IN_FLIGHT_MS = 5,  /* a sample may still be on its way into the ring for this long */
	CPUS_CHECK_MS = 1000,
};

struct cpu {
	int timer;                 /* −1: offline */
	bool is_new;               /* its counters' state then is still to be noted */
	unsigned map_index;        /* its place in per-CPU maps */
	uint64_t timer_ns;         /* its count when last looked at */
	struct cpu_ticks ticks;    /* since the timer was opened, as of the last look */
	struct cpu_ticks before;   /* the counters as they were then */
	uint64_t taken, ring_full; /* the kernel's counters as of the last sample delivered */
	uint64_t delivered;
};

/* Of several CPUs. */
struct tick_totals {
	uint64_t seen, idle_seen;
	uint64_t idle, missed; /* with those that did not come */
};

struct capture {
	struct perf_capture *perf; /* does everything then; NULL: by BPF */
	struct capture_options options;
	struct capture_callbacks callbacks;
	uint64_t period_ns;
	struct kernel_programs programs;
	struct sample_ring ring;
	struct stack_copies copies;
	struct process_events *events;
	int epoll_fd, tick_fd, watched_fd;
	uint64_t waits_since_ns; /* the oldest sample, for its copy; 0: it does not */
	unsigned tick_ms;
	bool is_stopped;
	bool is_armed;           /* the next process event wakes us */
	uint64_t gone_timers_ns; /* counts of timers that were closed */
	struct tick_totals gone; /* and what became of their ticks */
	struct tick_totals shown;
	int64_t cpus_checked_ms;
	uint64_t stacks_by_result[32];
	unsigned cpu_count, possible_count; /* highest number + 1; how many */
	bool *is_online;
	uint64_t *per_cpu_values; /* one counter's, for reading */
	uint64_t *idle_ns;        /* per CPU, the kernel's own account */
	struct cpu *cpus;
};

_Static_assert(WALK_RESULT_COUNT <= 32,
	       "capture_totals.stacks_by_result has room for every result");

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The timer's count so far; a timer whose CPU went away answers nothing any more. */
static uint64_t timer_count(struct cpu *cpu)
{
	uint64_t count = cpu->timer >= 0 ? perf_timer_count(cpu->timer) : 0;

	if (count > cpu->timer_ns)
		cpu->timer_ns = count;
	return cpu->timer_ns;
}

/* --- what became of the ticks --- */

static bool counter_read(const struct capture *capture, enum kernel_counter counter)
{
	uint32_t key = counter;

	return bpf_map_read(capture->programs.maps[KERNEL_MAP_COUNTERS], &key,
			    capture->per_cpu_values, NULL);
}

static uint64_t counter_sum(const struct capture *capture, enum kernel_counter counter)
{
	uint64_t sum = 0;

	if (!counter_read(capture, counter))
		return 0;
	for (unsigned i = 0; i < capture->possible_count; i++)
		sum += capture->per_cpu_values[i];
	return sum;
}

/* The absolute figures of every CPU now. Its count is that of the last check, a second ago at most:
 * asking the kernel would interrupt it. */
static void ticks_look(struct capture *capture)
{
	bool has_idle = cpu_idle_read("/proc/stat", capture->idle_ns, capture->cpu_count, NULL);

	for (unsigned number = 0; number < capture->cpu_count; number++) {
		struct cpu *cpu = &capture->cpus[number];

		if (cpu->timer < 0)
			continue;
		cpu->ticks.counted_ns = cpu->timer_ns;
		if (has_idle)
			cpu->ticks.idle_ns = capture->idle_ns[number];
	}
	if (counter_read(capture, COUNT_ticks))
		for (unsigned number = 0; number < capture->cpu_count; number++)
			capture->cpus[number].ticks.ticks =
				capture->per_cpu_values[capture->cpus[number].map_index];
	if (counter_read(capture, COUNT_idle))
		for (unsigned number = 0; number < capture->cpu_count; number++)
			capture->cpus[number].ticks.idle_ticks =
				capture->per_cpu_values[capture->cpus[number].map_index];
}

/* Adds one CPU's, since its timer was opened. */
static void ticks_add(const struct capture *capture, const struct cpu *cpu,
		      struct tick_totals *totals)
{
	const struct cpu_ticks since = {
		.counted_ns = cpu->ticks.counted_ns,
		.ticks = cpu->ticks.ticks - cpu->before.ticks,
		.idle_ticks = cpu->ticks.idle_ticks - cpu->before.idle_ticks,
		.idle_ns = cpu->ticks.idle_ns > cpu->before.idle_ns
				   ? cpu->ticks.idle_ns - cpu->before.idle_ns
				   : 0,
	};
	uint64_t idle, missed;

	cpu_ticks_settle(&since, capture->period_ns, &idle, &missed);
	totals->seen += since.ticks;
	totals->idle_seen += since.idle_ticks;
	totals->idle += idle;
	totals->missed += missed;
}

/* What was shown once never falls: an idle time that comes late turns missed ticks into idle ones.
 */
static void ticks_total(struct capture *capture, struct tick_totals *totals)
{
	if (!capture->is_stopped)
		ticks_look(capture);
	*totals = capture->gone;
	for (unsigned number = 0; number < capture->cpu_count; number++)
		if (capture->cpus[number].timer >= 0)
			ticks_add(capture, &capture->cpus[number], totals);
	if (totals->idle < capture->shown.idle)
		totals->idle = capture->shown.idle;
	if (totals->missed < capture->shown.missed)
		totals->missed = capture->shown.missed;
	capture->shown = *totals;
}

/* --- CPUs that come and go --- */

static void cpu_remove(struct capture *capture, unsigned number)
{
	struct cpu *cpu = &capture->cpus[number];

	capture->gone_timers_ns += timer_count(cpu);
	ticks_look(capture);
	cpu->ticks.counted_ns = cpu->timer_ns;
	ticks_add(capture, cpu, &capture->gone);
	close(cpu->timer);
	cpu->timer = -1;
	cpu->timer_ns = 0;
	process_events_remove_cpu(capture->events, number);
}

/* True also when the CPU is offline again already. */
static bool cpu_add(struct capture *capture, unsigned number, struct error *err)
{
	struct cpu *cpu = &capture->cpus[number];
	struct error failed = {0};

	if (!process_events_add_cpu(capture->events, number, &failed))
		goto out;
	cpu->timer = perf_timer_open(number, capture->period_ns, capture->programs.sample_cpu,
				     &failed);
	if (cpu->timer >= 0 && perf_timer_enable(cpu->timer, true, &failed)) {
		cpu->is_new = true;
		return true;
	}
out:
	if (cpu->timer >= 0)
		close(cpu->timer);
	cpu->timer = -1;
	process_events_remove_cpu(capture->events, number);
	if (failed.kind == ERROR_NOT_FOUND)
		return true;
	if (err)
		*err = failed;
	return false;
}

/* One look for all that were added: what they had ticked and idled before does not count. */
static void cpus_begin(struct capture *capture)
{
	ticks_look(capture);
	for (unsigned number = 0; number < capture->cpu_count; number++) {
		struct cpu *cpu = &capture->cpus[number];

		if (cpu->is_new)
			cpu->before = cpu->ticks;
		cpu->is_new = false;
	}
}

static bool cpus_check(struct capture *capture, struct error *err)
{
	bool is_any_new = false;

	if (!cpu_list_read("/sys/devices/system/cpu/online", capture->is_online, capture->cpu_count,
			   err))
		return false;
	for (unsigned number = 0; number < capture->cpu_count; number++) {
		struct cpu *cpu = &capture->cpus[number];
		uint64_t before = cpu->timer_ns;

		/* A CPU that was away in between looks online, but its timer stands still. */
		if (cpu->timer >= 0 &&
		    (!capture->is_online[number] || timer_count(cpu) == before)) {
			log_info("cpu gone", "cpu=%u", number);
			cpu_remove(capture, number);
		}
		if (cpu->timer < 0 && capture->is_online[number] && !cpu_add(capture, number, err))
			return error_prefix(err, "CPU %u", number);
		is_any_new |= cpu->is_new;
	}
	if (is_any_new)
		cpus_begin(capture);
	return true;
}

/* --- start --- */

static uint32_t ring_bytes(unsigned online_cpus)
{
	uint64_t wanted = (uint64_t)online_cpus * RING_BYTES_PER_CPU;
	uint32_t bytes = RING_BYTES_MIN;

	while (bytes < wanted && bytes < RING_BYTES_MAX)
		bytes *= 2;
	return bytes;
}

static bool cpus_allocate(struct capture *capture, struct error *err)
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
	capture->idle_ns = calloc(limit, sizeof *capture->idle_ns);
	capture->per_cpu_values = calloc(limit, sizeof *capture->per_cpu_values);
	if (!capture->is_online || !capture->cpus || !capture->per_cpu_values ||
	    !capture->idle_ns) {
		error_set(err, ERROR_MEMORY, "state of %u CPUs", limit);
		goto out;
	}
	for (unsigned number = 0, index = 0; number < limit; number++) {
		capture->cpus[number].timer = -1;
		capture->cpus[number].map_index = index;
		index += possible[number] && index + 1 < capture->possible_count;
	}
	ok = true;
out:
	free(possible);
	return ok;
}

static bool programs_load(struct capture *capture, struct error *err)
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
	};
	const uint8_t wanted = 1;

	if (!cpu_list_read("/sys/devices/system/cpu/online", capture->is_online, capture->cpu_count,
			   err))
		return false;
	load.ring_bytes = ring_bytes(cpu_list_count(capture->is_online, capture->cpu_count));
	if (!kernel_load(&load, &capture->programs, err))
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

static bool tick_set(struct capture *capture, unsigned ms, struct error *err)
{
	struct itimerspec every = {
		.it_interval.tv_nsec = ms * 1000000L,
		.it_value.tv_nsec = ms * 1000000L,
	};

	if (ms == capture->tick_ms)
		return true;
	if (timerfd_settime(capture->tick_fd, 0, &every, NULL) != 0)
		return error_set_system(err, errno, "set timer");
	capture->tick_ms = ms;
	return true;
}

static bool watch(struct capture *capture, int operation, int fd, uint32_t when, struct error *err)
{
	struct epoll_event event = {.events = when, .data.fd = fd};

	if (epoll_ctl(capture->epoll_fd, operation, fd, &event) != 0)
		return error_set_system(err, errno, "watch descriptor");
	return true;
}

static bool descriptors_open(struct capture *capture, struct error *err)
{
	int ring_fd = capture->programs.maps[KERNEL_MAP_SAMPLES];

	capture->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	capture->tick_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (capture->epoll_fd < 0 || capture->tick_fd < 0)
		return error_set_system(err, errno, "epoll and timer");
	/* Process events wake us once; then the faster tick takes over until it is calm again. */
	return watch(capture, EPOLL_CTL_ADD, capture->tick_fd, EPOLLIN, err) &&
	       watch(capture, EPOLL_CTL_ADD, ring_fd, EPOLLIN | EPOLLET, err) &&
	       watch(capture, EPOLL_CTL_ADD, process_events_descriptor(capture->events),
		     EPOLLIN | EPOLLONESHOT, err) &&
	       tick_set(capture, POLL_MS, err);
}

static bool options_check(const struct capture_options *options, struct error *err)
{
	if (options->frequency_hz < 1 || options->frequency_hz > 1000)
		return error_set(err, ERROR_OPTION, "frequency is %u, must be 1 to 1000 Hz",
				 options->frequency_hz);
	if (options->max_frames < 1 || options->max_frames > USER_FRAMES_MAX)
		return error_set(err, ERROR_OPTION, "max-frames is %u, must be 1 to %u",
				 options->max_frames, USER_FRAMES_MAX);
	if (options->pid_count > 65536)
		return error_set(err, ERROR_OPTION, "more than 65536 process ids");
	return true;
}

static struct capture *open_by_bpf(const struct capture_options *options,
				   const struct capture_callbacks *callbacks, struct error *err)
{
	struct capture *capture = calloc(1, sizeof *capture);
	bool ok = false;

	if (!capture) {
		error_set(err, ERROR_MEMORY, "capture");
		return NULL;
	}
	capture->options = *options;
	capture->callbacks = *callbacks;
	capture->epoll_fd = capture->tick_fd = capture->watched_fd = -1;
	kernel_programs_init(&capture->programs);
	if (!options_check(options, err))
		goto out;
	capture->period_ns = 1000000000 / options->frequency_hz;
	if (!cpus_allocate(capture, err) || !programs_load(capture, err))
		goto out;
	capture->events = process_events_new(capture->cpu_count, &capture->callbacks, err);
	if (!capture->events || !descriptors_open(capture, err) || !cpus_check(capture, err))
		goto out;
	capture->cpus_checked_ms = (int64_t)(now_ns() / 1000000);
	ok = true;
out:
	if (!ok) {
		capture_close(capture);
		return NULL;
	}
	capture->options.pids = NULL; /* borrowed for the call only */
	return capture;
}

static struct capture *open_by_perf(const struct capture_options *options,
				    const struct capture_callbacks *callbacks, struct error *err)
{
	struct capture *capture = calloc(1, sizeof *capture);

	if (!capture) {
		error_set(err, ERROR_MEMORY, "capture");
		return NULL;
	}
	if (options->stop_after_sample)
		error_set(err, ERROR_UNSUPPORTED, "sampled threads are stopped by BPF only");
	else if (options_check(options, err))
		capture->perf = perf_capture_open(options, callbacks, err);
	if (!capture->perf) {
		free(capture);
		return NULL;
	}
	return capture;
}

struct capture *capture_open(const struct capture_options *options,
			     const struct capture_callbacks *callbacks, struct error *err)
{
	struct capture *capture = NULL;
	struct error by_bpf = {0}, by_perf = {0};

	if (options->way != CAPTURE_PERF)
		capture = open_by_bpf(options, callbacks, &by_bpf);
	if (capture || (options->way != CAPTURE_PERF && by_bpf.kind != ERROR_UNSUPPORTED) ||
	    options->way == CAPTURE_BPF) {
		if (!capture && err)
			*err = by_bpf;
		return capture;
	}
	capture = open_by_perf(options, callbacks, &by_perf);
	if (capture && options->way == CAPTURE_AUTO)
		log_warn("stacks are taken by perf events", "because=\"%s\"",
			 by_bpf.message);
	if (!capture && options->way == CAPTURE_AUTO)
		error_set(err, by_perf.kind, "%s; and %s", by_bpf.message, by_perf.message);
	else if (!capture && err)
		*err = by_perf;
	return capture;
}

/* --- run --- */

static bool sample_is_whole(const struct capture *capture, const struct sample_event *sample,
			    size_t length)
{
	return length >= sizeof *sample && sample->type == EVENT_SAMPLE_CPU &&
	       sample->cpu < capture->cpu_count && sample->kernel_count <= KERNEL_FRAMES_MAX &&
	       sample->user_count <= USER_FRAMES_MAX &&
	       length == sizeof *sample + ((size_t)sample->kernel_count + sample->user_count) *
						  sizeof sample->frames[0];
}

static void sample_deliver(struct capture *capture, const struct sample_event *sample,
			   const struct stack_copy_event *copy)
{
	struct cpu *cpu = &capture->cpus[sample->cpu];

	process_events_deliver(capture->events, sample->time_ns);
	cpu->taken = sample->cpu_taken;
	cpu->ring_full = sample->cpu_ring_full;
	cpu->delivered++;
	capture->stacks_by_result[sample->result % 32]++;
	if (capture->callbacks.on_sample)
		capture->callbacks.on_sample(capture->callbacks.context, sample, copy);
}

/* The sample's copy, if it has one. False: it is still being written; the sample has to wait. */
static bool sample_copy(struct capture *capture, const struct sample_event *sample, uint64_t now,
			const struct stack_copy_event **copy)
{
	bool is_coming = false;

	*copy = NULL;
	if (sample->flags & SAMPLE_HAS_COPY)
		*copy = stack_copies_take(&capture->copies, sample->cpu, sample->cpu_taken, now,
					  &is_coming);
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
	const struct capture *capture = context;

	return cpu < capture->cpu_count ? capture->cpus[cpu].taken : UINT64_MAX;
}

/* Everything there is now, in time order. Where the sample ring ends is noted before the process
 * events are looked at, so that whatever happened before one of these samples is known with it.
 * Events later than the samples wait for the next round, for samples that are on their way. Returns
 * whether any do. */
static bool drain(struct capture *capture, uint64_t in_flight_ns)
{
	uint64_t end = sample_ring_end(&capture->ring), now = now_ns();
	const struct stack_copy_event *copy;
	const struct sample_event *sample;
	size_t length;

	process_events_look(capture->events);
	while ((sample = sample_ring_next(&capture->ring, end, &length)) != NULL) {
		if (sample_is_whole(capture, sample, length)) {
			if (!sample_copy(capture, sample, now, &copy))
				break;
			sample_deliver(capture, sample, copy);
		}
		sample_ring_release(&capture->ring);
	}
	stack_copies_settle(&capture->copies, delivered_of, capture, now);
	return process_events_deliver(capture->events, now - in_flight_ns);
}

static bool poll_bpf(struct capture *capture, int timeout_ms, struct error *err)
{
	struct epoll_event ready[4];
	uint64_t ticks, before = process_events_delivered(capture->events);
	struct error failed = {0};
	int64_t now_ms;
	bool is_busy;
	int count;

	if (capture->is_stopped)
		return true;
	count = epoll_wait(capture->epoll_fd, ready, 4, timeout_ms);
	if (count < 0 && errno != EINTR)
		return error_set_system(err, errno, "wait for samples");
	if (read(capture->tick_fd, &ticks, sizeof ticks) < 0 && errno != EAGAIN)
		return error_set_system(err, errno, "read timer");
	for (int i = 0; i < count; i++)
		if (ready[i].data.fd == process_events_descriptor(capture->events))
			capture->is_armed = false;
	now_ms = (int64_t)(now_ns() / 1000000);
	if (now_ms - capture->cpus_checked_ms >= CPUS_CHECK_MS) {
		capture->cpus_checked_ms = now_ms;
		/* A CPU that cannot be added now may be a second later; the others go on. */
		if (!cpus_check(capture, &failed))
			log_warn("cpu not sampled", "reason=\"%s\"", failed.message);
	}
	is_busy = drain(capture, IN_FLIGHT_MS * UINT64_C(1000000));
	is_busy |= process_events_delivered(capture->events) != before;
	if (!is_busy && !capture->is_armed) {
		if (!watch(capture, EPOLL_CTL_MOD, process_events_descriptor(capture->events),
			   EPOLLIN | EPOLLONESHOT, err))
			return false;
		capture->is_armed = true;
	}
	return tick_set(capture, is_busy ? POLL_BUSY_MS : POLL_MS, err);
}

bool capture_poll(struct capture *capture, int timeout_ms, struct error *err)
{
	return capture->perf ? perf_capture_poll(capture->perf, timeout_ms, err)
			     : poll_bpf(capture, timeout_ms, err);
}

void capture_watch(struct capture *capture, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	if (capture->perf) {
		perf_capture_watch(capture->perf, fd);
		return;
	}
	/* One that was closed has left by itself; another may have its number by now. */
	if (capture->watched_fd >= 0 && capture->watched_fd != fd)
		epoll_ctl(capture->epoll_fd, EPOLL_CTL_DEL, capture->watched_fd, NULL);
	capture->watched_fd = fd;
	if (fd >= 0 && epoll_ctl(capture->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0 &&
	    errno != EEXIST)
		capture->watched_fd = -1;
}

void capture_stop(struct capture *capture)
{
	if (capture->perf)
		perf_capture_stop(capture->perf);
	if (capture->perf || capture->is_stopped)
		return;
	for (unsigned number = 0; number < capture->cpu_count; number++)
		if (capture->cpus[number].timer >= 0)
			perf_timer_enable(capture->cpus[number].timer, false, NULL);
	drain(capture, 0);
	process_events_deliver(capture->events, UINT64_MAX - 1);
	for (unsigned number = 0; number < capture->cpu_count; number++)
		timer_count(&capture->cpus[number]);
	capture->is_stopped = true;
	ticks_look(capture);
}

/* --- figures --- */

void capture_counts(struct capture *capture, struct capture_totals *totals)
{
	struct tick_totals ticks;

	if (capture->perf) {
		perf_capture_totals(capture->perf, totals);
		return;
	}
	ticks_total(capture, &ticks);
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

void capture_totals(struct capture *capture, struct capture_totals *totals)
{
	capture_counts(capture, totals);
	if (capture->perf)
		return;
	totals->perf_count_ns = capture->gone_timers_ns;
	for (unsigned number = 0; number < capture->cpu_count; number++)
		totals->perf_count_ns += timer_count(&capture->cpus[number]);
}

uint64_t capture_map_bytes(const struct capture *capture)
{
	uint64_t bytes = 0;

	for (int map = 0; map < KERNEL_MAP_COUNT && !capture->perf; map++)
		bytes += bpf_map_bytes(capture->programs.maps[map]);
	return bytes;
}

int capture_map(const struct capture *capture, enum kernel_map map)
{
	return capture->perf ? -1 : capture->programs.maps[map];
}

enum capture_way capture_way(const struct capture *capture)
{
	return capture->perf ? CAPTURE_PERF : CAPTURE_BPF;
}

void capture_close(struct capture *capture)
{
	if (!capture)
		return;
	if (capture->perf) {
		perf_capture_close(capture->perf);
		free(capture);
		return;
	}
	for (unsigned number = 0; capture->cpus && number < capture->cpu_count; number++)
		if (capture->cpus[number].timer >= 0)
			close(capture->cpus[number].timer);
	process_events_free(capture->events);
	sample_ring_close(&capture->ring);
	sample_ring_close(&capture->copies.ring);
	kernel_programs_close(&capture->programs);
	if (capture->tick_fd >= 0)
		close(capture->tick_fd);
	if (capture->epoll_fd >= 0)
		close(capture->epoll_fd);
	free(capture->is_online);
	free(capture->per_cpu_values);
	free(capture->idle_ns);
	free(capture->cpus);
	free(capture);
}
