/* SPDX-License-Identifier: Apache-2.0 */
/* What is too old or too much goes: minutes first, then the roll-ups of that time. A day whose
 * minutes go becomes a new file with what stays and takes the old one's name, so that the disk gets
 * its room back at once. The fold thread's. */
#include "symbol-server/store/sqlite/rollups/rollup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "symbol-server/store/sqlite/days/hours.h"

enum {
	WAL_BYTES_MAX = 32 << 20, /* a larger one is written back and cut */
	RESERVE_PART = 16,        /* of --max-disk stays free for the next fold */
	RESERVE_BYTES_MAX = 128 << 20,
	READERS_WAIT_US = 10000, /* for queries that have the day's file open */
	READERS_TRIES = 200,
	FORECAST_DAYS = 3, /* the last ones say how much comes */
	ROLLED_PART = 4,   /* of a day that stays when its minutes go, until there is such a day */
};

/* --- how much --- */

int64_t store_kept_from_ms(const struct sqlite_samples *store, enum samples_resolution resolution,
			   int64_t now_ms)
{
	int64_t keep_ms = store->keep_ms[resolution];

	/* Roll-ups without a time of their own are kept as long as what they were made of. */
	while (!keep_ms && resolution > SAMPLES_RAW)
		keep_ms = store->keep_ms[--resolution];
	return keep_ms && keep_ms < now_ms ? now_ms - keep_ms : 0;
}

static uint64_t file_bytes(const char *path)
{
	struct stat status;

	return stat(path, &status) ? 0 : (uint64_t)status.st_blocks * 512;
}

/* A database with what SQLite keeps beside it. */
static uint64_t database_bytes(const char *path)
{
	char file[4200];
	uint64_t bytes = file_bytes(path);

	snprintf(file, sizeof file, "%s-wal", path);
	bytes += file_bytes(file);
	snprintf(file, sizeof file, "%s-shm", path);
	return bytes + file_bytes(file);
}

static uint64_t day_bytes(const struct sqlite_samples *store, uint32_t day)
{
	char path[4096];

	day_file_path(store->directory, day, path, sizeof path);
	return database_bytes(path);
}

/* Everything below the directory that samples take. */
static uint64_t disk_bytes(struct sqlite_samples *store)
{
	struct journal_counters journal;
	char path[4096];
	uint64_t bytes, raw = 0, reduced = 0, hours = 0;

	journal_counters(store->journal, &journal);
	for (unsigned i = 0; i < store->day_count; i++) {
		const struct day *day = store->days[i];

		if (day->has_file)
			*(day->is_reduced ? &reduced : &raw) += day_bytes(store, day->day);
	}
	for (unsigned i = 0; i < store->month_count; i++) {
		store_day_path(store, store->months[i], path, sizeof path);
		hours += database_bytes(path);
	}
	snprintf(path, sizeof path, "%s/agents.db", store->directory);
	bytes = database_bytes(path) + journal.disk_bytes;
	store->counters.level_bytes[SAMPLES_RAW] = raw;
	store->counters.level_bytes[SAMPLES_10M] = reduced;
	store->counters.level_bytes[SAMPLES_1H] = hours;
	return bytes + raw + reduced + hours;
}

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

static void unlink_database(const char *path)
{
	static const char *const suffixes[] = {"-wal", "-shm", ""};
	char file[4200];

	for (unsigned i = 0; i < 3; i++) {
		snprintf(file, sizeof file, "%s%s", path, suffixes[i]);
		if (unlink(file) && errno != ENOENT)
			log_warn("file of samples not deleted", "path=\"%s\" error=\"%s\"", file,
				 strerror(errno));
	}
}

static void delete_day(struct sqlite_samples *store, struct day *day, const char *why)
{
	char path[4096];

	day_file_path(store->directory, day->day, path, sizeof path);
	day_close_readers(day);
	unlink_database(path);
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
	unlink_database(path);
	log_info("month of hours deleted", "path=\"%s\" reason=\"%s\"", path, why);
	store->counters.months_deleted++;
	store_drop_month(store, at);
}

/* --- minutes go, roll-ups stay --- */

static bool copy_reduced(sqlite3 *db, const char *from, struct error *err)
{
	sqlite3_stmt *attach = database_prepare(db, "ATTACH ? AS old", err);
	bool ok = attach;

	if (attach) {
		sqlite3_bind_text(attach, 1, from, -1, SQLITE_STATIC);
		ok = database_run(attach, err);
	}
	sqlite3_finalize(attach);
	return ok && database_exec(db,
				   "BEGIN;"
				   "DELETE FROM rollup_marks;"
				   "INSERT INTO facts SELECT * FROM old.facts;"
				   "INSERT OR REPLACE INTO facts VALUES ('reduced', 1);"
				   "INSERT INTO definitions SELECT * FROM old.definitions;"
				   "INSERT INTO rollups SELECT * FROM old.rollups;"
				   "INSERT INTO rollup_accounts SELECT * FROM old.rollup_accounts;"
				   "INSERT INTO rollup_marks SELECT * FROM old.rollup_marks;"
				   "COMMIT;"
				   "DETACH old",
				   err);
}

