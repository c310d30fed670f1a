/* SPDX-License-Identifier: Apache-2.0 */
/* taken = samples + lost, whatever gets lost or starts anew (schema/README.md); and how long days
 * are kept. */
#include "tests/check.h"

#include <sys/wait.h>

#include "symbol-server/store/sqlite/samples_store.h"
#include "symbol-server/store/sqlite/page_checksums.h"
#include "tests/unit/store/batches.h"

static const int64_t minute = 60000;

struct agent { /* a simulated agent's cumulative counters */
	uint8_t id;
	uint64_t seq, acknowledged, taken, idle, ring_full, queue;
	uint64_t complete, no_table; /* stacks; 0: it does not send it */
};

static void add_stacks(struct batch_counters *counters, const char *name, uint64_t count)
{
	unsigned *used = &counters->numbers.stacks_count;

	counters->stacks[*used] = text_from(name);
	counters->numbers.stacks[*used] = count;
	*used += count != 0;
}

/* A report of one process with that many samples and the agent's counters as they are now. */
static void make_report(struct batch_maker *maker, const struct agent *agent, uint32_t samples,
			int64_t time_ms)
{
	struct batch_counters *counters;

	batch_start(maker);
	if (samples) {
		batch_profile(maker, batch_series(maker, "h1", "app"), time_ms,
			      agent->id * 1000 + (uint32_t)agent->seq, 0)
			->is_counted = true;
		batch_sample(maker, batch_stack(maker, 1, 3), "main", samples, samples * 10);
	}
	counters = &maker->batch.counters[maker->batch.counters_count++];
	counters->agent_id[0] = agent->id;
	counters->host = text_from("h1");
	counters->agent_version = text_from("0.1.0");
	counters->kernel_release = text_from("6.1.0");
	counters->numbers.rate_hz = 19;
	counters->numbers.seq = agent->seq;
	counters->numbers.acknowledged = agent->acknowledged;
	counters->numbers.taken = agent->taken;
	counters->numbers.idle = agent->idle;
	counters->lost[0] = text_from("ring_full");
	counters->numbers.lost[0] = agent->ring_full;
	counters->lost[1] = text_from("queue");
	counters->numbers.lost[1] = agent->queue;
	counters->numbers.lost_count = 2;
	add_stacks(counters, "complete", agent->complete);
	add_stacks(counters, "no_table", agent->no_table);
	counters->numbers.time_ms = time_ms;
	counters->numbers.duration_ms = 10000;
	counters->numbers.received_ms = time_ms + 10500;
}

/* One interval: so many taken, of which ring_full never left the kernel. lost: the report does not
 * arrive and is dropped later. */
static bool interval(struct samples_store *store, struct agent *agent, uint32_t taken,
		     uint32_t ring_full, bool lost, int64_t time_ms)
{
	struct batch_maker maker;
	bool ok = true;

	agent->seq++;
	agent->taken += taken;
	agent->ring_full += ring_full;
	agent->idle += 5;
	if (lost) {
		agent->queue += taken - ring_full;
		return true;
	}
	make_report(&maker, agent, taken - ring_full, time_ms);
	ok = add_and_wait(store, &maker, NULL, NULL);
	arena_release(&maker.arena);
	agent->acknowledged = agent->seq;
	return ok;
}

static void check_closes(struct samples_store *store, uint64_t taken, uint64_t samples,
			 uint64_t lost)
{
	struct totals totals = query_totals(store, noon - 60 * minute, noon + 60 * minute);

	CHECK_NUMBER(totals.taken, taken);
	CHECK_NUMBER(totals.stored, samples);
	CHECK_NUMBER(totals.samples, samples);
	CHECK_NUMBER(totals.lost, lost);
}

