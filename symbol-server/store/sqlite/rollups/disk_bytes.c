/* SPDX-License-Identifier: Apache-2.0 */
/* How much disk samples take, and will take. */
#include "symbol-server/store/sqlite/rollups/retention.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "symbol-server/store/sqlite/days/hours.h"

enum {
	FORECAST_DAYS = 3, /* the last ones say how much comes */
	ROLLED_PART = 4,   /* of a day that stays when its minutes go, until there is such a day */
};

/* --- now --- */

uint64_t retention_file_bytes(const char *path)
{
	struct stat status;

	return stat(path, &status) ? 0 : (uint64_t)status.st_blocks * 512;
}

/* A database with what SQLite keeps beside it. */
static uint64_t database_bytes(const char *path)
{
	char file[4200];
	uint64_t bytes = retention_file_bytes(path);

	snprintf(file, sizeof file, "%s-wal", path);
	bytes += retention_file_bytes(file);
	snprintf(file, sizeof file, "%s-shm", path);
	return bytes + retention_file_bytes(file);
}

static uint64_t day_bytes(const struct sqlite_samples *store, uint32_t day)
{
	char path[4096];

	day_file_path(store->directory, day, path, sizeof path);
	return database_bytes(path);
}

unsigned retention_days(struct sqlite_samples *store, bool are_months, struct day ***days)
{
	unsigned count = 0;

	store_lock_days(store);
	*days = calloc((are_months ? store->days.month_count : store->days.count) + 1,
		       sizeof **days);
	for (unsigned i = 0;
	     *days && i < (are_months ? store->days.month_count : store->days.count); i++) {
		struct day *day = are_months ? store->days.months[i] : store->days.at[i];

		if (day->has_file)
			(*days)[count++] = day;
	}
	store_unlock_days(store);
	return count;
}

/* Files are looked at without the lock: reports do not wait for a disk that is slow to say how
 * large they are. */
struct measure {
	const struct sqlite_samples *store;
	struct day **days, **months;
	unsigned day_count, month_count;
	uint64_t *bytes; /* of each day */
	uint64_t level_bytes[SAMPLES_RESOLUTIONS], all;
};

static bool measure_take(struct measure *measure, struct sqlite_samples *store)
{
	struct journal_counters journal;
	char path[4096];

	*measure = (struct measure){.store = store};
	measure->day_count = retention_days(store, false, &measure->days);
	measure->month_count = retention_days(store, true, &measure->months);
	measure->bytes = calloc(measure->day_count + 1, sizeof *measure->bytes);
	if (!measure->bytes)
		return false;
	for (unsigned i = 0; i < measure->day_count; i++) {
		const struct day *day = measure->days[i];

		measure->bytes[i] = day_bytes(store, day->day);
		measure->level_bytes[day->is_reduced ? SAMPLES_10M : SAMPLES_RAW] +=
			measure->bytes[i];
	}
	for (unsigned i = 0; i < measure->month_count; i++) {
		store_day_path(store, measure->months[i], path, sizeof path);
		measure->level_bytes[SAMPLES_1H] += database_bytes(path);
	}
	journal_counters(store->journal, &journal);
	snprintf(path, sizeof path, "%s/agents.db", store->directory);
	measure->all = database_bytes(path) + journal.disk_bytes;
	for (unsigned i = 0; i < SAMPLES_RESOLUTIONS; i++)
		measure->all += measure->level_bytes[i];
	return true;
}

static void measure_release(struct measure *measure)
{
	free(measure->days);
	free(measure->months);
	free(measure->bytes);
}

uint64_t retention_disk_bytes(struct sqlite_samples *store)
{
	struct measure measure;
	uint64_t bytes = 0;

	if (measure_take(&measure, store))
		bytes = measure.all;
	measure_release(&measure);
	return bytes;
}

/* --- forecast --- */

/* What a day of minutes and a day of roll-ups take, from the last ones that are over; from today's
 * when there is none. */
static void measure_days(const struct measure *measure, int64_t now_ms, double *raw,
			 double *reduced)
{
	int64_t today = now_ms / day_ms;
	double sums[2] = {0, 0}, todays = 0;
	unsigned counts[2] = {0, 0};

	for (unsigned i = measure->day_count; i--;) {
		const struct day *day = measure->days[i];

		if (day->day == today)
			todays = (double)measure->bytes[i];
		if (day->day >= today || counts[day->is_reduced] == FORECAST_DAYS)
			continue;
		sums[day->is_reduced] += (double)measure->bytes[i];
		counts[day->is_reduced]++;
	}
	if (!counts[0] && now_ms % day_ms) {
		sums[0] = todays * (double)day_ms / (double)(now_ms % day_ms);
		counts[0] = 1;
	}
	*raw = counts[0] ? sums[0] / counts[0] : 0;
	*reduced = counts[1] ? sums[1] / counts[1] : *raw / ROLLED_PART;
}

/* Of hours per day, from the months there are. */
static double measure_hours(const struct measure *measure, int64_t now_ms)
{
	int64_t end_ms;

	if (!measure->month_count)
		return 0;
	end_ms = month_end(measure->months[measure->month_count - 1]->day) * day_ms;
	if (end_ms > now_ms)
		end_ms = now_ms;
	/* The oldest may have begun in the middle. */
	return (double)measure->level_bytes[SAMPLES_1H] * (double)day_ms /
	       (double)(end_ms - measure->months[0]->day * day_ms + 1);
}

/* Under the lock. */
static void forecast(struct sqlite_samples *store, const struct measure *measure, int64_t now_ms)
{
	struct samples_counters *counters = &store->counters;
	double kept[SAMPLES_RESOLUTIONS], raw, reduced, all;

	counters->forecast_bytes = counters->disk_full_seconds = 0;
	measure_days(measure, now_ms, &raw, &reduced);
	for (unsigned i = 0; i < SAMPLES_RESOLUTIONS; i++) {
		int64_t from_ms = store_kept_from_ms(store, i, now_ms);

		/* A file goes when all of it is too old: one more than what is kept. */
		kept[i] = from_ms ? (double)(now_ms - from_ms) / (double)day_ms + 1 : 0;
	}
	all = (double)(counters->disk_bytes - counters->level_bytes[SAMPLES_RAW] -
		       counters->level_bytes[SAMPLES_10M] - counters->level_bytes[SAMPLES_1H]);
	all += raw * kept[SAMPLES_RAW] + reduced * (kept[SAMPLES_10M] - kept[SAMPLES_RAW]) +
	       measure_hours(measure, now_ms) * (kept[SAMPLES_1H] + DAYS_PER_MONTH_MAX);
	if (kept[SAMPLES_RAW] && kept[SAMPLES_10M] && kept[SAMPLES_1H])
		counters->forecast_bytes = (uint64_t)all;
	if (store->max_disk_bytes > counters->disk_bytes && raw > 0 &&
	    (!counters->forecast_bytes || all > (double)store->max_disk_bytes))
		counters->disk_full_seconds =
			(uint64_t)((double)(store->max_disk_bytes - counters->disk_bytes) / raw *
				   ((double)day_ms / 1000)) +
			1;
}

void retention_measure(struct sqlite_samples *store, int64_t now_ms)
{
	struct measure measure;

	if (measure_take(&measure, store)) {
		pthread_mutex_lock(&store->lock);
		store->counters.disk_bytes = measure.all;
		memcpy(store->counters.level_bytes, measure.level_bytes,
		       sizeof measure.level_bytes);
		forecast(store, &measure, now_ms);
		pthread_mutex_unlock(&store->lock);
	}
	measure_release(&measure);
}
