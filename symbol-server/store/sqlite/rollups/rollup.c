/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/rollups/rollup_pass.h"

#include <string.h>
#include <time.h>

#include "common/log.h"
#include "symbol-server/store/sqlite/days/hours.h"

enum {
	COMMIT_PAIRS = 4 << 20, /* of one transaction; one bucket is always whole */
};

/* --- opening --- */

static bool prepare(struct rollup_pass *pass, sqlite3 *db, struct error *err)
{
	pass->get_accounts = database_prepare(db,
					      "SELECT data FROM rollup_accounts WHERE level = ? "
					      "AND tenant = ? AND type = ? AND bucket = ?",
					      err);
	return pass->get_accounts && rollup_pass_prepare(pass, db, DAY_RAW, false, db, err);
}

/* --- which buckets --- */

struct buckets {
	struct day_mark at[ROLLUPS_PER_DAY];
	unsigned count;
	int64_t due_ms; /* when more will be there to do; INT64_MAX: not before the next fold */
};

static int64_t bucket_end_ms(const struct day *day, uint32_t minute)
{
	return day->day * day_ms + (minute + ROLLUP_MINUTES) * (int64_t)SAMPLES_BUCKET_MS;
}

static bool find_buckets(const struct sqlite_samples *store, const struct day *day, sqlite3 *db,
			 int64_t now_ms, struct buckets *buckets, struct error *err)
{
	int64_t late_ms = day->rolled_late_ms ? day->rolled_late_ms + store->rollup_late_pause_ms
					      : 0;
	sqlite3_stmt *find = database_prepare(db,
					      "SELECT bucket, through, newest FROM rollup_marks "
					      "WHERE newest > through ORDER BY bucket",
					      err);
	bool ok = find;

	buckets->count = 0;
	buckets->due_ms = INT64_MAX;
	while (database_row(find, &ok, err)) {
		struct day_mark mark = {(uint32_t)sqlite3_column_int64(find, 0),
					(uint64_t)sqlite3_column_int64(find, 1),
					(uint64_t)sqlite3_column_int64(find, 2)};
		int64_t due_ms = bucket_end_ms(day, mark.bucket) + ROLLUP_CLOSED_MS;

		if (mark.through && due_ms < late_ms)
			due_ms = late_ms;
		if (due_ms > now_ms) {
			if (due_ms < buckets->due_ms)
				buckets->due_ms = due_ms;
		} else if (buckets->count < ROLLUPS_PER_DAY) {
			buckets->at[buckets->count++] = mark;
		}
	}
	sqlite3_finalize(find);
	return ok;
}

/* --- one day --- */

static bool mark_through(sqlite3 *db, uint32_t bucket, uint64_t through, struct error *err)
{
	const int64_t numbers[] = {(int64_t)through, bucket};

	return database_exec_with(db, "UPDATE rollup_marks SET through = ? WHERE bucket = ?",
				  numbers, 2, err);
}

static bool roll_bucket(struct rollup_pass *pass, sqlite3 *db, const struct day_mark *mark,
			struct error *err)
{
	uint32_t end = mark->bucket + ROLLUP_MINUTES;

	pass->above = mark->through;
	return rollup_pass_samples(pass, mark->bucket, end, mark->bucket, err) &&
	       rollup_pass_accounts(pass, mark->bucket, end, mark->bucket, err) &&
	       mark_through(db, mark->bucket, pass->through, err);
}

/* What the dictionary got meanwhile goes with the rows that refer to it. */
bool rollup_pass_commit(struct rollup_pass *pass, struct day_writer *writer, struct error *err)
{
	struct sqlite_samples *store = pass->store;
	struct catalog *catalog = pass->to;
	struct catalog_mark to;

	pthread_mutex_lock(&store->lock);
	to = catalog_mark(catalog);
	pthread_mutex_unlock(&store->lock);
	if (!day_writer_definitions(writer, catalog, &catalog->persisted, &to, err) ||
	    !database_exec(writer->db, "COMMIT", err))
		return false;
	pthread_mutex_lock(&store->lock);
	catalog->persisted = to;
	for (unsigned i = 0; i < CATALOG_KINDS; i++)
		if (catalog->logged.count[i] < to.count[i])
			catalog->logged.count[i] = to.count[i];
	store->counters.rollup_pairs += pass->pairs_read;
	pthread_mutex_unlock(&store->lock);
	pass->pairs_read = pass->rows = 0;
	return true;
}

