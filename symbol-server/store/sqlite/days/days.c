/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/days/hours.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"

int64_t store_now_ms(void)
{
	return unix_time_ms();
}

/* --- locks --- */

void store_lock_days(struct sqlite_samples *store)
{
	pthread_mutex_lock(&store->days.lock);
}

void store_unlock_days(struct sqlite_samples *store)
{
	pthread_mutex_unlock(&store->days.lock);
}

void store_lock_all(struct sqlite_samples *store)
{
	pthread_mutex_lock(&store->lock);
	store_lock_days(store);
}

void store_unlock_all(struct sqlite_samples *store)
{
	store_unlock_days(store);
	pthread_mutex_unlock(&store->lock);
}

/* --- the list --- */

bool days_init(struct day_set *days)
{
	pthread_mutex_init(&days->lock, NULL);
	pthread_cond_init(&days->changed, NULL);
	days->at = calloc(DAYS_MAX, sizeof *days->at);
	return days->at;
}

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
	unsigned low = 0, high = store->days.count;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (store->days.at[middle]->day < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low < store->days.count && store->days.at[low]->day == number ? store->days.at[low]
									     : NULL;
}

static struct day *add_day(struct sqlite_samples *store, uint32_t number)
{
	struct day *day = calloc(1, sizeof *day);
	unsigned at = store->days.count;

	if (!day || store->days.count >= DAYS_MAX) {
		free(day);
		return NULL;
	}
	day->day = number;
	for (; at && store->days.at[at - 1]->day > number; at--)
		store->days.at[at] = store->days.at[at - 1];
	store->days.at[at] = day;
	store->days.count++;
	return day;
}

struct day *store_day_at(const struct sqlite_samples *store, unsigned number)
{
	const struct day_set *days = &store->days;

	if (number < days->count)
		return days->at[number];
	return number - days->count < days->month_count ? days->months[number - days->count] : NULL;
}

