/* SPDX-License-Identifier: Apache-2.0 */
/* What was acknowledged is there after a crash, once; what is damaged costs itself and says so. */
#include "tests/check.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "symbol-server/store/sqlite/samples_store.h"
#include "symbol-server/store/sqlite/page_checksums.h"
#include "tests/unit/store/batches.h"

/* Adds reports 1, 2, 3 … of ten samples until it is killed; each acknowledged number goes to the
 * pipe, and now and then what is in memory is folded. */
static void add_until_killed(const char *directory, int pipe_fd, bool with_folds)
{
	struct samples_store *store = open_store(directory, NULL);

	for (uint32_t report = 1; store; report++) {
		if (!add_report(store, "h1", report % 3 ? "a" : "b", noon + report, report,
				report % 50, 10))
			_exit(2);
		if (write(pipe_fd, &report, sizeof report) != sizeof report)
			_exit(3);
		if (with_folds && report % 7 == 0 && !samples_fold(store, NULL))
			_exit(4);
	}
	_exit(5);
}

static uint32_t run_and_kill(const char *directory, unsigned ms, bool with_folds)
{
	uint32_t report, last = 0;
	int fds[2], status;
	pid_t child;

	if (pipe(fds))
		return 0;
	child = fork();
	if (!child) {
		close(fds[0]);
		add_until_killed(directory, fds[1], with_folds);
	}
	close(fds[1]);
	/* A busy machine takes its time to begin. */
	while (last < 5 && read(fds[0], &report, sizeof report) == sizeof report)
		last = report;
	usleep(ms * 1000);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	while (read(fds[0], &report, sizeof report) == sizeof report)
		last = report;
	close(fds[0]);
	CHECK(WIFSIGNALED(status));
	return last;
}

/* Every acknowledged report once; the one that was on its way may be there too. */
static void test_kill(bool with_folds)
{
	const char *directory = make_directory();
	struct samples_store *store;
	struct totals totals;
	uint32_t last = 0;

	for (unsigned i = 0; i < 3; i++) {
		uint32_t acknowledged = run_and_kill(directory, 400, with_folds);

		CHECK(acknowledged > 3);
		last = acknowledged > last ? acknowledged : last;
		store = open_store(directory, NULL);
		CHECK(store);
		totals = query_totals(store, noon, noon + 1);
		CHECK(totals.samples == last * 10ull || totals.samples == (last + 1) * 10ull);
		CHECK_NUMBER(totals.taken, totals.samples);
		/* the next run starts at report 1 again: what was there is recognized */
		if (totals.samples == (last + 1) * 10ull)
			last++;
		CHECK(add_report(store, "h1", "a", noon + 1, 1, 1, 10));
		CHECK_NUMBER(query_totals(store, noon, noon + 1).samples, last * 10ull);
		samples_close(store);
	}
	remove_directory(directory);
}

/* The journal's only segment with samples in it, as a path. */
static bool find_segment(const char *directory, char *path, size_t room)
{
	char journal[4096];
	struct dirent *entry;
	DIR *open_directory;
	bool found = false;

	snprintf(journal, sizeof journal, "%s/journal", directory);
	open_directory = opendir(journal);
	while (open_directory && (entry = readdir(open_directory)))
		if (strstr(entry->d_name, ".journal")) {
			snprintf(path, room, "%s/%s", journal, entry->d_name);
			found = true;
		}
	if (open_directory)
		closedir(open_directory);
	return found;
}

static void add_in_child(const char *directory, uint32_t reports)
{
	pid_t child = fork();
	int status;

	if (!child) {
		struct samples_store *store = open_store(directory, NULL);

		for (uint32_t i = 1; i <= reports; i++)
			if (!add_report(store, "h1", "a", noon + i, i, i, 10))
				_exit(1);
		_exit(0); /* nothing is folded */
	}
	waitpid(child, &status, 0);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
}

