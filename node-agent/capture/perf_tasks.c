/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/capture/perf_tasks.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/hash_table.h"

enum {
	STAT_FIELD_START_TIME = 22,
	KEEP_ENDED_MS = 1000, /* late samples come by milliseconds */
};

#define NS_PER_MS UINT64_C(1000000)

struct task {
	uint32_t tid;      /* 0: free */
	uint32_t exec_id;  /* of the main thread: with start_time_ns the process' */
	uint64_t start_ns; /* 0: not known yet */
	uint64_t ended_ns; /* 0: runs */
	bool is_looked_up; /* in /proc */
	char name[COMM_LENGTH];
};

struct perf_tasks {
	const char *proc_root;
	uint64_t ns_per_tick;
	uint32_t execs;                  /* seen so far, and entries made: never goes back */
	uint32_t limit, room, free_slot; /* no free one before that */
	uint64_t swept_ns;
	struct task *tasks;
	struct hash_table by_tid;
};

struct perf_tasks *perf_tasks_new(uint32_t limit, const char *proc_root, struct error *err)
{
	struct perf_tasks *tasks = calloc(1, sizeof *tasks);
	long ticks = sysconf(_SC_CLK_TCK);

	if (!tasks) {
		error_set(err, ERROR_MEMORY, "table of threads");
		return NULL;
	}
	tasks->proc_root = proc_root;
	tasks->ns_per_tick = 1000000000 / (uint64_t)(ticks > 0 ? ticks : 100);
	tasks->limit = limit;
	hash_table_init(&tasks->by_tid, limit);
	return tasks;
}

void perf_tasks_forget(struct perf_tasks *tasks)
{
	hash_table_clear(&tasks->by_tid);
	free(tasks->tasks);
	tasks->tasks = NULL;
	tasks->room = tasks->free_slot = 0;
}

void perf_tasks_free(struct perf_tasks *tasks)
{
	if (!tasks)
		return;
	hash_table_release(&tasks->by_tid);
	free(tasks->tasks);
	free(tasks);
}

/* --- the table --- */

static struct task *task_find(struct perf_tasks *tasks, uint32_t tid)
{
	HASH_TABLE_EACH(i, &tasks->by_tid, hash_word(0, tid))
		if (tasks->tasks[i].tid == tid)
			return &tasks->tasks[i];
	return NULL;
}

static bool slot_take(struct perf_tasks *tasks, uint32_t *slot)
{
	while (tasks->free_slot < tasks->room && tasks->tasks[tasks->free_slot].tid)
		tasks->free_slot++;
	if (tasks->free_slot == tasks->room) {
		const uint32_t known = tasks->room;

		if (!ARRAY_GROW(tasks->tasks, known, tasks->room))
			return false;
		memset(tasks->tasks + known, 0, (tasks->room - known) * sizeof *tasks->tasks);
	}
	*slot = tasks->free_slot;
	return true;
}

/* Pointers to others end here. NULL: no memory. */
static struct task *task_find_or_add(struct perf_tasks *tasks, uint32_t tid)
{
	struct task *task = task_find(tasks, tid);
	uint32_t slot;

	if (task)
		return task;
	if (tasks->by_tid.live >= tasks->limit)
		perf_tasks_forget(tasks);
	if (!slot_take(tasks, &slot) || !hash_table_add(&tasks->by_tid, hash_word(0, tid), slot))
		return NULL;
	tasks->tasks[slot] = (struct task){.tid = tid, .exec_id = ++tasks->execs};
	return &tasks->tasks[slot];
}

static void task_remove(struct perf_tasks *tasks, uint32_t tid)
{
	struct task *task = task_find(tasks, tid);
	uint32_t slot;

	if (!task)
		return;
	slot = (uint32_t)(task - tasks->tasks);
	hash_table_remove(&tasks->by_tid, hash_word(0, tid), slot);
	task->tid = 0;
	if (slot < tasks->free_slot)
		tasks->free_slot = slot;
}

static void sweep(struct perf_tasks *tasks, uint64_t time_ns)
{
	if (time_ns < tasks->swept_ns + KEEP_ENDED_MS * NS_PER_MS)
		return;
	tasks->swept_ns = time_ns;
	for (uint32_t i = 0; i < tasks->room; i++) {
		const struct task *task = &tasks->tasks[i];

		if (task->tid && task->ended_ns &&
		    task->ended_ns + KEEP_ENDED_MS * NS_PER_MS < time_ns)
			task_remove(tasks, task->tid);
	}
}

/* --- /proc --- */

