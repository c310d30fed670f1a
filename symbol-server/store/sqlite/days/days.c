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
#include "symbol-server/store/sqlite/days/day_salvage.h"

enum { LOADS = 2 };    /* of a dictionary: of the damaged file, and of what was saved of it */
#define SAVED ".saved" /* after the name of a damaged file: what takes its place */

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

/* A crash came between setting aside and putting what was saved in place. */
static void put_saved_in_place(const struct sqlite_samples *store)
{
	DIR *directory = opendir(store->directory);
	struct dirent *entry;
	uint32_t number;

	while (directory && (entry = readdir(directory))) {
		size_t length = strlen(entry->d_name);
		char name[64];

		if (length <= strlen(SAVED) || length >= sizeof name ||
		    strcmp(entry->d_name + length - strlen(SAVED), SAVED))
			continue;
		snprintf(name, sizeof name, "%.*s", (int)(length - strlen(SAVED)), entry->d_name);
		if (day_file_parse(name, &number) && faccessat(dirfd(directory), name, F_OK, 0))
			renameat(dirfd(directory), entry->d_name, dirfd(directory), name);
	}
	if (directory)
		closedir(directory);
}

bool store_find_days(struct sqlite_samples *store, struct error *err)
{
	DIR *directory = opendir(store->directory);
	struct dirent *entry;
	bool ok = true;

	put_saved_in_place(store);
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

/* --- memory of dictionaries --- */

void store_count_dictionary(struct sqlite_samples *store, struct day *day)
{
	size_t bytes = day->catalog ? catalog_bytes(day->catalog) : 0;

	if (day->is_gone) /* is counted out; its last user frees it */
		return;
	store->dictionary_bytes += bytes - day->dictionary_bytes;
	if (day->is_written)
		store->written_bytes += bytes - day->dictionary_bytes;
	day->dictionary_bytes = bytes;
}

void store_give_dictionary(struct sqlite_samples *store, struct day *day, struct catalog *catalog)
{
	day->catalog = catalog;
	store_count_dictionary(store, day);
	if (store->dictionary_bytes <= store->dictionary_max)
		return;
	store->wants_room = true;
	pthread_cond_signal(&store->fold_wake);
}

static void count_written(struct sqlite_samples *store, struct day *day)
{
	if (!day->is_written)
		store->written_bytes += day->dictionary_bytes;
	day->is_written = true;
	store_count_dictionary(store, day);
}

void store_unmark_written(struct sqlite_samples *store, struct day *day)
{
	if (day->is_written)
		store->written_bytes -= day->dictionary_bytes;
	day->is_written = false;
}

/* It leaves the list; queries that read it may keep it for a while. */
static void count_out(struct sqlite_samples *store, struct day *day)
{
	store->dictionary_bytes -= day->dictionary_bytes;
	if (day->is_written)
		store->written_bytes -= day->dictionary_bytes;
	day->dictionary_bytes = 0;
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
	count_out(store, day);
	/* Its numbers mean nothing any more. */
	if ((day->day + 1) * day_ms > store_now_ms() - RECENT_MINUTES * INT64_C(60000))
		recent_forget(&store->recent, store_now_ms());
	day->is_gone = true;
	if (!day->users)
		free_day(day);
}

void store_drop_month(struct sqlite_samples *store, unsigned at)
{
	struct day *month = store->months[at];

	memmove(store->months + at, store->months + at + 1,
		(--store->month_count - at) * sizeof *store->months);
	count_out(store, month);
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

/* The file that takes the damaged one's place; is_saved: there is one. Under the lock. */
static void replace_damaged(struct sqlite_samples *store, struct day *day, const char *why,
			    bool is_saved, const struct salvaged *salvaged)
{
	char path[4096], saved[4200];

	day_close_readers(day);
	store_day_path(store, day, path, sizeof path);
	snprintf(saved, sizeof saved, "%s" SAVED, path);
	store->counters.days_damaged++;
	day->set_asides++;
	database_set_aside(path, why);
	if (is_saved && !rename(saved, path)) {
		day->folded_through = salvaged->folded_through;
		day->rolled_through = 0; /* it has no roll-ups: the fold thread looks at it again */
		store->counters.samples_damaged += salvaged->samples_lost;
		log_warn("damaged file saved in part",
			 "path=\"%s\" samples=%llu samples_lost=%llu rows_lost=%llu "
			 "definitions_lost=%llu",
			 path, (unsigned long long)salvaged->samples,
			 (unsigned long long)salvaged->samples_lost,
			 (unsigned long long)salvaged->rows_lost,
			 (unsigned long long)salvaged->definitions_lost);
		return;
	}
	day->has_file = day->is_reduced = false;
	day->folded_through = 0;
	forget_hours(store, day);
	if (day->catalog) {
		memset(&day->catalog->persisted, 0, sizeof day->catalog->persisted);
		memset(&day->catalog->logged, 0, sizeof day->catalog->logged);
	}
}

/* Writes beside the damaged file what can be read of it. */
static bool save_damaged(const struct sqlite_samples *store, const struct day *day,
			 const struct salvage_dictionary *dictionary, struct salvaged *salvaged)
{
	char path[4096], saved[4200];
	struct error err = {0};

	if (day->is_month) /* its days make it anew */
		return false;
	store_day_path(store, day, path, sizeof path);
	snprintf(saved, sizeof saved, "%s" SAVED, path);
	if (day_salvage(path, saved, day->day, dictionary, salvaged, &err))
		return true;
	log_error("damaged file not saved in part", "path=\"%s\" reason=\"%s\"", path, err.message);
	return false;
}

/* Under the lock: the day's dictionary is not in memory. */
static void rename_damaged(struct sqlite_samples *store, struct day *day, const char *why)
{
	struct salvaged salvaged;
	bool is_saved = save_damaged(store, day, NULL, &salvaged);

	replace_damaged(store, day, why, is_saved, &salvaged);
	recent_forget(&store->recent, store_now_ms());
}

/* False: it is not in memory. */
static bool take_dictionary(struct day *day, struct salvage_dictionary *dictionary)
{
	const struct text reason = {SALVAGE_REASON, sizeof SALVAGE_REASON - 1};

	if (!day->catalog || day->is_month)
		return false;
	dictionary->reason = catalog_add_string(day->catalog, reason);
	dictionary->mark = catalog_mark(day->catalog);
	dictionary->catalog = catalog_take(day->catalog);
	return true;
}

unsigned store_set_asides(struct sqlite_samples *store, const struct day *day)
{
	unsigned count;

	pthread_mutex_lock(&store->lock);
	count = day->set_asides;
	pthread_mutex_unlock(&store->lock);
	return count;
}

void store_set_aside(struct sqlite_samples *store, struct day *day, unsigned seen, const char *why)
{
	struct salvage_dictionary dictionary = {0};
	struct salvaged salvaged;
	bool has_dictionary, is_saved;

	pthread_mutex_lock(&store->lock);
	if (!day->has_file || day->is_gone || day->set_asides != seen) {
		pthread_mutex_unlock(&store->lock);
		return;
	}
	has_dictionary = take_dictionary(day, &dictionary);
	day->is_being_saved = true;
	pthread_mutex_unlock(&store->lock);
	is_saved = save_damaged(store, day, has_dictionary ? &dictionary : NULL, &salvaged);
	pthread_mutex_lock(&store->lock);
	day->is_being_saved = false;
	replace_damaged(store, day, why, is_saved, &salvaged);
	if (is_saved && day->has_file && day->catalog && day->catalog == dictionary.catalog)
		day->catalog->persisted = dictionary.mark;
	pthread_mutex_unlock(&store->lock);
	catalog_release(dictionary.catalog);
}

/* Whoever adds to it does so under the lock, and finds its hash tables made. */
static void make_index(struct sqlite_samples *store, struct catalog *catalog)
{
	struct catalog *alike = NULL;

	pthread_mutex_lock(&store->lock);
	if (!catalog->is_indexed)
		alike = catalog_alike(catalog);
	pthread_mutex_unlock(&store->lock);
	if (!alike)
		return;
	catalog_index_alike(alike);
	pthread_mutex_lock(&store->lock);
	catalog_take_index(catalog, alike);
	pthread_mutex_unlock(&store->lock);
}

static struct catalog *load_alone(struct sqlite_samples *store, struct day *day, struct error *err)
{
	struct day_reader *reader = NULL;
	uint64_t folded;
	struct catalog *catalog = day->has_file ? read_catalog(store, day, &reader, &folded, err)
						: catalog_new();

	day_reader_close(reader);
	return catalog;
}

struct catalog *store_load_day(struct sqlite_samples *store, struct day *day, struct error *err)
{
	struct catalog *loaded = NULL, *catalog;
	unsigned set_asides;
	bool had_file;

	pthread_mutex_lock(&store->lock);
	catalog = day->catalog;
	had_file = day->has_file;
	set_asides = day->set_asides;
	if (!catalog) {
		pthread_mutex_unlock(&store->lock);
		loaded = load_alone(store, day, err);
		pthread_mutex_lock(&store->lock);
		/* Set aside meanwhile: what it defined is in no file any more. */
		if (loaded && !day->catalog &&
		    (day->has_file != had_file || day->set_asides != set_asides ||
		     day->is_being_saved))
			error_set(err, ERROR_BUSY, "the day's file changed while it was read");
		else if (!day->catalog && loaded) {
			store_give_dictionary(store, day, catalog_take(loaded));
		}
		catalog = day->catalog;
	}
	day->used_ms = store_now_ms();
	if (catalog)
		catalog_take(catalog);
	pthread_mutex_unlock(&store->lock);
	catalog_release(loaded);
	if (catalog)
		make_index(store, catalog);
	return catalog;
}

/* What a damaged file has is saved without the lock, too. */
static void ready(struct sqlite_samples *store, struct day *day, unsigned seen,
		  bool has_files_locked)
{
	struct error why = {0};
	struct catalog *catalog = store_load_day(store, day, &why);

	if (!catalog && why.kind == ERROR_FORMAT) {
		if (!has_files_locked)
			store_lock_files(store);
		store_set_aside(store, day, seen, why.message);
		if (!has_files_locked)
			store_unlock_files(store);
		catalog = store_load_day(store, day, NULL);
	}
	catalog_release(catalog);
}

void store_ready_day(struct sqlite_samples *store, uint32_t number, bool has_files_locked)
{
	struct day *day;
	unsigned seen;

	pthread_mutex_lock(&store->lock);
	day = store_find_day(store, number);
	if (!day || !day->has_file || day->is_being_saved ||
	    (day->catalog && day->catalog->is_indexed)) {
		pthread_mutex_unlock(&store->lock);
		return;
	}
	day->users++;
	seen = day->set_asides;
	pthread_mutex_unlock(&store->lock);
	ready(store, day, seen, has_files_locked);
	pthread_mutex_lock(&store->lock);
	store_leave_day(store, day);
	pthread_mutex_unlock(&store->lock);
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
	if (day->catalog && day->is_written)
		return day;
	if (!day->catalog && day->is_being_saved) {
		error_set(err, ERROR_BUSY, "the day's file is damaged and being saved");
		return NULL;
	}
	for (unsigned i = 0; day->has_file && !day->catalog && i < LOADS; i++) {
		why = (struct error){0};
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
	if (day->catalog)
		count_written(store, day);
	else
		error_set(err, ERROR_MEMORY, "no memory for a day's dictionary");
	return day->catalog ? day : NULL;
}
