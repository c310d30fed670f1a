/* SPDX-License-Identifier: Apache-2.0 */
/* What a question looks at: taken from memory under both locks, files opened outside of them. */
#include "symbol-server/store/sqlite/answers/view.h"

#include <stdlib.h>

#include "symbol-server/store/sqlite/days/hours.h"
#include "symbol-server/store/sqlite/rollups/rollup.h"
#include "symbol-server/store/sqlite/series_choice.h"

enum {
	VIEW_BYTES_MAX = 512 << 20,
	LOOK_STEPS = 2000, /* of SQLite's machine, between two looks at the limits */
};

/* --- what is in memory, under both locks --- */

static bool widen(struct view *view, const struct samples_query *query, struct error *err)
{
	int64_t from = query->from_ms < 0 ? 0 : query->from_ms;
	int64_t until = query->until_ms < from ? from : query->until_ms;

	if (until > (int64_t)UINT32_MAX * 1000 * 1000)
		return error_set(err, ERROR_OPTION, "the end of the time range is beyond all time");
	view->from_ms = from / SAMPLES_BUCKET_MS * SAMPLES_BUCKET_MS;
	view->until_ms = (until + SAMPLES_BUCKET_MS - 1) / SAMPLES_BUCKET_MS * SAMPLES_BUCKET_MS;
	if (view_has_hours_only(view, view->from_ms / day_ms))
		view->from_ms = view->from_ms / hour_ms * hour_ms;
	if (view->until_ms > view->from_ms &&
	    view_has_hours_only(view, (view->until_ms - 1) / day_ms))
		view->until_ms = (view->until_ms + hour_ms - 1) / hour_ms * hour_ms;
	return true;
}

static void set_minutes(const struct view *view, struct view_day *day)
{
	int64_t start = day->day->day * day_ms;

	day->from = view->from_ms > start ? (uint32_t)((view->from_ms - start) / SAMPLES_BUCKET_MS)
					  : 0;
	day->until = view->until_ms < start + day_ms
			     ? (uint32_t)((view->until_ms - start) / SAMPLES_BUCKET_MS)
			     : MINUTES_PER_DAY;
}

/* Of a file that is just being written anew, they are the old one's. */
static void take_kept(struct view_day *to)
{
	struct day *day = to->day;

	to->set_asides = day->set_asides;
	if (day->is_detached && !day->is_being_saved)
		return;
	if (day->catalog) {
		to->catalog = catalog_take(day->catalog);
		to->mark = catalog_mark(day->catalog);
	}
	if (day->has_file)
		to->reader = day_take_reader(day);
}

/* A month of which a day may be asked for as a whole, or that has nothing but hours. */
static void take_month(struct view *view, struct day *month)
{
	struct view_day *to = &view->days[view->day_count];
	int64_t start_ms = month->day * day_ms, end_ms = month_end(month->day) * day_ms;
	int64_t first = start_ms > view->from_ms ? month->day : view->from_ms / day_ms;

	if (!month->has_file || start_ms >= view->until_ms || end_ms <= view->from_ms ||
	    (!view->wants.hours && !view_has_hours_only(view, first)))
		return;
	to->day = month;
	month->users++;
	month->used_ms = view->now_ms;
	take_kept(to);
	view->day_count++;
	view->month_count++;
}

static bool take_days(struct view *view)
{
	struct sqlite_samples *store = view->store;

	view->days = arena_array(&view->arena, store->days.count + store->days.month_count,
				 sizeof *view->days);
	if (!view->days)
		return false;
	for (unsigned i = 0; i < store->days.month_count; i++)
		take_month(view, store->days.months[i]);
	for (unsigned i = 0; i < store->days.count; i++) {
		struct day *day = store->days.at[i];
		struct view_day *to = &view->days[view->day_count];

		if (day->day * day_ms >= view->until_ms ||
		    (day->day + 1ll) * day_ms <= view->from_ms)
			continue;
		to->day = day;
		to->known_through = day->folded_through;
		day->users++;
		day->used_ms = store_now_ms();
		set_minutes(view, to);
		take_kept(to);
		view->day_count++;
	}
	return true;
}

static size_t count_cells(const struct view *view)
{
	size_t count = 0;

	for (unsigned i = 0; i < view->table_count; i++)
		count += view->tables[i]->cells.count;
	return count;
}

static bool in_range(const struct view *view, const struct samples_query *query, int type,
		     const struct cell_key *key)
{
	int64_t time_ms = key->day * day_ms + (int64_t)key->bucket * SAMPLES_BUCKET_MS;

	/* What hosts report is in the accounts of the first type. */
	return key->tenant == query->tenant &&
	       (type < 0 || key->type == (uint32_t)type || (!key->type && !key->series)) &&
	       time_ms >= view->from_ms / ROLLUP_BUCKET_MS * ROLLUP_BUCKET_MS &&
	       time_ms < view->until_ms + ROLLUP_BUCKET_MS;
}