static bool sync_file(const char *path, struct error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool ok = fd >= 0 && !fsync(fd);

	if (!ok)
		error_set_system(err, errno, "sync '%s'", path);
	if (fd >= 0)
		close(fd);
	return ok;
}

/* The new file is on disk before it has the name. */
static bool write_reduced(const char *from, const char *path, struct error *err)
{
	sqlite3 *db;
	bool ok;

	unlink_database(path);
	db = day_file_create(path, err);
	if (!db)
		return false;
	ok = database_exec(db, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF", err) &&
	     copy_reduced(db, from, err) && database_exec(db, "PRAGMA journal_mode = WAL", err);
	database_close(db);
	ok = ok && sync_file(path, err);
	if (!ok)
		unlink_database(path);
	return ok;
}

/* Nothing of the old file is in its log any more, and nobody has it open: whoever closes it last
 * would write the log back and delete it, which is the new file's by then. */
static bool cut_log(const char *path, struct error *err)
{
	sqlite3 *db = day_file_create(path, err);
	char wal[4200];
	bool ok = db && database_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", err);

	database_close(db);
	snprintf(wal, sizeof wal, "%s-wal", path);
	return ok &&
	       (!file_bytes(wal) || error_set(err, ERROR_BUSY, "the log of '%s' is in use", path));
}

/* With the store's lock when it is true. */
static bool lock_unused(struct sqlite_samples *store, const struct day *day)
{
	for (unsigned i = 0; i < READERS_TRIES; i++) {
		pthread_mutex_lock(&store->lock);
		if (!day->users)
			return true;
		pthread_mutex_unlock(&store->lock);
		usleep(READERS_WAIT_US);
	}
	return false;
}

static bool take_name(struct sqlite_samples *store, struct day *day, const char *new_path,
		      const char *path, struct error *err)
{
	bool ok;

	if (!lock_unused(store, day))
		return error_set(err, ERROR_BUSY, "'%s' is being read", path);
	day_close_readers(day);
	ok = cut_log(path, err);
	if (ok && rename(new_path, path))
		ok = error_set_system(err, errno, "rename '%s'", new_path);
	if (ok) {
		day->is_reduced = true;
		store->counters.days_reduced++;
	}
	pthread_mutex_unlock(&store->lock);
	return ok && (!fsync(store->directory_fd) ||
		      error_set_system(err, errno, "sync '%s'", store->directory));
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
	bool is = find && sqlite3_step(find) == SQLITE_DONE;

	sqlite3_finalize(find);
	database_close(db);
	return is;
}

static bool reduce_day(struct sqlite_samples *store, struct day *day, const char *why)
{
	char path[4096], new_path[4200];
	struct error err = {0};
	bool ok;

	day_file_path(store->directory, day->day, path, sizeof path);
	snprintf(new_path, sizeof new_path, "%s.new", path);
	ok = is_rolled_up(path, &err) && write_reduced(path, new_path, &err) &&
	     take_name(store, day, new_path, path, &err);
	if (ok)
		log_info("minutes of a day deleted, roll-ups kept", "path=\"%s\" reason=\"%s\"",
			 path, why);
	else
		unlink_database(new_path);
	if (!ok && err.kind && err.kind != ERROR_BUSY)
		log_error("minutes of a day not deleted", "path=\"%s\" reason=\"%s\"", path,
			  err.message);
	return ok;
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
		reduce_day(store, day, "older than --retention");
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
	is = disk_bytes(store) > store->max_disk_bytes - reserve;
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

/* The oldest day before today: its minutes, then it; the oldest month. False: there is none. */
static bool make_room(struct sqlite_samples *store, int64_t now_ms)
{
	static const char why[] = "--max-disk is reached";
	uint32_t today = (uint32_t)(now_ms / day_ms);
	struct day *oldest = NULL;
	bool is_month_gone;

	pthread_mutex_lock(&store->lock);
	is_month_gone = make_room_of_month(store, today, why);
	for (unsigned i = 0; !oldest && i < store->day_count && store->days[i]->day < today; i++)
		if (is_quiet(store, store->days[i], now_ms))
			oldest = store->days[i];
	pthread_mutex_unlock(&store->lock);
	if (is_month_gone)
		return true;
	if (!oldest)
		return false;
	if (!oldest->is_reduced && reduce_day(store, oldest, why))
		return true;
	pthread_mutex_lock(&store->lock);
	delete_day(store, oldest, why);
	pthread_mutex_unlock(&store->lock);
	return true;
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
		if (!store->days[i]->has_file || file_bytes(wal) <= WAL_BYTES_MAX)
			continue;
		db = day_file_create(path, NULL);
		if (db)
			database_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL);
		database_close(db);
	}
}

