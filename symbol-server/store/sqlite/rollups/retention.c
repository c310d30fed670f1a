/* SPDX-License-Identifier: Apache-2.0 */
/* What is too old or too much goes: minutes first, then the roll-ups of that time. The fold
 * thread's. */
#include "symbol-server/store/rules/rollup_choice.h"
#include "symbol-server/store/sqlite/rollups/retention.h"
#include "symbol-server/store/sqlite/rollups/rollup.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "symbol-server/store/sqlite/days/hours.h"
#include "symbol-server/store/sqlite/upkeep/erase.h"

enum {
	PATH_ROOM = 4096,
	TRACES_EVERY_MS = 300000,
	WAL_BYTES_MAX = 32 << 20, /* a larger one is written back and cut */
	RESERVE_PART = 16,        /* of --max-disk stays free for the next fold */
	RESERVE_BYTES_MAX = 128 << 20,
};

/* --- how old --- */

int64_t store_newest_ms(const struct sqlite_samples *store)
{
	unsigned first = store->days.count > AGING_DAYS ? store->days.count - AGING_DAYS : 0;
	uint32_t days[AGING_DAYS];

	for (unsigned i = first; i < store->days.count; i++)
		days[i - first] = store->days.at[i]->day;
	return aging_newest_ms(days, store->days.count - first);
}

void retention_age(struct sqlite_samples *store, int64_t now_ms)
{
	aging_turn(&store->days.aging, store_newest_ms(store), now_ms);
}

int64_t store_kept_from_ms(const struct sqlite_samples *store, enum samples_resolution resolution,
			   int64_t now_ms)
{
	return rollup_kept_at(store->keep_ms, &store->days.aging, now_ms).from_ms[resolution];
}

/* --- files go --- */

/* Under the lock. However many generations wait: while folding fails there is one more every few
 * seconds. */
static bool has_unfolded(const struct sqlite_samples *store, uint32_t day)
{
	for (const struct generation *g = store->oldest; g; g = g->next)
		if (memory_table_has_day(g->table, day))
			return true;
	return memory_table_has_day(store->active, day);
}

/* Days that left the lists under the locks, and are used by that: their files are deleted without
 * them, which takes a file system a while. Nobody makes a file of that name meanwhile, which is the
 * fold thread's. How many went. */
static unsigned let_go(struct sqlite_samples *store, struct day *gone)
{
	unsigned count = 0;

	for (struct day *next; gone; gone = next, count++) {
		char path[PATH_ROOM];

		next = gone->next_gone;
		store_close_readers(store, gone);
		store_day_path(store, gone, path, sizeof path);
		if (gone->has_file)
			retention_unlink(path);
		store_leave_day(store, gone);
	}
	return count;
}

/* Under both locks, as what calls it. */
static void drop(struct sqlite_samples *store, struct day *day, struct day **gone)
{
	store_drop_day(store, day);
	day->next_gone = *gone;
	*gone = day;
}

static void delete_day(struct sqlite_samples *store, struct day *day, const char *why,
		       struct day **gone)
{
	char path[PATH_ROOM];

	day_file_path(store->directory, day->day, path, sizeof path);
	log_info("day of samples deleted", "path=\"%s\" reason=\"%s\"", path, why);
	store->counters.days_deleted++;
	drop(store, day, gone);
}

/* Its days have nothing left that it could be made of again, or are made anew in it. */
static void delete_month(struct sqlite_samples *store, const char *why, struct day **gone)
{
	struct day *month = store->days.months[0];
	char path[PATH_ROOM];

	store_day_path(store, month, path, sizeof path);
	log_info("month of hours deleted", "path=\"%s\" reason=\"%s\"", path, why);
	store->counters.months_deleted++;
	drop(store, month, gone);
}

/* --- which --- */

static int64_t day_end_ms(const struct day *day)
{
	return (day->day + 1ll) * day_ms;
}

bool retention_is_quiet(const struct sqlite_samples *store, const struct day *day, int64_t now_ms)
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