static bool take_tables(struct view *view, const struct samples_query *query, int type)
{
	unsigned count = 1;

	for (const struct generation *g = view->store->oldest; g; g = g->next)
		count++;
	view->tables = arena_array(&view->arena, count, sizeof *view->tables);
	if (!view->tables)
		return false;
	for (const struct generation *g = view->store->oldest; g; g = g->next)
		view->tables[view->table_count++] = memory_table_take(g->table);
	view->tables[view->table_count++] = memory_table_take(view->store->active);
	view->cells = arena_array(&view->arena, count_cells(view), sizeof *view->cells);
	if (!view->cells)
		return false;
	for (unsigned i = 0; i < view->table_count; i++)
		for (uint32_t k = 0; k < view->tables[i]->cells.count; k++) {
			const struct memory_cell *cell = blocks_at(&view->tables[i]->cells, k);
			struct view_cell *to = &view->cells[view->cell_count];

			if (!in_range(view, query, type, &cell->key))
				continue;
			to->start = view->tables[i]->start;
			to->snapshot = memory_cell_snapshot(cell);
			view->cell_count++;
		}
	return true;
}

static int compare_cells(const void *a, const void *b)
{
	uint32_t x = ((const struct view_cell *)a)->snapshot.key.day;
	uint32_t y = ((const struct view_cell *)b)->snapshot.key.day;

	return (x > y) - (x < y);
}

static void share_cells(struct view *view)
{
	size_t at = 0;

	qsort(view->cells, view->cell_count, sizeof *view->cells, compare_cells);
	for (unsigned i = view->month_count; i < view->day_count; i++) {
		struct view_day *day = &view->days[i];

		while (at < view->cell_count && view->cells[at].snapshot.key.day < day->day->day)
			at++;
		day->cells = view->cells + at;
		while (at < view->cell_count && view->cells[at].snapshot.key.day == day->day->day) {
			day->cell_count++;
			at++;
		}
	}
}

/* --- files --- */

/* However SQLite looks for rows, found or not: it ends what it does with SQLITE_INTERRUPT. */
static int is_over(void *view)
{
	return !limit_watch_allows(&((struct view *)view)->watch, 0, NULL);
}

static void watch_reader(struct view *view, struct view_day *day, bool is_watched)
{
	sqlite3_progress_handler(day->reader->db, LOOK_STEPS, is_watched ? is_over : NULL, view);
}

static bool open_reader(struct view *view, struct view_day *day, struct error *err)
{
	char path[4096];

	if (!day->reader) {
		store_day_path(view->store, day->day, path, sizeof path);
		day->reader = day_reader_open(path, err);
	}
	if (!day->reader)
		return false;
	if (!day_reader_begin(day->reader, &day->folded_through, err)) {
		day_reader_close(day->reader);
		day->reader = NULL;
		return false;
	}
	day->is_reduced = day->reader->is_reduced;
	/* A dictionary is read to its end: the next question has it then. What is added to the file
	 * meanwhile it has more than the transaction, which does no harm. */
	if (!day->catalog)
		day->catalog = store_load_day(view->store, day->day, false, err);
	if (!day->catalog)
		return false;
	watch_reader(view, day, true);
	return limit_watch_allows(&view->watch, view->arena.used, err);
}

static void give_reader(struct view *view, struct view_day *day)
{
	store_give_reader(view->store, day->day, day->reader, day->set_asides);
	day->reader = NULL;
}

static void close_reader(struct view *view, struct view_day *day)
{
	if (!day->reader)
		return;
	watch_reader(view, day, false);
	day_reader_end(day->reader);
	give_reader(view, day);
}

void view_set_aside(struct view *view, struct view_day *day, const struct error *err)
{
	day_reader_close(day->reader);
	day->reader = NULL;
	day->folded_through = 0;
	if (!view->has_files_locked)
		store_lock_files(view->store);
	store_set_aside(view->store, day->day, day->set_asides, err->message);
	if (!view->has_files_locked)
		store_unlock_files(view->store);
}

/* All that the day's file has is in the hours of its month. */
static bool is_in_hours(const struct view_day *day)
{
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; day->hours && i < HOURS_PER_DAY; i++)
		least = day->hours[i] < least ? day->hours[i] : least;
	return day->hours && least && least >= day->known_through;
}

/* Retention came between the look at the list and the file. */
static bool was_deleted(struct view *view, struct view_day *day)
{
	bool was;

	store_lock_days(view->store);
	was = day->day->is_gone;
	store_unlock_days(view->store);
	if (was) {
		day_reader_close(day->reader);
		day->reader = NULL;
		day->folded_through = 0;
	}
	return was;
}

/* What a kept connection shows is not the day any more when its file was set aside since. False:
 * there is no file. */
static bool has_file(struct view *view, struct view_day *day)
{
	bool has, is_stale;

	store_lock_days(view->store);
	while (day->day->is_detached)
		pthread_cond_wait(&view->store->days.changed, &view->store->days.lock);
	has = day->day->has_file && !day->day->is_gone;
	is_stale = !has || day->set_asides != day->day->set_asides;
	day->set_asides = day->day->set_asides;
	store_unlock_days(view->store);
	if (is_stale) {
		day_reader_close(day->reader);
		day->reader = NULL;
	}
	return has;
}

