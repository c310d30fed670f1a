/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/capture/process_events.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "node-agent/capture/perf_records.h"
#include "node-agent/capture/descriptors.h"
#include "node-agent/capture/thread_group.h"
#include "node-agent/kernel/perf_event.h"

enum {
	RING_PAGES =
		16, /* some 400 executable mappings; emptied within 20 ms while there are any */
	RING_PAGES_MANY_CPUS = 8,
	MANY_CPUS = 32,
	LEADERLESS = 64, /* processes whose main thread has ended before the others */
};

struct cpu_events {
	struct perf_ring ring;
	uint64_t next_ns; /* time of the oldest record noted; UINT64_MAX: none */
	bool is_leaving;
};

struct process_events {
	const struct capture_callbacks *callbacks;
	int epoll_fd;
	bool has_build_ids;
	void (*watch)(void *context, const struct process_event *event);
	void *watch_context;
	struct descriptors threads; /* events of threads that write into another's ring */
	uint64_t delivered, lost;
	uint32_t leaderless[LEADERLESS]; /* 0: free */
	unsigned cpu_count;
	struct cpu_events cpus[];
};

struct process_events *process_events_new(unsigned cpus, const struct capture_callbacks *callbacks,
					  struct error *err)
{
	struct process_events *events = calloc(1, sizeof *events + cpus * sizeof events->cpus[0]);

	if (!events) {
		error_set(err, ERROR_MEMORY, "process events of %u CPUs", cpus);
		return NULL;
	}
	events->callbacks = callbacks;
	events->has_build_ids = true;
	events->cpu_count = cpus;
	for (unsigned cpu = 0; cpu < cpus; cpu++) {
		events->cpus[cpu].ring.fd = -1;
		events->cpus[cpu].next_ns = UINT64_MAX;
	}
	events->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (events->epoll_fd < 0) {
		error_set_system(err, errno, "epoll");
		process_events_free(events);
		return NULL;
	}
	return events;
}

static void close_cpu(struct cpu_events *cpu)
{
	perf_ring_close(&cpu->ring); /* leaves the epoll set with its last descriptor */
	cpu->next_ns = UINT64_MAX;
	cpu->is_leaving = false;
}

/* Opens the CPU's ring with that event as its first. */
static bool ring_begin(struct process_events *events, unsigned number, int fd, struct error *err)
{
	struct cpu_events *cpu = &events->cpus[number];
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	unsigned pages = events->cpu_count > MANY_CPUS ? RING_PAGES_MANY_CPUS : RING_PAGES;

	close_cpu(cpu);
	if (!perf_ring_attach(&cpu->ring, fd, pages, err))
		return false;
	if (epoll_ctl(events->epoll_fd, EPOLL_CTL_ADD, cpu->ring.fd, &event) != 0) {
		error_set_system(err, errno, "watch process events");
		close_cpu(cpu);
		return false;
	}
	return true;
}

bool process_events_add_cpu(struct process_events *events, unsigned number, struct error *err)
{
	int fd = perf_process_events_open(number, PERF_EVERY_THREAD, &events->has_build_ids, err);

	return fd >= 0 && ring_begin(events, number, fd, err);
}

bool process_events_add_thread(struct process_events *events, unsigned number, uint32_t thread,
			       struct error *err)
{
	int fd = perf_process_events_open(number, (int)thread, &events->has_build_ids, err);

	if (fd < 0)
		return false;
	if (!events->cpus[number].ring.base)
		return ring_begin(events, number, fd, err);
	if (perf_ring_join(&events->cpus[number].ring, fd, err) &&
	    descriptors_add(&events->threads, fd, err))
		return true;
	close(fd);
	return false;
}

void process_events_watch(struct process_events *events,
			  void (*watch)(void *context, const struct process_event *event),
			  void *context)
{
	events->watch = watch;
	events->watch_context = context;
}

void process_events_remove_cpu(struct process_events *events, unsigned number)
{
	events->cpus[number].is_leaving = events->cpus[number].ring.base != NULL;
}

int process_events_descriptor(const struct process_events *events)
{
	return events->epoll_fd;
}