/* Of a day that was due before it was folded: it has no file. */
static bool is_unwritten(const struct sqlite_samples *store, const struct day *day, int64_t now_ms)
{
	return !day->has_file && !has_unfolded(store, day->day) &&
	       now_ms - day->written_ms >= WRITTEN_LATELY_MS;
}

/* Days and months that end before that go. Under both locks. */
static void delete_old(struct sqlite_samples *store, int64_t now_ms, struct day **gone)
{
	static const char why[] = "older than --retention";
	int64_t from_ms = store_kept_from_ms(store, SAMPLES_10M, now_ms);
	unsigned i = 0;

	while (i < store->days.count && day_end_ms(store->days.at[i]) <= from_ms) {
		struct day *day = store->days.at[i];

		if (!day->users && is_unwritten(store, day, now_ms))
			drop(store, day, gone);
		else if (!day->users && retention_is_quiet(store, day, now_ms) &&
			 !hours_are_missing(store, day, now_ms))
			delete_day(store, day, why, gone);
		else
			i++;
	}
	from_ms = store_kept_from_ms(store, SAMPLES_1H, now_ms);
	while (store->days.month_count && !store->days.months[0]->users &&
	       month_end(store->days.months[0]->day) * day_ms <= from_ms)
		delete_month(store, why, gone);
}

unsigned retention_drop_due(struct sqlite_samples *store, int64_t now_ms)
{
	static const char why[] = "older than --retention";
	int64_t days_ms, months_ms;
	struct day *gone = NULL;

	store_lock_all(store);
	retention_age(store, now_ms);
	days_ms = store_kept_from_ms(store, SAMPLES_10M, now_ms);
	months_ms = store_kept_from_ms(store, SAMPLES_1H, now_ms);
	while (days_ms == months_ms && store->days.count &&
	       day_end_ms(store->days.at[0]) <= days_ms)
		delete_day(store, store->days.at[0], why, &gone);
	while (store->days.month_count &&
	       month_end(store->days.months[0]->day) * day_ms <= months_ms)
		delete_month(store, why, &gone);
	store_unlock_all(store);
	return let_go(store, gone);
}

/* The oldest day from this one on whose minutes may go. */
static struct day *find_reducible(struct sqlite_samples *store, uint32_t from, int64_t end_ms,
				  int64_t now_ms)
{
	struct day *found = NULL;

	store_lock_all(store);
	for (unsigned i = 0; !found && i < store->days.count; i++) {
		struct day *day = store->days.at[i];

		if (day->day >= from && day_end_ms(day) <= end_ms && !day->is_reduced &&
		    retention_is_quiet(store, day, now_ms))
			found = day;
	}
	store_unlock_all(store);
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

	if (!store->max_disk_bytes)
		return false;
	if (reserve > RESERVE_BYTES_MAX)
		reserve = RESERVE_BYTES_MAX;
	return retention_disk_bytes(store) > store->max_disk_bytes - reserve;
}

/* The oldest month when all its days' files are gone. This month's begins anew with today, once a
 * day. Under both locks. */
static bool make_room_of_month(struct sqlite_samples *store, uint32_t today, const char *why,
			       struct day **gone)
{
	const struct day *month = store->days.month_count ? store->days.months[0] : NULL;
	uint32_t end = month ? month_end(month->day) : 0;

	if (!month || month->users || (end > today && store->days.month_begun == today) ||
	    (store->days.count && store->days.at[0]->day < (end > today ? today : end)))
		return false;
	delete_month(store, why, gone);
	if (end > today)
		store->days.month_begun = today;
	for (unsigned i = 0; i < store->days.count; i++) {
		store->days.at[i]->hours_through = store->days.at[i]->hours_seen = 0;
		store->days.at[i]->hours_due_ms = 0;
	}
	return true;
}

/* The oldest day before today, or before the newest when the clock is behind. */
static struct day *find_oldest(struct sqlite_samples *store, int64_t now_ms)
{
	uint32_t today = (uint32_t)(now_ms / day_ms);
	struct day *oldest = NULL;

