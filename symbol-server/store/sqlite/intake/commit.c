/* SPDX-License-Identifier: Apache-2.0 */
/* Reports that wait together: one write and one sync for all of them, then they are applied. */
#include "symbol-server/store/sqlite/samples_store.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/array.h"
#include "common/log.h"

enum { APPLY_SLICE = 64 /* records applied before others get the lock */ };

/* --- groups --- */

struct group *group_new(uint64_t number)
{
	struct group *group = calloc(1, sizeof *group);

	if (!group)
		return NULL;
	group->number = number;
	buffer_init(&group->bytes, (size_t)GROUP_BYTES_MAX + 2 * JOURNAL_RECORD_MAX);
	return group;
}

void group_free(struct group *group)
{
	if (!group)
		return;
	buffer_release(&group->bytes);
	free(group->days);
	free(group->records);
	pending_reports_release(&group->pending);
	free(group);
}

bool group_add_record(struct group *group, const struct buffer *record)
{
	if (!ARRAY_GROW(group->records, group->record_count, group->record_capacity))
		return false;
	group->records[group->record_count].at = group->bytes.length;
	group->records[group->record_count].length = record->length;
	buffer_append(&group->bytes, record->bytes, record->length);
	if (group->bytes.failed) {
		group->bytes.failed = false;
		return false;
	}
	group->record_count++;
	return true;
}

bool group_add_day(struct sqlite_samples *store, struct group *group, struct day *day)
{
	for (uint32_t i = 0; i < group->day_count; i++)
		if (group->days[i] == day)
			return true;
	if (!ARRAY_GROW(group->days, group->day_count, group->day_capacity))
		return false;
	group->days[group->day_count++] = day;
	store_lock_days(store);
	day->users++;
	store_unlock_days(store);
	return true;
}

static void leave_days(struct sqlite_samples *store, struct group *group)
{
	while (group && group->day_count)
		store_leave_day(store, group->days[--group->day_count]);
}

size_t store_memory_bytes(const struct sqlite_samples *store)
{
	size_t bytes = memory_table_bytes(store->active);

	for (const struct generation *g = store->oldest; g; g = g->next)
		bytes += memory_table_bytes(g->table);
	return bytes;
}

/* --- the thread --- */

static bool write_group(struct sqlite_samples *store, const struct group *group, uint64_t *ends,
			struct error *err)
{
	struct bytes *records = calloc(group->record_count + 1, sizeof *records);
	bool ok;

	if (!records)
		return error_set(err, ERROR_MEMORY, "no memory to write the journal");
	for (uint32_t i = 0; i < group->record_count; i++)
		records[i] = (struct bytes){group->bytes.bytes + group->records[i].at,
					    group->records[i].length};
	ok = journal_write(store->journal, records, group->record_count, ends, err);
	free(records);
	return ok;
}

/* In slices, so that requests that are being recorded do not wait for a large group. */
static void apply_group(struct sqlite_samples *store, const struct group *group,
			const uint64_t *ends)
{
	pthread_mutex_lock(&store->lock);
	store->is_applying = true;
	for (uint32_t i = 0; i < group->record_count; i++) {
		store_apply(store, ends[i], group->bytes.bytes + group->records[i].at,
			    group->records[i].length, false);
		if (i % APPLY_SLICE == APPLY_SLICE - 1) {
			pthread_mutex_unlock(&store->lock);
			pthread_mutex_lock(&store->lock);
		}
	}
	store->active->end = store->applied;
	store->committed = group->number;
	store->is_applying = false;
	store->wants_spare = journal_lacks_spare(store->journal);
	if (store->wants_spare || group->record_count >= APPLY_SLICE ||
	    memory_table_bytes(store->active) > FOLD_BYTES)
		pthread_cond_signal(&store->fold_wake);
	pthread_mutex_unlock(&store->lock);
}

/* Takes the open group and leaves a new one. NULL: no memory for a new one. Under the lock. */
static struct group *take_group(struct sqlite_samples *store)
{
	struct group *group = store->group, *next = group_new(group->number + 1);

	if (next)
		store->group = next;
	return next ? group : NULL;
}

/* What was recorded meanwhile may refer to definitions that are not on disk now: it fails too, and
 * the next record brings everything the day files do not have. */
static struct group *fail_group(struct sqlite_samples *store)
{
	struct group *also;

	pthread_mutex_lock(&store->lock);
	also = take_group(store);
	report_window_forget(&store->window, store->committed);
	store_lock_days(store);
	for (unsigned i = 0; i < store->days.count; i++)
		if (store->days.at[i]->catalog)
			store->days.at[i]->catalog->logged = store->days.at[i]->catalog->persisted;
	store_unlock_all(store);
	return also;
}

static void commit_group(struct sqlite_samples *store, struct group *group)
{
	uint64_t *ends = calloc(group->record_count + 1, sizeof *ends);
	struct error err = {0};
	struct group *also = NULL;
	bool ok = ends && (!group->record_count || write_group(store, group, ends, &err));

	if (ok) {
		apply_group(store, group, ends);
		log_fault_over(&store->not_stored, "reports not stored");
	} else {
		if (!ends)
			error_set(&err, ERROR_MEMORY, "no memory to write the journal");
		log_fault_write(&store->not_stored, group->pending.count, LOG_ERROR,
				"reports not stored", "reports=%u reason=\"%s\"",
				group->pending.count, err.message);
		also = fail_group(store);
	}
	leave_days(store, group);
	leave_days(store, also);
	pending_reports_answer(&group->pending, ok, ok ? NULL : &err);
	if (also)
		pending_reports_answer(&also->pending, false, &err);
	group_free(also);
	group_free(group);
	free(ends);
}

static int64_t monotonic_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Reports that come one after the other share a block and a write: few reports wait for one step
 * only, those of a fleet until there are many. */
static void wait_for_company(struct sqlite_samples *store, int64_t waited_us)
{
	uint32_t count = 0, before;

	for (; waited_us < GROUP_WAIT_MAX_US; waited_us += GROUP_WINDOW_US) {
		bool is_enough;

		usleep(GROUP_WINDOW_US);
		before = count ? count : 1;
		pthread_mutex_lock(&store->lock);
		count = store->group->pending.count;
		is_enough = store->is_closing || store->group->bytes.length >= GROUP_BYTES_FULL;
		pthread_mutex_unlock(&store->lock);
		if (is_enough || count == before)
			break;
	}
}

void *store_commit_thread(void *context)
{
	struct sqlite_samples *store = context;
	int64_t busy_us = 0;

	for (;;) {
		struct group *group = NULL;
		bool is_closing, has_work;

		pthread_mutex_lock(&store->lock);
		/* What came while a slow disk wrote the group before has waited already. */
		if (!store->group->pending.count)
			busy_us = 0;
		while (!store->group->pending.count && !store->is_closing)
			pthread_cond_wait(&store->commit_wake, &store->lock);
		has_work = store->group->pending.count;
		is_closing = store->is_closing;
		pthread_mutex_unlock(&store->lock);
		if (!has_work)
			break;
		if (!is_closing)
			wait_for_company(store, busy_us);
		pthread_mutex_lock(&store->lock);
		group = take_group(store);
		pthread_mutex_unlock(&store->lock);
		busy_us = -monotonic_us();
		if (group)
			commit_group(store, group);
		busy_us += monotonic_us();
	}
	pthread_mutex_lock(&store->lock);
	store->is_committed_all = true;
	pthread_cond_signal(&store->fold_wake);
	pthread_mutex_unlock(&store->lock);
	return NULL;
}
