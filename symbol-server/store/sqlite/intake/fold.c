/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed generations → day files and agents.db, paced, then the journal is released. */
#include "symbol-server/store/sqlite/samples_store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/array.h"
#include "common/log.h"
#include "symbol-server/store/sqlite/days/moment_rows.h"
#include "symbol-server/store/sqlite/days/span_rows.h"
#include "symbol-server/store/sqlite/rollups/retention.h"

enum {
	PACE_ROWS = 128, /* rows written between two pauses */
	PACE_US = 2000,
	NICE = 10,
	LOG_SPARE_BYTES = 256 << 10,
	LOOK_ROWS = 32, /* between two looks at the disk's room */
};

/* --- sealing --- */

bool store_has_unsealed(const struct sqlite_samples *store)
{
	return store->applied > store->sealed || store->active->cells.count;
}

/* Under the lock. The state is copied here: it has to be that of the generation's end. */
static bool seal(struct sqlite_samples *store)
{
	struct generation *generation = calloc(1, sizeof *generation);
	struct memory_table *next = memory_table_new(store->applied);

	if (!generation || !next ||
	    !state_change_take(&generation->change, &store->agents, &store->window,
			       store->committed, store->applied, store_now_ms())) {
		free(generation);
		memory_table_release(next);
		return false;
	}
	store->active->end = store->sealed = store->applied;
	generation->table = store->active;
	generation->sealed_ms = store_monotonic_ms();
	store->active = next;
	if (store->newest)
		store->newest->next = generation;
	else
		store->oldest = generation;
	store->newest = generation;
	return true;
}

/* --- one day of a generation --- */

struct day_fold {
	struct sqlite_samples *store;
	struct generation *generation;
	const struct memory_cell **cells; /* sorted */
	size_t count;
	struct packed_pair *pairs;
	size_t pair_count, pair_capacity;
	struct packed_account *accounts;
	size_t account_count, account_capacity;
	struct moment *moments;
	size_t moment_count, moment_capacity;
	struct span_sample *spans;
	size_t span_count, span_capacity;
	unsigned rows;
};

static bool keep_pair(void *context, const struct packed_pair *pair)
{
	struct day_fold *fold = context;

	if (!ARRAY_GROW(fold->pairs, fold->pair_count, fold->pair_capacity))
		return false;
	fold->pairs[fold->pair_count++] = *pair;
	return true;
}

static bool keep_account(void *context, const struct packed_account *account)
{
	struct day_fold *fold = context;

	if (!ARRAY_GROW(fold->accounts, fold->account_count, fold->account_capacity))
		return false;
	fold->accounts[fold->account_count++] = *account;
	return true;
}

static bool keep_moment(void *context, const struct moment *moment)
{
	struct day_fold *fold = context;

	if (!ARRAY_GROW(fold->moments, fold->moment_count, fold->moment_capacity))
		return false;
	fold->moments[fold->moment_count++] = *moment;
	return true;
}

static bool keep_moments(void *context, const uint8_t *bytes, size_t length)
{
	return moments_each_raw(bytes, length, keep_moment, context);
}

static bool keep_span(void *context, const struct span_sample *span)
{
	struct day_fold *fold = context;

	if (!ARRAY_GROW(fold->spans, fold->span_count, fold->span_capacity))
		return false;
	fold->spans[fold->span_count++] = *span;
	return true;
}

static bool keep_spans(void *context, const uint8_t *bytes, size_t length)
{
	return spans_each_raw(bytes, length, keep_span, context);
}

static bool keep_pairs(void *context, const uint8_t *bytes, size_t length)
{
	return packed_each_run(bytes, length, keep_pair, context);
}

static bool keep_accounts(void *context, const uint8_t *bytes, size_t length)
{
	return account_each(bytes, length, keep_account, context);
}

