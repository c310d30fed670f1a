/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/capture/perf_rings.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "node-agent/capture/descriptors.h"
#include "node-agent/capture/perf_records.h"
#include "node-agent/capture/perf_sample.h"

enum {
	/* A ring holds the samples of so long a time, but all rings together so many bytes. */
	RING_MS = 400,
	RING_SAMPLES_MIN = 16,
	RINGS_BYTES = 32 << 20,
	RING_BYTES_MIN = 64 << 10,
	STACK_BYTES_MIN = 15 << 10,
	FLUSH_PERIOD_NS = 100000,
	FLUSH_MS = 3,
};

struct cpu_ring {
	struct perf_ring ring;
	uint64_t next_ns; /* time of the oldest record noted; UINT64_MAX: none */
	bool is_leaving;
	bool has_been_full; /* and the kernel has not told since what was lost then */
	uint64_t full_head; /* how far it had written */
};

struct perf_rings {
	struct perf_sampler sampler;
	unsigned pages;
	int epoll_fd;
	struct descriptors threads; /* timers that write into another's ring */
	unsigned cpu_count;
	struct cpu_ring cpus[];
};

/* The kernel reserves the whole stack_bytes in the ring, though it writes only what there is. */
static void rings_size(struct perf_rings *rings, unsigned online)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), share = RINGS_BYTES / (online ? online : 1);
	uint64_t samples = RING_MS * UINT64_C(1000000) / rings->sampler.period_ns;
	uint32_t *stack_bytes = &rings->sampler.stack_bytes;
	size_t bytes = RING_BYTES_MIN;

	if (samples < RING_SAMPLES_MIN)
		samples = RING_SAMPLES_MIN;
	while (*stack_bytes / 2 >= STACK_BYTES_MIN && samples * *stack_bytes > share)
		*stack_bytes = *stack_bytes / 16 * 8;
	while (bytes < samples * *stack_bytes && bytes * 2 <= share)
		bytes *= 2;
	rings->pages = (unsigned)(bytes / page);
}

struct perf_rings *perf_rings_new(unsigned cpus, unsigned online,
				  const struct perf_sampler *sampler, struct error *err)
{
	struct perf_rings *rings = calloc(1, sizeof *rings + cpus * sizeof rings->cpus[0]);

	if (!rings) {
		error_set(err, ERROR_MEMORY, "rings of %u CPUs", cpus);
		return NULL;
	}
	rings->sampler = *sampler;
	rings_size(rings, online);
	rings->cpu_count = cpus;
	for (unsigned cpu = 0; cpu < cpus; cpu++) {
		rings->cpus[cpu].ring.fd = -1;
		rings->cpus[cpu].next_ns = UINT64_MAX;
	}
	rings->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (rings->epoll_fd < 0) {
		error_set_system(err, errno, "epoll");
		perf_rings_free(rings);
		return NULL;
	}
	return rings;
}

static void close_cpu(struct cpu_ring *cpu)
{
	perf_ring_close(&cpu->ring);
	*cpu = (struct cpu_ring){.ring.fd = -1, .next_ns = UINT64_MAX};
}

void perf_rings_free(struct perf_rings *rings)
{
	if (!rings)
		return;
	for (unsigned cpu = 0; cpu < rings->cpu_count; cpu++)
		close_cpu(&rings->cpus[cpu]);
	descriptors_release(&rings->threads);
	if (rings->epoll_fd >= 0)
		close(rings->epoll_fd);
	free(rings);
}

/* --- timers --- */

static int timer_open(struct perf_rings *rings, unsigned cpu, int thread, struct error *err)
{
	struct perf_sampler sampler = rings->sampler;
	uint32_t ring_bytes = rings->pages * (uint32_t)sysconf(_SC_PAGESIZE);

	sampler.cpu = cpu;
	sampler.thread = thread;
	sampler.wakeup_bytes = ring_bytes / 2;
	return perf_sampler_open(&sampler, err);
}

/* The CPU's first timer, with a ring. Users without privileges may lock little memory, and other
 * programs of theirs may have some of it: with a smaller ring then, and all that follow. */
static bool ring_begin(struct perf_rings *rings, unsigned number, int thread, struct error *err)
{
	struct cpu_ring *cpu = &rings->cpus[number];
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct error failed = {0};

	close_cpu(cpu);
	for (;; rings->pages /= 2) {
		int fd = timer_open(rings, number, thread, err);

		if (fd < 0)
			return false;
		if (perf_ring_attach(&cpu->ring, fd, rings->pages, &failed))
			break;
		if (failed.os_error != EPERM || rings->pages * page / 2 < RING_BYTES_MIN) {
			if (err)
				*err = failed;
			return false;
		}
	}
	if (epoll_ctl(rings->epoll_fd, EPOLL_CTL_ADD, cpu->ring.fd, &event) != 0) {
		error_set_system(err, errno, "watch a ring");
		close_cpu(cpu);
		return false;
	}
	return true;
}

bool perf_rings_add_cpu(struct perf_rings *rings, unsigned number, struct error *err)
{
	if (!ring_begin(rings, number, PERF_EVERY_THREAD, err))
		return false;
	if (perf_timer_enable(rings->cpus[number].ring.fd, true, err))
		return true;
	close_cpu(&rings->cpus[number]);
	return false;
}

bool perf_rings_add_thread(struct perf_rings *rings, unsigned number, uint32_t thread,
			   struct error *err)
{
	int fd;