/* A byte of one of the records is another one: that record is gone, the others are not. */
static void test_damaged_record(void)
{
	const char *directory = make_directory();
	struct samples_store *store;
	struct totals totals;
	char path[4096];
	uint8_t byte;
	int fd;

	add_in_child(directory, 8);
	CHECK(find_segment(directory, path, sizeof path));
	fd = open(path, O_RDWR);
	/* Each report is a group on a block of its own; 4096 is the first, 4096 × 8 the last. */
	CHECK(pread(fd, &byte, 1, 4096 * 8 + 40) == 1);
	byte ^= 0x40;
	CHECK(pwrite(fd, &byte, 1, 4096 * 8 + 40) == 1);
	close(fd);
	store = open_store(directory, NULL);
	CHECK(store);
	totals = query_totals(store, noon, noon + 1);
	/* What was defined there only is not known, what came after it in its group is read. */
	CHECK(totals.samples >= 70 && totals.samples <= 80);
	CHECK_NUMBER(totals.taken, totals.stored + totals.lost);
	samples_close(store);
	remove_directory(directory);
}

/* The file ends in the middle of the last group. */
static void test_torn_tail(void)
{
	const char *directory = make_directory();
	struct samples_store *store;
	char path[4096];

	add_in_child(directory, 8);
	CHECK(find_segment(directory, path, sizeof path));
	CHECK(!truncate(path, 4096 * 8 + 40));
	store = open_store(directory, NULL);
	CHECK(store);
	CHECK_NUMBER(query_totals(store, noon, noon + 1).samples, 70);
	CHECK(add_report(store, "h1", "a", noon, 100, 1, 10));
	CHECK_NUMBER(query_totals(store, noon, noon + 1).samples, 80);
	samples_close(store);
	store = open_store(directory, NULL);
	CHECK_NUMBER(query_totals(store, noon, noon + 1).samples, 80);
	samples_close(store);
	remove_directory(directory);
}

static void overwrite(const char *path)
{
	uint8_t junk[16384];
	int fd = open(path, O_WRONLY);

	memset(junk, 0x5a, sizeof junk);
	CHECK(fd >= 0 && pwrite(fd, junk, sizeof junk, 0) == (ssize_t)sizeof junk);
	close(fd);
}

static void test_damaged_day(void)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	char path[4096], damaged[4200];
	const int64_t next_day = noon + 86400000;

	CHECK(add_report(store, "h1", "a", noon, 1, 1, 10));
	CHECK(add_report(store, "h1", "a", next_day, 2, 1, 20));
	samples_close(store);
	day_file_path(directory, (uint32_t)(noon / 86400000), path, sizeof path);
	overwrite(path);
	store = open_store(directory, NULL);
	CHECK(store);
	snprintf(damaged, sizeof damaged, "%s.damaged", path);
	CHECK(!access(damaged, F_OK));
	CHECK_NUMBER(query_totals(store, noon, next_day + 1).samples, 20);
	CHECK(add_report(store, "h1", "a", noon, 3, 1, 5));
	CHECK_NUMBER(query_totals(store, noon, next_day + 1).samples, 25);
	CHECK(samples_fold(store, NULL));
	/* damaged while it is open */
	overwrite(path);
	CHECK(add_report(store, "h1", "a", noon, 4, 100, 5));
	CHECK(samples_fold(store, NULL));
	CHECK(query_totals(store, noon, next_day + 1).samples >= 25);
	samples_close(store);
	store = open_store(directory, NULL);
	CHECK(query_totals(store, noon, next_day + 1).samples >= 25);
	samples_close(store);
	remove_directory(directory);
}

static void test_newer_version(void)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	struct error err = {0};
	char path[4096];
	sqlite3 *db;

	CHECK(add_report(store, "h1", "a", noon, 1, 1, 10));
	samples_close(store);
	day_file_path(directory, (uint32_t)(noon / 86400000), path, sizeof path);
	CHECK(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, page_checksums_vfs()) == SQLITE_OK);
	CHECK(sqlite3_exec(db, "PRAGMA user_version = 99", NULL, NULL, NULL) == SQLITE_OK);
	sqlite3_close(db);
	CHECK(!open_store(directory, &err));
	CHECK_NUMBER(err.kind, ERROR_UNSUPPORTED);
	CHECK(strstr(err.message, "has version 99; this program knows versions up to "));
	remove_directory(directory);
}

static void test_second_server(void)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	struct error err = {0};

	CHECK(!open_store(directory, &err));
	CHECK_NUMBER(err.kind, ERROR_CONFLICT);
	samples_close(store);
	remove_directory(directory);
}

/* Files may not grow: what a full disk looks like, without one. From the start, so that no journal
 * segment is made ahead. */