static bool fold_accounts(struct day_fold *fold, struct day_writer *writer,
			  const struct day_row *row, struct error *err)
{
	struct buffer data;
	bool ok;

	buffer_init(&data, 64 << 20);
	accounts_encode(fold->accounts, fold->account_count, &data);
	ok = data.failed ? error_set(err, ERROR_LIMIT, "accounts of one minute do not fit a row")
			 : day_writer_accounts(writer, row, &data, err);
	buffer_release(&data);
	return ok;
}

static bool fold_moments(struct day_fold *fold, struct day_writer *writer,
			 const struct memory_snapshot *snapshot, struct day_row *row,
			 struct error *err)
{
	row->type -= MOMENTS_OF;
	fold->moment_count = 0;
	if (!memory_snapshot_each(snapshot, keep_moments, fold))
		return error_set(err, ERROR_MEMORY, "no memory to fold times of samples");
	return day_writer_moments(writer, row, fold->moments, fold->moment_count, err);
}

static bool fold_spans(struct day_fold *fold, struct day_writer *writer,
		       const struct memory_snapshot *snapshot, struct day_row *row,
		       struct error *err)
{
	row->type -= SPANS_OF;
	fold->span_count = 0;
	if (!memory_snapshot_each(snapshot, keep_spans, fold))
		return error_set(err, ERROR_MEMORY, "no memory to fold spans of samples");
	return day_writer_spans(writer, row, fold->spans, fold->span_count, err);
}

static bool fold_cell(struct day_fold *fold, struct day_writer *writer,
		      const struct memory_cell *cell, struct error *err)
{
	struct memory_snapshot snapshot = memory_cell_snapshot(cell);
	const struct cell_key *key = &cell->key;
	struct day_row row = {key->tenant, key->type,     key->bucket,
			      key->series, cell->samples, cell->value};
	size_t count;

	if (key->type & MOMENTS_OF)
		return fold_moments(fold, writer, &snapshot, &row, err);
	if (key->type & SPANS_OF)
		return fold_spans(fold, writer, &snapshot, &row, err);
	fold->pair_count = fold->account_count = 0;
	if (!memory_snapshot_each(&snapshot, key->series ? keep_pairs : keep_accounts, fold))
		return error_set(err, ERROR_MEMORY, "no memory to fold samples");
	if (!key->series)
		return fold_accounts(fold, writer, &row, err);
	count = packed_merge(fold->pairs, fold->pair_count);
	return day_writer_samples(writer, &row, fold->pairs, count, err);
}

/* Folding is background work: it leaves the disk and the processor to requests now and then. */
static void pace(struct day_fold *fold)
{
	bool is_closing;

	if (++fold->rows % PACE_ROWS)
		return;
	pthread_mutex_lock(&fold->store->lock);
	is_closing = fold->store->is_closing;
	pthread_mutex_unlock(&fold->store->lock);
	if (!is_closing)
		usleep(PACE_US);
}

struct day_marks {
	struct day *day;
	struct catalog *catalog;
	struct catalog_mark from, to;
};

/* The dictionary as it is now has everything the generation refers to. */
static bool take_marks(struct sqlite_samples *store, uint32_t number, struct day_marks *marks,
		       struct error *err)
{
	marks->day = store_open_day(store, number, true, err);
	if (!marks->day)
		return false;
	pthread_mutex_lock(&store->lock);
	marks->catalog = catalog_take(marks->day->catalog);
	marks->from = marks->catalog->persisted;
	marks->to = catalog_mark(marks->catalog);
	pthread_mutex_unlock(&store->lock);
	store_leave_day(store, marks->day); /* this thread alone makes it go */
	return true;
}

static void keep_marks(struct sqlite_samples *store, const struct day_marks *marks, uint64_t folded)
{
	store_lock_all(store);
	marks->catalog->persisted = marks->to;
	for (unsigned i = 0; i < CATALOG_KINDS; i++)
		if (marks->catalog->logged.count[i] < marks->to.count[i])
			marks->catalog->logged.count[i] = marks->to.count[i];
	marks->day->has_file = true;
	marks->day->folded_through = folded;
	store_unlock_all(store);
}

