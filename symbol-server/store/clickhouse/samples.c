/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "symbol-server/store/clickhouse/samples_store.h"
#include "symbol-server/store/rules/tallies.h"

int64_t clickhouse_now_ms(void)
{
	return unix_time_ms();
}

uint32_t month_of(int64_t time_ms)
{
	time_t seconds = (time_t)(time_ms > 0 ? time_ms / 1000 : 0);
	struct tm tm;

	gmtime_r(&seconds, &tm);
	return (uint32_t)((tm.tm_year + 1900) * 100 + tm.tm_mon + 1);
}

uint32_t day_number(int64_t time_ms)
{
	time_t seconds = (time_t)(time_ms > 0 ? time_ms / 1000 : 0);
	struct tm tm;

	gmtime_r(&seconds, &tm);
	return month_of(time_ms) * 100 + (uint32_t)tm.tm_mday;
}

/* --- agents --- */

struct agents {
	struct arena *arena;
	struct agent_state *rows;
	size_t count, room;
	bool is_full;
};

static const char *keep(struct agents *agents, struct text text)
{
	const char *copy = arena_text(agents->arena, text.at, text.length);

	agents->is_full |= !copy;
	return copy ? copy : "";
}

/* Two arrays of the same length; what is beyond room is passed over. */
static unsigned read_counts(struct row_reader *row, struct text *names, uint64_t *counts,
			    unsigned room)
{
	uint32_t count = row_array(row), same;

	for (uint32_t i = 0; i < count && !row->is_short; i++) {
		struct text name = row_text(row);

		if (i < room)
			names[i] = name;
	}
	same = row_array(row);
	row->is_bad |= !row->is_short && same != count;
	for (uint32_t i = 0; i < same && !row->is_short; i++) {
		uint64_t number = row_number(row, 8);

		if (i < room)
			counts[i] = number;
	}
	return count < room ? count : room;
}

/* Without tallies. */
static struct named_count *keep_counts(struct agents *agents, const struct text *names,
				       const uint64_t *counts, unsigned count, unsigned *kept)
{
	struct named_count *to = arena_array(agents->arena, count, sizeof *to);

	agents->is_full |= !to;
	for (unsigned i = 0; to && i < count; i++) {
		snprintf(to[*kept].name, sizeof to->name, "%.*s", (int)names[i].length,
			 names[i].at);
		to[*kept].count = counts[i];
		*kept += !tally_find(to[*kept].name);
	}
	return to;
}

static bool keep_agent(void *context, struct row_reader *row)
{
	struct text names[BATCH_LOST_REASONS], results[BATCH_STACK_RESULTS];
	uint64_t counts[BATCH_LOST_REASONS], numbers[BATCH_STACK_RESULTS];
	struct agents *agents = context;
	struct text host = row_text(row), version = row_text(row), kernel = row_text(row);
	struct agent_state state = {.rate_hz = (uint32_t)row_number(row, 4)};
	unsigned lost, stacks;
	int64_t end_ms, sent_ms;

	state.taken = row_number(row, 8);
	lost = read_counts(row, names, counts, BATCH_LOST_REASONS);
	stacks = read_counts(row, results, numbers, BATCH_STACK_RESULTS);
	end_ms = (int64_t)row_number(row, 8);
	state.last_seen_ms = (int64_t)row_number(row, 8);
	sent_ms = (int64_t)row_number(row, 8);
	if (row->is_short)
		return true;
	if (agents->count == agents->room) {
		agents->is_full = true;
		return false;
	}
	state.lag_ms = state.last_seen_ms - end_ms;
	state.has_skew = sent_ms != 0;
	state.skew_ms = sent_ms ? sent_ms - state.last_seen_ms : 0;
	state.host = keep(agents, host);
	state.version = keep(agents, version);
	state.kernel = keep(agents, kernel);
	state.lost_by = keep_counts(agents, names, counts, lost, &state.lost_count);
	state.stacks = keep_counts(agents, results, numbers, stacks, &state.stacks_count);
	for (unsigned i = 0; i < state.lost_count; i++)
		state.lost += state.lost_by[i].count;
	agents->rows[agents->count++] = state;
	return !agents->is_full;
}

bool clickhouse_samples_agents(struct samples_store *base, uint32_t tenant, struct arena *arena,
			       struct agent_state **rows, size_t *count, struct error *err)
{
	struct clickhouse_samples *store = clickhouse_samples_of(base);
	struct agents agents = {.arena = arena, .room = AGENTS_MAX};
	char sql[600];

	/* The array at its largest is some tens of MiB, touched only as far as it is used. */
	agents.rows = calloc(agents.room, sizeof *agents.rows);
	if (!agents.rows)
		return error_set(err, ERROR_MEMORY, "no memory for the list of agents");
	snprintf(sql, sizeof sql,
		 "SELECT host, version, kernel, rate_hz, taken, lost_names, lost_counts, "
		 "stack_names, stack_counts, end_ms, received_ms, sent_ms FROM (SELECT * FROM "
		 "agents WHERE "
		 "tenant = %u ORDER BY seq DESC LIMIT 1 BY agent) ORDER BY host, received_ms DESC "
		 "LIMIT 1 BY host",
		 tenant);
	if (!clickhouse_ask(store->client,
			    &(struct clickhouse_question){
				    .sql = sql, .row = keep_agent, .context = &agents},
			    err)) {
		free(agents.rows);
		return false;
	}
	*rows = arena_copy(arena, agents.rows, agents.count * sizeof *agents.rows);
	*count = agents.count;
	free(agents.rows);
	return (*rows && !agents.is_full) ||
	       error_set(err, ERROR_LIMIT, "the list of agents does not fit its room");
}

