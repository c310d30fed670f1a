/* SPDX-License-Identifier: Apache-2.0 */
/* A disk that takes its time, or takes nothing: who adds samples does not wait for files that go,
 * are measured or are read for late samples; and however often folding fails, what waits is not
 * forgotten. */
#include "tests/check.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "symbol-server/store/sqlite/samples_store.h"
#include "tests/unit/store/batches.h"

enum {
	SLOW_MS = 1500,
	WAIT_MAX_MS = SLOW_MS / 2, /* of who adds; without the disk it is far less than one */
	OLD_DAYS = 2,
	GENERATIONS = 70,
};

/* ---- the disk ---- */

static atomic_bool slow_unlink, slow_stat, slow_open, slow_rename, slow_sync, fails_open;
static atomic_uint slowed;

static bool is_days(const char *path)
{
	size_t length = strlen(path);

	return strstr(path, "/samples-") && length > 3 && !strcmp(path + length - 3, ".db");
}

static void slow(atomic_bool *is, const char *path)
{
	if (!*is || !is_days(path))
		return;
	slowed++;
	usleep(SLOW_MS * 1000);
}

int unlink(const char *path)
{
	static _Thread_local int (*real)(const char *);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "unlink");
	slow(&slow_unlink, path);
	return real(path);
}

int rename(const char *from, const char *to)
{
	static _Thread_local int (*real)(const char *, const char *);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "rename");
	slow(&slow_rename, to);
	return real(from, to);
}

int fdatasync(int fd)
{
	static _Thread_local int (*real)(int);
	char link[40], path[4096] = "";

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "fdatasync");
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	if (slow_sync && readlink(link, path, sizeof path - 1) > 0)
		slow(&slow_sync, path);
	return real(fd);
}

int stat(const char *restrict path, struct stat *restrict status)
{
	static _Thread_local int (*real)(const char *, struct stat *);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "stat");
	slow(&slow_stat, path);
	return real(path, status);
}

int open64(const char *path, int flags, ...)
{
	static _Thread_local int (*real)(const char *, int, ...);
	va_list more;
	mode_t mode;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "open64");
	va_start(more, flags);
	mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
	va_end(more);
	slow(&slow_open, path);
	if (fails_open && is_days(path)) {
		errno = ENOSPC;
		return -1;
	}
	return real(path, flags, mode);
}

/* ---- who adds ---- */

static int64_t monotonic_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static struct samples_store *store;
static atomic_uint reports;

static bool add(int64_t time_ms)
{
	reports++;
	return add_report(store, "h", "p", time_ms, reports, 1000 + reports % 50, 3);
}

struct task {
	pthread_t thread;
	atomic_bool is_done;
	bool (*run)(void);
};

static void *run_task(void *context)
{
	struct task *task = context;

	CHECK(task->run());
	task->is_done = true;
	return NULL;
}

/* Reports of today while the task runs; the longest that one of them took to be taken. */
static int64_t longest_beside(bool (*run)(void))
{
	struct task task = {.run = run};
	int64_t longest = 0;
	bool ok = true;

	pthread_create(&task.thread, NULL, run_task, &task);
	while (!task.is_done) {
		struct waiter waiter = {
			PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, {0}};
		struct batch_maker maker;
		int64_t began;

		reports++;
		batch_report(&maker, "h", "p", store_now_ms(), reports, reports % 50, 3);
		began = monotonic_ms();
		ok &= samples_add(store, &maker.batch, waiter_done, &waiter, NULL, NULL);
		began = monotonic_ms() - began;
		longest = began > longest ? began : longest;
		pthread_mutex_lock(&waiter.lock);
		while (ok && !waiter.done)
			pthread_cond_wait(&waiter.wake, &waiter.lock);
		pthread_mutex_unlock(&waiter.lock);
		arena_release(&maker.arena);
		usleep(10000);
	}
	pthread_join(task.thread, NULL);
	CHECK(ok);
	return longest;
}

static struct samples_store *open_keeping(const char *directory, int64_t keep_ms,
					  int64_t sums_keep_ms)
{
	struct samples_store_options options = {.directory = directory,
						.keep_ms = {keep_ms, sums_keep_ms}};

	return samples_open(&options, NULL);
}

