/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes publish, as processes of this test's own do, begin to, fork and end it; and how
 * much of it is kept. */
#include "node-agent/contexts/contexts.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "deploy/include/farflame_context.h"
#include "tests/check.h"

static const char *const keys[] = {"http.route"};
static int64_t now_ms;
static struct processes *processes;

static int open_process(void *context, const struct process_key *process)
{
	char path[32];

	(void)context;
	snprintf(path, sizeof path, "/proc/%u", process->tgid);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Any number is this process. */
static int open_self(void *context, const struct process_key *process)
{
	(void)context;
	(void)process;
	return open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static struct contexts *start(int (*open_one)(void *, const struct process_key *), size_t bytes)
{
	struct contexts_sources sources = {
		.open_process = open_one, .bytes_max = bytes, .places_map = -1};
	struct error err = {0};

	sources.processes = processes = processes_new(16384, &err);
	return contexts_new(&sources, &err);
}

static void stop(struct contexts *contexts)
{
	contexts_free(contexts);
	processes_free(processes);
}

static uint64_t now_ns(void)
{
	return (uint64_t)now_ms * 1000000;
}

static const struct process_context *sampled(struct contexts *contexts, uint32_t tgid,
					     uint32_t exec_id)
{
	const struct process_key key = {.tgid = tgid, .exec_id = exec_id};

	if (!processes_for_sample(processes, &key, now_ns()))
		CHECK(!"the registry has it");
	return contexts_sampled(contexts, &key);
}

/* What is known of the process once everything due has been looked at. */
static const struct process_context *known(struct contexts *contexts, uint32_t tgid,
					   uint32_t exec_id)
{
	sampled(contexts, tgid, exec_id);
	for (int i = 0; i < 4; i++)
		contexts_run(contexts, now_ms += 2000);
	return sampled(contexts, tgid, exec_id);
}

static void publish(const char *service)
{
	const struct farflame_attribute attribute = {"service.name", service};

	CHECK(farflame_context_publish(&attribute, 1, keys, 1));
}

static bool is_service(const struct process_context *context, const char *service)
{
	return context && context->attribute_count == 1 &&
	       !strcmp(context->attributes[0].value, service);
}

/* Each byte on the pipe is a step: publish, withdraw. */
static void child(int steps, int done)
{
	const struct farflame_attribute attribute = {"service.name", "child"};
	char step;

	while (read(steps, &step, 1) == 1) {
		if (step == 'p')
			farflame_context_publish(&attribute, 1, keys, 1);
		else
			farflame_context_published->version = 0;
		if (write(done, &step, 1) != 1)
			break;
	}
	_exit(0);
}

static void tell(int steps, int done, char step)
{
	CHECK(write(steps, &step, 1) == 1 && read(done, &step, 1) == 1);
}

static void test_life(void)
{
	struct contexts *contexts = start(open_process, 0);
	const uint32_t self = (uint32_t)getpid();
	struct contexts_counters counters;
	int steps[2], done[2];
	pid_t pid;

	CHECK(contexts && !pipe(steps) && !pipe(done));
	CHECK(!known(contexts, self, 1));
	publish("parent");
	CHECK(is_service(known(contexts, self, 1), "parent"));
	pid = fork();
	if (!pid) {
		close(steps[1]);
		child(steps[0], done[1]);
	}
	CHECK(!known(contexts, (uint32_t)pid, 1)); /* a child has not published */
	tell(steps[1], done[0], 'p');
	CHECK(is_service(known(contexts, (uint32_t)pid, 1), "child"));
	CHECK(is_service(known(contexts, self, 1), "parent"));
	tell(steps[1], done[0], 'w');
	CHECK(!known(contexts, (uint32_t)pid, 1));
	publish("another");
	CHECK(is_service(known(contexts, self, 1), "another"));
	contexts_counters(contexts, &counters);
	CHECK_NUMBER(counters.publishing, 1);
	/* The next program of a process is another one: nothing is known of it. */
	CHECK(!sampled(contexts, self, 2));
	close(steps[1]);
	waitpid(pid, NULL, 0);
	processes_exit(processes, (uint32_t)pid, now_ns());
	processes_exit(processes, self, now_ns());
	for (int i = 0; i < 12; i++)
		contexts_run(contexts, now_ms += 2000);
	contexts_counters(contexts, &counters);
	CHECK_NUMBER(counters.processes, 0);
	CHECK_NUMBER(counters.publishing, 0);
	stop(contexts);
}

static void test_bytes(void)
{
	enum { PROCESSES = 40, ROOM = 5 };
	const size_t one = sizeof(struct process_context) + 4096; /* the least of an arena */
	struct contexts *contexts = start(open_self, ROOM * one + 100);
	struct contexts_counters counters;
	unsigned kept = 0;

	publish("many");
	for (uint32_t i = 1; i <= PROCESSES; i++)
		kept += known(contexts, i, 1) != NULL;
	CHECK_NUMBER(kept, ROOM);
	contexts_counters(contexts, &counters);
	CHECK_NUMBER(counters.publishing, ROOM);
	CHECK(counters.refused >= PROCESSES - ROOM);
	for (uint32_t i = 1; i <= ROOM; i++)
		processes_exit(processes, i, now_ns());
	for (int i = 0; i < 60; i++) /* others have their room soon */
		contexts_run(contexts, now_ms += 2000);
	contexts_counters(contexts, &counters);
	CHECK_NUMBER(counters.publishing, ROOM);
	stop(contexts);
}

static unsigned opened;

static int open_none(void *context, const struct process_key *process)
{
	(void)context, (void)process;
	opened++;
	return -1;
}

/* What so many ends cost of processes that nobody knows, as most of a build host are. */
static int64_t ends_us(void)
{
	enum { ENDS = 20000 };
	struct timespec begin, end;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (uint32_t i = 0; i < ENDS; i++)
		processes_exit(processes, 1000000 + i, now_ns());
	clock_gettime(CLOCK_MONOTONIC, &end);
	return (end.tv_sec - begin.tv_sec) * 1000000 + (end.tv_nsec - begin.tv_nsec) / 1000;
}

/* A full table makes the end of a process no dearer; and each program of a process ends with it or
 * with the next one, wherever others have left gaps. */
static void test_many_ends(void)
{
	enum { PROCESSES = 2000, PROGRAMS = 4, LEFT = 3 };
	struct contexts *contexts = start(open_none, 0);
	struct contexts_counters counters;
	int64_t few, many;

	few = ends_us();
	for (uint32_t i = 0; i < PROCESSES * PROGRAMS; i++)
		sampled(contexts, 1 + i / PROGRAMS, i % PROGRAMS);
	contexts_counters(contexts, &counters);
	CHECK_NUMBER(counters.processes, PROCESSES * PROGRAMS);
	many = ends_us();
	printf("# us for 20000 ends: %lld with none, %lld with %d programs\n", (long long)few,
	       (long long)many, (int)PROCESSES * PROGRAMS);
	CHECK(many < 20 * few + 20000);
	for (uint32_t i = 1; i <= PROCESSES; i++)
		if (i > LEFT)
			processes_exit(processes, i, now_ns());
	for (int i = 0; i < 12; i++)
		contexts_run(contexts, now_ms += 2000);
	contexts_counters(contexts, &counters);
	CHECK_NUMBER(counters.processes, LEFT);
	CHECK(opened >= LEFT);
	opened = 0;
	for (uint32_t i = 1; i <= LEFT; i++)
		processes_exit(processes, i, now_ns());
	for (int i = 0; i < 12; i++)
		contexts_run(contexts, now_ms += 2000);
	contexts_counters(contexts, &counters);
	CHECK_NUMBER(counters.processes, 0);
	CHECK_NUMBER(opened, 0); /* at what has ended nobody looks */
	stop(contexts);
}

int main(void)
{
	test_life();
	test_bytes();
	test_many_ends();
	return checks_done();
}
