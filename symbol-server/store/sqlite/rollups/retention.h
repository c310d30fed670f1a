/* SPDX-License-Identifier: Apache-2.0 */
/* What goes when: retention.c decides, reduce.c takes a day's minutes away, disk_bytes.c measures.
 */
#ifndef SYMBOL_SERVER_STORE_SQLITE_ROLLUPS_RETENTION_H
#define SYMBOL_SERVER_STORE_SQLITE_ROLLUPS_RETENTION_H

#include "symbol-server/store/sqlite/samples_store.h"

/* ---- retention.c ---- */

/* Moves the set's aging on. Under its lock. */
void retention_age(struct sqlite_samples *store, int64_t now_ms);

/* At opening, on a full disk: days and months that are due go without being read. Days that hours
 * are still to be made of stay. How many went. */
unsigned retention_drop_due(struct sqlite_samples *store, int64_t now_ms);
/* Nothing of the day is in memory or on its way there. Under both locks. */
bool retention_is_quiet(const struct sqlite_samples *store, const struct day *day, int64_t now_ms);

/* ---- disk_bytes.c ---- */

/* Blocks of one file; 0: there is none. */
uint64_t retention_file_bytes(const char *path);
/* Days, or months, that have a file, as of now: *days is freed by the caller. The fold thread's,
 * with the files locked: they stay in memory until it drops them itself. The lock is not held. */
unsigned retention_days(struct sqlite_samples *store, bool are_months, struct day ***days);
/* Everything below the directory that samples take. The same holds. */
uint64_t retention_disk_bytes(struct sqlite_samples *store);
/* counters.disk_bytes, level_bytes, forecast_bytes, disk_full_seconds. The same holds. */
void retention_measure(struct sqlite_samples *store, int64_t now_ms);

/* ---- reduce.c ---- */

/* A database with what SQLite keeps beside it, and what was set aside of it for damage. */
void retention_unlink(const char *path);
/* Writes a day's or month's new file at path: copy() is called in a transaction, with the file from
 * attached as "old". */
bool retention_write_new(const char *from, const char *path,
			 bool (*copy)(sqlite3 *db, void *context, struct error *err), void *context,
			 struct error *err);
/* It takes the old one's name when nobody reads that and may(), if given, says so; took() is called
 * then. Both as of store_detach_day(). */
bool retention_take_name(struct sqlite_samples *store, struct day *day, const char *new_path,
			 const char *path, bool (*may)(struct sqlite_samples *, struct day *),
			 struct catalog *(*took)(struct sqlite_samples *, struct day *),
			 struct error *err);
/* The day's minutes go when all of them are rolled up and nobody reads them. The files are locked.
 */
bool retention_reduce(struct sqlite_samples *store, struct day *day, const char *why);

#endif
