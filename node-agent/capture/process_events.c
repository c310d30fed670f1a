/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/capture/process_events.h"

#include <stdlib.h>

#include "node-agent/capture/perf_records.h"
#include "node-agent/capture/ring_set.h"
#include "node-agent/capture/thread_group.h"
#include "node-agent/kernel/perf_event.h"

enum {
	RING_PAGES =
		16, /* some 400 executable mappings; emptied within 20 ms while there are any */
	RING_PAGES_MANY_CPUS = 8,
	MANY_CPUS = 32,
	LEADERLESS = 64, /* processes whose main thread has ended before the others */
};

struct process_events {
	const struct capture_callbacks *callbacks;
	struct ring_set rings;
	bool has_build_ids;
	void (*watch)(void *context, const struct process_event *event);
	void *watch_context;
	uint64_t delivered, lost;
	uint32_t leaderless[LEADERLESS]; /* 0: free */
};

struct process_events *process_events_new(unsigned cpus, const struct capture_callbacks *callbacks,
					  struct error *err)
{
	struct process_events *events = calloc(1, sizeof *events);

	if (!events) {
		error_set(err, ERROR_MEMORY, "process events of %u CPUs", cpus);
		return NULL;
	}
	events->callbacks = callbacks;
	events->has_build_ids = true;
	if (!ring_set_open(&events->rings, cpus, perf_record_time, err)) {
		process_events_free(events);
		return NULL;
	}
	return events;
}

static unsigned ring_pages(const struct process_events *events)
{
	return events->rings.count > MANY_CPUS ? RING_PAGES_MANY_CPUS : RING_PAGES;
}

bool process_events_add_cpu(struct process_events *events, unsigned number, struct error *err)
{
	int fd = perf_process_events_open(number, PERF_EVERY_THREAD, &events->has_build_ids, err);

	return fd >= 0 && ring_set_begin(&events->rings, number, fd, ring_pages(events), err);
}

bool process_events_add_thread(struct process_events *events, unsigned number, uint32_t thread,
			       struct error *err)
{
	int fd = perf_process_events_open(number, (int)thread, &events->has_build_ids, err);

	if (fd < 0)
		return false;
	if (!events->rings.cpus[number].ring.base)
		return ring_set_begin(&events->rings, number, fd, ring_pages(events), err);
	return ring_set_join(&events->rings, number, fd, err);
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
	ring_set_remove(&events->rings, number);
}

int process_events_descriptor(const struct process_events *events)
{
	return events->rings.epoll_fd;
}

void process_events_look(struct process_events *events)
{
	ring_set_look(&events->rings);
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
		struct set_ring *oldest = ring_set_oldest(&events->rings);
		struct process_event event;
		const void *record;
		size_t length;

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
		ring_set_note(&events->rings, oldest);
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
	ring_set_close(&events->rings);
	free(events);
}