static void test_full_disk(void)
{
	const char *directory = make_directory();
	struct samples_store *store;
	struct rlimit limit, all;
	struct batch_maker maker;
	struct error err = {0};

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &all);
	limit = all;
	limit.rlim_cur = 1 << 20;
	batch_report(&maker, "h1", "a", noon, 1, 1, 10);
	CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
	store = open_store(directory, NULL);
	CHECK(!add_and_wait(store, &maker, NULL, &err));
	CHECK_NUMBER(err.kind, ERROR_SYSTEM);
	CHECK(strstr(err.message, "make room for a journal segment of 4 MiB"));
	CHECK_NUMBER(query_totals(store, noon, noon + 1).samples, 0);
	CHECK(!setrlimit(RLIMIT_FSIZE, &all));
	CHECK(add_and_wait(store, &maker, NULL, &err)); /* not taken for a repeated one */
	CHECK_NUMBER(query_totals(store, noon, noon + 1).samples, 10);
	/* the journal has room, folding has none */
	limit.rlim_cur = 4096;
	CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
	CHECK(!samples_fold(store, &err));
	CHECK_NUMBER(query_totals(store, noon, noon + 1).samples, 10);
	CHECK(!setrlimit(RLIMIT_FSIZE, &all));
	CHECK(samples_fold(store, &err));
	CHECK_NUMBER(query_totals(store, noon, noon + 1).samples, 10);
	samples_close(store);
	store = open_store(directory, NULL);
	CHECK_NUMBER(query_totals(store, noon, noon + 1).samples, 10);
	samples_close(store);
	arena_release(&maker.arena);
	remove_directory(directory);
}

/* A failed group must not leave definitions behind that later records rely on. */
static void test_definitions_after_failure(void)
{
	const char *directory = make_directory();
	struct samples_store *store;
	pid_t child = fork();
	int status;

	if (!child) {
		struct rlimit limit, all;

		signal(SIGXFSZ, SIG_IGN);
		getrlimit(RLIMIT_FSIZE, &all);
		limit = all;
		limit.rlim_cur = 1 << 20;
		setrlimit(RLIMIT_FSIZE, &limit);
		store = open_store(directory, NULL);
		if (add_report(store, "h1", "a", noon, 1, 1, 10))
			_exit(1);
		setrlimit(RLIMIT_FSIZE, &all);
		if (!add_report(store, "h1", "a", noon, 2, 1, 10))
			_exit(2);
		_exit(0);
	}
	waitpid(child, &status, 0);
	CHECK(WIFEXITED(status));
	CHECK_NUMBER(WEXITSTATUS(status), 0);
	store = open_store(directory, NULL);
	CHECK_NUMBER(query_totals(store, noon, noon + 1).samples, 10);
	CHECK_NUMBER(query_totals(store, noon, noon + 1).stacks, 10);
	samples_close(store);
	remove_directory(directory);
}

/* Files of the journal directory whose names begin so. */
static unsigned count_files(const char *directory, const char *prefix)
{
	char path[4096];
	unsigned count = 0;
	struct dirent *entry;
	DIR *open_directory;

	snprintf(path, sizeof path, "%s/journal", directory);
	open_directory = opendir(path);
	while (open_directory && (entry = readdir(open_directory)))
		count += !strncmp(entry->d_name, prefix, strlen(prefix));
	if (open_directory)
		closedir(open_directory);
	return count;
}

/* The first report finds a segment that was made before it came, and the next one is made too. */
static void test_spare(void)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);

	for (int i = 0; i < 500 && !count_files(directory, "spare-"); i++)
		usleep(10000);
	CHECK_NUMBER(count_files(directory, "spare-"), 1);
	CHECK(add_report(store, "h1", "a", noon, 1, 1, 10));
	CHECK_NUMBER(count_files(directory, "0"), 1);
	for (int i = 0; i < 500 && !count_files(directory, "spare-"); i++)
		usleep(10000);
	CHECK_NUMBER(count_files(directory, "spare-"), 1);
	samples_close(store);
	remove_directory(directory);
}

int main(void)
{
	test_spare();
	test_kill(false);
	test_kill(true);
	test_damaged_record();
	test_torn_tail();
	test_damaged_day();
	test_newer_version();
	test_second_server();
	test_full_disk();
	test_definitions_after_failure();
	return checks_done();
}