	store_lock_all(store);
	for (unsigned i = 0; !oldest && i < store->days.count; i++)
		if ((store->days.at[i]->day < today || i + 1 < store->days.count) &&
		    retention_is_quiet(store, store->days.at[i], now_ms))
			oldest = store->days.at[i];
	store_unlock_all(store);
	return oldest;
}

/* The oldest day: its minutes, then it; the oldest month. False: there is none. */
static bool make_room(struct sqlite_samples *store, int64_t now_ms)
{
	static const char why[] = "--max-disk is reached";
	struct day *gone = NULL, *oldest;
	bool is_gone;

	store_lock_all(store);
	is_gone = make_room_of_month(store, (uint32_t)(now_ms / day_ms), why, &gone);
	store_unlock_all(store);
	oldest = is_gone ? NULL : find_oldest(store, now_ms);
	if (oldest && !oldest->is_reduced && retention_reduce(store, oldest, why))
		return true;
	if (oldest) {
		store_lock_all(store);
		delete_day(store, oldest, why, &gone);
		store_unlock_all(store);
	}
	return let_go(store, gone);
}

/* When nothing older is left that could go, what is taken has to fit into the rest. */
static void set_disk_left(struct sqlite_samples *store, int64_t now_ms)
{
	static const char too_much[] =
		"reports are refused: today's samples alone reach --max-disk";
	uint64_t bytes = store->counters.disk_bytes, left = UINT64_MAX;

	if (store->max_disk_bytes && !find_oldest(store, now_ms))
		left = bytes < store->max_disk_bytes ? store->max_disk_bytes - bytes : 0;
	pthread_mutex_lock(&store->lock);
	store->disk_left_bytes = left;
	pthread_mutex_unlock(&store->lock);
	if (left < store->max_disk_bytes / RESERVE_PART)
		log_fault_write(&store->too_much, 0, LOG_WARN, too_much, "bytes=%llu limit=%llu",
				(unsigned long long)bytes,
				(unsigned long long)store->max_disk_bytes);
	else
		log_fault_over(&store->too_much, too_much);
}

/* --- logs --- */

/* A log that a long query kept from being reused. */
static void cut_logs(struct sqlite_samples *store)
{
	struct day **days;
	unsigned count = retention_days(store, false, &days);

	for (unsigned i = 0; i < count; i++) {
		char path[PATH_ROOM], wal[PATH_ROOM + 8];
		sqlite3 *db;

		day_file_path(store->directory, days[i]->day, path, sizeof path);
		snprintf(wal, sizeof wal, "%s-wal", path);
		if (retention_file_bytes(wal) <= WAL_BYTES_MAX)
			continue;
		db = day_file_create(path, NULL);
		if (db)
			database_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL);
		database_close(db);
	}
	free(days);
}

/* --- the turn --- */

/* What is only in the journal would be defined there once more, as something else. */
static bool may_forget(const struct sqlite_samples *store, const struct day *day, int64_t now_ms,
		       bool is_pressed)
{
	int64_t idle_ms = !is_pressed ? CATALOG_IDLE_MS : day->is_written ? CATALOG_PRESSED_MS : 0;

	/* A clock that was set back does not make it younger. */
	return day->catalog && !day->users && day->has_file &&
	       llabs(now_ms - day->used_ms) >= idle_ms &&
	       (day->is_month ||
		(catalog_is_persisted(day->catalog) && !has_unfolded(store, day->day)));
}

static struct day *find_idle(const struct sqlite_samples *store, int64_t now_ms)
{
	struct day *day;

	for (unsigned i = 0; (day = store_day_at(store, i)); i++)
		if (may_forget(store, day, now_ms, false))
			break;
	return day;
}

/* The one not used for longest that may go. */
static struct day *find_unused(const struct sqlite_samples *store, int64_t now_ms,
			       bool only_written)
{
	struct day *found = NULL, *day;

	for (unsigned i = 0; (day = store_day_at(store, i)); i++)
		if (day->catalog && (day->is_written || !only_written) &&
		    (!found || day->used_ms < found->used_ms) &&
		    may_forget(store, day, now_ms, true))
			found = day;
	return found;
}

