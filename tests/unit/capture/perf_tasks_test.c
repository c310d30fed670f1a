/* SPDX-License-Identifier: Apache-2.0 */
/* Stories of pids and what their samples are called; /proc is the real one for this process, and an
 * empty folder where nothing may be found. */
#include "node-agent/capture/perf_tasks.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/check.h"

#define SECOND UINT64_C(1000000000)

static struct perf_tasks *tasks;
static struct sample_event event;
static uint64_t t0, boot_offset;

static uint64_t clock_now(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

static void note(enum process_event_type type, uint64_t ms, uint32_t tgid, uint32_t tid,
		 uint32_t parent, const char *name)
{
	struct process_event noted = {.type = type,
				      .time_ns = t0 + ms * 1000000,
				      .tgid = tgid,
				      .tid = tid,
				      .parent_tgid = parent,
				      .parent_tid = parent};

	if (name)
		snprintf(noted.name, sizeof noted.name, "%s", name);
	perf_tasks_note(tasks, &noted);
}

static void identify(uint64_t ms, uint32_t tgid, uint32_t tid)
{
	event = (struct sample_event){0};
	perf_tasks_identify(tasks, tgid, tid, t0 + ms * 1000000, &event);
}

static void test_life(void)
{
	struct sample_event before;

	tasks = perf_tasks_new(100, "/nowhere", NULL);
	note(PROCESS_EVENT_NAME, 0, 50, 50, 0, "shell");
	note(PROCESS_EVENT_FORK, 10, 60, 60, 50, NULL);
	identify(12, 60, 60);
	CHECK_TEXT(event.comm, "shell");
	CHECK_TEXT(event.process_comm, "shell");
	CHECK_NUMBER(event.tgid, 60);
	CHECK((int64_t)(event.start_time_ns - (t0 + 10000000 + boot_offset)) / 1000000 == 0);
	before = event;
	identify(20, 60, 60);
	CHECK(event.start_time_ns == before.start_time_ns && event.exec_id == before.exec_id);

	note(PROCESS_EVENT_EXEC, 30, 60, 60, 0, "program");
	identify(31, 60, 60);
	CHECK_TEXT(event.process_comm, "program");
	CHECK_NUMBER(event.start_time_ns, before.start_time_ns);
	CHECK((int32_t)(event.exec_id - before.exec_id) > 0);
	before = event;

	note(PROCESS_EVENT_THREAD, 40, 60, 61, 60, NULL);
	identify(41, 60, 61);
	CHECK_TEXT(event.comm, "program"); /* nothing else is known of it */
	CHECK_NUMBER(event.exec_id, before.exec_id);
	note(PROCESS_EVENT_NAME, 42, 60, 61, 0, "worker");
	identify(43, 60, 61);
	CHECK_TEXT(event.comm, "worker");
	CHECK_TEXT(event.process_comm, "program");
	CHECK_NUMBER(event.tid, 61);

	/* the main thread ends before the other one, which goes on for long */
	note(PROCESS_EVENT_THREAD_EXIT, 50, 60, 60, 0, NULL);
	for (unsigned ms = 500; ms < 5000; ms += 500) {
		identify(ms, 60, 61);
		note(PROCESS_EVENT_NAME, ms, 7, 7, 0, "another");
	}
	CHECK_NUMBER(event.exec_id, before.exec_id);

	/* then all is over, and much later the pid is used again */
	note(PROCESS_EVENT_THREAD_EXIT, 5000, 60, 61, 0, NULL);
	identify(5000, 60, 61); /* late */
	CHECK_NUMBER(event.exec_id, before.exec_id);
	note(PROCESS_EVENT_FORK, 9000, 60, 60, 50, NULL);
	identify(9001, 60, 60);
	CHECK_TEXT(event.process_comm, "shell");
	CHECK(event.start_time_ns > before.start_time_ns + 8 * SECOND);
	CHECK((int32_t)(event.exec_id - before.exec_id) > 0);

	/* where events were lost, nothing old is believed */
	note(PROCESS_EVENT_LOST, 9100, 0, 0, 0, NULL);
	before = event;
	identify(9200, 60, 60);
	CHECK_TEXT(event.process_comm, "");
	CHECK((int32_t)(event.exec_id - before.exec_id) > 0);
	perf_tasks_free(tasks);
}

static void test_limit(void)
{
	struct sample_event first;

	tasks = perf_tasks_new(100, "/nowhere", NULL);
	identify(1, 1000, 1000);
	first = event;
	for (uint32_t pid = 1; pid < 500; pid++) {
		note(PROCESS_EVENT_FORK, 2, pid, pid, 1, NULL);
		identify(3, pid, pid);
		CHECK(event.start_time_ns != 0);
	}
	identify(4, 1000, 1000);
	CHECK((int32_t)(event.exec_id - first.exec_id) >
	      0); /* looked up afresh, never as an older one */
	perf_tasks_free(tasks);
	perf_tasks_free(NULL);
}

static uint32_t thread_id;
static pthread_barrier_t named, seen;

static void *thread_run(void *unused)
{
	thread_id = (uint32_t)syscall(SYS_gettid);
	prctl(PR_SET_NAME, "named (thread");
	pthread_barrier_wait(&named);
	pthread_barrier_wait(&seen);
	return unused;
}

/* What was there before anybody watched. This process' start time: field 22 of its stat, which
 * ps -o lstart would show; here it is between the times around its fork. */
static void test_proc(uint64_t started_after, uint64_t started_before)
{
	uint32_t pid = (uint32_t)getpid();
	pthread_t thread;

	prctl(PR_SET_NAME, ") tricky (");
	pthread_barrier_init(&named, NULL, 2);
	pthread_barrier_init(&seen, NULL, 2);
	pthread_create(&thread, NULL, thread_run, NULL);
	pthread_barrier_wait(&named);
	tasks = perf_tasks_new(100, "/proc", NULL);
	identify(0, pid, thread_id);
	CHECK_TEXT(event.process_comm, ") tricky (");
	CHECK_TEXT(event.comm, "named (thread");
	CHECK(event.start_time_ns + SECOND / 50 >= started_after);
	CHECK(event.start_time_ns <= started_before);
	/* a pid whose owner began after the sample is another's */
	t0 -= 10 * SECOND;
	perf_tasks_forget(tasks);
	identify(0, pid, pid);
	identify(1, pid, pid);
	CHECK_TEXT(event.process_comm, "");
	pthread_barrier_wait(&seen);
	pthread_join(thread, NULL);
	perf_tasks_free(tasks);
}

/* In a child, whose start is known from both sides. */
static int in_child(uint64_t started_after)
{
	t0 = clock_now(CLOCK_MONOTONIC);
	boot_offset = clock_now(CLOCK_BOOTTIME) - t0;
	test_life();
	test_limit();
	test_proc(started_after, t0 + boot_offset);
	return checks_done();
}

int main(void)
{
	uint64_t before = clock_now(CLOCK_BOOTTIME);
	int pipes[2], status = 1;

	if (pipe(pipes) != 0)
		return 1;
	if (!fork()) {
		status = in_child(before);
		fflush(stdout);
		if (write(pipes[1], &status, sizeof status) != sizeof status)
			_exit(1);
		_exit(0);
	}
	close(pipes[1]);
	if (read(pipes[0], &status, sizeof status) != sizeof status)
		status = 1;
	return status;
}
