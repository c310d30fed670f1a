/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/rollup.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"

int64_t store_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* --- the list --- */

struct day *store_find_day(struct sqlite_samples *store, uint32_t number)
{
	unsigned low = 0, high = store->day_count;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (store->days[middle]->day < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low < store->day_count && store->days[low]->day == number ? store->days[low] : NULL;
}

static struct day *add_day(struct sqlite_samples *store, uint32_t number)
{
	struct day *day = calloc(1, sizeof *day);
	unsigned at = store->day_count;

	if (!day || store->day_count >= DAYS_MAX) {
		free(day);
		return NULL;
	}
	day->day = number;
	for (; at && store->days[at - 1]->day > number; at--)
		store->days[at] = store->days[at - 1];
	store->days[at] = day;
	store->day_count++;
	return day;
}

bool store_find_days(struct sqlite_samples *store, struct error *err)
{
	DIR *directory = opendir(store->directory);
	struct dirent *entry;
	bool ok = true;

	if (!directory)
		return error_set_system(err, errno, "read directory '%s'", store->directory);
	while (ok && (entry = readdir(directory))) {
		struct day *day;
		uint32_t number;

		if (!day_file_parse(entry->d_name, &number))
			continue;
		day = add_day(store, number);
		ok = day || error_set(err, ERROR_LIMIT, "more than %d days of samples", DAYS_MAX);
		if (day)
			day->has_file = true;
	}
	closedir(directory);
	return ok;
}

static void close_readers(struct day *day)
{
	while (day->idle_count)
		day_reader_close(day->idle[--day->idle_count]);
}

static void free_day(struct day *day)
{
	close_readers(day);
	catalog_release(day->catalog);
	free(day);
}

void store_free_days(struct sqlite_samples *store)
{
	for (unsigned i = 0; i < store->day_count; i++)
		free_day(store->days[i]);
	free(store->days);
	store->days = NULL;
	store->day_count = 0;
}

void store_leave_day(struct sqlite_samples *store, struct day *day)
{
	(void)store;
	if (!--day->users && day->is_gone)
		free_day(day);
}

struct day_reader *day_take_reader(struct day *day)
{
	return day->idle_count ? day->idle[--day->idle_count] : NULL;
}

void day_give_reader(struct day *day, struct day_reader *reader)
{
	if (reader && !day->is_gone && day->has_file && day->idle_count < IDLE_READERS)
		day->idle[day->idle_count++] = reader;
	else
		day_reader_close(reader);
}

/* --- the dictionary --- */

/* What the file defines, without looking at the day; the reader is the caller's. */
static struct catalog *read_catalog(const struct sqlite_samples *store, uint32_t day,
				    struct day_reader **reader, uint64_t *folded, struct error *err)
{
	struct catalog *catalog = catalog_new();
	char path[4096];

	if (!catalog) {
		error_set(err, ERROR_MEMORY, "no memory for a day's dictionary");
		return NULL;
	}
	day_file_path(store->directory, day, path, sizeof path);
	*reader = day_reader_open(path, err);
	if (!*reader || !day_reader_begin(*reader, folded, err))
		goto fail;
	if (!day_reader_catalog(*reader, catalog, err)) {
		day_reader_end(*reader);
		goto fail;
	}
	day_reader_end(*reader);
	return catalog;
fail:
	day_reader_close(*reader);
	*reader = NULL;
	catalog_release(catalog);
	return NULL;
}

/* A damaged file costs its day, not the start: the caller then begins an empty dictionary. */
static struct catalog *load_catalog(struct sqlite_samples *store, struct day *day,
				    struct error *err)
{
	struct day_reader *reader = NULL;
	uint64_t folded;
	struct catalog *catalog = read_catalog(store, day->day, &reader, &folded, err);

	if (!catalog)
		return NULL;
	day->folded_through = folded;
	day_give_reader(day, reader);
	return catalog;
}

static void rename_damaged(struct sqlite_samples *store, struct day *day, const char *why)
{
	char path[4096];

	close_readers(day);
	day_file_path(store->directory, day->day, path, sizeof path);
	store->counters.days_damaged++;
	database_set_aside(path, why);
	day->has_file = false;
	day->folded_through = 0;
	if (day->catalog) {
		memset(&day->catalog->persisted, 0, sizeof day->catalog->persisted);
		memset(&day->catalog->logged, 0, sizeof day->catalog->logged);
	}
}

void store_set_aside(struct sqlite_samples *store, struct day *day, const char *why)
{
	pthread_mutex_lock(&store->lock);
	if (day->has_file && !day->is_gone)
		rename_damaged(store, day, why);
	pthread_mutex_unlock(&store->lock);
}

/* With its hash tables: whoever adds to it does so under the lock. */
static struct catalog *load_indexed(struct sqlite_samples *store, struct day *day,
				    struct error *err)
{
	struct day_reader *reader = NULL;
	uint64_t folded;
	struct catalog *catalog = read_catalog(store, day->day, &reader, &folded, err);

	day_reader_close(reader);
	if (catalog)
		catalog_add_string(catalog, (struct text){catalog_string(catalog, 1)->text,
							  catalog_string(catalog, 1)->length});
	return catalog;
}

struct catalog *store_load_day(struct sqlite_samples *store, struct day *day, struct error *err)
{
	struct catalog *loaded = NULL, *catalog;

