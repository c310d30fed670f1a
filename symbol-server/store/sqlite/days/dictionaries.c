/* SPDX-License-Identifier: Apache-2.0 */
/* Dictionaries come into memory; damaged files are set aside. */
#include "symbol-server/store/sqlite/days/hours.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "symbol-server/store/sqlite/days/day_salvage.h"

#define SAVED ".saved" /* after the name of a damaged file: what takes its place */

/* --- reading --- */

/* What the file defines, without looking at the day. */
static struct catalog *read_catalog(const struct sqlite_samples *store, const struct day *day,
				    struct error *err)
{
	struct catalog *catalog = catalog_new();
	struct day_reader *reader;
	char path[4096];
	uint64_t folded;
	bool ok;

	if (!catalog) {
		error_set(err, ERROR_MEMORY, "no memory for a day's dictionary");
		return NULL;
	}
	store_day_path(store, day, path, sizeof path);
	reader = day_reader_open(path, err);
	ok = reader && day_reader_begin(reader, &folded, err);
	if (ok) {
		ok = day_reader_catalog(reader, catalog, err);
		day_reader_end(reader);
	}
	day_reader_close(reader);
	if (ok)
		return catalog;
	catalog_release(catalog);
	return NULL;
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

/* The set's lock is left while it is read. False: err says why, or, without a reason, the file was
 * set aside meanwhile, and what it defined is in none any more. */
static bool read_once(struct sqlite_samples *store, struct day *day, bool is_added_to,
		      struct error *err)
{
	unsigned seen = day->set_asides;
	bool had_file = day->has_file, is_same;
	struct catalog *catalog;

	day->is_loading = true;
	store_unlock_days(store);
	catalog = had_file ? read_catalog(store, day, err) : catalog_new();
	if (!catalog && !had_file)
		error_set(err, ERROR_MEMORY, "no memory for a day's dictionary");
	if (catalog && !is_added_to)
		catalog_drop_index(catalog);
	store_lock_days(store);
	day->is_loading = false;
	pthread_cond_broadcast(&store->days.changed);
	is_same = day->has_file == had_file && day->set_asides == seen && !day->is_being_saved;
	if (catalog && is_same) {
		day->catalog = catalog;
		store_count_dictionary(store, day);
		return true;
	}
	store_unlock_days(store);
	catalog_release(catalog);
	store_lock_days(store);
	return false;
}

/* Under the set's lock. */
static struct catalog *share(struct day *day)
{
	day->used_ms = store_now_ms();
	return day->catalog ? catalog_take(day->catalog) : NULL;
}

struct catalog *store_load_day(struct sqlite_samples *store, struct day *day, bool is_added_to,
			       struct error *err)
{
	struct catalog *catalog;
	struct error why = {0};
	bool is_too_much, is_read = false;

