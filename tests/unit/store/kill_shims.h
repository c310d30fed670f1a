/* SPDX-License-Identifier: Apache-2.0 */
/* Standing in for library calls, for tests of the store in which only processes die: nothing has to
 * reach the disk, and a process kills itself at a point of its choice, before or after a statement
 * that a macro names or the renaming of a file; or a statement cannot be read. One file of a
 * program includes it. */
#ifndef TESTS_UNIT_STORE_KILL_SHIMS_H
#define TESTS_UNIT_STORE_KILL_SHIMS_H

#include <dlfcn.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#ifndef KILL_AT_SQL
#define KILL_AT_SQL(sql) strstr(sql, "COMMIT")
#endif
#ifndef KILL_AT_RENAME
#define KILL_AT_RENAME(from) false
#endif

static atomic_uint points, kill_at; /* kill_at 0: never */

static void point(void)
{
	if (atomic_fetch_add(&points, 1) + 1 == kill_at)
		raise(SIGKILL);
}

int sqlite3_exec(sqlite3 *db, const char *sql, sqlite3_callback fn, void *context, char **message)
{
	static _Thread_local int (*real)(sqlite3 *, const char *, sqlite3_callback, void *,
					 char **);
	bool is_point = (KILL_AT_SQL(sql)) && !sqlite3_db_readonly(db, "main");
	int code;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "sqlite3_exec");
	if (is_point)
		point();
	code = real(db, sql, fn, context, message);
	if (is_point)
		point();
	return code;
}

/* In this thread, while fails_reads: the first SELECT that has not failed yet does. */
static _Thread_local bool fails_reads;
static _Thread_local char failed_sql[64][200];
static _Thread_local unsigned failed_count;

static bool shall_fail(sqlite3_stmt *statement)
{
	const char *sql = sqlite3_sql(statement);

	if (!fails_reads || !sql || strncmp(sql, "SELECT", 6) != 0 || failed_count == 64)
		return false;
	for (unsigned i = 0; i < failed_count; i++)
		if (!strncmp(failed_sql[i], sql, sizeof *failed_sql - 1))
			return false;
	snprintf(failed_sql[failed_count++], sizeof *failed_sql, "%s", sql);
	fails_reads = false;
	return true;
}

int sqlite3_step(sqlite3_stmt *statement)
{
	static _Thread_local int (*real)(sqlite3_stmt *);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "sqlite3_step");
	return shall_fail(statement) ? SQLITE_IOERR : real(statement);
}

int rename(const char *from, const char *to)
{
	static _Thread_local int (*real)(const char *, const char *);
	bool is_point = KILL_AT_RENAME(from);
	int result;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "rename");
	if (is_point)
		point();
	result = real(from, to);
	if (is_point)
		point();
	return result;
}

int fsync(int fd)
{
	return fd < 0 ? -1 : 0;
}

int fdatasync(int fd)
{
	return fd < 0 ? -1 : 0;
}

/* A journal segment's zeros, made ahead, would be most of a test's time. Without them the file is
 * shorter. */
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at)
{
	static _Thread_local ssize_t (*real)(int, const void *, size_t, off_t);
	const uint8_t *first = bytes;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pwrite");
	if (length == 1 << 16 && !first[0] && !memcmp(first, first + 1, length - 1))
		return (ssize_t)length;
	return real(fd, bytes, length, at);
}

#endif