static bool is_time_over(const struct sqlite_samples *store, int64_t until_ms)
{
	return store->is_closing || store_now_ms() > until_ms;
}

static void day_behind(struct rollup_pass *pass, const struct buckets *buckets, unsigned next)
{
	pass->day->behind_ms = next < buckets->count
				       ? bucket_end_ms(pass->day, buckets->at[next].bucket) +
						 ROLLUP_CLOSED_MS
				       : 0;
}

static bool roll_buckets(struct rollup_pass *pass, struct day_writer *writer,
			 const struct buckets *buckets, int64_t until_ms, bool *is_done,
			 struct error *err)
{
	for (unsigned i = 0; i < buckets->count; i++) {
		if (!roll_bucket(pass, writer->db, &buckets->at[i], err))
			return false;
		*is_done = i + 1 == buckets->count;
		day_behind(pass, buckets, i + 1);
		if (!*is_done && pass->pairs_read < COMMIT_PAIRS &&
		    !is_time_over(pass->store, until_ms))
			continue;
		if (!rollup_pass_commit(pass, writer, err))
			return false;
		if (*is_done || is_time_over(pass->store, until_ms))
			return true;
		if (!database_exec(writer->db, "BEGIN IMMEDIATE", err))
			return false;
	}
	return true;
}

static bool roll_open_day(struct sqlite_samples *store, struct day *day, struct day_writer *writer,
			  const struct buckets *buckets, uint64_t folded, int64_t until_ms,
			  bool *is_done, struct error *err)
{
	struct rollup_pass pass = {
		.store = store, .level = DAY_10M, .account_level = DAY_10M, .through = folded};
	struct catalog *catalog = store_load_day(store, day, true, err);
	bool ok = false;

	if (!catalog)
		return false;
	pass.from = pass.to = catalog;
	pass.day = day;
	day_behind(&pass, buckets, 0);
	pthread_mutex_lock(&store->lock);
	pass.mark = catalog_mark(catalog);
	pthread_mutex_unlock(&store->lock);
	ok = prepare(&pass, writer->db, err) &&
	     rollup_pass_make_room(&pass, pass.mark.count[CATALOG_STACKS], err) &&
	     roll_buckets(&pass, writer, buckets, until_ms, is_done, err);
	rollup_pass_release(&pass);
	catalog_release(catalog);
	return ok;
}

static bool has_late(const struct buckets *buckets)
{
	for (unsigned i = 0; i < buckets->count; i++)
		if (buckets->at[i].through)
			return true;
	return false;
}

/* The ten-minute roll-ups of what is closed of one day, newest fold included, until until_ms. The
 * files are locked, of the fold thread. *is_done: nothing is left to do now. */
static bool roll_day(struct sqlite_samples *store, struct day *day, int64_t now_ms,
		     int64_t until_ms, bool *is_done, struct error *err)
{
	struct day_writer writer = {0};
	struct buckets buckets;
	uint64_t folded = 0;
	char path[4096];
	bool ok;

	*is_done = true;
	day_file_path(store->directory, day->day, path, sizeof path);
	ok = day_writer_begin(&writer, path, 0, &folded, err) &&
	     find_buckets(store, day, writer.db, now_ms, &buckets, err);
	if (ok && buckets.count) {
		*is_done = false;
		ok = roll_open_day(store, day, &writer, &buckets, folded, until_ms, is_done, err);
		if (ok && has_late(&buckets))
			day->rolled_late_ms = now_ms;
		day->hours_due_ms = 0;
	}
	day_writer_close(&writer);
	if (ok && *is_done) {
		day->rolled_through = folded;
		day->rollup_due_ms = buckets.due_ms;
	}
	return ok;
}

