/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/database.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "symbol-server/store/sqlite/page_checksums.h"

/* SQLite's sentence, and the system's, which says more: "disk I/O error: No space left on device".
 */
static bool set_error(sqlite3 *db, enum error_kind kind, const char *doing, const char *file,
		      const char *why, struct error *err)
{
	int os_error = kind == ERROR_SYSTEM && db ? sqlite3_system_errno(db) : 0;

	if (db && (sqlite3_errcode(db) & 0xff) == SQLITE_FULL)
		os_error = ENOSPC;
	return os_error ? error_set_system(err, os_error, "%s '%s': %s", doing, file, why)
			: error_set(err, kind, "%s '%s': %s", doing, file, why);
}

bool database_error(sqlite3 *db, const char *doing, struct error *err)
{
	int code = db ? sqlite3_errcode(db) & 0xff : SQLITE_NOMEM;
	const char *file = db ? sqlite3_db_filename(db, "main") : NULL;
	const char *why = db ? sqlite3_errmsg(db) : "out of memory";
	char page[64];
	enum error_kind kind = code == SQLITE_CORRUPT || code == SQLITE_NOTADB ? ERROR_FORMAT
			       : code == SQLITE_BUSY || code == SQLITE_LOCKED  ? ERROR_BUSY
			       : code == SQLITE_NOMEM                          ? ERROR_MEMORY
									       : ERROR_SYSTEM;

	if (db && sqlite3_extended_errcode(db) == SQLITE_IOERR_DATA) {
		snprintf(page, sizeof page, "the checksum of page %u is wrong",
			 page_checksums_failed());
		kind = ERROR_FORMAT;
		why = page;
	}
	return set_error(db, kind, doing, file ? file : "?", why, err);
}

/* SQLite has no name for a file that it could not open. */
static void open_error(sqlite3 *db, const char *path, struct error *err)
{
	struct error why = {0};

	database_error(db, "open", &why);
	set_error(db, why.kind, "open", path, db ? sqlite3_errmsg(db) : "out of memory", err);
}

bool database_exec(sqlite3 *db, const char *sql, struct error *err)
{
	return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ||
	       database_error(db, "write", err);
}

sqlite3_stmt *database_prepare(sqlite3 *db, const char *sql, struct error *err)
{
	sqlite3_stmt *statement;

	if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL) !=
	    SQLITE_OK) {
		database_error(db, "read", err);
		return NULL;
	}
	return statement;
}

sqlite3_stmt *database_prepare_insert(sqlite3 *db, const char *insert, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	struct buffer sql;

	buffer_init(&sql, 4096);
	buffer_append_text(&sql, insert);
	buffer_append_text(&sql, " VALUES (?");
	for (const char *next = strchr(insert, ','); next; next = strchr(next + 1, ','))
		buffer_append_text(&sql, ", ?");
	buffer_append(&sql, ")", 2);
	if (sql.failed)
		error_set(err, ERROR_MEMORY, "no memory for a statement");
	else
		statement = database_prepare(db, (const char *)sql.bytes, err);
	buffer_release(&sql);
	return statement;
}

void database_bind(sqlite3_stmt *statement, int first, const int64_t *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		sqlite3_bind_int64(statement, first + (int)i, numbers[i]);
}

bool database_run(sqlite3_stmt *statement, struct error *err)
{
	bool ok = sqlite3_step(statement) == SQLITE_DONE;

	if (!ok)
		database_error(sqlite3_db_handle(statement), "write", err);
	sqlite3_reset(statement);
	return ok;
}

bool database_exec_with(sqlite3 *db, const char *sql, const int64_t *numbers, size_t count,
			struct error *err)
{
	sqlite3_stmt *statement = database_prepare(db, sql, err);
	bool ok = statement;

	if (ok) {
		database_bind(statement, 1, numbers, count);
		ok = database_run(statement, err);
	}
	sqlite3_finalize(statement);
	return ok;
}

