/* SPDX-License-Identifier: Apache-2.0 */
/* The insert thread: groups of rows → ClickHouse, one group at a time. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/log.h"
#include "symbol-server/store/clickhouse/samples_store.h"
#include "symbol-server/store/rules/rollup_choice.h"

static const char *const inserts[GROUP_TABLES] = {
	[GROUP_MODULES] =
		"INSERT INTO modules (month, module, build_id, htlhash, go_id, name, base)",
	[GROUP_LOCATIONS] = "INSERT INTO locations (month, location, kind, module, address, "
			    "function, file, type, line)",
	[GROUP_STACKS] = "INSERT INTO stacks (month, stack, locations)",
	[GROUP_SERIES] = "INSERT INTO series (month, tenant, series, label_names, label_values)",
	[GROUP_LIFETIMES] = "INSERT INTO lifetimes (day, tenant, lifetime, context)",
	[GROUP_REPORTS] =
		"INSERT INTO reports (tenant, agent, minute, seq, host, version, kernel, rate_hz, "
		"acknowledged, taken, idle, own_samples, lost_names, lost_counts, stack_names, "
		"stack_counts, end_ms, received_ms, sent_ms)",
	[GROUP_LATE_REPORTS] =
		"INSERT INTO reports_kept (tenant, agent, minute, seq, host, version, kernel, "
		"rate_hz, acknowledged, taken, idle, own_samples, lost_names, lost_counts, "
		"stack_names, stack_counts, end_ms, received_ms, sent_ms)",
	[GROUP_MOMENTS] = "INSERT INTO moments (tenant, type, hour, series, minute, id, times, "
			  "stacks, threads, values)",
	[GROUP_SPANS] = "INSERT INTO spans (tenant, type, hour, series, minute, id, links, stacks, "
			"threads, link_samples, link_values)",
	[GROUP_LATE_SAMPLES] =
		"INSERT INTO late_samples (tenant, type, hour, series, minute, id, is_counted, "
		"samples, value, deleted, refused, stacks, threads, stack_samples, stack_values)",
	[GROUP_SAMPLES] =
		"INSERT INTO samples (tenant, type, hour, series, minute, id, is_counted, samples, "
		"value, deleted, refused, stacks, threads, stack_samples, stack_values)",
};

/* --- profiles that are there twice --- */

struct twice {
	struct buffer rows; /* of table duplicates */
	unsigned count;
};

static bool keep_twice(void *context, struct row_reader *row)
{
	struct twice *twice = context;
	uint32_t tenant = (uint32_t)row_number(row, 4), minute = (uint32_t)row_number(row, 4);
	struct text id = row_fixed(row, 16);

	if (row->is_short)
		return true;
	row_put_u32(&twice->rows, tenant);
	row_put_u32(&twice->rows, minute);
	buffer_append(&twice->rows, id.at, id.length);
	twice->count++;
	return true;
}

/* A profile that was sent again, to this server before it was started anew or to another one, or
 * whose insert was not answered, may be there already. Whoever inserts it last sees both here, so
 * that a double one is known before anybody is told that it is stored. */
static bool find_twice(struct clickhouse_samples *store, const struct row_group *group,
		       struct error *err)
{
	struct twice twice = {.count = 0};
	char sql[600];
	bool ok;

	if (!group->ids.length)
		return true;
	snprintf(sql, sizeof sql,
		 "SELECT tenant, minute, id FROM samples WHERE minute >= toDateTime(%u) AND "
		 "minute <= toDateTime(%u) AND (tenant, type, hour, series, minute, id) IN wanted "
		 "GROUP BY tenant, minute, id HAVING count() > 1",
		 group->first_minute, group->last_minute);
	buffer_init(&twice.rows, GROUP_BYTES_MAX);
	ok = clickhouse_ask(
		store->client,
		&(struct clickhouse_question){
			.sql = sql,
			.set = &(struct clickhouse_set){"tenant UInt32, type UInt8, hour DateTime, "
							"series UInt64, minute DateTime, id "
							"FixedString(16)",
							&group->ids},
			.row = keep_twice,
			.context = &twice,
			.total_s = 60,
		},
		err);
	if (ok && twice.count) {
		ok = clickhouse_insert(store->client, "INSERT INTO duplicates (tenant, minute, id)",
				       &twice.rows, err);
		log_info("profiles came twice", "count=%u", twice.count);
	}
	buffer_release(&twice.rows);
	return ok;
}

/* --- agents whose reports do not follow each other in time --- */

struct irregular {
	struct buffer rows;
	unsigned count;
};

