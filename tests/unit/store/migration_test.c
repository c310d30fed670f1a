/* SPDX-License-Identifier: Apache-2.0 */
/* Files as every earlier version left them open, have the same samples and agents, and get their
 * roll-ups; also when the server is killed before or after any commit on the way there. */
#include "tests/check.h"

#include <sys/wait.h>

#include "symbol-server/store/sqlite/samples_store.h"
#include "symbol-server/store/sqlite/page_checksums.h"
#include "tests/unit/store/batches.h"
#include "tests/unit/store/kill_shims.h"

enum { REPORTS = 20, STACKS = 10 };

/* Every fourth point, others for each version; all of them take a minute (-DPOINT_STEP=1). */
#ifndef POINT_STEP
#define POINT_STEP 4
#endif

/* ---- what was sent ---- */

static int64_t start_ms; /* noon, two days ago */

static bool send_all(struct samples_store *store)
{
	bool ok = store;

	for (uint32_t number = 1; ok && number <= REPORTS; number++) {
		struct batch_counters *counters;
		struct batch_maker maker;

		batch_report(&maker, "h1", number % 2 ? "p1" : "p2", start_ms + number * 60000,
			     number, number, STACKS);
		maker.batch.profiles[0].is_counted = true;
		counters = &maker.batch.counters[maker.batch.counters_count++];
		*counters = (struct batch_counters){.agent_id = {1},
						    .host = text_from("h1"),
						    .agent_version = text_from("1"),
						    .kernel_release = text_from("1"),
						    .numbers.seq = number,
						    .numbers.acknowledged = number - 1,
						    .numbers.taken = (uint64_t)number * STACKS,
						    .numbers.time_ms = start_ms + number * 60000,
						    .numbers.received_ms = start_ms +
									   number * 60000 + 1};
		ok = add_and_wait(store, &maker, NULL, NULL);
		arena_release(&maker.arena);
	}
	return ok;
}

static bool is_whole(struct samples_store *store)
{
	const uint64_t all = REPORTS * STACKS;
	struct totals totals = query_totals(store, start_ms, start_ms + 3600000);

	return totals.samples == all && totals.stored == all && totals.taken == all &&
	       !totals.lost && agent_taken(store) == all;
}

/* ---- an earlier version ---- */

static void change(const char *path, const char *sql)
{
	sqlite3 *db;

	CHECK_NUMBER(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, page_checksums_vfs()),
		     SQLITE_OK);
	CHECK_NUMBER(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static int version_of(const char *path)
{
	sqlite3_stmt *get;
	sqlite3 *db;
	int version;

	CHECK_NUMBER(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, page_checksums_vfs()),
		     SQLITE_OK);
	sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &get, NULL);
	version = sqlite3_step(get) == SQLITE_ROW ? sqlite3_column_int(get, 0) : -1;
	sqlite3_finalize(get);
	sqlite3_close(db);
	return version;
}

static char day_path[256], agents_path[256];

static void set_paths(const char *directory)
{
	day_file_path(directory, (uint32_t)(start_ms / day_ms), day_path, sizeof day_path);
	snprintf(agents_path, sizeof agents_path, "%s/agents.db", directory);
}

static const struct {
	const char *what, *of_day, *of_agents; /* NULL: not changed */
} earlier[] = {
	{"days without traces", "DROP TABLE spans; PRAGMA user_version = 3", NULL},
	{"days without times of samples",
	 "DROP TABLE spans; DROP TABLE moments; PRAGMA user_version = 2", NULL},
	{"days without roll-ups",
	 "DROP TABLE spans; DROP TABLE moments; DROP TABLE rollups; DROP TABLE rollup_accounts; "
	 "DROP TABLE rollup_marks; PRAGMA user_version = 1",
	 NULL},
	{"agents without an order", NULL,
	 "ALTER TABLE agents DROP COLUMN heard; PRAGMA user_version = 2"},
	{"all as in the beginning",
	 "DROP TABLE spans; DROP TABLE moments; DROP TABLE rollups; DROP TABLE rollup_accounts; "
	 "DROP TABLE rollup_marks; PRAGMA user_version = 1",
	 "ALTER TABLE agents DROP COLUMN heard; ALTER TABLE agents DROP COLUMN stacks; "
	 "PRAGMA user_version = 1"},
};

/* A directory of that version; minutes only, as folded. */
static const char *make_earlier(unsigned number)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);

	if (store)
		sqlite_samples_of(store)->no_rollups = true;
	CHECK(send_all(store) && samples_fold(store, NULL));
	samples_close(store);
	set_paths(directory);
	if (earlier[number].of_day)
		change(day_path, earlier[number].of_day);
	if (earlier[number].of_agents)
		change(agents_path, earlier[number].of_agents);
	return directory;
}

/* False: it came to its end before that point. */
static bool kill_run(const char *directory, unsigned at)
{
	int status;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		struct samples_store *store;

		points = 0;
		kill_at = at;
		store = open_store(directory, NULL);
		if (!store || !is_whole(store) || !samples_fold(store, NULL) || !is_whole(store))
			_exit(2);
		samples_close(store);
		_exit(0);
	}
	waitpid(child, &status, 0);
	if (WIFEXITED(status))
		CHECK_NUMBER(WEXITSTATUS(status), 0);
	return WIFSIGNALED(status);
}

static void check_opened(const char *directory)
{
	struct samples_store *store = open_store(directory, NULL);
	struct samples_counters counters;

	CHECK(store && is_whole(store));
	CHECK(samples_fold(store, NULL) && is_whole(store));
	samples_counters(store, &counters);
	CHECK_NUMBER(counters.days_damaged, 0);
	CHECK_NUMBER(counters.rollup_lag_ms, 0);
	samples_close(store);
	CHECK_NUMBER(version_of(day_path), 4);
	CHECK_NUMBER(version_of(agents_path), 3);
}

int main(void)
{
	start_ms = (store_now_ms() / day_ms - 2) * day_ms + day_ms / 2;
	for (unsigned i = 0; i < sizeof earlier / sizeof *earlier; i++) {
		bool was_killed = true;
		unsigned at = i % POINT_STEP + 1, count = 0;

		printf("# %s\n", earlier[i].what);
		while (was_killed && at < 1000) {
			const char *directory = make_earlier(i);

			was_killed = kill_run(directory, at);
			check_opened(directory);
			remove_directory(directory);
			at += POINT_STEP;
			count += was_killed;
		}
		printf("# %u points\n", count);
		CHECK(!was_killed && at > 16);
	}
	return checks_done();
}