/* What is in the cache goes to the log, and from there into the file. Without room for both,
 * neither could be written any more, nor the log deleted. */
static bool has_room(const struct sqlite_samples *store, uint32_t day,
		     const struct day_writer *writer, struct error *err)
{
	int cached = 0, highest;
	char wal[4200];
	struct statvfs disk;
	uint64_t bytes;

	day_file_path(store->directory, day, wal, sizeof wal - 4);
	strcat(wal, "-wal");
	sqlite3_db_status(writer->db, SQLITE_DBSTATUS_CACHE_USED, &cached, &highest, 0);
	bytes = retention_file_bytes(wal) + 2 * (uint64_t)cached + LOG_SPARE_BYTES;
	return statvfs(store->directory, &disk) ||
	       (uint64_t)disk.f_bavail * disk.f_frsize >= bytes ||
	       error_set_system(err, ENOSPC, "fold %llu KiB into '%s'",
				(unsigned long long)bytes >> 10, store->directory);
}

static bool write_day(struct day_fold *fold, struct day_writer *writer,
		      const struct day_marks *marks, const struct memory_cell *const *cells,
		      size_t count, struct error *err)
{
	if (!day_writer_definitions(writer, marks->catalog, &marks->from, &marks->to, err))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!fold_cell(fold, writer, cells[i], err) ||
		    (i % LOOK_ROWS == 0 && !has_room(fold->store, marks->day->day, writer, err)))
			return false;
		pace(fold);
	}
	return has_room(fold->store, marks->day->day, writer, err) &&
	       day_writer_commit(writer, marks->day->day, err);
}

static bool fold_day(struct day_fold *fold, uint32_t number, const struct memory_cell *const *cells,
		     size_t count, struct error *err)
{
	struct sqlite_samples *store = fold->store;
	uint64_t end = fold->generation->table->end, folded = 0;
	struct day_marks marks = {0};
	struct day_writer writer = {0};
	char path[4096];
	bool ok = false;
	unsigned seen;

	day_file_path(store->directory, number, path, sizeof path);
	if (!take_marks(store, number, &marks, err))
		return false;
	seen = store_set_asides(store, marks.day);
	if (day_writer_begin(&writer, path, end, &folded, err))
		ok = folded >= end || write_day(fold, &writer, &marks, cells, count, err);
	day_writer_close(&writer);
	if (ok && folded < end)
		keep_marks(store, &marks, end);
	if (!ok && err->kind == ERROR_FORMAT)
		store_set_aside(store, marks.day, seen, err->message);
	catalog_release(marks.catalog);
	return ok;
}

/* --- a generation --- */

static int compare_cells(const void *a, const void *b)
{
	const struct cell_key *x = &(*(const struct memory_cell *const *)a)->key;
	const struct cell_key *y = &(*(const struct memory_cell *const *)b)->key;

	if (x->day != y->day)
		return x->day < y->day ? -1 : 1;
	if (x->tenant != y->tenant)
		return x->tenant < y->tenant ? -1 : 1;
	if (x->type != y->type)
		return x->type < y->type ? -1 : 1;
	if (x->bucket != y->bucket)
		return x->bucket < y->bucket ? -1 : 1;
	return (x->series > y->series) - (x->series < y->series);
}

/* The journal has definitions that the file has not, or a refused report left some. */
static bool is_unwritten(const struct day *day)
{
	const struct catalog *catalog = day->catalog;

	return catalog && !catalog_is_persisted(catalog) &&
	       (day->has_file || catalog->logged.count[CATALOG_STRINGS]);
}

/* The first day from this one on whose file lacks a part of its dictionary. */
static bool find_unwritten(struct sqlite_samples *store, uint32_t *number)
{
	bool is_found = false;

	store_lock_all(store);
	for (unsigned i = 0; !is_found && i < store->days.count; i++) {
		const struct day *day = store->days.at[i];

		is_found = day->day >= *number && is_unwritten(day);
		if (is_found)
			*number = day->day;
	}
	store_unlock_all(store);
	return is_found;
}