static bool keep_irregular(void *context, struct row_reader *row)
{
	struct irregular *irregular = context;
	uint32_t tenant = (uint32_t)row_number(row, 4);
	struct text agent = row_fixed(row, 16);

	if (row->is_short)
		return true;
	row_put_u32(&irregular->rows, tenant);
	buffer_append(&irregular->rows, agent.at, agent.length);
	irregular->count++;
	return true;
}

/* What comes late is as a rule of a spool and still in order: then no earlier report of the agent
 * is of a later time. */
static bool find_irregular(struct clickhouse_samples *store, const struct row_group *group,
			   struct error *err)
{
	const char *global = *clickhouse_address(store->client)->cluster ? "GLOBAL " : "";
	struct irregular irregular = {.count = 0};
	char sql[800];
	bool ok;

	if (!group->late.length)
		return true;
	snprintf(sql, sizeof sql,
		 "SELECT DISTINCT tenant, agent FROM (SELECT tenant, agent, seq, minute FROM "
		 "reports WHERE minute >= toDateTime(%u) AND (tenant, agent) %sIN (SELECT tenant, "
		 "agent FROM wanted)) AS reported ALL INNER JOIN (SELECT tenant, agent, late_seq, "
		 "late_minute FROM wanted) AS late USING (tenant, agent) WHERE seq < late_seq AND "
		 "minute > late_minute",
		 group->first_late, global);
	buffer_init(&irregular.rows, GROUP_BYTES_MAX);
	ok = clickhouse_ask(store->client,
			    &(struct clickhouse_question){
				    .sql = sql,
				    .set = &(struct clickhouse_set){"tenant UInt32, agent "
								    "FixedString(16), late_seq "
								    "UInt64, late_minute DateTime",
								    &group->late},
				    .row = keep_irregular,
				    .context = &irregular,
				    .total_s = 60,
			    },
			    err);
	if (ok && irregular.count)
		ok = clickhouse_insert(store->client,
				       "INSERT INTO irregular_agents (tenant, agent)",
				       &irregular.rows, err);
	buffer_release(&irregular.rows);
	return ok;
}

/* --- ten minutes that may have been added up --- */

/* After the rows, so that whoever adds up sees them when it sees this. */
static bool mark_late(struct clickhouse_samples *store, const struct row_group *group,
		      struct error *err)
{
	int64_t now_s = clickhouse_now_ms() / 1000;
	uint64_t token = rollup_version(now_s * 1000);
	struct buffer rows;
	bool ok = true;

	buffer_init(&rows, GROUP_BYTES_MAX);
	for (size_t i = 0; i < group->buckets.size; i++) {
		uint32_t start = (uint32_t)group->buckets.slots[i] * 600;

		if (!group->buckets.slots[i] ||
		    start + (ROLLUP_BUCKET_MS + ROLLUP_CLOSED_MS) / 1000ll > now_s)
			continue;
		row_put_u32(&rows, start);
		row_put_u64(&rows, token);
	}
	if (rows.length)
		ok = clickhouse_insert(store->client, "INSERT INTO late_buckets (bucket, token)",
				       &rows, err);
	buffer_release(&rows);
	return ok;
}

/* --- one group --- */

static bool send_group(struct clickhouse_samples *store, const struct row_group *group,
		       struct error *err)
{
	for (unsigned i = 0; i < GROUP_TABLES; i++)
		if (group->tables[i].failed)
			return error_set(err, ERROR_MEMORY, "no memory to record a report");
	for (unsigned i = 0; i < GROUP_TABLES; i++)
		if (group->tables[i].length &&
		    !clickhouse_insert(store->client, inserts[i], &group->tables[i], err))
			return false;
	return find_twice(store, group, err) && find_irregular(store, group, err) &&
	       mark_late(store, group, err);
}

/* What ClickHouse has now need not be defined again. */
static void learn(struct clickhouse_samples *store, const struct row_group *group)
{
	if (store->known.count + group->defined.count > KNOWN_IDS_MAX)
		id_set_clear(&store->known);
	for (size_t i = 0; i < group->defined.size; i++)
		if (group->defined.slots[i])
			id_set_add(&store->known, group->defined.slots[i]);
}

/* Takes the open group and leaves a new one. NULL: no memory for a new one. Under the lock. */
static struct row_group *take_group(struct clickhouse_samples *store)
{
	struct row_group *group = store->group, *next = row_group_new(group->number + 1);

	if (next)
		store->group = next;
	return next ? group : NULL;
}