/* --- forecast --- */

/* What a day of minutes and a day of roll-ups take, from the last ones that are over; from today's
 * when there is none. */
static void measure_days(const struct sqlite_samples *store, int64_t now_ms, double *raw,
			 double *reduced)
{
	int64_t today = now_ms / day_ms;
	double sums[2] = {0, 0};
	unsigned counts[2] = {0, 0};

	for (unsigned i = store->day_count; i--;) {
		const struct day *day = store->days[i];

		if (!day->has_file || day->day >= today || counts[day->is_reduced] == FORECAST_DAYS)
			continue;
		sums[day->is_reduced] += (double)day_bytes(store, day->day);
		counts[day->is_reduced]++;
	}
	if (!counts[0] && now_ms % day_ms) {
		sums[0] = (double)day_bytes(store, (uint32_t)today) * (double)day_ms /
			  (double)(now_ms % day_ms);
		counts[0] = 1;
	}
	*raw = counts[0] ? sums[0] / counts[0] : 0;
	*reduced = counts[1] ? sums[1] / counts[1] : *raw / ROLLED_PART;
}

/* Of hours per day, from the months there are. */
static double measure_hours(const struct sqlite_samples *store, int64_t now_ms)
{
	int64_t end_ms;

	if (!store->month_count)
		return 0;
	end_ms = month_end(store->months[store->month_count - 1]->day) * day_ms;
	if (end_ms > now_ms)
		end_ms = now_ms;
	/* The oldest may have begun in the middle. */
	return (double)store->counters.level_bytes[SAMPLES_1H] * (double)day_ms /
	       (double)(end_ms - store->months[0]->day * day_ms + 1);
}

/* Under the lock, after disk_bytes(). */
static void forecast(struct sqlite_samples *store, int64_t now_ms)
{
	struct samples_counters *counters = &store->counters;
	double kept[SAMPLES_RESOLUTIONS], raw, reduced, all;

	counters->forecast_bytes = counters->disk_full_seconds = 0;
	measure_days(store, now_ms, &raw, &reduced);
	for (unsigned i = 0; i < SAMPLES_RESOLUTIONS; i++) {
		int64_t from_ms = store_kept_from_ms(store, i, now_ms);

		/* A file goes when all of it is too old: one more than what is kept. */
		kept[i] = from_ms ? (double)(now_ms - from_ms) / (double)day_ms + 1 : 0;
	}
	all = (double)(counters->disk_bytes - counters->level_bytes[SAMPLES_RAW] -
		       counters->level_bytes[SAMPLES_10M] - counters->level_bytes[SAMPLES_1H]);
	all += raw * kept[SAMPLES_RAW] + reduced * (kept[SAMPLES_10M] - kept[SAMPLES_RAW]) +
	       measure_hours(store, now_ms) * (kept[SAMPLES_1H] + DAYS_PER_MONTH_MAX);
	if (kept[SAMPLES_RAW] && kept[SAMPLES_10M] && kept[SAMPLES_1H])
		counters->forecast_bytes = (uint64_t)all;
	if (store->max_disk_bytes > counters->disk_bytes && raw > 0 &&
	    (!counters->forecast_bytes || all > (double)store->max_disk_bytes))
		counters->disk_full_seconds =
			(uint64_t)((double)(store->max_disk_bytes - counters->disk_bytes) / raw *
				   ((double)day_ms / 1000)) +
			1;
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

void store_tidy(struct sqlite_samples *store, int64_t now_ms)
{
	store_lock_files(store);
	pthread_mutex_lock(&store->lock);
	delete_old(store, now_ms);
	forget_catalogs(store, now_ms);
	pthread_mutex_unlock(&store->lock);
	reduce_old(store, now_ms);
	cut_logs(store);
	while (is_too_much(store) && make_room(store, now_ms))
		;
	pthread_mutex_lock(&store->lock);
	store->counters.disk_bytes = disk_bytes(store);
	forecast(store, now_ms);
	pthread_mutex_unlock(&store->lock);
	store_unlock_files(store);
	rollup_turn(store, now_ms);
}