static void test_deltas(void)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	struct agent agent = {.id = 1}, second = {.id = 2};
	struct agent_state *agents;
	struct batch_maker maker;
	struct arena arena;
	unsigned duplicates;
	size_t count;

	CHECK(interval(store, &agent, 100, 0, false, noon));
	check_closes(store, 100, 100, 0);
	CHECK(interval(store, &agent, 100, 7, false, noon + 10000));
	check_closes(store, 200, 193, 7);
	/* a report that never arrives: the next one's totals have it */
	CHECK(interval(store, &agent, 50, 0, true, noon + 20000));
	CHECK(interval(store, &agent, 100, 0, false, noon + 30000));
	check_closes(store, 350, 293, 57);
	/* the same report again: its answer got lost */
	make_report(&maker, &agent, 100, noon + 30000);
	CHECK(add_and_wait(store, &maker, &duplicates, NULL));
	CHECK_NUMBER(duplicates, 1);
	arena_release(&maker.arena);
	check_closes(store, 350, 293, 57);
	/* the server starts again, folded or not */
	CHECK(samples_fold(store, NULL));
	samples_close(store);
	store = open_store(directory, NULL);
	CHECK(interval(store, &agent, 10, 1, false, noon + 40000));
	check_closes(store, 360, 302, 58);
	/* the agent starts again: a new id counts from zero */
	CHECK(interval(store, &second, 20, 2, false, noon + 50000));
	check_closes(store, 380, 320, 60);
	/* an older report comes late: its counts were in the newer one's */
	second.seq -= 1;
	second.taken -= 5;
	make_report(&maker, &second, 0, noon + 50000);
	CHECK(add_and_wait(store, &maker, NULL, NULL));
	arena_release(&maker.arena);
	check_closes(store, 380, 320, 60);
	arena_init(&arena, 1 << 20);
	CHECK(samples_agents(store, 1, &arena, &agents, &count, NULL));
	CHECK_NUMBER(count, 1); /* one host, its latest start */
	CHECK_TEXT(agents[0].host, "h1");
	CHECK_NUMBER(agents[0].taken, 20);
	CHECK_NUMBER(agents[0].lost, 2);
	CHECK_NUMBER(agents[0].lag_ms, 500);
	CHECK_TEXT(agents[0].version, "0.1.0");
	arena_release(&arena);
	samples_close(store);
	remove_directory(directory);
}

/* "complete 5 no_table 1 " of the only agent. */
static void check_stacks(struct samples_store *store, const char *want)
{
	struct agent_state *agents;
	struct arena arena;
	size_t count = 0;
	char text[200] = "";

	arena_init(&arena, 1 << 20);
	CHECK(samples_agents(store, 1, &arena, &agents, &count, NULL));
	CHECK_NUMBER(count, 1);
	for (unsigned i = 0; count == 1 && i < agents[0].stacks_count; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%s %d ",
			 agents[0].stacks[i].name, (int)agents[0].stacks[i].count);
	CHECK_TEXT(text, want);
	arena_release(&arena);
}

static void check_walks(struct samples_store *store, const char *name, uint64_t want)
{
	struct samples_counters counters;
	uint64_t found = UINT64_MAX;

	samples_counters(store, &counters);
	for (unsigned i = 0; i < counters.walk_count; i++)
		if (!strcmp(counters.walks[i].name, name))
			found = counters.walks[i].count;
	CHECK_NUMBER(found, want);
}

/* How walks ended: per start of an agent as it says, summed over all since the server's start;
 * known again after a fold, and after a kill from the journal. */
static void test_stacks(void)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	struct agent agent = {.id = 1}, second = {.id = 2};
	struct agent known = {.id = 3, .seq = 500, .acknowledged = 499, .complete = 9000};
	pid_t child;
	int status;

	CHECK(interval(store, &agent, 10, 0, false, noon));
	check_stacks(store, "");
	agent.complete = 5;
	CHECK(interval(store, &agent, 10, 0, false, noon + 10000));
	check_stacks(store, "complete 5 ");
	agent.complete = 11;
	agent.no_table = 2; /* a name it did not send before */
	CHECK(interval(store, &agent, 10, 0, false, noon + 20000));
	check_stacks(store, "complete 11 no_table 2 ");
	check_walks(store, "complete", 11);
	agent.complete = 3; /* an older report, late */
	CHECK(interval(store, &agent, 0, 0, false, noon + 20000));
	check_stacks(store, "complete 11 no_table 2 ");
	agent.complete = 11;
	CHECK(samples_fold(store, NULL));
	samples_close(store);
	store = open_store(directory, NULL);
	check_stacks(store, "complete 11 no_table 2 ");
	agent.complete = 20;
	CHECK(interval(store, &agent, 10, 0, false, noon + 30000));
	check_walks(store, "complete", 9); /* since this start */
	second.complete = 1; /* another start counts from zero; the host's latest is shown */
	CHECK(interval(store, &second, 10, 0, false, noon + 40000));
	check_stacks(store, "complete 1 ");
	check_walks(store, "complete", 10);
	/* of an agent heard before, by a server that forgot it, what was before is not counted */
	CHECK(interval(store, &known, 10, 0, false, noon + 50000));
	check_stacks(store, "complete 9000 ");
	check_walks(store, "complete", 10);
	samples_close(store);
	child = fork();
	if (!child) { /* ends without folding */
		store = open_store(directory, NULL);
		known.complete = 9001;
		known.no_table = 7;
		_exit(!interval(store, &known, 10, 0, false, noon + 51000));
	}
	waitpid(child, &status, 0);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	store = open_store(directory, NULL);
	check_stacks(store, "complete 9001 no_table 7 ");
	samples_close(store);
	remove_directory(directory);
}

