/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/samples_store.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "symbol-server/store/data_directory.h"
#include "symbol-server/store/sqlite/reserve.h"
#include "symbol-server/store/rules/tallies.h"
#include "symbol-server/store/sqlite/rollups/retention.h"
#include "symbol-server/store/sqlite/upkeep/delete.h"
#include "symbol-server/store/sqlite/intake/replay_losses.h"

enum {
	FILE_LOCK_WAIT_MS = 60000,
	FILE_LOCK_STEP_MS = 5,
	REFUSING_MS = 10000, /* a journal that failed that long ago may be tried again */
};

/* --- files --- */

/* A backup has the directory for a moment; one that was stopped does not stop the server. */
void store_lock_files(struct sqlite_samples *store)
{
	int64_t waited_ms = 0;

	pthread_mutex_lock(&store->file_lock);
	while (flock(store->directory_fd, LOCK_EX | LOCK_NB) &&
	       (errno == EWOULDBLOCK || errno == EINTR)) {
		if (waited_ms >= FILE_LOCK_WAIT_MS) {
			log_warn("another process keeps the directory locked",
				 "path=\"%s\" waited=%ds", store->directory,
				 FILE_LOCK_WAIT_MS / 1000);
			break;
		}
		poll(NULL, 0, FILE_LOCK_STEP_MS);
		waited_ms += FILE_LOCK_STEP_MS;
	}
}

void store_unlock_files(struct sqlite_samples *store)
{
	flock(store->directory_fd, LOCK_UN);
	pthread_mutex_unlock(&store->file_lock);
}

/* --- opening --- */

static bool open_state_once(struct sqlite_samples *store, const char *path, struct error *err)
{
	store->state = state_file_open(path, err);
	return store->state && state_file_load(store->state, &store->agents, &store->window,
					       &store->state_position, err);
}

/* Without agents.db an agent's counts start at its next report and only the journal's reports are
 * known as repeated: far less than having no server. */
static bool open_state(struct sqlite_samples *store, struct error *err)
{
	char path[4096];

	snprintf(path, sizeof path, "%s/agents.db", store->directory);
	if (open_state_once(store, path, err))
		return true;
	if (err->kind != ERROR_FORMAT)
		return false;
	state_file_close(store->state);
	agent_table_release(&store->agents);
	report_window_release(&store->window);
	store->state_position = 0;
	database_set_aside(path, err->message);
	*err = (struct error){0};
	return open_state_once(store, path, err);
}

static bool open_files(struct sqlite_samples *store, struct error *err)
{
	char path[4096];

	if (mkdir(store->directory, 0700) && errno != EEXIST)
		return error_set_system(err, errno, "make directory '%s'", store->directory);
	store->directory_fd = open(store->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store->directory_fd < 0)
		return error_set_system(err, errno, "open directory '%s'", store->directory);
	snprintf(path, sizeof path, "%s/journal", store->directory);
	store->journal = journal_open(path, JOURNAL_BYTES_MAX, err);
	if (!store->journal)
		return false;
	return store_find_days(store, err);
}

static bool open_agents(struct sqlite_samples *store, uint64_t *newest, struct error *err)
{
	if (!open_state(store, err))
		return false;
	*newest = store->state_position;
	return true;
}

/* What is kept by the second begins after all that there is: a host's clock may have been ahead. */
static bool note_newest(struct sqlite_samples *store, const struct day *day,
			const struct day_reader *reader, struct error *err)
{
	sqlite3_stmt *newest;

	if (day->is_month || (day->day + INT64_C(2)) * day_ms < store_now_ms())
		return true;
	newest = database_prepare(reader->db, "SELECT max(bucket) FROM accounts", err);
	if (!newest)
		return false;
	if (sqlite3_step(newest) == SQLITE_ROW && sqlite3_column_type(newest, 0) != SQLITE_NULL)
		recent_miss(&store->recent,
			    day->day * MINUTES_PER_DAY + sqlite3_column_int64(newest, 0));
	sqlite3_finalize(newest);
	return true;
}

/* Every day file is looked at once: what it has, and whether it can be read at all. */
static bool check_day(struct sqlite_samples *store, struct day *day, uint64_t *newest,
		      struct error *err)
{
	struct error why = {0};
	struct day_reader *reader;
	char path[4096];
	int64_t due = 0;
	bool ok;

