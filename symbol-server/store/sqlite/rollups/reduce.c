/* SPDX-License-Identifier: Apache-2.0 */
/* A day whose minutes go becomes a new file with what stays and takes the old one's name, so that
 * the disk gets its room back at once. */
#include "symbol-server/store/sqlite/rollups/retention.h"
#include "symbol-server/store/sqlite/days/day_tables.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/whole_file.h"

enum {
	READERS_WAIT_US = 10000, /* for queries that have the day's file open */
	READERS_TRIES = 200,
};

void retention_unlink(const char *path)
{
	static const char *const suffixes[] = {"-wal",         "-shm",         "",
					       ".damaged-wal", ".damaged-shm", ".damaged"};
	char file[4200];

	for (unsigned i = 0; i < 6; i++) {
		snprintf(file, sizeof file, "%s%s", path, suffixes[i]);
		if (unlink(file) && errno != ENOENT)
			log_warn("file of samples not deleted", "path=\"%s\" error=\"%s\"", file,
				 strerror(errno));
	}
}

static bool attach(sqlite3 *db, const char *from, struct error *err)
{
	sqlite3_stmt *attach = database_prepare(db, "ATTACH ? AS old", err);
	bool ok = attach;

	if (attach) {
		sqlite3_bind_text(attach, 1, from, -1, SQLITE_STATIC);
		ok = database_run(attach, err);
	}
	sqlite3_finalize(attach);
	return ok;
}

static bool copy_reduced(sqlite3 *db, void *context, struct error *err)
{
	(void)context;
	return database_exec(db, "DELETE FROM rollup_marks;" COPY_FACTS, err) &&
	       database_put_fact(db, "reduced", 1, err) &&
	       database_exec(db,
			     COPY_DEFINITIONS COPY_ROLLUPS COPY_ROLLUP_ACCOUNTS COPY_ROLLUP_MARKS,
			     err);
}

/* The new file is on disk before it has the name. */
bool retention_write_new(const char *from, const char *path,
			 bool (*copy)(sqlite3 *db, void *context, struct error *err), void *context,
			 struct error *err)
{
	sqlite3 *db;
	bool ok;

	retention_unlink(path);
	db = day_file_create(path, err);
	if (!db)
		return false;
	ok = database_exec(db, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF", err) &&
	     attach(db, from, err) && database_exec(db, "BEGIN", err) && copy(db, context, err) &&
	     database_exec(db, "COMMIT; DETACH old; PRAGMA journal_mode = WAL", err);
	database_close(db);
	ok = ok && path_sync(path, err);
	if (!ok)
		retention_unlink(path);
	return ok;
}

static bool is_log_empty(const char *path, struct error *err)
{
	char wal[4200];

	snprintf(wal, sizeof wal, "%s-wal", path);
	return !retention_file_bytes(wal) ||
	       error_set(err, ERROR_BUSY, "the log of '%s' is in use", path);
}

/* Nothing of the old file is in its log any more, and nobody has it open: whoever closes it last
 * would write the log back and delete it, which is the new file's by then. */
static bool cut_log(const char *path, struct error *err)
{
	sqlite3 *db = day_file_create(path, err);
	bool ok = db && database_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", err);

	database_close(db);
	return ok && is_log_empty(path, err);
}

static bool wait_unused(struct sqlite_samples *store, struct day *day,
			bool (*may)(struct sqlite_samples *, struct day *))
{
	for (unsigned i = 0; i < READERS_TRIES; i++) {
		if (store_detach_day(store, day, may))
			return true;
		usleep(READERS_WAIT_US);
	}
	return false;
}

bool retention_take_name(struct sqlite_samples *store, struct day *day, const char *new_path,
			 const char *path, bool (*may)(struct sqlite_samples *, struct day *),
			 struct catalog *(*took)(struct sqlite_samples *, struct day *),
			 struct error *err)
{
	/* Keeps the old file's blocks. O_PATH: to close it ends no lock of SQLite's. */
	int old = open(path, O_PATH | O_CLOEXEC);
	bool ok = cut_log(path, err);

	if (ok && !wait_unused(store, day, may)) {
		ok = error_set(err, ERROR_BUSY, "'%s' is in use", path);
	} else if (ok) {
		store_close_readers(store, day);
		ok = is_log_empty(path, err) &&
		     (!rename(new_path, path) ||
		      error_set_system(err, errno, "rename '%s'", new_path));
		store_attach_day(store, day, ok ? took : NULL);
	}
	if (old >= 0)
		close(old);
	return ok && (!fsync(store->directory_fd) ||
		      error_set_system(err, errno, "sync '%s'", store->directory));
}

static struct catalog *took_reduced(struct sqlite_samples *store, struct day *day)
{
	day->is_reduced = true;
	store->counters.days_reduced++;
	return NULL;
}

/* Everything in it is rolled up: samples that came late are in no roll-up yet. */
static bool is_rolled_up(const char *path, struct error *err)
{
	sqlite3 *db = day_file_create(path, err);
	sqlite3_stmt *find = db ? database_prepare(db,
						   "SELECT 1 FROM rollup_marks "
						   "WHERE newest > through LIMIT 1",
						   err)
				: NULL;
	bool has_more = true;
	bool is = find && database_next(find, &has_more, err) && !has_more;

	sqlite3_finalize(find);
	database_close(db);
	return is;
}

bool retention_reduce(struct sqlite_samples *store, struct day *day, const char *why)
{
	char path[4096], new_path[4200];
	struct error err = {0};
	bool ok;

	day_file_path(store->directory, day->day, path, sizeof path);
	snprintf(new_path, sizeof new_path, "%s.new", path);
	ok = is_rolled_up(path, &err) &&
	     retention_write_new(path, new_path, copy_reduced, NULL, &err) &&
	     retention_take_name(store, day, new_path, path, NULL, took_reduced, &err);
	if (ok)
		log_info("minutes of a day deleted, roll-ups kept", "path=\"%s\" reason=\"%s\"",
			 path, why);
	else
		retention_unlink(new_path);
	if (!ok && err.kind && err.kind != ERROR_BUSY)
		log_fault_write(&store->not_reduced, 0, LOG_ERROR, "minutes of a day not deleted",
				"path=\"%s\" reason=\"%s\"", path, err.message);
	return ok;
}