bool database_next(sqlite3_stmt *statement, bool *has_row, struct error *err)
{
	int code = sqlite3_step(statement);

	*has_row = code == SQLITE_ROW;
	return code == SQLITE_ROW || code == SQLITE_DONE ||
	       database_error(sqlite3_db_handle(statement), "read", err);
}

bool database_row(sqlite3_stmt *statement, bool *ok, struct error *err)
{
	bool has_row = false;

	*ok = *ok && database_next(statement, &has_row, err);
	return *ok && has_row;
}

void database_set_aside(const char *path, const char *why)
{
	static const char *const suffixes[] = {"", "-wal", "-shm"};
	char from[4200], to[4200];

	for (unsigned i = 0; i < 3; i++) {
		snprintf(from, sizeof from, "%s%s", path, suffixes[i]);
		snprintf(to, sizeof to, "%s.damaged%s", path, suffixes[i]);
		if (rename(from, to) && errno != ENOENT)
			log_error("damaged file not set aside", "path=\"%s\" error=\"%s\"", from,
				  strerror(errno));
	}
	log_error("damaged file set aside", "path=\"%s.damaged\" reason=\"%s\"", path, why);
}

static bool get_pragma(sqlite3 *db, const char *pragma, int *value, struct error *err)
{
	sqlite3_stmt *statement = database_prepare(db, pragma, err);
	bool ok;

	if (!statement)
		return false;
	ok = sqlite3_step(statement) == SQLITE_ROW;
	if (ok)
		*value = sqlite3_column_int(statement, 0);
	else
		database_error(db, "read", err);
	sqlite3_finalize(statement);
	return ok;
}

bool database_version(sqlite3 *db, int *version, struct error *err)
{
	return get_pragma(db, "PRAGMA user_version", version, err);
}

/* Ours, and not newer than this program. */
static bool check_file(sqlite3 *db, const struct database_schema *schema, int *version,
		       struct error *err)
{
	int application, newest = 0;

	if (!get_pragma(db, "PRAGMA application_id", &application, err) ||
	    !get_pragma(db, "PRAGMA user_version", version, err))
		return false;
	while (schema->migrations[newest])
		newest++;
	if (*version > newest && application == schema->application_id)
		return error_set(err, ERROR_UNSUPPORTED,
				 "'%s' has version %d; this program knows versions up to %d",
				 sqlite3_db_filename(db, "main"), *version, newest);
	if ((*version || application) && application != schema->application_id)
		return error_set(err, ERROR_FORMAT, "'%s' is a database of something else",
				 sqlite3_db_filename(db, "main"));
	return true;
}

bool database_is_known(sqlite3 *db, const struct database_schema *schema, struct error *err)
{
	int version;

	return check_file(db, schema, &version, err);
}

/* Each in a transaction of its own with its number, so that a crash leaves the version before. */
static bool migrate(sqlite3 *db, const struct database_schema *schema, int version,
		    struct error *err)
{
	for (; schema->migrations[version]; version++) {
		char number[120];

		snprintf(number, sizeof number,
			 "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT;",
			 schema->application_id, version + 1);
		if (!database_exec(db, "BEGIN IMMEDIATE", err) ||
		    !database_exec(db, schema->migrations[version], err) ||
		    !database_exec(db, number, err)) {
			sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
			return false;
		}
	}
	return true;
}

/* Checksums, and whether freed pages leave, take effect in a file without tables; one that has some
 * is written anew, once, where its schema says so. */
static bool set_layout(sqlite3 *db, const struct database_schema *schema, struct error *err)
{
	enum { INCREMENTAL = 2 };
	int mode = INCREMENTAL, version;

	/* VACUUM would write pages of another size in parts: checksums are of whole ones. */
	if (!get_pragma(db, "PRAGMA user_version", &version, err) ||
	    (!version && !database_exec(db, "PRAGMA page_size = 8192", err)))
		return false;
	page_checksums_wish(db);
	/* To set it is a transaction, even to what it is: no opening of a file on a full disk. */
	if (schema->gives_back &&
	    (!get_pragma(db, "PRAGMA auto_vacuum", &mode, err) ||
	     (mode != INCREMENTAL && !database_exec(db, "PRAGMA auto_vacuum = INCREMENTAL", err))))
		return false;
	/* Without the room for that it stays as it is: pages are used again. */
	if (version && schema->is_made_anew && (mode != INCREMENTAL || !page_checksums_are(db)))
		database_exec(db, "VACUUM", NULL);
	return true;
}

