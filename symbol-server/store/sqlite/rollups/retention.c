/* SPDX-License-Identifier: Apache-2.0 */
/* What is too old or too much goes: minutes first, then the roll-ups of that time. The fold
 * thread's. */
#include "symbol-server/store/sqlite/rollups/retention.h"
#include "symbol-server/store/sqlite/rollups/rollup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "symbol-server/store/sqlite/days/hours.h"

enum {
	TRACES_EVERY_MS = 300000,
	WAL_BYTES_MAX = 32 << 20, /* a larger one is written back and cut */
	RESERVE_PART = 16,        /* of --max-disk stays free for the next fold */
	RESERVE_BYTES_MAX = 128 << 20,
};

/* --- files go --- */

static bool has_unfolded(const struct sqlite_samples *store, uint32_t day)
{
	const struct memory_table *tables[64] = {store->active};
	unsigned count = 1;

	for (const struct generation *g = store->oldest; g && count < 64; g = g->next)
		tables[count++] = g->table;
	while (count--)
		for (uint32_t i = 0; i < tables[count]->cells.count; i++) {
			const struct memory_cell *cell = blocks_at(&tables[count]->cells, i);

			if (cell->key.day == day)
				return true;
		}
	return false;
}

static void delete_day(struct sqlite_samples *store, struct day *day, const char *why)
{
	char path[4096];

	day_file_path(store->directory, day->day, path, sizeof path);
	day_close_readers(day);
	retention_unlink(path);
	log_info("day of samples deleted", "path=\"%s\" reason=\"%s\"", path, why);
	store->counters.days_deleted++;
	store_drop_day(store, day);
}

/* Its days have nothing left that it could be made of again, or are made anew in it. */
static void delete_month(struct sqlite_samples *store, unsigned at, const char *why)
{
	struct day *month = store->months[at];
	char path[4096];

	store_day_path(store, month, path, sizeof path);
	day_close_readers(month);
	retention_unlink(path);
	log_info("month of hours deleted", "path=\"%s\" reason=\"%s\"", path, why);
	store->counters.months_deleted++;
	store_drop_month(store, at);
}

/* --- which --- */

static int64_t day_end_ms(const struct day *day)
{
	return (day->day + 1ll) * day_ms;
}

/* Nothing of it is in memory or on its way there. Under the lock. */
static bool is_quiet(const struct sqlite_samples *store, const struct day *day, int64_t now_ms)
{
	return day->has_file && now_ms - day->written_ms >= WRITTEN_LATELY_MS &&
	       !has_unfolded(store, day->day);
}

/* Hours are kept longer than the day, and are not all there yet. */
static bool hours_are_missing(const struct sqlite_samples *store, const struct day *day,
			      int64_t now_ms)
{
	return store_kept_from_ms(store, SAMPLES_1H, now_ms) <
		       store_kept_from_ms(store, SAMPLES_10M, now_ms) &&
	       day->hours_through < day->folded_through;
}

/* Days and months that end before that go. Under the lock. */
static void delete_old(struct sqlite_samples *store, int64_t now_ms)
{
	int64_t from_ms = store_kept_from_ms(store, SAMPLES_10M, now_ms);
	unsigned i = 0;

	while (i < store->day_count && day_end_ms(store->days[i]) <= from_ms) {
		struct day *day = store->days[i];

		if (is_quiet(store, day, now_ms) && !hours_are_missing(store, day, now_ms) &&
		    !day->users)
			delete_day(store, day, "older than --retention");
		else
			i++;
	}
	from_ms = store_kept_from_ms(store, SAMPLES_1H, now_ms);
	while (store->month_count && !store->months[0]->users &&
	       month_end(store->months[0]->day) * day_ms <= from_ms)
		delete_month(store, 0, "older than --retention");
}

/* The oldest day from this one on whose minutes may go. */
static struct day *find_reducible(struct sqlite_samples *store, uint32_t from, int64_t end_ms,
				  int64_t now_ms)
{
	struct day *found = NULL;

	pthread_mutex_lock(&store->lock);
	for (unsigned i = 0; !found && i < store->day_count; i++) {
		struct day *day = store->days[i];

		if (day->day >= from && day_end_ms(day) <= end_ms && !day->is_reduced &&
		    is_quiet(store, day, now_ms))
			found = day;
	}
	pthread_mutex_unlock(&store->lock);
	return found;
}

static void reduce_old(struct sqlite_samples *store, int64_t now_ms)
{
	int64_t end_ms = store_kept_from_ms(store, SAMPLES_RAW, now_ms);
	uint32_t from = 0;
	struct day *day;

	while ((day = find_reducible(store, from, end_ms, now_ms))) {
		from = day->day + 1;
		retention_reduce(store, day, "older than --retention");
	}
}

static bool is_too_much(struct sqlite_samples *store)
{
	uint64_t reserve = store->max_disk_bytes / RESERVE_PART;
	bool is;

	if (!store->max_disk_bytes)
		return false;
	if (reserve > RESERVE_BYTES_MAX)
		reserve = RESERVE_BYTES_MAX;
	pthread_mutex_lock(&store->lock);
	is = retention_disk_bytes(store) > store->max_disk_bytes - reserve;
	pthread_mutex_unlock(&store->lock);
	return is;
}

/* The oldest month when all its days' files are gone. This month's begins anew with today, once a
 * day. Under the lock. */
static bool make_room_of_month(struct sqlite_samples *store, uint32_t today, const char *why)
{
	const struct day *month = store->month_count ? store->months[0] : NULL;
	uint32_t end = month ? month_end(month->day) : 0;

	if (!month || month->users || (end > today && store->month_begun == today) ||
	    (store->day_count && store->days[0]->day < (end > today ? today : end)))
		return false;
	if (end > today)
		store->month_begun = today;
	delete_month(store, 0, why);
	for (unsigned i = 0; i < store->day_count; i++) {
		store->days[i]->hours_through = store->days[i]->hours_seen = 0;
		store->days[i]->hours_due_ms = 0;
	}
	return true;
}