/* Counters as they were written before they had what they have now. */
static void test_old_record(void)
{
	struct record_counters counters = {.tenant = 1, .numbers = {.taken = 7, .lost_count = 1}};
	struct buffer record, scratch;
	struct record_item item;
	const uint8_t *at;

	buffer_init(&record, 4096);
	buffer_init(&scratch, 4096);
	record_add_counters(&record, &scratch, &counters);
	at = record.bytes;
	CHECK(record_next(&at, record.bytes + record.length, &item));
	CHECK_NUMBER(item.counters.numbers.stacks_count, 0);
	/* Its length without the time reported, when it was sent, and the count of stacks: what
	 * servers came to write one after the other. */
	for (unsigned shorter = 2; shorter <= 4; shorter++) {
		record.bytes[1] -= shorter == 2 ? 2 : 1;
		at = record.bytes;
		CHECK(record_next(&at, record.bytes + record.length - shorter, &item));
		CHECK_NUMBER(item.kind, RECORD_COUNTERS);
		CHECK_NUMBER(item.counters.numbers.taken, 7);
		CHECK_NUMBER(item.counters.numbers.lost_count, 1);
		CHECK_NUMBER(item.counters.numbers.stacks_count, 0);
		CHECK_NUMBER(item.counters.numbers.duration_ms, 0);
	}
	buffer_release(&record);
	buffer_release(&scratch);
}

/* agents.db of a version before: its agents are known, and their stacks come with the next report.
 */
static void test_old_file(void)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	struct agent agent = {.id = 1};
	char path[400];
	sqlite3 *db;

	CHECK(interval(store, &agent, 10, 1, false, noon));
	CHECK(samples_fold(store, NULL));
	samples_close(store);
	snprintf(path, sizeof path, "%s/agents.db", directory);
	CHECK(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, page_checksums_vfs()) == SQLITE_OK);
	CHECK(sqlite3_exec(db,
			   "ALTER TABLE agents DROP COLUMN heard;"
			   "ALTER TABLE agents DROP COLUMN stacks; PRAGMA user_version = 1",
			   NULL, NULL, NULL) == SQLITE_OK);
	sqlite3_close(db);
	store = open_store(directory, NULL);
	check_stacks(store, "");
	agent.complete = 4;
	CHECK(interval(store, &agent, 10, 1, false, noon + 10000));
	check_stacks(store, "complete 4 ");
	check_closes(store, 20, 18, 2);
	samples_close(store);
	remove_directory(directory);
}

/* A server that never heard of an agent that was heard before: nothing is made up. */
static void test_new_server(void)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	struct agent agent = {
		.id = 3, .seq = 500, .acknowledged = 499, .taken = 90000, .ring_full = 77};

	CHECK(interval(store, &agent, 100, 0, false, noon));
	check_closes(store, 100, 100, 0);
	CHECK(interval(store, &agent, 100, 4, false, noon + 10000));
	check_closes(store, 200, 196, 4);
	samples_close(store);
	remove_directory(directory);
}