static bool fold(void)
{
	return samples_fold(store, NULL);
}

static void test_files_go(const char *directory)
{
	struct samples_counters counters;
	int64_t now_ms = store_now_ms();

	store = open_keeping(directory, 0, 0);
	for (int64_t i = 1; i <= OLD_DAYS; i++)
		CHECK(add(now_ms - (10 + i) * day_ms));
	CHECK(add(now_ms) && fold());
	samples_close(store);
	slowed = 0;
	slow_unlink = true;
	store = open_keeping(directory, 5 * day_ms, 0);
	CHECK(longest_beside(fold) < WAIT_MAX_MS);
	slow_unlink = false;
	CHECK_NUMBER(slowed, OLD_DAYS);
	samples_counters(store, &counters);
	CHECK_NUMBER(counters.days_deleted, OLD_DAYS);
	slowed = 0;
	slow_stat = true;
	CHECK(longest_beside(fold) < WAIT_MAX_MS);
	slow_stat = false;
	CHECK(slowed > 0);
	samples_close(store);
}

static bool add_late(void)
{
	return add(store_now_ms() - 3 * day_ms);
}

static void test_late(const char *directory)
{
	store = open_keeping(directory, 0, 0);
	CHECK(add_late() && fold());
	samples_close(store);
	store = open_keeping(directory, 0, 0);
	CHECK(add(store_now_ms()));
	slowed = 0;
	slow_open = true;
	CHECK(longest_beside(add_late) < WAIT_MAX_MS);
	slow_open = false;
	CHECK(slowed > 0);
	samples_close(store);
}

static bool has_dictionary(uint32_t number)
{
	struct sqlite_samples *inner = sqlite_samples_of(store);
	struct day *day;
	bool has;

	store_lock_days(inner);
	day = store_find_day(inner, number);
	has = day && day->catalog;
	store_unlock_days(inner);
	return has;
}

static bool wait_reduced(void)
{
	struct samples_counters counters = {0};

	for (unsigned i = 0; !counters.days_reduced && i < 3000; i++) {
		usleep(10000);
		samples_counters(store, &counters);
	}
	return counters.days_reduced;
}

/* A file that was written anew takes its name. */
static void test_names(const char *directory)
{
	store = open_keeping(directory, 0, 0);
	CHECK(add_late() && add(store_now_ms()) && fold());
	samples_close(store);
	slowed = 0;
	slow_rename = true;
	store = open_keeping(directory, 2 * day_ms, 400 * day_ms);
	CHECK(longest_beside(wait_reduced) < WAIT_MAX_MS);
	slow_rename = false;
	CHECK_NUMBER(slowed, 1);
	samples_close(store);
}

static bool forget(void)
{
	store_tidy(sqlite_samples_of(store), store_now_ms() + CATALOG_IDLE_MS + 60000);
	return true;
}

/* The last connection that a question left writes the file's log back, and syncs it. */
static void test_forget(const char *directory)
{
	int64_t late_ms = store_now_ms() - 3 * day_ms;

	store = open_keeping(directory, 0, 0);
	CHECK(add_report(store, "h", "p", late_ms, 900021, 1, 5) && fold());
	CHECK_NUMBER(query_totals(store, late_ms - 60000, late_ms + 60000).samples, 5);
	CHECK(add_report(store, "h", "p", late_ms, 900022, 6, 5) && fold());
	slowed = 0;
	slow_sync = true;
	CHECK(longest_beside(forget) < WAIT_MAX_MS);
	slow_sync = false;
	CHECK(slowed > 0);
	CHECK(!has_dictionary((uint32_t)(late_ms / day_ms)));
	CHECK_NUMBER(query_totals(store, late_ms - 60000, late_ms + 60000).samples, 10);
	samples_close(store);
}

