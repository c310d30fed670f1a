/* SPDX-License-Identifier: Apache-2.0 */
/* How much disk samples take, and will take. */
#include "symbol-server/store/sqlite/rollups/retention.h"

#include <stdio.h>
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

uint64_t retention_disk_bytes(struct sqlite_samples *store)
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

void retention_forecast(struct sqlite_samples *store, int64_t now_ms)
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
