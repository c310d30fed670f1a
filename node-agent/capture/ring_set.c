/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/capture/ring_set.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/array.h"

bool ring_set_open(struct ring_set *set, unsigned cpus,
		   uint64_t (*time_of)(const void *record, size_t length), struct error *err)
{
	*set = (struct ring_set){.time_of = time_of, .count = cpus};
	set->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (set->epoll_fd < 0)
		return error_set_system(err, errno, "epoll");
	set->cpus = calloc(cpus, sizeof *set->cpus);
	if (!set->cpus)
		return error_set(err, ERROR_MEMORY, "rings of %u CPUs", cpus);
	for (unsigned cpu = 0; cpu < cpus; cpu++) {
		set->cpus[cpu].ring.fd = -1;
		set->cpus[cpu].next_ns = UINT64_MAX;
	}
	return true;
}

void ring_set_close(struct ring_set *set)
{
	if (!set->time_of)
		return;
	for (unsigned cpu = 0; set->cpus && cpu < set->count; cpu++)
		ring_set_end(set, cpu);
	for (size_t i = 0; i < set->thread_count; i++)
		close(set->threads[i]);
	free(set->threads);
	free(set->cpus);
	if (set->epoll_fd >= 0)
		close(set->epoll_fd);
	*set = (struct ring_set){0};
}

static void end(struct set_ring *cpu)
{
	perf_ring_close(&cpu->ring); /* leaves the epoll set with its last descriptor */
	cpu->next_ns = UINT64_MAX;
	cpu->is_leaving = false;
}

void ring_set_end(struct ring_set *set, unsigned cpu)
{
	end(&set->cpus[cpu]);
}

bool ring_set_begin(struct ring_set *set, unsigned cpu, int fd, unsigned pages, struct error *err)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	struct perf_ring *ring = &set->cpus[cpu].ring;

	ring_set_end(set, cpu);
	if (!perf_ring_attach(ring, fd, pages, err))
		return false;
	if (!epoll_ctl(set->epoll_fd, EPOLL_CTL_ADD, ring->fd, &event))
		return true;
	error_set_system(err, errno, "watch a ring");
	ring_set_end(set, cpu);
	return false;
}

bool ring_set_join(struct ring_set *set, unsigned cpu, int fd, struct error *err)
{
	if (!perf_ring_join(&set->cpus[cpu].ring, fd, err)) {
		close(fd);
		return false;
	}
	if (!ARRAY_GROW(set->threads, set->thread_count, set->thread_room)) {
		close(fd);
		return error_set(err, ERROR_MEMORY, "%zu descriptors", set->thread_count + 1);
	}
	set->threads[set->thread_count++] = fd;
	return true;
}

void ring_set_remove(struct ring_set *set, unsigned cpu)
{
	set->cpus[cpu].is_leaving = set->cpus[cpu].ring.base != NULL;
}

bool ring_set_has(const struct ring_set *set, unsigned cpu)
{
	return set->cpus[cpu].ring.base && !set->cpus[cpu].is_leaving;
}

void ring_set_note(const struct ring_set *set, struct set_ring *cpu)
{
	size_t length;
	const void *record = perf_ring_next(&cpu->ring, &length);

	cpu->next_ns = record ? set->time_of(record, length) : UINT64_MAX;
}

void ring_set_look(struct ring_set *set)
{
	struct epoll_event seen[16];

	/* Quiets the descriptor; the rings are looked at below whatever it says. */
	while (epoll_wait(set->epoll_fd, seen, 16, 0) == 16)
		;
	for (unsigned i = 0; i < set->count; i++) {
		struct set_ring *cpu = &set->cpus[i];

		if (!cpu->ring.base)
			continue;
		perf_ring_look(&cpu->ring);
		ring_set_note(set, cpu);
		if (cpu->is_leaving && cpu->next_ns == UINT64_MAX)
			end(cpu);
	}
}

struct set_ring *ring_set_oldest(struct ring_set *set)
{
	struct set_ring *oldest = NULL;

	for (unsigned i = 0; i < set->count; i++)
		if (set->cpus[i].next_ns != UINT64_MAX &&
		    (!oldest || set->cpus[i].next_ns < oldest->next_ns))
			oldest = &set->cpus[i];
	return oldest;
}