/* The newest of many that wait is of an old day, whose dictionary nobody used for long. */
static void test_many_generations(const char *directory)
{
	int64_t now_ms = store_now_ms(), late_ms = now_ms - 4 * day_ms;
	uint32_t late = (uint32_t)(late_ms / day_ms);
	struct totals totals;

	store = open_keeping(directory, 0, 0);
	CHECK(add_report(store, "h", "p", late_ms, 900001, 1, 5) && fold());
	fails_open = true;
	for (unsigned i = 0; i < GENERATIONS; i++) {
		add(now_ms);
		if (fold())
			break;
	}
	CHECK(add_report(store, "h", "p", late_ms, 900002, 6, 5) && !fold());
	store_tidy(sqlite_samples_of(store), now_ms + CATALOG_IDLE_MS + 60000);
	CHECK(has_dictionary(late));
	fails_open = false;
	CHECK(fold());
	CHECK(add_report(store, "h", "p", late_ms, 900003, 11, 5) && fold());
	samples_close(store);
	store = open_keeping(directory, 0, 0);
	totals = query_totals(store, late_ms - 60000, late_ms + 60000);
	CHECK_NUMBER(totals.samples, 15);
	CHECK_NUMBER(totals.stacks, 15);
	samples_close(store);
}

/* A report of two days whose second profile is of no type: refused, with the first one's
 * definitions in the dictionary, which the next report's record has. */
static void add_refused(int64_t time_ms)
{
	struct batch_maker maker;
	struct error err = {0};

	batch_report(&maker, "h", "p", time_ms, 900012, 100, 5);
	batch_profile(&maker, 0, time_ms, 900012, 1)->type = "nonsense";
	CHECK(!add_and_wait(store, &maker, NULL, &err) && err.kind == ERROR_LIMIT);
	arena_release(&maker.arena);
}

/* Folding fails, and the journal alone has definitions of a day that nobody used for long. */
static void define_in_journal(const char *directory, int64_t late_ms)
{
	int64_t now_ms = store_now_ms();

	store = open_keeping(directory, 0, 0);
	CHECK(add_report(store, "h", "p", late_ms, 900011, 1, 5) && fold());
	add_refused(late_ms);
	fails_open = true;
	CHECK(add(now_ms) && !fold());
	store_tidy(sqlite_samples_of(store), now_ms + CATALOG_IDLE_MS + 60000);
	fails_open = false;
	CHECK(add_report(store, "h", "p", late_ms, 900013, 200, 5));
}

static uint64_t count_addresses(int64_t time_ms, uint32_t first, uint32_t count)
{
	struct samples_query query = {
		.tenant = 1, .from_ms = time_ms, .until_ms = time_ms + 1, .type = "on-cpu"};
	struct samples_result *result = samples_query(store, &query, NULL);
	uint64_t found = 0;

	for (uint32_t i = 0; result && i < result->location_count; i++)
		found += result->locations[i].address >= 0x1000 + first * 64ull &&
			 result->locations[i].address < 0x1000 + (first + count) * 64ull;
	samples_result_free(result);
	return found;
}

static void test_defined_in_journal(const char *directory)
{
	int64_t late_ms = store_now_ms() - 4 * day_ms;
	pid_t child = fork();
	int status = 1;

	if (!child) { /* killed before anything is folded; its checks are one of ours */
		dup2(STDERR_FILENO, STDOUT_FILENO);
		define_in_journal(directory, late_ms);
		_exit(checks_failed);
	}
	waitpid(child, &status, 0);
	CHECK_NUMBER(status, 0);
	store = open_keeping(directory, 0, 0);
	CHECK_NUMBER(count_addresses(late_ms, 200, 5), 25);
	CHECK_NUMBER(count_addresses(late_ms, 100, 5), 0);
	samples_close(store);
}

int main(void)
{
	char directory[256], child[300];
	static void (*const tests[])(const char *) = {
		test_defined_in_journal, test_files_go, test_late, test_names, test_forget,
		test_many_generations};

	snprintf(directory, sizeof directory, "%s", make_directory());
	for (unsigned i = 0; i < sizeof tests / sizeof *tests; i++) {
		snprintf(child, sizeof child, "%s/%u", directory, i);
		mkdir(child, 0700);
		tests[i](child);
	}
	remove_directory(directory);
	return checks_done();
}