	store_day_path(store, day, path, sizeof path);
	reader = day_reader_open(path, &why);
	ok = reader && day_reader_begin(reader, &day->folded_through, &why) &&
	     note_newest(store, day, reader, &why);
	day->is_reduced = reader && reader->is_reduced;
	day->names_due = ok && database_get_fact(reader->db, "names_due", &due, NULL) && due;
	if (ok)
		day_reader_end(reader);
	day_reader_close(reader);
	if (!ok && why.kind == ERROR_NOT_FOUND)
		day->has_file = false;
	else if (!ok && why.kind == ERROR_FORMAT)
		store_set_aside(store, day, store_set_asides(store, day), why.message);
	else if (!ok) {
		if (err)
			*err = why;
		return false;
	}
	if (day->folded_through > *newest)
		*newest = day->folded_through;
	return true;
}

static bool check_days(struct sqlite_samples *store, uint64_t *newest, struct error *err)
{
	for (unsigned i = 0; store_day_at(store, i); i++)
		if (!check_day(store, store_day_at(store, i), newest, err))
			return false;
	return true;
}

/* On a disk without room what is due by retention goes, unread, and then it is tried again. */
static bool open_part(struct sqlite_samples *store, uint64_t *newest,
		      bool (*open)(struct sqlite_samples *, uint64_t *, struct error *),
		      struct error *err)
{
	struct error why = {0};

	if (open(store, newest, &why))
		return true;
	if (error_is_no_room(&why) && retention_drop_due(store, store_now_ms()))
		return open(store, newest, err);
	if (err)
		*err = why;
	return false;
}

static void does(const struct samples_store_options *options, const char *doing)
{
	if (options->does)
		options->does(options->does_context, doing);
}

static bool replay_record(void *context, uint64_t end, const uint8_t *bytes, size_t length)
{
	store_apply(context, end, bytes, length, true);
	return true;
}

/* Afterwards every position to come is greater than any there was, in files too. A record that is
 * not in agents.db has to get there even when the days' files have all its samples: its ids and its
 * agent's counts are nowhere else. */
static bool replay(struct sqlite_samples *store, uint64_t newest, struct error *err)
{
	bool has_more;

	store->active = memory_table_new(newest);
	if (!store->active)
		return error_set(err, ERROR_MEMORY, "no memory for samples");
	if (!journal_replay(store->journal, replay_record, store, err))
		return false;
	replay_settle(store);
	has_more = store->applied > store->state_position;
	if (store->applied > newest)
		newest = store->applied;
	journal_start_after(store->journal, newest);
	store->applied = store->active->end = journal_position(store->journal);
	store->sealed = has_more ? store->state_position : store->applied;
	if (store->counters.replayed)
		log_info("journal replayed", "records=%llu unusable=%llu",
			 (unsigned long long)store->counters.replayed,
			 (unsigned long long)store->damaged_records);
	return true;
}

static bool start_threads(struct sqlite_samples *store, struct error *err)
{
	int error = pthread_create(&store->commit_thread, NULL, store_commit_thread, store);

	store->has_commit_thread = !error;
	if (!error) {
		error = pthread_create(&store->fold_thread, NULL, store_fold_thread, store);
		store->has_fold_thread = !error;
	}
	return !error || error_set_system(err, error, "start a thread");
}

static void free_store(struct sqlite_samples *store)
{
	while (store->oldest) {
		struct generation *next = store->oldest->next;

		memory_table_release(store->oldest->table);
		state_change_release(&store->oldest->change);
		free(store->oldest);
		store->oldest = next;
	}
	memory_table_release(store->active);
	recent_release(&store->recent);
	days_release(&store->days);
	state_file_close(store->state);
	journal_close(store->journal);
	agent_table_release(&store->agents);
	report_window_release(&store->window);
	group_free(store->group);
	buffer_release(&store->record);
	buffer_release(&store->scratch);
	buffer_release(&store->body);
	buffer_release(&store->entry);
	if (store->directory_fd >= 0)
		close(store->directory_fd);
	free(store->directory);
	free(store);
}

static void sqlite_samples_close(struct samples_store *base)
{
	struct sqlite_samples *store = sqlite_samples_of(base);

	pthread_mutex_lock(&store->lock);
	store->is_closing = true;
	store->is_committed_all = !store->has_commit_thread;
	pthread_cond_broadcast(&store->commit_wake);
	pthread_cond_broadcast(&store->fold_wake);
	pthread_mutex_unlock(&store->lock);
	if (store->has_commit_thread)
		pthread_join(store->commit_thread, NULL);
	if (store->has_fold_thread)
		pthread_join(store->fold_thread, NULL);
	/* Nothing is left that a journal would be needed for. */
	if (store->has_fold_thread && !store->oldest && !store_has_unsealed(store)) {
		journal_end_segment(store->journal);
		journal_release(store->journal, journal_position(store->journal));
	}
	free_store(store);
}