static bool open_file(struct view *view, struct view_day *day, bool is_again, struct error *err)
{
	struct error why = {0};

	if (!has_file(view, day))
		return true;
	if (open_reader(view, day, &why)) {
		/* The transaction may have more than the dictionary had when it was taken. */
		pthread_mutex_lock(&view->store->lock);
		day->mark = catalog_mark(day->catalog);
		pthread_mutex_unlock(&view->store->lock);
		return true;
	}
	if (why.kind == ERROR_FORMAT && !is_again) {
		view_set_aside(view, day, &why);
		return open_file(view, day, true, err); /* what was saved of it */
	}
	if (was_deleted(view, day))
		return true;
	if (err)
		*err = why;
	return false;
}

static bool open_day(struct view *view, struct view_day *day, struct error *err)
{
	if (!is_in_hours(day))
		return open_file(view, day, false, err);
	give_reader(view, day);
	day->folded_through = day->known_through;
	return true;
}

/* A file whose marks cannot be read is as damaged as one whose dictionary cannot. */
static bool choose(struct view *view, struct view_day *day, struct error *err)
{
	struct error why = {0};

	if (view->is_recent) { /* the file had the dictionary at most */
		close_reader(view, day);
		return true;
	}
	if (view_choose(view, day, &why))
		return true;
	if (why.kind == ERROR_FORMAT && view->watch.why.kind == ERROR_NONE) {
		view_set_aside(view, day, &why);
		return open_day(view, day, err) && view_choose(view, day, err);
	}
	if (err)
		*err = why;
	return false;
}

static bool open_once(struct view *view, struct sqlite_samples *store,
		      const struct samples_query *query, int type, bool has_files_locked,
		      struct error *err)
{
	bool ok;

	*view = (struct view){.store = store,
			      .now_ms = store_now_ms(),
			      .resolution_ms = SAMPLES_BUCKET_MS,
			      .has_files_locked = has_files_locked};
	limit_watch_start(&view->watch, query);
	arena_init(&view->arena, VIEW_BYTES_MAX);
	view_wants(view, query);
	if (!widen(view, query, err))
		return false;
	store_lock_all(store);
	view->is_recent = view_is_recent(view, query, type);
	ok = take_days(view) && (view->is_recent ? view_take_recent(view, query, type)
						 : take_tables(view, query, type));
	store_unlock_all(store);
	if (!ok) {
		error_set(err, ERROR_LIMIT, "the time range has too much in it");
		goto out;
	}
	share_cells(view);
	/* Months first: what a day's file has more than they is then seen, and nothing is twice. */
	for (unsigned i = 0; ok && i < view->month_count; i++)
		ok = open_day(view, &view->days[i], err);
	ok = ok && view_choose_hours(view, err);
	for (unsigned i = view->month_count; ok && i < view->day_count; i++)
		ok = open_day(view, &view->days[i], err) && choose(view, &view->days[i], err);
	if (!ok && view->watch.why.kind != ERROR_NONE && err)
		*err = view->watch.why;
out:
	if (!ok)
		view_close(view);
	return ok;
}

/* Seconds that are there, but not all of the series wanted, are no answer: minutes are. */
static bool open_whole(struct view *view, struct sqlite_samples *store,
		       const struct samples_query *query, int type, bool has_files_locked,
		       struct error *err)
{
	struct samples_query by_minute = *query;
	bool is_whole = true, ok = open_once(view, store, query, type, has_files_locked, err);

	if (!ok || !view->is_recent)
		return ok;
	ok = view_recent_is_whole(view, query, &is_whole, err);
	if (ok && is_whole)
		return true;
	view_close(view);
	by_minute.by_second = false;
	return ok && open_once(view, store, &by_minute, type, has_files_locked, err);
}

/* What SQLite keeps beside a file that is read takes room too, which folding does not have while
 * the files are locked. */
bool view_open(struct view *view, struct sqlite_samples *store, const struct samples_query *query,
	       int type, struct error *err)
{
	struct error why = {0};

	if (open_whole(view, store, query, type, false, &why))
		return true;
	if (error_is_no_room(&why)) {
		bool ok;

		store_give_reserve_up(store);
		store_lock_files(store);
		ok = open_whole(view, store, query, type, true, err);
		view->has_files_locked = false;
		store_unlock_files(store);
		return ok;
	}
	if (err)
		*err = why;
	return false;
}

void view_close(struct view *view)
{
	for (unsigned i = 0; i < view->day_count; i++)
		close_reader(view, &view->days[i]);
	for (unsigned i = 0; i < view->day_count; i++)
		store_leave_day(view->store, view->days[i].day);
	for (unsigned i = 0; i < view->day_count; i++)
		catalog_release(view->days[i].catalog);
	for (unsigned i = 0; i < view->day_count; i++)
		lifetimes_free(view->days[i].lifetimes);
	for (unsigned i = 0; i < view->table_count; i++)
		memory_table_release(view->tables[i]);
	arena_release(&view->arena);
	*view = (struct view){.store = view->store};
}
