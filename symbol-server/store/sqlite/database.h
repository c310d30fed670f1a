/* SPDX-License-Identifier: Apache-2.0 */
/* Opening SQLite files, their migrations, and SQLite's errors as sentences. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_DATABASE_H
#define SYMBOL_SERVER_STORE_SQLITE_DATABASE_H

#include <stdbool.h>
#include <sqlite3.h>

#include "common/buffer.h"
#include "common/error.h"

enum {                                   /* PRAGMA application_id: says what a file is */
       APPLICATION_SAMPLES = 0x66667331, /* "ffs1" */
       APPLICATION_AGENTS = 0x66666131,  /* "ffa1" */
       APPLICATION_SYMBOLS = 0x66667931, /* "ffy1" */
};

struct database_schema {
	int application_id;
	const char *const *migrations; /* SQL of version 1, 2 …; NULL ends */
	bool gives_back;               /* freed pages leave the file at PRAGMA incremental_vacuum */
	bool is_made_anew; /* opened for writing without page checksums: VACUUM gives it some. Of
			      files that nobody else has open then. */
};

extern const struct database_schema state_file_schema, symbols_schema; /* agents.db, symbols.db */

/* Opens for writing: makes the file when it is not there, write-ahead log, every commit synced,
 * each page with its checksum (page_checksums.h), applies the migrations it does not have.
 * ERROR_UNSUPPORTED: written by a newer version. ERROR_FORMAT: damaged or not ours. */
sqlite3 *database_open(const char *path, const struct database_schema *schema, struct error *err);
/* Opens an existing one for reading. ERROR_NOT_FOUND: a crash came before its tables; opening it
 * for writing makes them. */
sqlite3 *database_open_reader(const char *path, const struct database_schema *schema,
			      struct error *err);
/* The same of a file that may be damaged anywhere, also in its first page and at its end. */
sqlite3 *database_open_damaged(const char *path, const struct database_schema *schema,
			       struct error *err);

void database_close(sqlite3 *db); /* NULL is fine */
/* For a process beside the server's: closing it writes nothing back and deletes no log. The file
 * may have another's name by then, and the log of that name be a new file's. */
void database_leave_log(sqlite3 *db);

/* Renames a damaged file that nobody has open, and its log, to *.damaged; logs why. */
void database_set_aside(const char *path, const char *why);

/* Fills err from the connection: ERROR_FORMAT for damage, ERROR_BUSY for locks, else ERROR_SYSTEM.
 * Returns false. */
bool database_error(sqlite3 *db, const char *doing, struct error *err);
bool database_exec(sqlite3 *db, const char *sql, struct error *err);
/* One statement, with numbers for its parameters. */
bool database_exec_with(sqlite3 *db, const char *sql, const int64_t *numbers, size_t count,
			struct error *err);
sqlite3_stmt *database_prepare(sqlite3 *db, const char *sql, struct error *err);

/* "INSERT INTO table (column, …)": a value for each column is to be bound. */
sqlite3_stmt *database_prepare_insert(sqlite3 *db, const char *insert, struct error *err);

/* Binds numbers, the first one to that parameter; they are counted from 1. */
void database_bind(sqlite3_stmt *statement, int first, const int64_t *numbers, size_t count);
#define DATABASE_BIND(statement_, first_, ...)                            \
	database_bind(statement_, first_, (const int64_t[]){__VA_ARGS__}, \
		      sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* One step of a statement that returns nothing, then ready for the next. */
bool database_run(sqlite3_stmt *statement, struct error *err);

/* One step of a statement that returns rows. False: an error, never taken for the end of them. */
bool database_next(sqlite3_stmt *statement, bool *has_row, struct error *err);

/* The same for loops over all of them: whether there is a row, none where *ok is false already. An
 * error sets it so. */
bool database_row(sqlite3_stmt *statement, bool *ok, struct error *err);

/* ERROR_UNSUPPORTED: written by a newer version. ERROR_FORMAT: of something else. */
bool database_is_known(sqlite3 *db, const struct database_schema *schema, struct error *err);

/* How many migrations the file has. */
bool database_version(sqlite3 *db, int *version, struct error *err);

/* facts(name, value), as samples and agents files have it; absent is 0. */
bool database_get_fact(sqlite3 *db, const char *name, int64_t *value, struct error *err);
bool database_put_fact(sqlite3 *db, const char *name, int64_t value, struct error *err);

#endif