int64_t store_monotonic_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static int64_t oldest_ms(const struct sqlite_samples *store)
{
	int64_t oldest = store->days.count ? store->days.at[0]->day : 0;

	if (store->days.month_count && (!oldest || store->days.months[0]->day < oldest))
		oldest = store->days.months[0]->day;
	return oldest * day_ms;
}

void store_hold_reserve(struct sqlite_samples *store)
{
	struct reserve_state reserve = reserve_hold(store->directory);

	if (reserve.is_short)
		log_fault_write(&store->no_room, 0, LOG_ERROR, "the disk is full",
				"path=\"%s\" free=%llu meaning=\"reports are refused\"",
				store->directory, (unsigned long long)reserve.free_bytes);
	else
		log_fault_over(&store->no_room, "the disk is full");
	pthread_mutex_lock(&store->lock);
	store->is_short = reserve.is_short;
	journal_set_short(store->journal, reserve.is_short);
	pthread_mutex_unlock(&store->lock);
}

/* A log that grew in vain goes with the last one who has it open. */
static void close_all_readers(struct sqlite_samples *store)
{
	struct day *day;

	for (unsigned i = 0;; i++) {
		store_lock_days(store);
		day = store_day_at(store, i);
		if (day)
			day->users++;
		store_unlock_days(store);
		if (!day)
			return;
		store_close_readers(store, day);
		store_leave_day(store, day);
	}
}

void store_give_reserve_up(struct sqlite_samples *store)
{
	pthread_mutex_lock(&store->lock);
	store->is_short = true; /* first: reports do not take it */
	pthread_mutex_unlock(&store->lock);
	close_all_readers(store);
	journal_set_short(store->journal, true);
	reserve_give_up(store->directory);
}

bool store_set_short(struct error *err)
{
	return error_set(
		err, ERROR_SYSTEM,
		"the disk of --data has no space left: delete samples, or make room otherwise");
}

static void sqlite_samples_counters(struct samples_store *base, struct samples_counters *out)
{
	struct sqlite_samples *store = sqlite_samples_of(base);
	struct journal_counters journal;
	size_t memory;

	store_lock_all(store);
	journal_counters(store->journal, &journal);
	*out = store->counters;
	out->waiting = store->fold_error;
	if (store->oldest)
		out->unfolded_ms = (uint64_t)(store_monotonic_ms() - store->oldest->sealed_ms);
	if (store_monotonic_ms() - journal.failed_ms < REFUSING_MS)
		out->refusing = journal.failed;
	out->dictionary_bytes = store->days.dictionary_bytes;
	out->newest_ms = store_newest_ms(store);
	if (out->newest_ms < store->agents.newest_ms)
		out->newest_ms = store->agents.newest_ms;
	if (store->is_short)
		store_set_short(&out->refusing);
	memory = store_memory_bytes(store);
	out->recent_bytes = store->recent.bytes;
	out->oldest_ms = oldest_ms(store);
	for (unsigned i = 0; i < store->days.count; i++) {
		const struct catalog *catalog = store->days.at[i]->catalog;

		out->days += store->days.at[i]->has_file;
		if (!catalog)
			continue;
		memory += catalog_bytes(catalog);
		out->series += catalog->items[CATALOG_SERIES].count - 1;
		out->stacks += catalog->items[CATALOG_STACKS].count - 1;
	}
	store_unlock_all(store);
	out->journal_bytes = journal.bytes;
	out->journal_syncs = journal.syncs;
	out->memory_bytes = memory;
}

/* --- agents --- */

/* Without its tallies. */
static void copy_agent(const struct agent_row *row, struct arena *arena, struct agent_state *to)
{
	struct agent_row copy;

	if (!agent_row_copy(row, arena, &copy))
		return;
	*to = copy.state;
	to->lost_count = 0;
	for (unsigned i = 0; i < copy.state.lost_count; i++) {
		if (tally_find(to->lost_by[i].name))
			continue;
		to->lost += to->lost_by[i].count;
		to->lost_by[to->lost_count++] = to->lost_by[i];
	}
}

/* By host, the one heard last first. */
static int compare_agents(const void *a, const void *b)
{
	const struct agent_state *x = a, *y = b;
	int order = strcmp(x->host, y->host);

	if (!order)
		order = (x->heard < y->heard) - (x->heard > y->heard);
	return order ? order
		     : (x->last_seen_ms < y->last_seen_ms) - (x->last_seen_ms > y->last_seen_ms);
}

static bool sqlite_samples_agents(struct samples_store *base, uint32_t tenant, struct arena *arena,
				  struct agent_state **rows, size_t *count, struct error *err)
{
	struct sqlite_samples *store = sqlite_samples_of(base);
	size_t all = 0;