/* What the host's agent took, lost and when it was heard. */
static void check_agent(struct samples_store *store, uint64_t taken, uint64_t lost,
			int64_t last_seen_ms)
{
	struct agent_state *agents;
	struct arena arena;
	size_t count = 0;

	arena_init(&arena, 1 << 20);
	CHECK(samples_agents(store, 1, &arena, &agents, &count, NULL));
	CHECK_NUMBER(count, 1);
	if (count == 1) {
		CHECK_NUMBER(agents[0].taken, taken);
		CHECK_NUMBER(agents[0].lost, lost);
		CHECK_NUMBER(agents[0].last_seen_ms, last_seen_ms);
	}
	arena_release(&arena);
}

/* The server's clock is set back between the runs of a host's agent, or was ahead until the machine
 * started again: the run heard last is shown, also when something old of another comes once more,
 * after a fold and after a kill. Nothing counts twice. */
static void test_clock_set_back(void)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	struct agent first = {.id = 1}, second = {.id = 2}, third = {.id = 3}, fourth = {.id = 4};
	struct batch_maker maker;
	unsigned duplicates;
	pid_t child;
	int status;

	CHECK(interval(store, &first, 100, 1, false, noon + 30 * minute));
	CHECK(interval(store, &second, 20, 2, false, noon));
	check_agent(store, 20, 2, noon + 10500);
	/* of the first one the same report again, whose answer was lost */
	make_report(&maker, &first, 99, noon + 30 * minute);
	CHECK(add_and_wait(store, &maker, &duplicates, NULL));
	CHECK_NUMBER(duplicates, 1);
	arena_release(&maker.arena);
	check_agent(store, 20, 2, noon + 10500);
	check_closes(store, 120, 117, 3);
	samples_close(store);
	store = open_store(directory, NULL);
	check_agent(store, 20, 2, noon + 10500);
	samples_close(store);
	child = fork();
	if (!child) { /* ends without folding */
		store = open_store(directory, NULL);
		_exit(!interval(store, &third, 30, 3, false, noon - 20 * minute) ||
		      !interval(store, &second, 5, 0, true, noon) ||
		      !interval(store, &fourth, 40, 4, false, noon - 40 * minute));
	}
	waitpid(child, &status, 0);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	store = open_store(directory, NULL);
	check_agent(store, 40, 4, noon - 40 * minute + 10500);
	check_closes(store, 190, 180, 10);
	/* two agents on one host: the one that is alive */
	CHECK(interval(store, &second, 10, 0, false, noon - 39 * minute));
	check_agent(store, 30, 2, noon - 39 * minute + 10500);
	/* its clock is right again: heard now, not when the wrong clock said */
	CHECK(interval(store, &first, 10, 0, false, noon - 38 * minute));
	check_agent(store, 110, 1, noon - 38 * minute + 10500);
	samples_close(store);
	remove_directory(directory);
}

/* Killed between any two steps and started again, in a process of its own each time. */
static void test_replay(void)
{
	const char *directory = make_directory();
	struct samples_store *store;
	struct agent agent = {.id = 4};

	for (int round = 0; round < 6; round++) {
		pid_t child = fork();
		int status;

		if (!child) {
			store = open_store(directory, NULL);
			if (!interval(store, &agent, 30, 3, false, noon + round * 10000))
				_exit(1);
			if (round % 2 && !samples_fold(store, NULL))
				_exit(2);
			_exit(0);
		}
		waitpid(child, &status, 0);
		CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
		agent.seq++;
		agent.taken += 30;
		agent.ring_full += 3;
		agent.idle += 5;
		agent.acknowledged = agent.seq;
	}
	store = open_store(directory, NULL);
	check_closes(store, 180, 162, 18);
	CHECK_NUMBER(query_totals(store, noon, noon + minute).idle, 30);
	samples_close(store);
	remove_directory(directory);
}

static unsigned count_files(const char *directory)
{
	DIR *open_directory = opendir(directory);
	struct dirent *entry;
	unsigned count = 0;
	uint32_t day;

	while (open_directory && (entry = readdir(open_directory)))
		count += day_file_parse(entry->d_name, &day);
	closedir(open_directory);
	return count;
}