static void accept_group(struct clickhouse_samples *store, const struct row_group *group)
{
	pthread_mutex_lock(&store->lock);
	learn(store, group);
	store->committed = group->number;
	store->is_away = false;
	store->counters.reports += group->pending.count;
	store->counters.profiles += group->profiles;
	store->counters.samples += group->samples;
	pthread_mutex_unlock(&store->lock);
	pending_reports_answer(&group->pending, true, NULL);
}

/* Who sent it keeps it and comes again. What was recorded meanwhile may refer to definitions that
 * did not arrive, and would wait for nothing: it fails too. */
static void fail_group(struct clickhouse_samples *store, const struct row_group *group,
		       const struct error *err)
{
	struct row_group *also;

	pthread_mutex_lock(&store->lock);
	also = take_group(store);
	report_window_forget(&store->window, store->committed);
	if (!store->is_away)
		log_error("reports not stored", "reports=%u reason=\"%s\"",
			  group->pending.count + (also ? also->pending.count : 0), err->message);
	store->is_away = err->kind != ERROR_MEMORY;
	store->why = *err;
	store->counters.fold_errors++;
	pthread_mutex_unlock(&store->lock);
	pending_reports_answer(&group->pending, false, err);
	if (also)
		pending_reports_answer(&also->pending, false, err);
	row_group_free(also);
}

static void insert_group(struct clickhouse_samples *store, struct row_group *group)
{
	struct error err = {0};

	if (send_group(store, group, &err))
		accept_group(store, group);
	else
		fail_group(store, group, &err);
	row_group_free(group);
}

/* --- the thread --- */

static void wait_ms(struct clickhouse_samples *store, int64_t ms)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += ms % 1000 * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&store->insert_wake, &store->lock, &until);
}

/* How long the open group waits yet. Few inserts with many rows are what ClickHouse likes. */
static int64_t wait_left_ms(const struct clickhouse_samples *store)
{
	int64_t now = clickhouse_now_ms();
	int64_t company = store->group->begin_ms + GROUP_WAIT_MS - now;
	int64_t interval = store->last_insert_ms + GROUP_INTERVAL_MS - now;
	int64_t left = company > interval ? company : interval;

	if (store->is_closing || store->fold_requests != store->folds_done ||
	    row_group_bytes(store->group) > GROUP_BYTES)
		return 0;
	return left > GROUP_INTERVAL_MS ? GROUP_INTERVAL_MS : left; /* the clock may jump */
}

/* While ClickHouse is away nothing is taken, so nobody but this finds out that it is back. */
static void probe(struct clickhouse_samples *store)
{
	bool ok;

	pthread_mutex_unlock(&store->lock);
	ok = clickhouse_run(store->client, "SELECT 1 FROM samples LIMIT 0", NULL);
	pthread_mutex_lock(&store->lock);
	if (ok) {
		log_info("ClickHouse answers again", "server=%s",
			 clickhouse_address(store->client)->server);
		store->is_away = false;
	} else if (!store->is_closing) {
		wait_ms(store, PROBE_MS);
	}
}

static void insert_open_group(struct clickhouse_samples *store)
{
	struct row_group *group = take_group(store);

	if (!group) {
		wait_ms(store, PROBE_MS);
		return;
	}
	store->last_insert_ms = clickhouse_now_ms();
	pthread_mutex_unlock(&store->lock);
	insert_group(store, group);
	pthread_mutex_lock(&store->lock);
}

void *insert_thread(void *context)
{
	struct clickhouse_samples *store = context;

	pthread_mutex_lock(&store->lock);
	for (;;) {
		uint64_t requests = store->fold_requests;
		int64_t left;

		if (store->group->pending.count) {
			left = wait_left_ms(store);
			if (left > 0)
				wait_ms(store, left);
			else
				insert_open_group(store);
			continue;
		}
		if (requests != store->folds_done) {
			store->folds_done = requests;
			pthread_cond_broadcast(&store->insert_done);
		}
		if (store->is_closing)
			break;
		if (store->is_away)
			probe(store);
		else if (store->fold_requests == store->folds_done)
			pthread_cond_wait(&store->insert_wake, &store->lock);
	}
	pthread_mutex_unlock(&store->lock);
	return NULL;
}

bool clickhouse_samples_fold(struct samples_store *base, struct error *err)
{
	struct clickhouse_samples *store = clickhouse_samples_of(base);
	uint64_t request;
	bool ok;

	pthread_mutex_lock(&store->lock);
	request = ++store->fold_requests;
	pthread_cond_signal(&store->insert_wake);
	while (store->folds_done < request && !store->is_closing)
		pthread_cond_wait(&store->insert_done, &store->lock);
	ok = !store->is_away || error_set(err, store->why.kind, "%s", store->why.message);
	pthread_mutex_unlock(&store->lock);
	return ok;
}