	if (!rings->cpus[number].ring.base)
		return ring_begin(rings, number, (int)thread, err);
	fd = timer_open(rings, number, (int)thread, err);
	if (fd < 0)
		return false;
	if (perf_ring_join(&rings->cpus[number].ring, fd, err) &&
	    descriptors_add(&rings->threads, fd, err))
		return true;
	close(fd);
	return false;
}

static bool enable_all(struct perf_rings *rings, bool is_enabled, struct error *err)
{
	bool ok = true;

	for (unsigned cpu = 0; cpu < rings->cpu_count; cpu++)
		if (rings->cpus[cpu].ring.base)
			ok &= perf_timer_enable(rings->cpus[cpu].ring.fd, is_enabled, err);
	for (size_t i = 0; i < rings->threads.count; i++)
		ok &= perf_timer_enable(rings->threads.fds[i], is_enabled, err);
	return ok;
}

bool perf_rings_start(struct perf_rings *rings, struct error *err)
{
	return enable_all(rings, true, err);
}

void perf_rings_remove_cpu(struct perf_rings *rings, unsigned number)
{
	rings->cpus[number].is_leaving = rings->cpus[number].ring.base != NULL;
}

bool perf_rings_has_cpu(const struct perf_rings *rings, unsigned number)
{
	return rings->cpus[number].ring.base && !rings->cpus[number].is_leaving;
}

uint64_t perf_rings_cpu_count(const struct perf_rings *rings, unsigned number)
{
	return rings->cpus[number].ring.base ? perf_timer_count(rings->cpus[number].ring.fd) : 0;
}

uint64_t perf_rings_count(const struct perf_rings *rings)
{
	uint64_t count = 0;

	for (unsigned cpu = 0; cpu < rings->cpu_count; cpu++)
		count += perf_rings_cpu_count(rings, cpu);
	for (size_t i = 0; i < rings->threads.count; i++)
		count += perf_timer_count(rings->threads.fds[i]);
	return count;
}

/* --- records --- */

int perf_rings_descriptor(const struct perf_rings *rings)
{
	return rings->epoll_fd;
}

static uint32_t record_type(const void *record)
{
	return ((const struct perf_event_header *)record)->type;
}

static void note_next(struct cpu_ring *cpu)
{
	size_t length;
	const void *record = perf_ring_next(&cpu->ring, &length);

	if (!record)
		cpu->next_ns = UINT64_MAX;
	else if (record_type(record) == PERF_RECORD_SAMPLE)
		cpu->next_ns = perf_sample_time(record, length);
	else
		cpu->next_ns = perf_record_time(record, length);
}

static void full_note(struct cpu_ring *cpu)
{
	cpu->has_been_full = true;
	cpu->full_head = cpu->ring.head;
}

void perf_rings_look(struct perf_rings *rings)
{
	struct epoll_event seen[16];
	/* Of one record, generously: its kernel frames and registers fit in a page. */
	size_t record = rings->sampler.stack_bytes + 4096;

	while (epoll_wait(rings->epoll_fd, seen, 16, 0) == 16)
		;
	for (unsigned i = 0; i < rings->cpu_count; i++) {
		struct cpu_ring *cpu = &rings->cpus[i];

		if (!cpu->ring.base)
			continue;
		perf_ring_look(&cpu->ring);
		if (cpu->ring.head - cpu->ring.tail + record > cpu->ring.bytes)
			full_note(cpu);
		note_next(cpu);
		if (cpu->is_leaving && cpu->next_ns == UINT64_MAX)
			close_cpu(cpu);
	}
}

const void *perf_rings_next(struct perf_rings *rings, unsigned *number, size_t *length)
{
	struct cpu_ring *oldest = NULL;
	const void *record;

	for (unsigned i = 0; i < rings->cpu_count; i++)
		if (rings->cpus[i].next_ns != UINT64_MAX &&
		    (!oldest || rings->cpus[i].next_ns < oldest->next_ns))
			oldest = &rings->cpus[i];
	if (!oldest)
		return NULL;
	*number = (unsigned)(oldest - rings->cpus);
	record = perf_ring_next(&oldest->ring, length);
	if (!record) /* no memory for one that wraps: it is gone */
		note_next(oldest);
	else if (record_type(record) == PERF_RECORD_LOST && oldest->ring.tail >= oldest->full_head)
		oldest->has_been_full = false;
	return record;
}

void perf_rings_release(struct perf_rings *rings, unsigned number, size_t length)
{
	perf_ring_release(&rings->cpus[number].ring, length);
	note_next(&rings->cpus[number]);
}

/* --- the end --- */

void perf_rings_stop(struct perf_rings *rings, uint64_t *stopped_ns)
{
	const struct timespec pause = {.tv_nsec = FLUSH_MS * 1000000L};
	bool is_any_open = false;

	*stopped_ns = monotonic_ns();
	for (unsigned i = 0; i < rings->cpu_count; i++) {
		struct cpu_ring *cpu = &rings->cpus[i];

		if (!cpu->ring.base || !cpu->has_been_full)
			continue;
		is_any_open |= perf_sampler_set_period(cpu->ring.fd, FLUSH_PERIOD_NS, NULL);
	}
	for (size_t i = 0; is_any_open && i < rings->threads.count; i++)
		perf_sampler_set_period(rings->threads.fds[i], FLUSH_PERIOD_NS, NULL);
	if (is_any_open)
		nanosleep(&pause, NULL);
	enable_all(rings, false, NULL);
}