static void note_next(struct cpu_events *cpu)
{
	size_t length;
	const void *record = perf_ring_next(&cpu->ring, &length);

	cpu->next_ns = record ? perf_record_time(record, length) : UINT64_MAX;
}

void process_events_look(struct process_events *events)
{
	struct epoll_event seen[16];

	/* Quiets the descriptor; the rings are looked at below whatever it says. */
	while (epoll_wait(events->epoll_fd, seen, 16, 0) == 16)
		;
	for (unsigned i = 0; i < events->cpu_count; i++) {
		struct cpu_events *cpu = &events->cpus[i];

		if (!cpu->ring.base)
			continue;
		perf_ring_look(&cpu->ring);
		note_next(cpu);
		if (cpu->is_leaving && cpu->next_ns == UINT64_MAX)
			close_cpu(cpu);
	}
}

/* A main thread can end before the others; its process goes on as long as one lives. */
static uint32_t *leaderless_find(struct process_events *events, uint32_t tgid)
{
	for (int i = 0; i < LEADERLESS; i++)
		if (events->leaderless[i] == tgid)
			return &events->leaderless[i];
	return NULL;
}

static void deliver_exit(struct process_events *events, const struct process_event *event)
{
	const struct capture_callbacks *callbacks = events->callbacks;
	uint32_t *known = leaderless_find(events, event->tgid), *room;

	if (!known && event->tid != event->tgid)
		return;
	if (thread_group_lives(event->tgid)) {
		room = known ? known : leaderless_find(events, 0);
		if (room) {
			*room = event->tgid;
			return;
		}
	}
	if (known)
		*known = 0;
	if (callbacks->on_exit)
		callbacks->on_exit(callbacks->context, event->tgid, event->time_ns);
}

static void deliver(struct process_events *events, const struct process_event *event)
{
	const struct capture_callbacks *callbacks = events->callbacks;
	void *context = callbacks->context;

	if (events->watch)
		events->watch(events->watch_context, event);
	switch (event->type) {
	case PROCESS_EVENT_EXEC:
		if (callbacks->on_exec)
			callbacks->on_exec(context, event->tgid, event->time_ns);
		break;
	case PROCESS_EVENT_FORK:
		if (callbacks->on_fork)
			callbacks->on_fork(context, event->tgid, event->parent_tgid,
					   event->time_ns);
		break;
	case PROCESS_EVENT_THREAD_EXIT:
		deliver_exit(events, event);
		break;
	case PROCESS_EVENT_MAPPING:
		if (callbacks->on_mapping)
			callbacks->on_mapping(context, &event->mapping);
		break;
	case PROCESS_EVENT_LOST:
		events->lost += event->lost;
		break;
	case PROCESS_EVENT_OTHER:
	case PROCESS_EVENT_NAME:
	case PROCESS_EVENT_THREAD:
		return;
	}
	events->delivered++;
}

bool process_events_deliver(struct process_events *events, uint64_t until_ns)
{
	for (;;) {
		struct cpu_events *oldest = NULL;
		struct process_event event;
		const void *record;
		size_t length;

		for (unsigned i = 0; i < events->cpu_count; i++)
			if (events->cpus[i].next_ns != UINT64_MAX &&
			    (!oldest || events->cpus[i].next_ns < oldest->next_ns))
				oldest = &events->cpus[i];
		if (!oldest || oldest->next_ns > until_ns)
			return oldest != NULL;
		record = perf_ring_next(&oldest->ring, &length);
		if (record) {
			if (perf_record_parse(record, length, &event))
				deliver(events, &event);
			else
				events->lost++;
			perf_ring_release(&oldest->ring, length);
		}
		note_next(oldest);
	}
}

uint64_t process_events_delivered(const struct process_events *events)
{
	return events->delivered;
}

uint64_t process_events_lost(const struct process_events *events)
{
	return events->lost;
}

void process_events_free(struct process_events *events)
{
	if (!events)
		return;
	for (unsigned cpu = 0; cpu < events->cpu_count; cpu++)
		close_cpu(&events->cpus[cpu]);
	descriptors_release(&events->threads);
	if (events->epoll_fd >= 0)
		close(events->epoll_fd);
	free(events);
}