static void test_retention(void)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	int64_t now = store_now_ms();

	for (int i = 0; i < 6; i++)
		CHECK(add_report(store, "h1", "a", now - i * 86400000ll, (uint32_t)i + 1, 1, 10));
	CHECK(samples_fold(store, NULL));
	CHECK_NUMBER(count_files(directory), 6);
	samples_close(store);

	store = samples_open(&(struct samples_store_options){.directory = directory,
							     .keep_ms = {3 * 86400000ll}},
			     NULL);
	CHECK(samples_fold(store, NULL));
	CHECK_NUMBER(count_files(directory), 4); /* today, two whole days and the one begun */
	/* The file that begins too early has samples that are not kept and not answered. */
	CHECK_NUMBER(query_totals(store, now - 30 * 86400000ll, now + 1).samples, 30);
	samples_close(store);

	/* less than one file: only today stays */
	store = samples_open(
		&(struct samples_store_options){.directory = directory, .max_disk_bytes = 1}, NULL);
	CHECK(samples_fold(store, NULL));
	CHECK_NUMBER(count_files(directory), 1);
	CHECK_NUMBER(query_totals(store, now - 30 * 86400000ll, now + 1).samples, 10);
	samples_close(store);
	remove_directory(directory);
}

/* The time that reports stand for, by the step in which they began. */
static void check_reported(struct samples_store *store, const char *type, uint64_t first_ms,
			   uint64_t second_ms, uint64_t second_lost)
{
	struct samples_query query = {.tenant = 1,
				      .from_ms = noon,
				      .until_ms = noon + 2 * minute,
				      .type = type,
				      .step_ms = minute};
	struct samples_timeline *line = samples_timeline(store, &query, NULL);
	struct samples_result *result = samples_query(store, &query, NULL);

	if (!CHECK(line && result))
		return;
	CHECK_NUMBER(line->hosts[0].reported_ms, first_ms + second_ms);
	CHECK_NUMBER(result->hosts[0].reported_ms, first_ms + second_ms);
	CHECK_NUMBER(line->host_step_count, 2);
	CHECK_NUMBER(result->host_step_count, 2);
	if (line->host_step_count == 2) {
		CHECK_NUMBER(line->host_steps[0].time_ms, noon);
		CHECK_NUMBER(line->host_steps[0].reported_ms, first_ms);
		CHECK_NUMBER(line->host_steps[1].time_ms, noon + minute);
		CHECK_NUMBER(line->host_steps[1].reported_ms, second_ms);
		CHECK_NUMBER(line->host_steps[1].lost, second_lost);
	}
	samples_timeline_free(line);
	samples_result_free(result);
}

static void test_reported_time(void)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	struct agent agent = {.id = 1}, second = {.id = 2};
	struct batch_maker maker;

	for (int i = 0; i < 6; i++)
		CHECK(interval(store, &agent, 100, 0, false, noon + i * 10000));
	/* the running minute: two reports so far, and samples of another type */
	CHECK(interval(store, &agent, 100, 30, false, noon + minute));
	CHECK(interval(store, &agent, 100, 0, false, noon + minute + 10000));
	batch_start(&maker);
	batch_profile(&maker, batch_series(&maker, "h1", "app"), noon, 9999, 0)->type = "off-cpu";
	batch_sample(&maker, batch_stack(&maker, 1, 3), "main", 1, 1);
	CHECK(add_and_wait(store, &maker, NULL, NULL));
	arena_release(&maker.arena);
	check_reported(store, "on-cpu", 60000, 20000, 30);
	/* a report heard twice is one */
	make_report(&maker, &agent, 100, noon + minute + 10000);
	CHECK(add_and_wait(store, &maker, NULL, NULL));
	arena_release(&maker.arena);
	/* another agent of the same host, for a part of the same time */
	CHECK(interval(store, &second, 10, 0, false, noon + minute + 5000));
	check_reported(store, "on-cpu", 60000, 20000, 30);
	check_reported(store, "off-cpu", 60000, 20000, 0);
	CHECK(samples_fold(store, NULL));
	check_reported(store, "on-cpu", 60000, 20000, 30);
	check_reported(store, "off-cpu", 60000, 20000, 0);
	check_closes(store, 810, 780, 30);
	samples_close(store);
	store = open_store(directory, NULL);
	check_reported(store, "on-cpu", 60000, 20000, 30);
	samples_close(store);
	remove_directory(directory);
}

int main(void)
{
	test_deltas();
	test_reported_time();
	test_new_server();
	test_stacks();
	test_clock_set_back();
	test_old_record();
	test_old_file();
	test_replay();
	test_retention();
	return checks_done();
}