/* Nothing of it is kept any more: it would go as soon as it is written. */
static bool is_due(struct sqlite_samples *store, uint32_t day)
{
	int64_t now_ms = store_now_ms(), from_ms;

	store_lock_days(store);
	retention_age(store, now_ms); /* a clock that jumped since makes nothing due */
	from_ms = store_kept_from_ms(store, SAMPLES_1H, now_ms);
	store_unlock_days(store);
	return (day + 1ll) * day_ms <= from_ms;
}

/* A refused report can leave definitions behind that others log. The segments that have them are
 * about to be released, and samples that refer to them may come later. */
static bool fold_definitions(struct day_fold *fold, struct error *err)
{
	for (uint32_t number = 0; find_unwritten(fold->store, &number); number++)
		if (!is_due(fold->store, number) && !fold_day(fold, number, NULL, 0, err))
			return false;
	return true;
}

static bool fold_days(struct day_fold *fold, struct error *err)
{
	const struct memory_table *table = fold->generation->table;

	fold->count = table->cells.count;
	fold->cells = calloc(fold->count + 1, sizeof(void *));
	if (!fold->cells)
		return error_set(err, ERROR_MEMORY, "no memory to fold samples");
	for (uint32_t i = 0; i < table->cells.count; i++)
		fold->cells[i] = blocks_at(&table->cells, i);
	qsort(fold->cells, fold->count, sizeof(void *), compare_cells);
	for (size_t first = 0, end; first < fold->count; first = end) {
		uint32_t day = fold->cells[first]->key.day;

		for (end = first; end < fold->count && fold->cells[end]->key.day == day;)
			end++;
		if (!is_due(fold->store, day) &&
		    !fold_day(fold, day, fold->cells + first, end - first, err))
			return false;
	}
	return fold_definitions(fold, err);
}

static bool fold_generation(struct sqlite_samples *store, struct generation *generation,
			    struct error *err)
{
	struct day_fold fold = {.store = store, .generation = generation};
	bool ok;

	store_lock_files(store);
	ok = fold_days(&fold, err);
	/* A damaged file was set aside: its day begins anew. */
	if (!ok && err->kind == ERROR_FORMAT) {
		*err = (struct error){0};
		free(fold.cells);
		fold.cells = NULL;
		ok = fold_days(&fold, err);
	}
	ok = ok && state_file_write(store->state, &generation->change, err);
	store_unlock_files(store);
	free(fold.cells);
	free(fold.pairs);
	free(fold.accounts);
	free(fold.moments);
	free(fold.spans);
	return ok;
}

static void drop_oldest(struct sqlite_samples *store)
{
	struct generation *generation;

	pthread_mutex_lock(&store->lock);
	generation = store->oldest;
	store->oldest = generation->next;
	if (!store->oldest)
		store->newest = NULL;
	store->counters.folds++;
	store->fold_error = (struct error){0};
	pthread_mutex_unlock(&store->lock);
	journal_release(store->journal, generation->table->end);
	memory_table_release(generation->table);
	state_change_release(&generation->change);
	free(generation);
}

/* Everything sealed, oldest first. False: fold_error says why; what is left is tried again. */
static bool fold_all(struct sqlite_samples *store)
{
	for (;;) {
		struct generation *generation;
		struct error err = {0};

		pthread_mutex_lock(&store->lock);
		generation = store->oldest;
		pthread_mutex_unlock(&store->lock);
		if (!generation) {
			log_fault_over(&store->not_folded, "samples not folded");
			return true;
		}
		if (!fold_generation(store, generation, &err)) {
			log_fault_write(&store->not_folded, 0, LOG_ERROR, "samples not folded",
					"reason=\"%s\" again_in=%ds", err.message,
					FOLD_RETRY_MS / 1000);
			pthread_mutex_lock(&store->lock);
			store->fold_error = err;
			store->counters.fold_errors++;
			pthread_mutex_unlock(&store->lock);
			if (error_is_no_room(&err))
				store_give_reserve_up(store);
			return false;
		}
		drop_oldest(store);
	}
}