bool store_find_days(struct sqlite_samples *store, struct error *err)
{
	DIR *directory = opendir(store->directory);
	struct dirent *entry;
	bool ok = true;

	store_put_saved(store);
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

/* --- connections that rest --- */

struct day_reader *day_take_reader(struct day *day)
{
	return day->idle_count ? day->idle[--day->idle_count] : NULL;
}

void store_give_reader(struct sqlite_samples *store, struct day *day, struct day_reader *reader,
		       unsigned seen)
{
	bool is_kept;

	store_lock_days(store);
	/* One without roll-ups was opened before a migration that others make; one of a file that
	 * was set aside since would show what is the day's no more. */
	is_kept = reader && reader->has_rollups && !day->is_gone && day->has_file &&
		  day->set_asides == seen && day->idle_count < IDLE_READERS;
	if (is_kept)
		day->idle[day->idle_count++] = reader;
	store_unlock_days(store);
	if (!is_kept)
		day_reader_close(reader);
}

/* The last one to be closed writes the file's log back. */
void store_close_readers(struct sqlite_samples *store, struct day *day)
{
	struct day_reader *idle[IDLE_READERS];
	unsigned count;

	store_lock_days(store);
	count = day->idle_count;
	memcpy(idle, day->idle, sizeof idle);
	day->idle_count = 0;
	store_unlock_days(store);
	while (count)
		day_reader_close(idle[--count]);
}

/* --- memory of dictionaries --- */

void store_count_dictionary(struct sqlite_samples *store, struct day *day)
{
	size_t bytes = day->catalog ? catalog_bytes(day->catalog) : 0;

	if (day->is_gone) /* is counted out; its last user frees it */
		return;
	store->days.dictionary_bytes += bytes - day->dictionary_bytes;
	if (day->is_written)
		store->days.written_bytes += bytes - day->dictionary_bytes;
	day->dictionary_bytes = bytes;
}

void store_count_written(struct sqlite_samples *store, struct day *day)
{
	day->written_ms = store_now_ms();
	if (!day->is_written && !day->is_gone)
		store->days.written_bytes += day->dictionary_bytes;
	day->is_written = true;
	store_count_dictionary(store, day);
}

struct catalog *store_take_dictionary(struct sqlite_samples *store, struct day *day)
{
	struct catalog *catalog = day->catalog;

	day->catalog = NULL;
	store_count_dictionary(store, day);
	day->is_written = false;
	return catalog;
}

/* --- who uses them --- */

/* No lock is held. */
static void free_day(struct day *day)
{
	while (day->idle_count)
		day_reader_close(day->idle[--day->idle_count]);
	catalog_release(day->catalog);
	free(day);
}

static struct day *use_day(struct sqlite_samples *store, uint32_t number)
{
	struct day *day;

	store_lock_days(store);
	while ((day = store_find_day(store, number)) && day->is_detached)
		pthread_cond_wait(&store->days.changed, &store->days.lock);
	if (!day)
		day = add_day(store, number);
	if (day) {
		day->users++;
		day->used_ms = store_now_ms();
	}
	store_unlock_days(store);
	return day;
}

/* True, or err says what has to be waited for or mended: ERROR_NONE is to be read. */
static bool is_ready(struct sqlite_samples *store, const struct day *day, unsigned *seen,
		     struct error *err)
{
	bool is;

	store_lock_days(store);
	*seen = day->set_asides;
	is = day->catalog && day->is_written;
	if (!day->catalog && day->is_being_saved)
		error_set(err, ERROR_BUSY, "the day's file is damaged and being saved");
	store_unlock_days(store);
	return is;
}

/* A damaged file is set aside and what was saved of it read, which may be damaged as well: nothing
 * is left then, and the day begins anew. */
static bool make_ready(struct sqlite_samples *store, struct day *day, bool has_files_locked,
		       struct error *err)
{
	enum { LOADS = 3 };
	struct error why = {0};

	for (unsigned i = 0; i < LOADS; i++) {
		struct catalog *catalog;
		unsigned seen;

		why = (struct error){0};
		if (is_ready(store, day, &seen, &why))
			return true;
		if (why.kind)
			break;
		catalog = store_load_day(store, day, true, &why);
		catalog_release(catalog); /* the day has it */
		if (catalog)
			return true;
		if (why.kind != ERROR_FORMAT)
			break;
		if (!has_files_locked)
			store_lock_files(store);
		store_set_aside(store, day, seen, why.message);
		if (!has_files_locked)
			store_unlock_files(store);
	}
	if (err)
		*err = why;
	return false;
}

struct day *store_open_day(struct sqlite_samples *store, uint32_t number, bool has_files_locked,
			   struct error *err)
{
	struct day *day = use_day(store, number);

	if (!day) {
		error_set(err, ERROR_LIMIT, "more than %d days of samples", DAYS_MAX);
		return NULL;
	}
	if (make_ready(store, day, has_files_locked, err))
		return day;
	store_leave_day(store, day);
	return NULL;
}

void store_leave_day(struct sqlite_samples *store, struct day *day)
{
	bool is_last;

	store_lock_days(store);
	is_last = !--day->users && day->is_gone;
	store_unlock_days(store);
	if (is_last)
		free_day(day);
}

bool store_detach_day(struct sqlite_samples *store, struct day *day,
		      bool (*may)(struct sqlite_samples *, struct day *))
{
	store_lock_all(store);
	day->is_detached = !day->users && (!may || may(store, day));
	store_unlock_all(store);
	return day->is_detached;
}

void store_attach_day(struct sqlite_samples *store, struct day *day,
		      struct catalog *(*took)(struct sqlite_samples *, struct day *))
{
	struct catalog *catalog;

	store_lock_all(store);
	catalog = took ? took(store, day) : NULL;
	day->is_detached = false;
	pthread_cond_broadcast(&store->days.changed);
	store_unlock_all(store);
	catalog_release(catalog);
}

/* --- days go --- */

static void remove_from(struct day **list, unsigned *count, const struct day *day)
{
	unsigned at = 0;

	while (at < *count && list[at] != day)
		at++;
	memmove(list + at, list + at + 1, (--*count - at) * sizeof *list);
}

void store_drop_day(struct sqlite_samples *store, struct day *day)
{
	struct day_set *days = &store->days;

	if (day->is_month)
		remove_from(days->months, &days->month_count, day);
	else
		remove_from(days->at, &days->count, day);
	days->dictionary_bytes -= day->dictionary_bytes;
	if (day->is_written)
		days->written_bytes -= day->dictionary_bytes;
	day->dictionary_bytes = 0;
	/* Its numbers mean nothing any more. */
	if (!day->is_month &&
	    (day->day + 1) * day_ms > store_now_ms() - RECENT_MINUTES * INT64_C(60000))
		recent_forget(&store->recent, store_now_ms());
	day->is_gone = true;
	day->users++;
}

void days_release(struct day_set *days)
{
	while (days->count)
		free_day(days->at[--days->count]);
	while (days->month_count)
		free_day(days->months[--days->month_count]);
	free(days->at);
	pthread_cond_destroy(&days->changed);
	pthread_mutex_destroy(&days->lock);
}