sqlite3 *database_open(const char *path, const struct database_schema *schema, struct error *err)
{
	static const char settings[] = "PRAGMA journal_mode = WAL;"
				       "PRAGMA synchronous = FULL;"
				       "PRAGMA journal_size_limit = 16777216;"
				       "PRAGMA cache_size = -8192;"
				       "PRAGMA temp_store = MEMORY;";
	sqlite3 *db = NULL;
	int version;

	if (sqlite3_open_v2(path, &db,
			    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
				    SQLITE_OPEN_EXRESCODE,
			    page_checksums_vfs()) != SQLITE_OK) {
		open_error(db, path, err);
		goto fail;
	}
	sqlite3_busy_timeout(db, 5000);
	if (!set_layout(db, schema, err) || !database_exec(db, settings, err) ||
	    !check_file(db, schema, &version, err) || !migrate(db, schema, version, err))
		goto fail;
	return db;
fail:
	sqlite3_close_v2(db);
	return NULL;
}

static sqlite3 *open_reader(const char *path, const struct database_schema *schema,
			    const char *settings, struct error *err)
{
	sqlite3 *db = NULL;
	int version;

	/* Read and write: a reader of a write-ahead log may be the one that has to recover it. */
	if (sqlite3_open_v2(path, &db,
			    SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
			    page_checksums_vfs()) != SQLITE_OK) {
		open_error(db, path, err);
		goto fail;
	}
	sqlite3_busy_timeout(db, 5000);
	if (!database_exec(db, settings, err) || !check_file(db, schema, &version, err))
		goto fail;
	if (!version) { /* a crash came before its tables */
		error_set(err, ERROR_NOT_FOUND, "'%s' has nothing in it", path);
		goto fail;
	}
	return db;
fail:
	sqlite3_close_v2(db);
	return NULL;
}

#define READER "PRAGMA query_only = 1; PRAGMA cache_size = -4096;"

sqlite3 *database_open_reader(const char *path, const struct database_schema *schema,
			      struct error *err)
{
	return open_reader(path, schema, READER, err);
}

/* With a schema that may be written SQLite opens a file that lacks its end. */
sqlite3 *database_open_damaged(const char *path, const struct database_schema *schema,
			       struct error *err)
{
	return open_reader(path, schema, "PRAGMA writable_schema = 1;" READER, err);
}

void database_leave_log(sqlite3 *db)
{
	sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
}

void database_close(sqlite3 *db)
{
	sqlite3_close_v2(db);
}

bool database_get_fact(sqlite3 *db, const char *name, int64_t *value, struct error *err)
{
	sqlite3_stmt *statement = database_prepare(db, "SELECT value FROM facts WHERE name = ?",
						   err);
	int code;

	if (!statement)
		return false;
	*value = 0;
	sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
	code = sqlite3_step(statement);
	if (code == SQLITE_ROW)
		*value = sqlite3_column_int64(statement, 0);
	else if (code != SQLITE_DONE)
		database_error(db, "read", err);
	sqlite3_finalize(statement);
	return code == SQLITE_ROW || code == SQLITE_DONE;
}

bool database_put_fact(sqlite3 *db, const char *name, int64_t value, struct error *err)
{
	sqlite3_stmt *statement =
		database_prepare_insert(db, "INSERT OR REPLACE INTO facts (name, value)", err);
	bool ok;

	if (!statement)
		return false;
	sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
	sqlite3_bind_int64(statement, 2, value);
	ok = database_run(statement, err);
	sqlite3_finalize(statement);
	return ok;
}
