/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/capture/perf_rings.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "node-agent/capture/perf_records.h"
#include "node-agent/capture/perf_sample.h"
#include "node-agent/capture/ring_set.h"

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

struct full_ring {
	bool has_been_full; /* and the kernel has not told since what was lost then */
	uint64_t head;      /* how far it had written */
};

struct perf_rings {
	struct perf_sampler sampler;
	unsigned pages;
	struct ring_set set;
	struct full_ring full[]; /* of each CPU */
};

static uint32_t record_type(const void *record)
{
	return ((const struct perf_event_header *)record)->type;
}

static uint64_t record_time(const void *record, size_t length)
{
	return record_type(record) == PERF_RECORD_SAMPLE ? perf_sample_time(record, length)
							 : perf_record_time(record, length);
}

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
	struct perf_rings *rings = calloc(1, sizeof *rings + cpus * sizeof rings->full[0]);

	if (!rings) {
		error_set(err, ERROR_MEMORY, "rings of %u CPUs", cpus);
		return NULL;
	}
	rings->sampler = *sampler;
	rings_size(rings, online);
	if (!ring_set_open(&rings->set, cpus, record_time, err)) {
		perf_rings_free(rings);
		return NULL;
	}
	return rings;
}

void perf_rings_free(struct perf_rings *rings)
{
	if (!rings)
		return;
	ring_set_close(&rings->set);
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
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct error failed = {0};

	rings->full[number] = (struct full_ring){0};
	for (;; rings->pages /= 2) {
		int fd = timer_open(rings, number, thread, err);

		if (fd < 0)
			return false;
		if (ring_set_begin(&rings->set, number, fd, rings->pages, &failed))
			return true;
		if (failed.os_error != EPERM || rings->pages * page / 2 < RING_BYTES_MIN) {
			if (err)
				*err = failed;
			return false;
		}
	}
}

bool perf_rings_add_cpu(struct perf_rings *rings, unsigned number, struct error *err)
{
	if (!ring_begin(rings, number, PERF_EVERY_THREAD, err))
		return false;
	if (perf_timer_enable(rings->set.cpus[number].ring.fd, true, err))
		return true;
	ring_set_end(&rings->set, number);
	return false;
}

bool perf_rings_add_thread(struct perf_rings *rings, unsigned number, uint32_t thread,
			   struct error *err)
{
	int fd;

	if (!rings->set.cpus[number].ring.base)
		return ring_begin(rings, number, (int)thread, err);
	fd = timer_open(rings, number, (int)thread, err);
	return fd >= 0 && ring_set_join(&rings->set, number, fd, err);
}

static bool enable_all(struct perf_rings *rings, bool is_enabled, struct error *err)
{
	bool ok = true;

	for (unsigned cpu = 0; cpu < rings->set.count; cpu++)
		if (rings->set.cpus[cpu].ring.base)
			ok &= perf_timer_enable(rings->set.cpus[cpu].ring.fd, is_enabled, err);
	for (size_t i = 0; i < rings->set.thread_count; i++)
		ok &= perf_timer_enable(rings->set.threads[i], is_enabled, err);
	return ok;
}

bool perf_rings_start(struct perf_rings *rings, struct error *err)
{
	return enable_all(rings, true, err);
}

void perf_rings_remove_cpu(struct perf_rings *rings, unsigned number)
{
	ring_set_remove(&rings->set, number);
}

bool perf_rings_has_cpu(const struct perf_rings *rings, unsigned number)
{
	return ring_set_has(&rings->set, number);
}

uint64_t perf_rings_cpu_count(const struct perf_rings *rings, unsigned number)
{
	const struct perf_ring *ring = &rings->set.cpus[number].ring;

	return ring->base ? perf_timer_count(ring->fd) : 0;
}

uint64_t perf_rings_count(const struct perf_rings *rings)
{
	uint64_t count = 0;

	for (unsigned cpu = 0; cpu < rings->set.count; cpu++)
		count += perf_rings_cpu_count(rings, cpu);
	for (size_t i = 0; i < rings->set.thread_count; i++)
		count += perf_timer_count(rings->set.threads[i]);
	return count;
}

/* --- records --- */

int perf_rings_descriptor(const struct perf_rings *rings)
{
	return rings->set.epoll_fd;
}

void perf_rings_look(struct perf_rings *rings)
{
	/* Of one record, generously: its kernel frames and registers fit in a page. */
	size_t record = rings->sampler.stack_bytes + 4096;

	ring_set_look(&rings->set);
	for (unsigned i = 0; i < rings->set.count; i++) {
		const struct perf_ring *ring = &rings->set.cpus[i].ring;

		if (!ring->base)
			rings->full[i] = (struct full_ring){0};
		else if (ring->head - ring->tail + record > ring->bytes)
			rings->full[i] = (struct full_ring){true, ring->head};
	}
}

const void *perf_rings_next(struct perf_rings *rings, unsigned *number, size_t *length)
{
	struct set_ring *oldest = ring_set_oldest(&rings->set);
	const void *record;

	if (!oldest)
		return NULL;
	*number = (unsigned)(oldest - rings->set.cpus);
	record = perf_ring_next(&oldest->ring, length);
	if (!record) /* no memory for one that wraps: it is gone */
		ring_set_note(&rings->set, oldest);
	else if (record_type(record) == PERF_RECORD_LOST &&
		 oldest->ring.tail >= rings->full[*number].head)
		rings->full[*number].has_been_full = false;
	return record;
}

void perf_rings_release(struct perf_rings *rings, unsigned number, size_t length)
{
	perf_ring_release(&rings->set.cpus[number].ring, length);
	ring_set_note(&rings->set, &rings->set.cpus[number]);
}

/* --- the end --- */

void perf_rings_stop(struct perf_rings *rings, uint64_t *stopped_ns)
{
	const struct timespec pause = {.tv_nsec = FLUSH_MS * 1000000L};
	bool is_any_open = false;

	*stopped_ns = monotonic_ns();
	for (unsigned i = 0; i < rings->set.count; i++) {
		const struct perf_ring *ring = &rings->set.cpus[i].ring;

		if (ring->base && rings->full[i].has_been_full)
			is_any_open |= perf_sampler_set_period(ring->fd, FLUSH_PERIOD_NS, NULL);
	}
	for (size_t i = 0; is_any_open && i < rings->set.thread_count; i++)
		perf_sampler_set_period(rings->set.threads[i], FLUSH_PERIOD_NS, NULL);
	if (is_any_open)
		nanosleep(&pause, NULL);
	enable_all(rings, false, NULL);
}