	pthread_mutex_lock(&store->lock);
	catalog = day->catalog;
	if (!catalog) {
		pthread_mutex_unlock(&store->lock);
		loaded = load_indexed(store, day, err);
		pthread_mutex_lock(&store->lock);
		if (!day->catalog && loaded)
			day->catalog = catalog_take(loaded);
		catalog = day->catalog;
	}
	day->used_ms = store_now_ms();
	if (catalog)
		catalog_take(catalog);
	pthread_mutex_unlock(&store->lock);
	catalog_release(loaded);
	return catalog;
}

struct day *store_take_day(struct sqlite_samples *store, uint32_t number, struct error *err)
{
	struct day *day = store_find_day(store, number);
	struct error why = {0};

	if (!day)
		day = add_day(store, number);
	if (!day) {
		error_set(err, ERROR_LIMIT, "more than %d days of samples", DAYS_MAX);
		return NULL;
	}
	day->used_ms = day->written_ms = store_now_ms();
	if (day->catalog)
		return day;
	if (day->has_file) {
		day->catalog = load_catalog(store, day, &why);
		if (!day->catalog && why.kind != ERROR_FORMAT) {
			if (err)
				*err = why;
			return NULL;
		}
		/* Nobody folds a day whose dictionary is not in memory: file_lock is not needed. */
		if (!day->catalog)
			rename_damaged(store, day, why.message);
	}
	if (!day->catalog)
		day->catalog = catalog_new();
	if (!day->catalog)
		error_set(err, ERROR_MEMORY, "no memory for a day's dictionary");
	return day->catalog ? day : NULL;
}

/* --- retention --- */

/* Roll-ups without a time of their own are kept as long as what they were made of. */
int64_t store_kept_from_ms(const struct sqlite_samples *store, enum samples_resolution resolution,
			   int64_t now_ms)
{
	int64_t keep_ms = store->keep_ms[resolution];

	while (!keep_ms && resolution > SAMPLES_RAW)
		keep_ms = store->keep_ms[--resolution];
	return keep_ms && keep_ms < now_ms ? now_ms - keep_ms : 0;
}

static uint64_t file_bytes(const char *path)
{
	struct stat status;

	return stat(path, &status) ? 0 : (uint64_t)status.st_blocks * 512;
}

static uint64_t day_bytes(const struct sqlite_samples *store, uint32_t day)
{
	char path[4096], wal[4200];

	day_file_path(store->directory, day, path, sizeof path);
	snprintf(wal, sizeof wal, "%s-wal", path);
	return file_bytes(path) + file_bytes(wal);
}

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

static void delete_day(struct sqlite_samples *store, unsigned at, const char *why)
{
	static const char *const suffixes[] = {"-wal", "-shm", ""};
	struct day *day = store->days[at];
	char path[4096], file[4200];

	close_readers(day);
	day_file_path(store->directory, day->day, path, sizeof path);
	for (unsigned i = 0; i < 3; i++) {
		snprintf(file, sizeof file, "%s%s", path, suffixes[i]);
		if (unlink(file) && errno != ENOENT)
			log_warn("day of samples not deleted", "path=\"%s\" error=\"%s\"", file,
				 strerror(errno));
	}
	log_info("day of samples deleted", "path=\"%s\" reason=\"%s\"", path, why);
	memmove(store->days + at, store->days + at + 1,
		(--store->day_count - at) * sizeof *store->days);
	day->is_gone = true;
	if (!day->users)
		free_day(day);
}

/* The oldest day that may go; days with samples in memory stay until they are folded. */
static bool delete_oldest(struct sqlite_samples *store, uint32_t before, int64_t now_ms,
			  const char *why)
{
	for (unsigned i = 0; i < store->day_count && store->days[i]->day < before; i++) {
		const struct day *day = store->days[i];

		if (!day->has_file || now_ms - day->written_ms < WRITTEN_LATELY_MS ||
		    has_unfolded(store, day->day))
			continue;
		delete_day(store, i, why);
		return true;
	}
	return false;
}

static uint64_t disk_bytes(struct sqlite_samples *store)
{
	struct journal_counters journal;
	uint64_t bytes = 0;

	journal_counters(store->journal, &journal);
	for (unsigned i = 0; i < store->day_count; i++)
		if (store->days[i]->has_file)
			bytes += day_bytes(store, store->days[i]->day);
	return bytes + journal.disk_bytes;
}

static void forget_catalogs(struct sqlite_samples *store, int64_t now_ms)
{
	for (unsigned i = 0; i < store->day_count; i++) {
		struct day *day = store->days[i];

		if (!day->catalog || day->users || !day->has_file ||
		    now_ms - day->used_ms < CATALOG_IDLE_MS || has_unfolded(store, day->day))
			continue;
		close_readers(day);
		catalog_release(day->catalog);
		day->catalog = NULL;
	}
}

void store_tidy(struct sqlite_samples *store, int64_t now_ms)
{
	uint32_t today = (uint32_t)(now_ms / day_ms);
	int64_t oldest_ms = now_ms - store->keep_ms[SAMPLES_RAW];

	store_lock_files(store);
	pthread_mutex_lock(&store->lock);
	/* A day goes when its last moment is older than what is kept. */
	while (store->keep_ms[SAMPLES_RAW] && oldest_ms > 0 &&
	       delete_oldest(store, (uint32_t)(oldest_ms / day_ms), now_ms,
			     "older than --retention"))
		;
	while (store->max_disk_bytes && disk_bytes(store) > store->max_disk_bytes &&
	       delete_oldest(store, today, now_ms, "--max-disk is reached"))
		;
	forget_catalogs(store, now_ms);
	store->counters.disk_bytes = disk_bytes(store);
	pthread_mutex_unlock(&store->lock);
	store_unlock_files(store);
	rollup_turn(store, now_ms);
}