/* --- the engine --- */

/* Of the days that there are partitions of, those that have just begun among them. */
static int64_t first_day_ms(const struct clickhouse_samples *store)
{
	for (uint32_t day = 0; day < DAY_NUMBERS; day++)
		if (store->days[day / 8] & 1 << day % 8)
			return day * INT64_C(86400000);
	return 0;
}

static void clickhouse_samples_counters(struct samples_store *base, struct samples_counters *out)
{
	struct clickhouse_samples *store = clickhouse_samples_of(base);
	int64_t first_ms;

	pthread_mutex_lock(&store->lock);
	*out = store->counters;
	first_ms = first_day_ms(store);
	if (first_ms && (!out->oldest_ms || first_ms < out->oldest_ms))
		out->oldest_ms = first_ms;
	out->memory_bytes = row_group_bytes(store->group) + store->known.size * sizeof(uint64_t);
	out->memory_bytes += definitions_bytes(store->definitions);
	out->series = store->definitions->items[DEFINITION_SERIES].count;
	out->stacks = store->definitions->items[DEFINITION_STACKS].count;
	if (store->is_away)
		out->refusing = store->why;
	pthread_mutex_unlock(&store->lock);
}

static void free_store(struct clickhouse_samples *store)
{
	row_group_free(store->group);
	id_set_release(&store->known);
	id_set_release(&store->series_met);
	sender_shares_release(&store->series_hosts);
	report_window_release(&store->window);
	agent_table_release(&store->agents);
	definitions_release(store->definitions);
	clickhouse_free(store->client);
	free(store);
}

static void clickhouse_samples_close(struct samples_store *base)
{
	struct clickhouse_samples *store = clickhouse_samples_of(base);

	pthread_mutex_lock(&store->lock);
	store->is_closing = true;
	pthread_cond_broadcast(&store->insert_wake);
	pthread_cond_broadcast(&store->insert_done);
	pthread_cond_broadcast(&store->tidy_wake);
	pthread_mutex_unlock(&store->lock);
	if (store->has_insert_thread)
		pthread_join(store->insert_thread, NULL);
	if (store->has_tidy_thread)
		pthread_join(store->tidy_thread, NULL);
	free_store(store);
}

static const struct samples_engine clickhouse_engine = {
	.add = clickhouse_samples_add,
	.query = clickhouse_samples_query,
	.timeline = clickhouse_samples_timeline,
	.types = clickhouse_samples_types,
	.labels = clickhouse_samples_labels,
	.label_values = clickhouse_samples_label_values,
	.moments = clickhouse_samples_moments,
	.spans = clickhouse_samples_spans,
	.remove = clickhouse_samples_remove,
	.agents = clickhouse_samples_agents,
	.counters = clickhouse_samples_counters,
	.fold = clickhouse_samples_fold,
	.close = clickhouse_samples_close,
};

static void init_waiting(struct clickhouse_samples *store)
{
	pthread_condattr_t monotonic;

	pthread_mutex_init(&store->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&store->insert_wake, &monotonic);
	pthread_cond_init(&store->insert_done, &monotonic);
	pthread_cond_init(&store->tidy_wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

static struct clickhouse_samples *new_store(const struct samples_store_options *options)
{
	struct clickhouse_samples *store = calloc(1, sizeof *store);

	if (!store)
		return NULL;
	store->base.engine = &clickhouse_engine;
	init_waiting(store);
	memcpy(store->keep_ms, options->keep_ms, sizeof store->keep_ms);
	store->trace_keep_ms = options->trace_keep_ms;
	store->max_disk_bytes = options->max_disk_bytes;
	store->series_max = options->series_max ? options->series_max : UINT32_MAX;
	report_window_init(&store->window);
	agent_table_init(&store->agents);
	store->group = row_group_new(1);
	store->definitions = definitions_new();
	if (getrandom(store->random, sizeof store->random, 0) != sizeof store->random)
		store->random[0] = (uint64_t)clickhouse_now_ms() << 20 | (uint64_t)getpid();
	store->rollup_server = rollup_version(clickhouse_now_ms());
	return store;
}

static bool start_threads(struct clickhouse_samples *store, struct error *err)
{
	int error = pthread_create(&store->insert_thread, NULL, insert_thread, store);

	store->has_insert_thread = !error;
	if (!error) {
		error = pthread_create(&store->tidy_thread, NULL, tidy_thread, store);
		store->has_tidy_thread = !error;
	}
	return !error || error_set_system(err, error, "start a thread");
}

static bool open_store(struct clickhouse_samples *store, const char *url, struct error *err)
{
	if (!store->group || !store->definitions)
		return error_set(err, ERROR_MEMORY, "no memory for the store of samples");
	store->client = clickhouse_new(url, err);
	if (!store->client)
		return false;
	store->local = *clickhouse_address(store->client)->cluster ? "_local" : "";
	if (!clickhouse_migrate(store->client, err) ||
	    !clickhouse_tidy(store, clickhouse_now_ms(), err))
		return false;
	log_info("samples are in ClickHouse", "server=%s database=%s",
		 clickhouse_address(store->client)->server,
		 clickhouse_address(store->client)->database);
	return start_threads(store, err);
}

struct samples_store *clickhouse_samples_open(const struct samples_store_options *options,
					      struct error *err)
{
	struct clickhouse_samples *store = new_store(options);

	if (!store) {
		error_set(err, ERROR_MEMORY, "no memory for the store of samples");
		return NULL;
	}
	if (open_store(store, options->clickhouse_url, err))
		return &store->base;
	clickhouse_samples_close(&store->base);
	return NULL;
}
