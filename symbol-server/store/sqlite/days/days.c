/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/days/hours.h"

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

void store_day_path(const struct sqlite_samples *store, const struct day *day, char *path,
		    size_t room)
{
	if (day->is_month)
		month_file_path(store->directory, day->day, path, room);
	else
		day_file_path(store->directory, day->day, path, room);
}

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

		if (month_file_parse(entry->d_name, &number))
			day = store_find_month(store, number, true);
		else if (day_file_parse(entry->d_name, &number))
			day = add_day(store, number);
		else
			continue;
		ok = day || error_set(err, ERROR_LIMIT, "more than %d days of samples", DAYS_MAX);
		if (day)
			day->has_file = true;
	}
	closedir(directory);
	return ok;
}

void day_close_readers(struct day *day)
{
	while (day->idle_count)
		day_reader_close(day->idle[--day->idle_count]);
}

static void free_day(struct day *day)
{
	day_close_readers(day);
	catalog_release(day->catalog);
	free(day);
}

void store_drop_day(struct sqlite_samples *store, struct day *day)
{
	unsigned at = 0;

	while (at < store->day_count && store->days[at] != day)
		at++;
	day_close_readers(day);
	memmove(store->days + at, store->days + at + 1,
		(--store->day_count - at) * sizeof *store->days);
	day->is_gone = true;
	if (!day->users)
		free_day(day);
}

void store_drop_month(struct sqlite_samples *store, unsigned at)
{
	struct day *month = store->months[at];

	memmove(store->months + at, store->months + at + 1,
		(--store->month_count - at) * sizeof *store->months);
	month->is_gone = true;
	if (!month->users)
		free_day(month);
}

void store_free_days(struct sqlite_samples *store)
{
	for (unsigned i = 0; i < store->day_count; i++)
		free_day(store->days[i]);
	for (unsigned i = 0; i < store->month_count; i++)
		free_day(store->months[i]);
	store->month_count = 0;
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
	/* One without roll-ups was opened before a migration that others make. */
	if (reader && reader->has_rollups && !day->is_gone && day->has_file &&
	    day->idle_count < IDLE_READERS)
		day->idle[day->idle_count++] = reader;
	else
		day_reader_close(reader);
}

/* --- the dictionary --- */

/* What the file defines, without looking at the day; the reader is the caller's. */
static struct catalog *read_catalog(const struct sqlite_samples *store, const struct day *day,
				    struct day_reader **reader, uint64_t *folded, struct error *err)
{
	struct catalog *catalog = catalog_new();
	char path[4096];

	if (!catalog) {
		error_set(err, ERROR_MEMORY, "no memory for a day's dictionary");
		return NULL;
	}
	store_day_path(store, day, path, sizeof path);
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

/* Its days make it anew. */
static void forget_hours(struct sqlite_samples *store, const struct day *month)
{
	for (unsigned i = 0; month->is_month && i < store->day_count; i++)
		if (month_first(store->days[i]->day) == month->day)
			store->days[i]->hours_through = store->days[i]->hours_seen = 0;
}

/* A damaged file costs its day, not the start: the caller then begins an empty dictionary. */
static struct catalog *load_catalog(struct sqlite_samples *store, struct day *day,
				    struct error *err)
{
	struct day_reader *reader = NULL;
	uint64_t folded;
	struct catalog *catalog = read_catalog(store, day, &reader, &folded, err);

	if (!catalog)
		return NULL;
	day->folded_through = folded;
	day_give_reader(day, reader);
	return catalog;
}

static void rename_damaged(struct sqlite_samples *store, struct day *day, const char *why)
{
	char path[4096];

	day_close_readers(day);
	store_day_path(store, day, path, sizeof path);
	store->counters.days_damaged++;
	database_set_aside(path, why);
	day->has_file = false;
	day->folded_through = 0;
	forget_hours(store, day);
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

/* Adding what is there makes the hash tables and nothing else. */
static void make_index(struct catalog *catalog)
{
	const struct catalog_string *first = catalog_string(catalog, 1);

	catalog_add_string(catalog, (struct text){first->text, first->length});
}

/* With its hash tables: whoever adds to it does so under the lock. */
static struct catalog *load_indexed(struct sqlite_samples *store, struct day *day,
				    struct error *err)
{
	struct day_reader *reader = NULL;
	uint64_t folded;
	struct catalog *catalog = day->has_file ? read_catalog(store, day, &reader, &folded, err)
						: catalog_new();

	day_reader_close(reader);
	if (catalog)
		make_index(catalog);
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
	if (catalog && day->is_month)
		make_index(catalog); /* nobody else adds to it */
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
