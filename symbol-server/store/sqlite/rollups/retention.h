/* SPDX-License-Identifier: Apache-2.0 */
/* What goes when: retention.c decides, aging.c says how old, reduce.c takes a day's minutes away,
 * disk_bytes.c measures.
 * Of this folder only. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_RETENTION_H
#define SYMBOL_SERVER_STORE_SQLITE_RETENTION_H

#include "symbol-server/store/sqlite/samples_store.h"

/* ---- aging.c ---- */

/* Moves store->aging on. Under the lock. */
void retention_age(struct sqlite_samples *store, int64_t now_ms);

/* ---- disk_bytes.c ---- */

/* Blocks of one file; 0: there is none. */
uint64_t retention_file_bytes(const char *path);
/* Everything below the directory that samples take; counters.level_bytes. Under the lock. */
uint64_t retention_disk_bytes(struct sqlite_samples *store);
/* counters.forecast_bytes, disk_full_seconds. Under the lock, after retention_disk_bytes(). */
void retention_forecast(struct sqlite_samples *store, int64_t now_ms);

/* ---- reduce.c ---- */

/* A database with what SQLite keeps beside it. */
void retention_unlink(const char *path);
/* The day's minutes go when all of them are rolled up and nobody reads them. The files are locked.
 */
bool retention_reduce(struct sqlite_samples *store, struct day *day, const char *why);

#endif
