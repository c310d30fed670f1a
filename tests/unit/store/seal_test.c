/* SPDX-License-Identifier: Apache-2.0 */
/* What a fold takes with it and what it leaves to the journal when the process is killed right
 * afterwards: groups that are being applied, definitions without samples, groups that failed. */
#include "tests/check.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

#include "symbol-server/store/sqlite/samples_store.h"
#include "tests/unit/store/batches.h"

/* ---- standing in for libraries ---- */

static atomic_bool is_held, is_slow; /* the commit thread: before it takes a group; all along it */
static atomic_bool is_sync_broken;   /* what is written gets there and is reported as an error */
static atomic_int commits_until_death; /* 0: any number */
static __thread bool is_commit_thread;

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

/* Everybody else sleeps: SQLite waits so for a lock that another thread holds. */
int usleep(useconds_t us)
{
	is_commit_thread = is_commit_thread || us == GROUP_WINDOW_US;
	while (is_commit_thread && is_held)
		nap();
	if (us != GROUP_WINDOW_US)
		nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000l}, NULL);
	return 0;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	static int (*real)(pthread_mutex_t *);
	int error;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_mutex_unlock");
	error = real(mutex);
	if (is_commit_thread && is_slow)
		nap();
	return error;
}

int fdatasync(int fd)
{
	errno = EIO;
	return is_sync_broken || fd < 0 ? -1 : 0;
}

/* Dies after a commit, before anybody hears of it. */
int sqlite3_exec(sqlite3 *db, const char *sql, sqlite3_callback fn, void *context, char **message)
{
	static int (*real)(sqlite3 *, const char *, sqlite3_callback, void *, char **);
	int code;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "sqlite3_exec");
	code = real(db, sql, fn, context, message);
	if (!strcmp(sql, "COMMIT") && commits_until_death && !--commits_until_death)
		raise(SIGKILL);
	return code;
}

/* ---- processes that end with SIGKILL ---- */

/* Whether fn() got so far that it was killed. */
static bool dies(void (*fn)(const char *directory), const char *directory)
{
	pid_t child = fork();
	int status;

	if (!child) {
		fn(directory);
		_exit(1);
	}
	waitpid(child, &status, 0);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* ---- a fold while a group is being applied ---- */

enum { GROUP_REPORTS = 300, SAMPLES = 10 };

static void fold_within_group(const char *directory)
{
	struct samples_store *store = open_store(directory, NULL);
	struct samples_counters counters = {0};
	struct batch_maker maker;

	is_held = true;
	for (uint32_t number = 1; number <= GROUP_REPORTS; number++) {
		batch_report(&maker, "h1", "a", noon, number, 1, SAMPLES);
		if (!samples_add(store, &maker.batch, NULL, NULL, NULL, NULL))
			_exit(2);
		arena_release(&maker.arena);
	}
	is_slow = true;
	is_held = false;
	while (!counters.samples)
		samples_counters(store, &counters);
	if (counters.samples == GROUP_REPORTS * SAMPLES)
		_exit(3); /* too late: this would test nothing */
	samples_fold(store, NULL);
	raise(SIGKILL);
}

static void test_fold_within_group(void)
{
	const char *directory = make_directory();
	struct samples_store *store;

	CHECK(dies(fold_within_group, directory));
	store = open_store(directory, NULL);
	CHECK_NUMBER(query_totals(store, noon, noon + 1).samples, GROUP_REPORTS * SAMPLES);
	for (uint32_t number = 1; number <= GROUP_REPORTS; number++)
		add_report(store, "h1", "a", noon, number, 1, SAMPLES);
	CHECK_NUMBER(query_totals(store, noon, noon + 1).samples, GROUP_REPORTS * SAMPLES);
	samples_close(store);
	remove_directory(directory);
}

/* ---- definitions of a day that has no samples yet ---- */

static const int64_t tomorrow = noon + 86400000;

/* So many records that the journal begins another segment. */
static bool fill_segment(struct samples_store *store)
{
	struct samples_counters counters;

	for (uint32_t number = 1000; number < 3000; number++) {
		if (!add_report(store, "h1", "a", noon, number, number * 800, 800))
			return false;
		samples_counters(store, &counters);
		if (counters.journal_bytes > JOURNAL_FILE_BYTES + (1 << 20))
			return true;
	}
	return false;
}

static void define_without_samples(const char *directory)
{
	struct samples_store *store = open_store(directory, NULL);
	struct batch_maker maker;
	struct error err = {0};

	/* refused, but its series has a number already, and the next record defines it */
	batch_report(&maker, "h1", "a", tomorrow, 1, 1, SAMPLES);
	maker.batch.profiles[0].type = "unheard-of";
	if (samples_add(store, &maker.batch, NULL, NULL, NULL, &err) || err.kind != ERROR_LIMIT)
		_exit(2);
	if (!fill_segment(store) || !samples_fold(store, NULL) ||
	    !add_report(store, "h1", "a", tomorrow, 2, 1, SAMPLES))
		_exit(3);
	raise(SIGKILL);
}

static void test_definitions_without_samples(void)
{
	const char *directory = make_directory();
	struct samples_store *store;

	CHECK(dies(define_without_samples, directory));
	store = open_store(directory, NULL);
	CHECK_NUMBER(query_totals(store, tomorrow, tomorrow + 1).samples, SAMPLES);
	samples_close(store);
	remove_directory(directory);
}

/* ---- groups that reach the disk and are reported as failed ---- */

static bool fail_report(struct samples_store *store, int64_t time_ms)
{
	bool ok;

	is_sync_broken = true;
	ok = add_report(store, "h1", "a", time_ms, 2, 1, SAMPLES);
	is_sync_broken = false;
	return !ok;
}

/* A report that failed lies before one that is folded: the day's file does not have it. */
static void fail_before_fold(const char *directory)
{
	struct samples_store *store = open_store(directory, NULL);

	if (!add_report(store, "h1", "a", noon, 1, 1, SAMPLES) || !samples_fold(store, NULL) ||
	    !fail_report(store, noon) || !add_report(store, "h1", "a", noon, 3, 1, SAMPLES))
		_exit(2);
	commits_until_death = 1;
	samples_fold(store, NULL);
}

/* Nor does agents.db have its id. */
static void fail_before_state(const char *directory)
{
	struct samples_store *store = open_store(directory, NULL);

	if (!add_report(store, "h1", "a", noon, 1, 1, SAMPLES) || !samples_fold(store, NULL) ||
	    !fail_report(store, tomorrow) || !add_report(store, "h1", "a", noon, 3, 1, SAMPLES))
		_exit(2);
	commits_until_death = 2;
	samples_fold(store, NULL);
}

/* Sent again it counts, and once; so do the others. */
static void test_failed_group(void (*fn)(const char *directory))
{
	const char *directory = make_directory();
	struct samples_store *store;

	CHECK(dies(fn, directory));
	for (int again = 0; again < 2; again++) {
		store = open_store(directory, NULL);
		for (uint32_t number = 1; number <= 3; number++)
			add_report(store, "h1", "a", number == 2 ? tomorrow : noon, number, 1,
				   SAMPLES);
		CHECK_NUMBER(query_totals(store, noon, tomorrow + 1).samples, 3 * SAMPLES);
		samples_close(store);
	}
	remove_directory(directory);
}

int main(void)
{
	test_fold_within_group();
	test_definitions_without_samples();
	test_failed_group(fail_before_fold);
	test_failed_group(fail_before_state);
	return checks_done();
}
