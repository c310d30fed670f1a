/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/capture/perf_capture.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "bpf/frames.h"
#include "common/clock.h"
#include "common/log.h"
#include "node-agent/capture/cpu_plug.h"
#include "node-agent/capture/perf_records.h"
#include "node-agent/capture/perf_rings.h"
#include "node-agent/capture/perf_sample.h"
#include "node-agent/capture/perf_tasks.h"
#include "node-agent/capture/perf_threads.h"
#include "node-agent/capture/process_events.h"
#include "node-agent/capture/record_wait.h"
#include "node-agent/capture/tick_account.h"
#include "node-agent/kernel/cpu_list.h"

enum {
	STACK_BYTES = 60 << 10, /* with the rest of a record less than 64 KiB */
	/* Users without privileges may lock half a MiB for each CPU's ring (perf_event_mlock_kb).
	 */
	STACK_BYTES_OF_THREADS = 15 << 10,
	TASKS_MAX = 16384,
	IN_FLIGHT_MS = 5, /* a record may still be on its way into its ring for this long */
	CPUS_CHECK_MS = 1000,
	THREADS_COUNT_MS = 10000, /* there may be thousands of timers */
};

/* What became of a CPU's ticks: each is one of idle, filtered and taken. */
struct perf_cpu {
	uint64_t ticks, idle, filtered, taken;
	uint64_t ring_full, delivered; /* of the taken ones */
};

struct perf_capture {
	struct capture_callbacks callbacks;
	uint64_t period_ns;
	uint32_t *pids; /* ascending; none: all processes */
	size_t pid_count;
	bool is_of_threads; /* of these processes' threads, not of all CPUs */
	bool is_user_only;
	bool is_stopped;
	struct process_events *events;
	struct perf_rings *rings;
	struct perf_tasks *tasks;
	struct tick_account *account;
	struct record_wait wait;
	uint64_t checked_ns;
	uint64_t delivered_until_ns;
	uint64_t thread_count_ns; /* of all threads' timers, when last asked for */
	uint64_t copies, copy_bytes;
	uint64_t stacks_by_result[32];
	unsigned cpu_count; /* highest number + 1 */
	bool *is_online;
	struct perf_cpu *cpus;
	struct perf_sample sample;
	struct sample_event *event;
	struct stack_copy_event *copy;
};

/* --- all processes: CPUs that come and go --- */

static bool online_read(struct perf_capture *capture, struct error *err)
{
	return cpu_list_read("/sys/devices/system/cpu/online", capture->is_online,
			     capture->cpu_count, err);
}

static bool cpu_add(void *context, unsigned number, struct error *err)
{
	struct perf_capture *capture = context;
	const struct perf_cpu *cpu = &capture->cpus[number];

	/* Its error says more. */
	if (perf_rings_add_cpu(capture->rings, number, err) &&
	    process_events_add_cpu(capture->events, number, err)) {
		tick_account_begin(capture->account, number, cpu->ticks, cpu->idle);
		return true;
	}
	perf_rings_remove_cpu(capture->rings, number);
	process_events_remove_cpu(capture->events, number);
	return false;
}

static void cpu_remove(void *context, unsigned number)
{
	struct perf_capture *capture = context;

	log_info("cpu gone", "cpu=%u", number);
	tick_account_end(capture->account, number);
	perf_rings_remove_cpu(capture->rings, number);
	process_events_remove_cpu(capture->events, number);
}

static bool cpu_look(void *context, unsigned number)
{
	struct perf_capture *capture = context;
	const struct perf_cpu *cpu = &capture->cpus[number];

	tick_account_ticks(capture->account, number, cpu->ticks, cpu->idle);
	return tick_account_count(capture->account, number,
				  perf_rings_cpu_count(capture->rings, number));
}

static bool cpu_has(const void *context, unsigned number)
{
	return perf_rings_has_cpu(((const struct perf_capture *)context)->rings, number);
}

static bool cpus_check(struct perf_capture *capture, struct error *err)
{
	static const struct cpu_plug plug = {cpu_has, cpu_look, cpu_add, cpu_remove};

	if (!online_read(capture, err))
		return false;
	tick_account_look(capture->account);
	return cpu_plug_follow(&plug, capture, capture->is_online, capture->cpu_count, err);
}

/* --- start --- */

static int compare_pids(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return (left > right) - (left < right);
}

static bool is_wanted(const struct perf_capture *capture, uint32_t tgid)
{
	return !capture->pid_count ||
	       bsearch(&tgid, capture->pids, capture->pid_count, sizeof tgid, compare_pids);
}

