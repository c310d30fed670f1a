/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/capture/perf_threads.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/hash_table.h"

enum {
	THREADS_MAX = 65536,
	PASSES_MAX = 8, /* over the lists of threads, until one shows nothing new */
};

struct adding {
	struct process_events *events;
	struct perf_rings *rings;
	const bool *is_online;
	unsigned cpus;
	struct hash_table known; /* index is the tid */
	size_t added;            /* in this pass */
};

static bool is_known(const struct adding *adding, uint32_t tid)
{
	HASH_TABLE_EACH(i, &adding->known, hash_word(0, tid))
		if (i == tid)
			return true;
	return false;
}

/* A thread that one of ours has started inherited what that had. */
static void on_event(void *context, const struct process_event *event)
{
	struct adding *adding = context;

	if (event->type == PROCESS_EVENT_THREAD && !is_known(adding, event->tid))
		hash_table_add(&adding->known, hash_word(0, event->tid), event->tid);
}

/* Its events first: should it start another in between, that is known to be ours. */
static bool add_thread(struct adding *adding, uint32_t tid, struct error *err)
{
	struct error failed = {0};

	if (!hash_table_add(&adding->known, hash_word(0, tid), tid))
		return error_set(err, ERROR_LIMIT, "more than %d threads", THREADS_MAX);
	adding->added++;
	for (unsigned cpu = 0; cpu < adding->cpus; cpu++)
		if (adding->is_online[cpu] &&
		    !process_events_add_thread(adding->events, cpu, tid, &failed) &&
		    failed.kind != ERROR_NOT_FOUND)
			goto out;
	for (unsigned cpu = 0; cpu < adding->cpus; cpu++)
		if (adding->is_online[cpu] &&
		    !perf_rings_add_thread(adding->rings, cpu, tid, &failed) &&
		    failed.kind != ERROR_NOT_FOUND)
			goto out;
	return true; /* or the thread ended, or the CPU went offline */
out:
	if (err)
		*err = failed;
	return false;
}

/* True also when the process has ended. */
static bool add_process(struct adding *adding, uint32_t pid, bool *is_there, struct error *err)
{
	const struct dirent *entry;
	bool ok = true;
	char path[32];
	DIR *directory;

	snprintf(path, sizeof path, "/proc/%u/task", pid);
	directory = opendir(path);
	*is_there = directory;
	while (directory && ok && (entry = readdir(directory)) != NULL) {
		uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10);

		process_events_look(adding->events);
		process_events_deliver(adding->events, UINT64_MAX - 1);
		if (tid && !is_known(adding, tid))
			ok = add_thread(adding, tid, err);
	}
	if (directory)
		closedir(directory);
	return ok;
}

bool perf_threads_add(struct process_events *events, struct perf_rings *rings,
		      const bool *is_online, unsigned cpus, const uint32_t *pids, size_t pid_count,
		      struct error *err)
{
	struct adding adding = {
		.events = events, .rings = rings, .is_online = is_online, .cpus = cpus};
	bool ok = true, is_there;

	hash_table_init(&adding.known, THREADS_MAX);
	process_events_watch(events, on_event, &adding);
	for (int pass = 0; pass < PASSES_MAX && ok; pass++) {
		adding.added = 0;
		for (size_t i = 0; i < pid_count && ok; i++) {
			ok = add_process(&adding, pids[i], &is_there, err);
			if (ok && !is_there && !pass)
				ok = error_set(err, ERROR_NOT_FOUND, "process %u is not there",
					       pids[i]);
		}
		if (!adding.added)
			break;
	}
	process_events_watch(events, NULL, NULL);
	hash_table_release(&adding.known);
	return ok;
}
