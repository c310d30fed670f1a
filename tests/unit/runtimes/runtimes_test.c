/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes are followed, from their first sample to their end: real ones, without a kernel
 * side; what is asked of files goes to a parser of this test's own. */
#include "node-agent/runtimes/runtimes.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "node-agent/processes/process_files.h"
#include "node-agent/processes/processes.h"
#include "tests/check.h"

enum { PATIENCE_MS = 20000 };

static struct process_table *table;
static struct code_pages *pages;
static struct runtimes *runtimes;

/* Returns when it runs the program, and not this one any more. */
static pid_t start(const char *program, const char *argument, const char *text)
{
	int until_exec[2];
	char none;
	pid_t pid;

	if (pipe2(until_exec, O_CLOEXEC))
		return -1;
	pid = fork();
	if (!pid) {
		execl(program, program, argument, text, (char *)NULL);
		_exit(127);
	}
	close(until_exec[1]);
	while (read(until_exec[0], &none, 1) < 0)
		;
	close(until_exec[0]);
	return pid;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static struct process_key key_of(pid_t pid, uint32_t exec_id)
{
	return (struct process_key){(uint32_t)pid, exec_id, process_start_ns((uint32_t)pid)};
}

static void run_once(void)
{
	code_pages_set_time(pages, monotonic_ms());
	while (code_pages_next(pages))
		;
	runtimes_run(runtimes, monotonic_ms());
	usleep(1000);
}

/* As samples of it come; found, and not only expected. */
static bool is_located(const struct process_key *key, struct runtime_place *place)
{
	const int64_t end = monotonic_ms() + PATIENCE_MS;
	uint32_t version;

	while (monotonic_ms() < end) {
		processes_for_sample(process_table_processes(table), key, monotonic_ns());
		runtimes_sampled(runtimes, key);
		run_once();
		if (!runtimes_is_new(runtimes, key) &&
		    runtimes_place(runtimes, key, place, &version))
			return version >> 24 == 3;
	}
	return false;
}

static struct runtimes_counters counters(void)
{
	struct runtimes_counters now;

	runtimes_counters(runtimes, &now);
	return now;
}

/* Its file is asked about with its first sample, which would be of such frames. */
static void test_first_sample(void)
{
	pid_t pid = start("/usr/bin/python3", "-c", "while True: pass");
	const struct process_key key = key_of(pid, 1);
	const int64_t end = monotonic_ms() + PATIENCE_MS;
	uint64_t address = 0;
	struct runtime_place place;
	struct located_frame frame = {.place = PLACE_ASKED};
	struct process_mapping mappings[256];
	uint32_t generation, progress = runtimes_progress(runtimes);
	size_t count;

	while (process_cpu_ns(key.tgid) < 100000000 && monotonic_ms() < end)
		run_once(); /* what it has mapped is read once */
	processes_for_sample(process_table_processes(table), &key, monotonic_ns());
	CHECK(runtimes_is_new(runtimes, &key) && runtimes_is_unsure(runtimes, &key, &frame, 1));
	while (frame.place == PLACE_ASKED && monotonic_ms() < end) {
		count = process_table_mappings(table, &key, monotonic_ns(), mappings, 256,
					       &generation);
		for (size_t i = 0; i < count && !address; i++)
			address = mappings[i].executable < EXECUTABLE_ANONYMOUS &&
						  mappings[i].executable
					  ? mappings[i].start
					  : 0;
		process_table_locate(table, &key, monotonic_ns(), &address, 1, true, &frame);
		run_once();
	}
	CHECK_NUMBER(frame.place, PLACE_FILE);
	while (runtimes_is_unsure(runtimes, &key, &frame, 1) && monotonic_ms() < end)
		run_once();
	CHECK(!runtimes_is_unsure(runtimes, &key, &frame, 1) && runtimes_is_new(runtimes, &key));
	CHECK(runtimes_progress(runtimes) != progress);
	CHECK_NUMBER(runtimes_why(runtimes, &key, monotonic_ns()), MERGE_early);
	if (CHECK(is_located(&key, &place))) {
		CHECK(!runtimes_is_new(runtimes, &key));
		CHECK_NUMBER(runtimes_why(runtimes, &key, monotonic_ns()), MERGE_no_list);
	}
	processes_exit(process_table_processes(table), key.tgid, monotonic_ns());
	stop(pid);
}

static void test_life(void)
{
	struct processes *processes = process_table_processes(table);
	pid_t pid = start("/usr/bin/python3", "-c", "while True: pass");
	const struct process_key key = key_of(pid, 1);
	struct process_key child = {.tgid = 4000000, .exec_id = 1};
	struct runtime_place place = {0}, copied = {0};
	struct python_layout layout;
	uint32_t version;

	if (!CHECK(is_located(&key, &place))) {
		stop(pid);
		return;
	}
	CHECK_NUMBER(place.language, RUNTIME_CPYTHON);
	CHECK(place.start_time_ns == key.start_time_ns && place.exec_id == key.exec_id);
	CHECK_NUMBER(counters().places, 1);
	/* Which of its threads has the lock stands beside that. */
	CHECK(!place.current_at || runtimes_is_lock(runtimes, &key, place.current_at));
	CHECK(!runtimes_is_lock(runtimes, &key, 0));
	CHECK(!runtimes_is_lock(runtimes, &key, place.current_at + (1 << 24)));
	CHECK(!runtimes_is_lock(runtimes, &child, place.current_at));

	/* Its child has the same memory, and nobody has to look. */
	processes_fork(processes, child.tgid, key.tgid, monotonic_ns());
	CHECK_NUMBER(counters().places, 2);
	child.start_time_ns = clock_ns(CLOCK_BOOTTIME);
	processes_for_sample(processes, &child, monotonic_ns());
	runtimes_sampled(runtimes, &child);
	CHECK(runtimes_place(runtimes, &child, &copied, &version));
	CHECK(copied.thread_at == place.thread_at && copied.current_at == place.current_at);
	CHECK(!place.current_at || runtimes_is_lock(runtimes, &child, place.current_at));
	/* Another program has another memory. */
	processes_exec(processes, child.tgid, monotonic_ns());
	CHECK_NUMBER(counters().places, 1);
	CHECK(!runtimes_place(runtimes, &child, &copied, &version));

	processes_exit(processes, key.tgid, monotonic_ns());
	CHECK_NUMBER(counters().places, 0);
	CHECK(!runtimes_place(runtimes, &key, &place, &version));
	CHECK(runtimes_layout(runtimes, &key, &layout)); /* its samples may be named later */
	stop(pid);
}

/* One without an interpreter is looked at until its files are known, and no more. */
static void test_other(void)
{
	pid_t pid = start("/bin/sleep", "100", NULL);
	const struct process_key key = key_of(pid, 1);
	struct mapping_event mapping = {.tgid = key.tgid,
					.start = 0x7f0000000000,
					.length = 4096,
					.inode = 4711,
					.device_minor = 99,
					.path = "/nobody/has/this"};
	uint64_t looks;

	const uint32_t before = counters().processes;
	const int64_t end = monotonic_ms() + PATIENCE_MS;

	do {
		processes_for_sample(process_table_processes(table), &key, monotonic_ns());
		runtimes_sampled(runtimes, &key);
		run_once();
	} while (counters().processes > before && monotonic_ms() < end);
	CHECK_NUMBER(counters().processes, before);
	looks = counters().looks;
	for (int i = 0; i < 50; i++) {
		runtimes_sampled(runtimes, &key);
		run_once();
	}
	CHECK_NUMBER(counters().looks, looks);
	CHECK_NUMBER(runtimes_wait_ms(runtimes, monotonic_ms(), 200), 200);
	/* Until it maps a file that nothing is known of: some times, then such files are let be. */
	for (int i = 0; i < 8; i++) {
		mapping.time_ns = monotonic_ns();
		runtimes_mapping(runtimes, &mapping);
		for (int wait = 0; wait < 500 && counters().processes > before; wait++)
			run_once();
	}
	CHECK(counters().looks > looks && counters().looks <= looks + 60);
	stop(pid);
}

/* One that is an interpreter's is known by its files; where its threads have their frames is not
 * looked for. */
static void test_no_lists(void)
{
	pid_t pid = start("/usr/bin/python3", "-c", "while True: pass");
	const struct process_key key = key_of(pid, 1);
	const int64_t end = monotonic_ms() + PATIENCE_MS;
	struct python_layout layout;

	do {
		processes_for_sample(process_table_processes(table), &key, monotonic_ns());
		runtimes_sampled(runtimes, &key);
		run_once();
	} while (runtimes_is_new(runtimes, &key) && monotonic_ms() < end);
	CHECK(!runtimes_is_new(runtimes, &key));
	CHECK_NUMBER(counters().processes, 1);
	CHECK(!counters().places && !counters().located && !runtimes_layout(runtimes, &key, &layout));
	CHECK_NUMBER(runtimes_why(runtimes, &key, monotonic_ns()), MERGE_not_by_perf);
	CHECK_NUMBER(runtimes_wait_ms(runtimes, monotonic_ms(), 200), 200);
	stop(pid);
}

int main(int argc, char **argv)
{
	const struct row_pages_options options = {-1, -1, -1, 1 << 20};
	struct runtimes_sources from = {.places_map = -1, .pids_map = -1, .hotspots_map = -1};
	struct error err = {0};
	int status = file_parser_main(argc, argv);

	if (status >= 0)
		return status;
	log_set_level(LOG_ERROR);
	if (access("/usr/bin/python3", X_OK)) {
		SKIP("no python3 is installed");
		return checks_done();
	}
	from.table = table = process_table_new(&(struct process_table_limits){0}, "/proc", &err);
	from.pages = pages = code_pages_new(table, &options, &err);
	runtimes = runtimes_new(&from, &err);
	if (CHECK(table && pages && runtimes)) {
		test_first_sample();
		test_life();
		test_other();
	}
	runtimes_free(runtimes);
	from.has_no_lists = true;
	runtimes = runtimes_new(&from, &err);
	if (CHECK(runtimes))
		test_no_lists();
	runtimes_free(runtimes);
	code_pages_free(pages);
	process_table_free(table);
	return checks_done();
}