/* What takes too much room: all of them; and, before senders are held to their shares of it, those
 * that ingest adds to. NULL: nothing that may go. */
static struct day *find_burden(const struct sqlite_samples *store, int64_t now_ms)
{
	if (store->days.dictionary_bytes > store->dictionary_max)
		return find_unused(store, now_ms, false);
	if (!shares_are_free(store->days.written_bytes, store->dictionary_max))
		return find_unused(store, now_ms, true);
	return NULL;
}

/* What nobody uses, and what is used least while there is too much: one, or false. *is_burden:
 * memory may go back to the kernel. */
static bool forget_one(struct sqlite_samples *store, int64_t now_ms, bool *is_burden)
{
	struct catalog *catalog = NULL;
	struct day *day;

	store_lock_all(store);
	day = find_idle(store, now_ms);
	if (!day && (day = find_burden(store, now_ms))) {
		store->counters.dictionaries_dropped++;
		*is_burden = true;
	}
	if (day)
		catalog = store_take_dictionary(store, day);
	store_unlock_all(store);
	if (day)
		store_close_readers(store, day); /* this thread alone makes it go */
	catalog_release(catalog);
	return day;
}

static void forget_catalogs(struct sqlite_samples *store, int64_t now_ms)
{
	bool is_burden = false;
	struct day *day;

	store_lock_all(store);
	for (unsigned i = 0; (day = store_day_at(store, i)); i++)
		store_count_dictionary(store, day);
	store_unlock_all(store);
	while (forget_one(store, now_ms, &is_burden))
		;
	if (is_burden)
		malloc_trim(0);
}

/* Spans of before their retention leave the files of the days; the room is used again. */
static void forget_traces(struct sqlite_samples *store, int64_t now_ms)
{
	/* As what is older: by a clock that is not believed at once. */
	int64_t from_ms = now_ms - aging_behind_ms(&store->days.aging) - store->trace_keep_ms;
	struct day **days;
	unsigned count;

	if (now_ms < store->traces_due_ms && store->traces_due_ms - now_ms <= TRACES_EVERY_MS)
		return;
	store->traces_due_ms = now_ms + TRACES_EVERY_MS;
	count = retention_days(store, false, &days);
	for (unsigned i = 0; i < count; i++) {
		int64_t start_ms = days[i]->day * day_ms;
		char path[PATH_ROOM], sql[80];
		sqlite3 *db;

		if (start_ms >= from_ms || days[i]->is_reduced)
			continue;
		day_file_path(store->directory, days[i]->day, path, sizeof path);
		snprintf(sql, sizeof sql, "DELETE FROM spans WHERE bucket < %lld",
			 (long long)((from_ms - start_ms) / SAMPLES_BUCKET_MS));
		db = day_file_create(path, NULL);
		if (db)
			database_exec(db, sql, NULL);
		database_close(db);
	}
	free(days);
}

void store_tidy(struct sqlite_samples *store, int64_t now_ms)
{
	struct day *gone = NULL;

	store_lock_files(store);
	store_lock_all(store);
	retention_age(store, now_ms);
	delete_old(store, now_ms, &gone);
	recent_age(&store->recent, now_ms);
	store_unlock_all(store);
	let_go(store, gone);
	forget_catalogs(store, now_ms);
	reduce_old(store, now_ms);
	forget_traces(store, now_ms);
	cut_logs(store);
	erase_turn(store, now_ms);
	while (is_too_much(store) && make_room(store, now_ms))
		;
	retention_measure(store, now_ms);
	set_disk_left(store, now_ms);
	store_hold_reserve(store);
	store_unlock_files(store);
	rollup_turn(store, now_ms);
	/* What this thread read itself does not wake it. */
	pthread_mutex_lock(&store->lock);
	store->wants_room = false;
	pthread_mutex_unlock(&store->lock);
}