static bool memory_get(struct perf_capture *capture, const struct capture_options *options,
		       struct error *err)
{
	bool *possible = calloc(CPU_LIMIT, sizeof *possible);
	unsigned limit = 0;

	if (possible)
		limit = cpu_list_read("/sys/devices/system/cpu/possible", possible, CPU_LIMIT, err);
	free(possible);
	if (!limit)
		return possible ? false : error_set(err, ERROR_MEMORY, "list of CPUs");
	capture->cpu_count = limit;
	capture->is_online = calloc(limit, sizeof *capture->is_online);
	capture->cpus = calloc(limit, sizeof *capture->cpus);
	capture->pids = calloc(options->pid_count + 1, sizeof *capture->pids);
	capture->event = calloc(1, sample_event_bytes(KERNEL_FRAMES_MAX + 1));
	capture->copy = malloc(sizeof *capture->copy + PERF_RECORD_BYTES_MAX);
	capture->account = tick_account_new(limit, capture->period_ns, err);
	capture->tasks = perf_tasks_new(TASKS_MAX, "/proc", err);
	if (!capture->is_online || !capture->cpus || !capture->pids || !capture->event ||
	    !capture->copy)
		return error_set(err, ERROR_MEMORY, "state of %u CPUs", limit);
	if (options->pid_count)
		memcpy(capture->pids, options->pids, options->pid_count * sizeof *capture->pids);
	capture->pid_count = options->pid_count;
	qsort(capture->pids, capture->pid_count, sizeof *capture->pids, compare_pids);
	return capture->account && capture->tasks;
}

static void on_event(void *context, const struct process_event *event)
{
	perf_tasks_note(((struct perf_capture *)context)->tasks, event);
}

/* Afresh: what an attempt with more rights has opened is closed. */
static bool rings_begin(struct perf_capture *capture, struct error *err)
{
	const struct perf_sampler sampler = {
		.period_ns = capture->period_ns,
		.stack_bytes = capture->is_of_threads ? STACK_BYTES_OF_THREADS : STACK_BYTES,
		.is_user_only = capture->is_user_only,
	};

	process_events_free(capture->events);
	perf_rings_free(capture->rings);
	capture->rings = NULL;
	capture->events = process_events_new(capture->cpu_count, &capture->callbacks, err);
	if (!capture->events)
		return false;
	process_events_watch(capture->events, on_event, capture);
	capture->rings = perf_rings_new(capture->cpu_count,
					cpu_list_count(capture->is_online, capture->cpu_count),
					&sampler, err);
	return capture->rings;
}

/* What happens meanwhile nobody is told: /proc has it still when the first sample comes. */
static bool begin_threads(struct perf_capture *capture, struct error *err)
{
	const struct capture_callbacks callbacks = capture->callbacks;
	bool ok;

	capture->callbacks = (struct capture_callbacks){0};
	ok = rings_begin(capture, err) &&
	     perf_threads_add(capture->events, capture->rings, capture->is_online,
			      capture->cpu_count, capture->pids, capture->pid_count, err);
	capture->callbacks = callbacks;
	if (ok)
		process_events_watch(capture->events, on_event, capture);
	return ok && perf_rings_start(capture->rings, err);
}

/* As much as is permitted. */
static bool begin(struct perf_capture *capture, struct error *err)
{
	struct error failed = {0};

	if (!online_read(capture, err))
		return false;
	if (rings_begin(capture, err) && cpus_check(capture, &failed))
		return true;
	if (failed.kind == ERROR_UNSUPPORTED && capture->pid_count) {
		failed = (struct error){0};
		capture->is_of_threads = true;
		if (begin_threads(capture, &failed))
			return true;
	}
	if (failed.kind == ERROR_UNSUPPORTED && capture->is_of_threads) {
		failed = (struct error){0};
		capture->is_user_only = true;
		if (begin_threads(capture, &failed)) {
			log_warn("kernel code is not sampled",
				 "because=\"kernel.perf_event_paranoid above 1\" "
				 "counted_as=filtered");
			return true;
		}
	}
	if (failed.kind != ERROR_NONE && err)
		*err = failed;
	return false;
}