static size_t proc_read(const struct perf_tasks *tasks, uint32_t tgid, uint32_t tid,
			const char *name, char *text, size_t room)
{
	char path[PATH_MAX];
	ssize_t length;
	int fd;

	text[0] = '\0';
	if (snprintf(path, sizeof path, "%s/%u/task/%u/%s", tasks->proc_root, tgid, tid, name) >=
	    (int)sizeof path)
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	length = read(fd, text, room - 1);
	close(fd);
	text[length > 0 ? length : 0] = '\0';
	return length > 0 ? (size_t)length : 0;
}

/* proc_pid_stat(5): the name in parentheses may hold anything. 0: not told. */
static uint64_t stat_start_ns(const char *stat, uint64_t ns_per_tick)
{
	const char *at = strrchr(stat, ')');
	int field = 2;

	for (; at && *at && field < STAT_FIELD_START_TIME; at++)
		field += *at == ' ';
	return at ? strtoull(at, NULL, 10) * ns_per_tick : 0;
}

static void name_set(char name[COMM_LENGTH], const char *text)
{
	size_t length = strcspn(text, "\n");

	memset(name, 0, COMM_LENGTH);
	memcpy(name, text, length < COMM_LENGTH ? length : COMM_LENGTH - 1);
}

/* What /proc shows may be of the pid's next owner already: then that began after the sample. */
static void process_look(const struct perf_tasks *tasks, struct task *leader, uint64_t time_ns)
{
	char text[1024];

	if (leader->is_looked_up || (leader->start_ns && leader->name[0]))
		return;
	leader->is_looked_up = true;
	if (!leader->start_ns) {
		uint64_t now = time_ns + boot_time_ns() - monotonic_ns();

		proc_read(tasks, leader->tid, leader->tid, "stat", text, sizeof text);
		leader->start_ns = stat_start_ns(text, tasks->ns_per_tick);
		if (!leader->start_ns || leader->start_ns > now) {
			leader->start_ns = now;
			return;
		}
	}
	if (!leader->name[0] &&
	    proc_read(tasks, leader->tid, leader->tid, "comm", text, sizeof text))
		name_set(leader->name, text);
}

/* --- events --- */

/* A process begins with the name of the thread that made it. */
static void note_fork(struct perf_tasks *tasks, const struct process_event *event)
{
	const struct task *parent = task_find(tasks, event->parent_tid);
	char name[COMM_LENGTH] = "";
	struct task *child;

	if (parent)
		memcpy(name, parent->name, sizeof name);
	task_remove(tasks, event->tgid);
	child = task_find_or_add(tasks, event->tgid);
	if (!child)
		return;
	child->start_ns = event->time_ns + boot_time_ns() - monotonic_ns();
	memcpy(child->name, name, sizeof child->name);
}

void perf_tasks_note(struct perf_tasks *tasks, const struct process_event *event)
{
	struct task *task;

	sweep(tasks, event->time_ns);
	switch (event->type) {
	case PROCESS_EVENT_FORK:
		note_fork(tasks, event);
		break;
	case PROCESS_EVENT_THREAD:
		task_remove(tasks, event->tid);
		break;
	case PROCESS_EVENT_THREAD_EXIT:
		task = task_find(tasks, event->tid);
		if (task)
			task->ended_ns = event->time_ns;
		break;
	case PROCESS_EVENT_EXEC:
		task = task_find_or_add(tasks, event->tgid);
		if (!task)
			break;
		task->exec_id = ++tasks->execs;
		memcpy(task->name, event->name, sizeof task->name);
		break;
	case PROCESS_EVENT_NAME:
		task = task_find_or_add(tasks, event->tid);
		if (task)
			memcpy(task->name, event->name, sizeof task->name);
		break;
	case PROCESS_EVENT_LOST:
		perf_tasks_forget(tasks);
		break;
	default:
		break;
	}
}

void perf_tasks_identify(struct perf_tasks *tasks, uint32_t tgid, uint32_t tid, uint64_t time_ns,
			 struct sample_event *event)
{
	struct task *leader = task_find_or_add(tasks, tgid), *thread;
	char text[64];

	event->tgid = tgid;
	event->tid = tid;
	if (!leader)
		return;
	process_look(tasks, leader, time_ns);
	if (leader->ended_ns) /* a main thread may end before the others */
		leader->ended_ns = time_ns;
	event->start_time_ns = leader->start_ns;
	event->exec_id = leader->exec_id;
	memcpy(event->process_comm, leader->name, sizeof event->process_comm);
	memcpy(event->comm, leader->name, sizeof event->comm);
	if (tid == tgid)
		return;
	thread = task_find_or_add(tasks, tid); /* leader may have moved */
	if (!thread)
		return;
	if (!thread->name[0]) {
		proc_read(tasks, tgid, tid, "comm", text, sizeof text);
		name_set(thread->name, text[0] ? text : event->process_comm);
	}
	memcpy(event->comm, thread->name, sizeof event->comm);
}