/* The oldest day before today, or before the newest when the clock is behind. */
static struct day *find_oldest(struct sqlite_samples *store, int64_t now_ms)
{
	uint32_t today = (uint32_t)(now_ms / day_ms);
	struct day *oldest = NULL;

	pthread_mutex_lock(&store->lock);
	for (unsigned i = 0; !oldest && i < store->day_count; i++)
		if ((store->days[i]->day < today || i + 1 < store->day_count) &&
		    is_quiet(store, store->days[i], now_ms))
			oldest = store->days[i];
	pthread_mutex_unlock(&store->lock);
	return oldest;
}

/* The oldest day: its minutes, then it; the oldest month. False: there is none. */
static bool make_room(struct sqlite_samples *store, int64_t now_ms)
{
	static const char why[] = "--max-disk is reached";
	struct day *oldest;
	bool is_month_gone;

	pthread_mutex_lock(&store->lock);
	is_month_gone = make_room_of_month(store, (uint32_t)(now_ms / day_ms), why);
	pthread_mutex_unlock(&store->lock);
	if (is_month_gone)
		return true;
	oldest = find_oldest(store, now_ms);
	if (!oldest)
		return false;
	if (!oldest->is_reduced && retention_reduce(store, oldest, why))
		return true;
	pthread_mutex_lock(&store->lock);
	delete_day(store, oldest, why);
	pthread_mutex_unlock(&store->lock);
	return true;
}

/* When nothing older is left that could go, what is taken has to fit into the rest. */
static void set_disk_left(struct sqlite_samples *store, int64_t now_ms)
{
	uint64_t bytes = store->counters.disk_bytes, left = UINT64_MAX;

	if (store->max_disk_bytes && !find_oldest(store, now_ms))
		left = bytes < store->max_disk_bytes ? store->max_disk_bytes - bytes : 0;
	pthread_mutex_lock(&store->lock);
	store->disk_left_bytes = left;
	pthread_mutex_unlock(&store->lock);
	if (left < store->max_disk_bytes / RESERVE_PART)
		log_warn("reports are refused: today's samples alone reach --max-disk",
			 "bytes=%llu limit=%llu", (unsigned long long)bytes,
			 (unsigned long long)store->max_disk_bytes);
}

/* --- logs --- */

/* A log that a long query kept from being reused. */
static void cut_logs(struct sqlite_samples *store)
{
	for (unsigned i = 0; i < store->day_count; i++) {
		char path[4096], wal[4200];
		sqlite3 *db;

		day_file_path(store->directory, store->days[i]->day, path, sizeof path);
		snprintf(wal, sizeof wal, "%s-wal", path);
		if (!store->days[i]->has_file || retention_file_bytes(wal) <= WAL_BYTES_MAX)
			continue;
		db = day_file_create(path, NULL);
		if (db)
			database_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL);
		database_close(db);
	}
}

/* --- the turn --- */

static void forget_catalog(struct sqlite_samples *store, struct day *day, int64_t now_ms)
{
	if (!day->catalog || day->users || !day->has_file ||
	    now_ms - day->used_ms < CATALOG_IDLE_MS ||
	    (!day->is_month && has_unfolded(store, day->day)))
		return;
	day_close_readers(day);
	catalog_release(day->catalog);
	day->catalog = NULL;
}

static void forget_catalogs(struct sqlite_samples *store, int64_t now_ms)
{
	for (unsigned i = 0; i < store->day_count; i++)
		forget_catalog(store, store->days[i], now_ms);
	for (unsigned i = 0; i < store->month_count; i++)
		forget_catalog(store, store->months[i], now_ms);
}

/* Spans of before their retention leave the files of the days; the room is used again. */
static void forget_traces(struct sqlite_samples *store, int64_t now_ms)
{
	int64_t from_ms = now_ms - store->trace_keep_ms;

	if (now_ms < store->traces_due_ms)
		return;
	store->traces_due_ms = now_ms + TRACES_EVERY_MS;
	for (unsigned i = 0; i < store->day_count; i++) {
		int64_t start_ms = store->days[i]->day * day_ms;
		char path[4096], sql[80];
		sqlite3 *db;

		if (start_ms >= from_ms || !store->days[i]->has_file || store->days[i]->is_reduced)
			continue;
		day_file_path(store->directory, store->days[i]->day, path, sizeof path);
		snprintf(sql, sizeof sql, "DELETE FROM spans WHERE bucket < %lld",
			 (long long)((from_ms - start_ms) / SAMPLES_BUCKET_MS));
		db = day_file_create(path, NULL);
		if (db)
			database_exec(db, sql, NULL);
		database_close(db);
	}
}

void store_tidy(struct sqlite_samples *store, int64_t now_ms)
{
	store_lock_files(store);
	pthread_mutex_lock(&store->lock);
	retention_age(store, now_ms);
	delete_old(store, now_ms);
	forget_catalogs(store, now_ms);
	pthread_mutex_unlock(&store->lock);
	reduce_old(store, now_ms);
	forget_traces(store, now_ms);
	cut_logs(store);
	while (is_too_much(store) && make_room(store, now_ms))
		;
	pthread_mutex_lock(&store->lock);
	store->counters.disk_bytes = retention_disk_bytes(store);
	retention_forecast(store, now_ms);
	pthread_mutex_unlock(&store->lock);
	set_disk_left(store, now_ms);
	store_unlock_files(store);
	rollup_turn(store, now_ms);
}
