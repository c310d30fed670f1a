/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums of pages: each bit of a database and of its log, files without any, gaps, copies. */
#include "symbol-server/store/sqlite/page_checksums.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbol-server/store/sqlite/database.h"
#include "tests/check.h"

static char folder[] = "/tmp/page-checksums-test-XXXXXX";
static char path[256];
static struct error err;
static const char *const migrations[] = {
	"CREATE TABLE facts (name TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID;"
	"CREATE TABLE things (id INTEGER PRIMARY KEY, data BLOB);",
	NULL};
static const struct database_schema schema = {0x1234, migrations};
static const struct database_schema made_anew = {0x1234, migrations, .is_made_anew = true};

static void set_path(const char *name)
{
	snprintf(path, sizeof path, "%s/%s", folder, name);
}

static void fill(sqlite3 *db)
{
	CHECK(database_exec(db,
			    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
			    "WHERE i < 40) INSERT INTO things SELECT i, randomblob(i * 700) FROM n;"
			    "DELETE FROM things WHERE id > 30",
			    &err));
}

static void flip(const char *file, off_t at, unsigned bit)
{
	int fd = open(file, O_RDWR);
	uint8_t byte = 0;

	if (pread(fd, &byte, 1, at) != 1)
		abort();
	byte ^= (uint8_t)(1 << bit);
	if (pwrite(fd, &byte, 1, at) != 1)
		abort();
	close(fd);
}

static bool is_found(void)
{
	struct page_scan scan;
	bool ok = page_checksums_scan(path, &scan, NULL);

	return !ok || (scan.has_checksums && (scan.damaged || scan.has_part));
}

static off_t size_of(const char *file)
{
	struct stat status;

	return stat(file, &status) ? 0 : status.st_size;
}

/* Used and free pages, header, the checksums themselves. */
static void test_bits(void)
{
	struct page_scan scan;
	unsigned missed = 0;
	sqlite3 *db;
	off_t size;

	set_path("bits.db");
	db = database_open(path, &schema, &err);
	fill(db);
	CHECK(page_checksums_are(db));
	database_close(db);
	CHECK(page_checksums_scan(path, &scan, &err) && scan.has_checksums && !scan.damaged);
	CHECK(scan.pages > 50 && !scan.has_part);
	size = size_of(path);
	for (off_t at = 0; at < size; at += at < 120 ? 1 : at % 8192 >= 8180 ? 1 : 1021) {
		flip(path, at, (unsigned)at % 8);
		missed += !is_found();
		flip(path, at, (unsigned)at % 8);
	}
	CHECK_NUMBER(missed, 0);
	CHECK(!is_found());
	CHECK(!truncate(path, size - 1));
	CHECK(is_found());
}

/* What SQLite reads is compared: never an answer made of it. */
static void test_read(void)
{
	sqlite3_stmt *sum;
	bool has_row = true, ok = true;
	sqlite3 *db;

	set_path("read.db");
	db = database_open(path, &schema, &err);
	fill(db);
	database_close(db);
	flip(path, 20 * 8192 + 4000, 3); /* within an overflow page */
	db = database_open_reader(path, &schema, &err);
	CHECK(db != NULL);
	sum = database_prepare(db, "SELECT data FROM things", &err);
	while (ok && has_row)
		ok = database_next(sum, &has_row, &err);
	CHECK(!ok && err.kind == ERROR_FORMAT && strstr(err.message, "page 21"));
	sqlite3_finalize(sum);
	database_close(db);
	err = (struct error){0};
	CHECK(!truncate(path, size_of(path) - 1));
	db = database_open_reader(path, &schema, &err);
	database_close(db);
	CHECK(is_found());
}

/* A log that a crash left: single bits of it, and pages that it has anew. */
static void test_log(void)
{
	struct page_scan scan;
	unsigned missed = 0;
	char log[300];
	sqlite3 *db;
	off_t size;

	set_path("log.db");
	snprintf(log, sizeof log, "%s-wal", path);
	db = database_open(path, &schema, &err);
	CHECK(database_exec(db, "PRAGMA wal_autocheckpoint = 0", &err));
	fill(db);
	CHECK(database_exec(db, "INSERT INTO facts VALUES ('a', 1)", &err));
	database_leave_log(db);
	CHECK(page_checksums_scan(path, &scan, &err) && !scan.damaged && scan.log_frames > 50 &&
	      !scan.log_damaged && !scan.is_log_torn);
	size = size_of(log);
	for (off_t at = 0; at < size - 8192 - 24; at += at < 80 ? 1 : 1021) {
		flip(log, at, (unsigned)at % 8);
		missed += !page_checksums_scan(path, &scan, &err) || !scan.log_damaged;
		flip(log, at, (unsigned)at % 8);
	}
	CHECK_NUMBER(missed, 0);
	flip(log, size - 100, 1); /* the last page may be one that was being written */
	CHECK(page_checksums_scan(path, &scan, &err) && scan.is_log_torn);
	database_close(db);
}

/* A file of an earlier version: read, written, and where its schema says so, given checksums. */
static void test_without(void)
{
	struct page_scan scan;
	sqlite3 *db;

	set_path("without.db");
	CHECK(sqlite3_open(path, &db) == SQLITE_OK);
	CHECK(database_exec(db, "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL", &err));
	CHECK(database_exec(db, migrations[0], &err));
	CHECK(database_exec(db, "PRAGMA application_id = 0x1234; PRAGMA user_version = 1", &err));
	fill(db);
	sqlite3_close(db);
	db = database_open(path, &schema, &err);
	CHECK(db && !page_checksums_are(db));
	CHECK(database_exec(db, "DELETE FROM things WHERE id = 7", &err));
	database_close(db);
	CHECK(page_checksums_scan(path, &scan, &err) && scan.pages && !scan.has_checksums);
	db = database_open(path, &made_anew, &err);
	CHECK(db && database_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", &err));
	database_close(db);
	CHECK(page_checksums_scan(path, &scan, &err) && scan.has_checksums && !scan.damaged);
	db = database_open_reader(path, &schema, &err);
	CHECK(db && page_checksums_are(db));
	CHECK(database_exec(db, "PRAGMA integrity_check", &err));
	database_close(db);
}

/* SQLite leaves out pages that were freed before they were ever written. */
static void test_gaps(void)
{
	struct page_scan scan;
	sqlite3 *db;

	set_path("gaps.db");
	db = database_open(path, &schema, &err);
	CHECK(database_exec(db, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF", &err));
	CHECK(database_exec(db, "BEGIN", &err));
	fill(db);
	CHECK(database_exec(db, "DELETE FROM things WHERE id < 29; COMMIT", &err));
	database_close(db);
	CHECK(page_checksums_scan(path, &scan, &err) && scan.has_checksums && !scan.damaged);
}

int main(void)
{
	char line[300];

	if (!mkdtemp(folder))
		return 1;
	test_bits();
	test_read();
	test_log();
	test_without();
	test_gaps();
	snprintf(line, sizeof line, "rm -rf %s", folder);
	return system(line) || checks_done();
}