	pthread_mutex_lock(&store->lock);
	*rows = arena_array(arena, store->agents.count, sizeof **rows);
	for (uint32_t i = 0; *rows && !arena->failed && i < store->agents.count; i++)
		if (store->agents.rows[i]->tenant == tenant)
			copy_agent(store->agents.rows[i], arena, &(*rows)[all++]);
	pthread_mutex_unlock(&store->lock);
	if (arena->failed)
		return error_set(err, ERROR_LIMIT, "the list of agents does not fit its room");
	qsort(*rows, all, sizeof **rows, compare_agents);
	*count = 0;
	/* A host's earlier starts of the agent are history. */
	for (size_t i = 0; i < all; i++)
		if (!i || strcmp((*rows)[*count - 1].host, (*rows)[i].host))
			(*rows)[(*count)++] = (*rows)[i];
	return true;
}

static uint64_t sqlite_samples_cpus(struct samples_store *base, uint32_t tenant,
				    const char *const *names, uint32_t count)
{
	struct sqlite_samples *store = sqlite_samples_of(base);
	uint64_t cpus;

	pthread_mutex_lock(&store->lock);
	cpus = agent_table_cpus(&store->agents, tenant, names, count);
	pthread_mutex_unlock(&store->lock);
	return cpus;
}

/* --- the engine --- */

static const struct samples_engine sqlite_engine = {
	.add = sqlite_samples_add,
	.query = sqlite_samples_query,
	.types = sqlite_samples_types,
	.labels = sqlite_samples_labels,
	.label_values = sqlite_samples_label_values,
	.timeline = sqlite_samples_timeline,
	.moments = sqlite_samples_moments,
	.spans = sqlite_samples_spans,
	.remove = sqlite_samples_delete,
	.agents = sqlite_samples_agents,
	.cpus = sqlite_samples_cpus,
	.counters = sqlite_samples_counters,
	.fold = sqlite_samples_fold,
	.close = sqlite_samples_close,
};

static struct sqlite_samples *new_store(const struct samples_store_options *options)
{
	struct sqlite_samples *store = calloc(1, sizeof *store);
	pthread_condattr_t monotonic;

	if (!store)
		return NULL;
	pthread_mutex_init(&store->lock, NULL);
	pthread_mutex_init(&store->file_lock, NULL);
	store->directory_fd = -1;
	pthread_cond_init(&store->commit_wake, NULL);
	pthread_condattr_init(&monotonic); /* a wall clock that is set back stops no fold */
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&store->fold_wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_cond_init(&store->fold_done, NULL);
	recent_init(&store->recent);
	agent_table_init(&store->agents);
	report_window_init(&store->window);
	buffer_init(&store->record, JOURNAL_RECORD_MAX);
	buffer_init(&store->scratch, JOURNAL_RECORD_MAX);
	buffer_init(&store->body, JOURNAL_RECORD_MAX);
	buffer_init(&store->entry, JOURNAL_RECORD_MAX);
	memcpy(store->keep_ms, options->keep_ms, sizeof store->keep_ms);
	store->trace_keep_ms = options->trace_keep_ms;
	store->max_disk_bytes = options->max_disk_bytes;
	store->rollup_late_pause_ms = 300000;
	store->dictionary_max = options->dictionary_bytes ? options->dictionary_bytes : 1 << 30;
	store->series_max = options->series_max ? options->series_max : CATALOG_SERIES_MAX;
	store->base.engine = &sqlite_engine;
	store->directory = strdup(options->directory);
	days_init(&store->days);
	store->group = group_new(1);
	store->wants_spare = true;
	return store;
}

struct samples_store *sqlite_samples_open(const struct samples_store_options *options,
					  struct error *err)
{
	struct sqlite_samples *store = new_store(options);
	uint64_t newest = 0;
	bool ok = false;

	if (!store || !store->directory || !store->days.at || !store->group) {
		error_set(err, ERROR_MEMORY, "no memory for the store of samples");
		goto out;
	}
	ok = open_files(store, err) && open_part(store, &newest, open_agents, err);
	does(options, "looks at its days");
	ok = ok && open_part(store, &newest, check_days, err);
	does(options, "reads its journal");
	ok = ok && replay(store, newest, err);
	if (ok) {
		store_hold_reserve(store);
		retention_measure(store, store_now_ms());
	}
	ok = ok && start_threads(store, err);
out:
	if (!ok) {
		if (store)
			sqlite_samples_close(&store->base);
		return NULL;
	}
	return &store->base;
}