/* --- a turn --- */

static int64_t cpu_us(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (int64_t)used.tv_sec * 1000000 + used.tv_nsec / 1000;
}

static bool hours_may_be_due(const struct day *day, int64_t now_ms)
{
	return day->rollup_due_ms > now_ms && day->rolled_through >= day->folded_through &&
	       (day->hours_due_ms <= now_ms ||
		(day->hours_due_ms == INT64_MAX && day->hours_seen < day->folded_through));
}

static bool samples_may_be_due(const struct day *day, int64_t now_ms)
{
	return day->folded_through > day->rolled_through || day->rollup_due_ms <= now_ms;
}

static struct day *find_due(struct sqlite_samples *store, int64_t now_ms,
			    bool (*is_due)(const struct day *day, int64_t now_ms))
{
	struct day *found = NULL;

	store_lock_days(store);
	for (unsigned i = store->days.count; !found && i--;) {
		struct day *day = store->days.at[i];

		if (day->has_file && !day->is_gone && day->rollup_retry_ms <= now_ms &&
		    is_due(day, now_ms))
			found = day;
	}
	store_unlock_days(store);
	return found;
}

static bool turn_day(struct sqlite_samples *store, struct day *day, bool is_hours, int64_t now_ms,
		     int64_t until_ms)
{
	struct error err = {0};
	bool is_done, ok;
	unsigned seen; /* a late report may find the same damage without the files' lock */

	store_lock_files(store);
	seen = store_set_asides(store, day);
	ok = is_hours ? hours_of_day(store, day, now_ms, until_ms, &is_done, &err)
		      : roll_day(store, day, now_ms, until_ms, &is_done, &err);
	/* Which of the two files is damaged is found when the day is read for its own sake. */
	if (!ok && err.kind == ERROR_FORMAT && !is_hours)
		store_set_aside(store, day, seen, err.message);
	store_unlock_files(store);
	if (ok) {
		log_fault_over(&day->not_rolled_up, "samples not rolled up");
		return true;
	}
	day->rollup_retry_ms = now_ms + ROLLUP_RETRY_MS;
	log_fault_write(&day->not_rolled_up, 0, LOG_ERROR, "samples not rolled up",
			"reason=\"%s\" again_in=%ds", err.message, ROLLUP_RETRY_MS / 1000);
	return false;
}

/* Of the day that is behind the longest; one that was not looked at yet is behind since its end. */
static uint64_t lag_ms(const struct sqlite_samples *store, int64_t now_ms)
{
	int64_t since_ms = now_ms;

	for (unsigned i = 0; i < store->days.count; i++) {
		const struct day *day = store->days.at[i];
		int64_t end_ms = (day->day + 1) * day_ms;

		if (day->behind_ms && day->behind_ms < since_ms)
			since_ms = day->behind_ms;
		else if (day->has_file && !day->rolled_through && end_ms < since_ms)
			since_ms = end_ms;
	}
	return (uint64_t)(now_ms - since_ms);
}

void rollup_turn(struct sqlite_samples *store, int64_t now_ms)
{
	int64_t until_ms = store_now_ms() + ROLLUP_SLICE_MS, before_us = cpu_us();
	struct day *day;

	if (store->no_rollups || store->is_short) /* the fold thread's own, who sets it too */
		return;
	while (!is_time_over(store, until_ms) &&
	       (day = find_due(store, now_ms, samples_may_be_due)))
		turn_day(store, day, false, now_ms, until_ms);
	while (!is_time_over(store, until_ms) && (day = find_due(store, now_ms, hours_may_be_due)))
		turn_day(store, day, true, now_ms, until_ms);
	store_lock_all(store);
	store->counters.rollup_cpu_us += (uint64_t)(cpu_us() - before_us);
	store->counters.rollup_lag_ms = lag_ms(store, now_ms);
	store_unlock_all(store);
}