struct perf_capture *perf_capture_open(const struct capture_options *options,
				       const struct capture_callbacks *callbacks, struct error *err)
{
	struct perf_capture *capture = calloc(1, sizeof *capture);
	bool ok = false;

	if (!capture) {
		error_set(err, ERROR_MEMORY, "capture");
		return NULL;
	}
	capture->callbacks = *callbacks;
	capture->period_ns = 1000000000 / options->frequency_hz;
	record_wait_init(&capture->wait);
	if (!memory_get(capture, options, err) || !begin(capture, err))
		goto out;
	capture->checked_ns = monotonic_ns();
	ok = record_wait_open(&capture->wait, perf_rings_descriptor(capture->rings), EPOLLIN,
			      process_events_descriptor(capture->events), err);
out:
	if (!ok) {
		perf_capture_close(capture);
		return NULL;
	}
	return capture;
}

/* --- run --- */

static void deliver(struct perf_capture *capture, unsigned number)
{
	const struct capture_callbacks *callbacks = &capture->callbacks;
	struct perf_cpu *cpu = &capture->cpus[number];
	struct sample_event *event = capture->event;
	struct stack_copy_event *copy = NULL;
	const struct perf_sample *sample = &capture->sample;

	perf_sample_event(sample, event, capture->copy);
	perf_tasks_identify(capture->tasks, sample->tgid, sample->tid, sample->time_ns, event);
	event->cpu = number;
	event->cpu_taken = cpu->taken;
	event->tick.cpu_ring_full = cpu->ring_full;
	event->tick.period_ns = capture->period_ns;
	if (event->flags & SAMPLE_HAS_COPY) {
		copy = capture->copy;
		copy->cpu = number;
		copy->cpu_taken = cpu->taken;
		capture->copies++;
		capture->copy_bytes += copy->size;
	}
	cpu->delivered++;
	capture->stacks_by_result[event->result % 32]++;
	if (callbacks->on_sample)
		callbacks->on_sample(callbacks->context, event, copy);
}

static void take_sample(struct perf_capture *capture, unsigned number, const void *record,
			size_t length)
{
	const struct perf_sample *sample = &capture->sample;
	struct perf_cpu *cpu = &capture->cpus[number];

	cpu->ticks++;
	if (!perf_sample_parse(record, length, &capture->sample)) {
		cpu->taken++;
		cpu->ring_full++;
		return;
	}
	/* Threads of other pid namespaces have the number 0 as well, but registers. */
	if (!sample->tid && sample->user == PERF_USER_NONE) {
		cpu->idle++;
		return;
	}
	if (!sample->tid || !is_wanted(capture, sample->tgid)) {
		cpu->filtered++;
		return;
	}
	cpu->taken++;
	process_events_deliver(capture->events, sample->time_ns);
	deliver(capture, number);
}

/* Lost records of these rings are samples: of whom is not known. */
static void take_other(struct perf_capture *capture, unsigned number, const void *record,
		       size_t length)
{
	struct perf_cpu *cpu = &capture->cpus[number];
	struct process_event event;

	if (!perf_record_parse(record, length, &event) || event.type != PROCESS_EVENT_LOST)
		return;
	cpu->ticks += event.lost;
	cpu->taken += event.lost;
	cpu->ring_full += event.lost;
}

/* Everything there is now up to a time, in time order, and then the process events up to
 * events_until_ns. Those that are later than the samples wait for the next round, for samples that
 * are on their way. Returns whether any do. */
static bool drain(struct perf_capture *capture, uint64_t samples_until_ns, uint64_t events_until_ns)
{
	const struct perf_event_header *record;
	unsigned number;
	size_t length;

	capture->delivered_until_ns = monotonic_ns();
	perf_rings_look(capture->rings);
	process_events_look(capture->events);
	while ((record = perf_rings_next(capture->rings, &number, &length)) != NULL) {
		if (record->type != PERF_RECORD_SAMPLE)
			take_other(capture, number, record, length);
		else if (perf_sample_time(record, length) <= samples_until_ns)
			take_sample(capture, number, record, length);
		perf_rings_release(capture->rings, number, length);
	}
	return process_events_deliver(capture->events, events_until_ns);
}

static uint64_t check_interval_ns(const struct perf_capture *capture)
{
	return (capture->is_of_threads ? THREADS_COUNT_MS : CPUS_CHECK_MS) * UINT64_C(1000000);
}