	store_lock_days(store);
	while (!day->catalog && !why.kind) {
		if (day->is_loading || day->is_being_saved)
			pthread_cond_wait(&store->days.changed, &store->days.lock);
		else
			is_read = read_once(store, day, is_added_to, &why);
	}
	catalog = share(day);
	is_too_much = is_read && store->days.dictionary_bytes > store->dictionary_max;
	store_unlock_days(store);
	if (!catalog && err)
		*err = why;
	if (is_too_much) {
		pthread_mutex_lock(&store->lock);
		store->wants_room = true;
		pthread_cond_signal(&store->fold_wake);
		pthread_mutex_unlock(&store->lock);
	}
	if (catalog && is_added_to)
		make_index(store, catalog);
	return catalog;
}

/* --- damage --- */

void store_put_saved(const struct sqlite_samples *store)
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

/* Its days make it anew. */
static void forget_hours(struct sqlite_samples *store, const struct day *month)
{
	for (unsigned i = 0; month->is_month && i < store->days.count; i++)
		if (month_first(store->days.at[i]->day) == month->day)
			store->days.at[i]->hours_through = store->days.at[i]->hours_seen = 0;
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

/* Nothing when it is not in memory. */
static void take_dictionary(struct day *day, struct salvage_dictionary *dictionary)
{
	const struct text reason = {SALVAGE_REASON, sizeof SALVAGE_REASON - 1};

	if (!day->catalog || day->is_month)
		return;
	dictionary->reason = catalog_add_string(day->catalog, reason);
	dictionary->mark = catalog_mark(day->catalog);
	dictionary->catalog = catalog_take(day->catalog);
}

unsigned store_set_asides(struct sqlite_samples *store, const struct day *day)
{
	unsigned count;

	store_lock_days(store);
	count = day->set_asides;
	store_unlock_days(store);
	return count;
}

/* False: nothing takes its place. */
static bool replace_file(const struct sqlite_samples *store, const struct day *day, const char *why,
			 bool is_saved)
{
	char path[4096], saved[4200];

	store_day_path(store, day, path, sizeof path);
	snprintf(saved, sizeof saved, "%s" SAVED, path);
	database_set_aside(path, why);
	return is_saved && !rename(saved, path);
}

static void log_saved(const struct sqlite_samples *store, const struct day *day,
		      const struct salvaged *salvaged)
{
	char path[4096];

	store_day_path(store, day, path, sizeof path);
	log_warn("damaged file saved in part",
		 "path=\"%s\" samples=%llu samples_lost=%llu rows_lost=%llu "
		 "definitions_lost=%llu",
		 path, (unsigned long long)salvaged->samples,
		 (unsigned long long)salvaged->samples_lost,
		 (unsigned long long)salvaged->rows_lost,
		 (unsigned long long)salvaged->definitions_lost);
}

/* What the day is like then; under both locks. mark: of the dictionary that was saved with it. */
static void note_replaced(struct sqlite_samples *store, struct day *day, bool is_replaced,
			  const struct salvaged *salvaged, const struct catalog_mark *mark)
{
	store->counters.days_damaged++;
	day->set_asides++;
	if (is_replaced) {
		day->folded_through = salvaged->folded_through;
		day->rolled_through = 0; /* it has no roll-ups: the fold thread looks at it again */
		store->counters.samples_damaged += salvaged->samples_lost;
		if (mark)
			day->catalog->persisted = *mark;
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

/* False: it is gone, or somebody did it. Queries find the file that they have open damaged, and
 * wait; nobody else opens it. Under both locks. */
static bool begin_saving(struct day *day, unsigned seen, struct salvage_dictionary *dictionary)
{
	if (!day->has_file || day->is_gone || day->set_asides != seen)
		return false;
	take_dictionary(day, dictionary);
	day->is_being_saved = true;
	return true;
}

void store_set_aside(struct sqlite_samples *store, struct day *day, unsigned seen, const char *why)
{
	struct salvage_dictionary dictionary = {0};
	struct salvaged salvaged = {0};
	bool is_mine, is_saved, is_replaced;

	store_lock_all(store);
	is_mine = begin_saving(day, seen, &dictionary);
	store_unlock_all(store);
	if (!is_mine)
		return;
	is_saved = save_damaged(store, day, dictionary.catalog ? &dictionary : NULL, &salvaged);
	store_lock_days(store);
	day->is_detached = true;
	store_unlock_days(store);
	store_close_readers(store, day);
	is_replaced = replace_file(store, day, why, is_saved);
	if (is_replaced)
		log_saved(store, day, &salvaged);
	store_lock_all(store);
	note_replaced(store, day, is_replaced, &salvaged,
		      day->catalog && day->catalog == dictionary.catalog ? &dictionary.mark : NULL);
	if (!dictionary.catalog && !day->is_month) /* its numbers may be others' */
		recent_forget(&store->recent, store_now_ms());
	day->is_being_saved = day->is_detached = false;
	pthread_cond_broadcast(&store->days.changed);
	store_unlock_all(store);
	catalog_release(dictionary.catalog);
}