/* --- the thread --- */

/* The journal's next file, before a request has to wait for it. Under the lock, left meanwhile. */
static void make_spare(struct sqlite_samples *store)
{
	int64_t now_ms = store_now_ms();
	struct error err = {0};

	store->wants_spare = false;
	if (now_ms < store->spare_retry_ms || store->is_short)
		return;
	pthread_mutex_unlock(&store->lock);
	if (!journal_make_spare(store->journal, &err)) {
		log_fault_write(&store->no_spare, 0, LOG_WARN, "no journal segment made ahead",
				"reason=\"%s\"", err.message);
		store->spare_retry_ms = now_ms + FOLD_RETRY_MS;
	} else {
		log_fault_over(&store->no_spare, "no journal segment made ahead");
	}
	pthread_mutex_lock(&store->lock);
}

/* Until there is something to do; returns whether the store is closing. Under the lock. */
static bool wait_for_work(struct sqlite_samples *store, int64_t wait_ms)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += wait_ms / 1000;
	until.tv_nsec += wait_ms % 1000 * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	while (!(store->is_closing && store->is_committed_all) &&
	       store->fold_requests == store->folds_done && !store->wants_room &&
	       (store->fold_error.kind || memory_table_bytes(store->active) <= FOLD_BYTES)) {
		if (store->wants_spare)
			make_spare(store);
		else if (pthread_cond_timedwait(&store->fold_wake, &store->lock, &until) ==
			 ETIMEDOUT)
			break;
	}
	return store->is_closing && store->is_committed_all;
}

/* A generation has whole groups: the ids of one are taken together, and what it defines is beside
 * what refers to it. */
static void wait_for_group(struct sqlite_samples *store)
{
	while (store->is_applying)
		pthread_cond_wait(&store->fold_wake, &store->lock);
}

void *store_fold_thread(void *context)
{
	struct sqlite_samples *store = context;
	int64_t wait_ms = store->counters.replayed ? 0 : FOLD_INTERVAL_MS;
	bool is_closing = false;

	setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICE);
	store_tidy(store, store_now_ms());
	while (!is_closing) {
		uint64_t requests;
		bool ok;

		store_lock_all(store);
		if (store->days.dictionary_bytes > store->dictionary_max && wait_ms > FOLD_RETRY_MS)
			wait_ms = FOLD_RETRY_MS;
		store_unlock_days(store);
		is_closing = wait_for_work(store, wait_ms);
		wait_for_group(store);
		requests = store->fold_requests;
		if (store_has_unsealed(store) && !seal(store))
			log_error("samples not folded", "reason=\"no memory\"%s", "");
		pthread_mutex_unlock(&store->lock);
		ok = fold_all(store);
		wait_ms = ok ? FOLD_INTERVAL_MS : FOLD_RETRY_MS;
		if (!is_closing)
			store_tidy(store, store_now_ms());
		pthread_mutex_lock(&store->lock);
		store->folds_done = requests;
		pthread_cond_broadcast(&store->fold_done);
		pthread_mutex_unlock(&store->lock);
	}
	return NULL;
}

bool sqlite_samples_fold(struct samples_store *base, struct error *err)
{
	struct sqlite_samples *store = sqlite_samples_of(base);
	uint64_t request;
	bool ok;

	pthread_mutex_lock(&store->lock);
	request = ++store->fold_requests;
	pthread_cond_signal(&store->fold_wake);
	while (store->folds_done < request)
		pthread_cond_wait(&store->fold_done, &store->lock);
	ok = !store->fold_error.kind;
	if (!ok && err)
		*err = store->fold_error;
	pthread_mutex_unlock(&store->lock);
	return ok;
}