bool perf_capture_poll(struct perf_capture *capture, int timeout_ms, struct error *err)
{
	uint64_t before = process_events_delivered(capture->events), now;
	struct error failed = {0};
	bool is_busy;

	if (capture->is_stopped)
		return true;
	if (!record_wait_begin(&capture->wait, timeout_ms, err))
		return false;
	now = monotonic_ns();
	is_busy = drain(capture, UINT64_MAX, now - IN_FLIGHT_MS * UINT64_C(1000000));
	is_busy |= process_events_delivered(capture->events) != before;
	if (now - capture->checked_ns >= check_interval_ns(capture)) {
		capture->checked_ns = now;
		/* A CPU that cannot be added now may be a second later; the others go on. */
		if (capture->is_of_threads)
			perf_capture_count(capture);
		else if (!cpus_check(capture, &failed))
			log_warn("cpu not sampled", "reason=\"%s\"", failed.message);
	}
	return record_wait_end(&capture->wait, is_busy, err);
}

uint64_t perf_capture_delivered_until_ns(const struct perf_capture *capture)
{
	return capture->delivered_until_ns;
}

void perf_capture_watch(struct perf_capture *capture, int fd)
{
	record_wait_watch(&capture->wait, fd);
}

void perf_capture_stop(struct perf_capture *capture)
{
	uint64_t stopped_ns;

	if (capture->is_stopped)
		return;
	drain(capture, UINT64_MAX, 0);
	perf_capture_count(capture);
	perf_rings_stop(capture->rings, &stopped_ns);
	drain(capture, stopped_ns, UINT64_MAX - 1);
	capture->is_stopped = true;
	tick_account_look(capture->account);
}

/* --- figures --- */

void perf_capture_count(struct perf_capture *capture)
{
	if (capture->is_stopped)
		return;
	if (capture->is_of_threads)
		capture->thread_count_ns = perf_rings_count(capture->rings);
	for (unsigned number = 0; number < capture->cpu_count && !capture->is_of_threads; number++)
		if (perf_rings_has_cpu(capture->rings, number))
			cpu_look(capture, number);
}

static void add_ticks(struct perf_capture *capture, struct capture_totals *totals)
{
	struct tick_totals ticks;

	for (unsigned number = 0; number < capture->cpu_count; number++)
		if (perf_rings_has_cpu(capture->rings, number))
			tick_account_ticks(capture->account, number, capture->cpus[number].ticks,
					   capture->cpus[number].idle);
	if (!capture->is_stopped)
		tick_account_look(capture->account);
	tick_account_total(capture->account, &ticks);
	totals->ticks = ticks.seen + ticks.idle - ticks.idle_seen;
	totals->idle = ticks.idle;
	totals->missed = ticks.missed;
	totals->perf_count_ns = ticks.counted_ns;
}

/* Timers of threads count while these run, and never find them idle. What did not tick was kernel
 * code where that is not to be seen, and else missed. */
static void add_thread_ticks(const struct perf_capture *capture, uint64_t seen,
			     struct capture_totals *totals)
{
	uint64_t expected = capture->thread_count_ns / capture->period_ns;
	uint64_t without = expected > seen ? expected - seen : 0;
	totals->ticks = seen;
	totals->perf_count_ns = capture->thread_count_ns;
	if (capture->is_user_only) {
		totals->ticks += without;
		totals->filtered += without;
	} else {
		totals->missed = without;
	}
}

void perf_capture_totals(struct perf_capture *capture, struct capture_totals *totals)
{
	uint64_t seen = 0;

	*totals = (struct capture_totals){
		.copies = capture->copies,
		.copy_bytes = capture->copy_bytes,
		.process_events_lost = process_events_lost(capture->events),
	};
	memcpy(totals->stacks_by_result, capture->stacks_by_result,
	       sizeof totals->stacks_by_result);
	for (unsigned number = 0; number < capture->cpu_count; number++) {
		const struct perf_cpu *cpu = &capture->cpus[number];

		seen += cpu->ticks;
		totals->filtered += cpu->filtered;
		totals->taken += cpu->taken;
		totals->delivered += cpu->delivered;
		totals->ring_full += cpu->ring_full;
	}
	if (capture->is_of_threads)
		add_thread_ticks(capture, seen, totals);
	else
		add_ticks(capture, totals);
}

void perf_capture_close(struct perf_capture *capture)
{
	if (!capture)
		return;
	process_events_free(capture->events);
	perf_rings_free(capture->rings);
	perf_tasks_free(capture->tasks);
	tick_account_free(capture->account);
	record_wait_close(&capture->wait);
	free(capture->is_online);
	free(capture->cpus);
	free(capture->pids);
	free(capture->event);
	free(capture->copy);
	free(capture);
}
