/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/state_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol-server/embedded.h"

enum { CHANGE_BYTES_MAX = 512 << 20 };

static const int64_t forget_ms = 30ll * 86400000; /* agents not heard for so long */

static const char *const migrations[] = {embedded_agents_0001_sql, embedded_agents_0002_sql,
					 embedded_agents_0003_sql, NULL};
const struct database_schema state_file_schema = {APPLICATION_AGENTS, migrations,
						  .is_made_anew = true};

/* Values are bound and read in this order (schema/store/sqlite/agents_*.sql). */
#define AGENTS_COLUMNS                                                                    \
	"tenant, id, host, version, kernel, rate_hz, seq, taken, idle, lost, last_seen, " \
	"lag_ms, stacks, heard"
#define REPORTS_COLUMNS "tenant, prefix, first, count"

struct state_file {
	sqlite3 *db;
	sqlite3_stmt *put_agent, *put_run, *delete_agents, *delete_runs;
};

struct state_file *state_file_open(const char *path, struct error *err)
{
	struct state_file *file = calloc(1, sizeof *file);

	if (!file) {
		error_set(err, ERROR_MEMORY, "no memory to open '%s'", path);
		return NULL;
	}
	file->db = database_open(path, &state_file_schema, err);
	if (!file->db)
		goto fail;
	file->put_agent = database_prepare_insert(
		file->db, "INSERT OR REPLACE INTO agents (" AGENTS_COLUMNS ")", err);
	file->put_run = database_prepare_insert(file->db,
						"INSERT INTO reports (" REPORTS_COLUMNS ")", err);
	file->delete_agents = database_prepare(file->db, "DELETE FROM agents WHERE last_seen < ?",
					       err);
	file->delete_runs = database_prepare(
		file->db,
		"DELETE FROM reports WHERE number <= (SELECT max(number) FROM reports) - ?", err);
	if (file->put_agent && file->put_run && file->delete_agents && file->delete_runs)
		return file;
fail:
	state_file_close(file);
	return NULL;
}

void state_file_close(struct state_file *file)
{
	if (!file)
		return;
	sqlite3_finalize(file->put_agent);
	sqlite3_finalize(file->put_run);
	sqlite3_finalize(file->delete_agents);
	sqlite3_finalize(file->delete_runs);
	database_close(file->db);
	free(file);
}

/* --- loading --- */

/* "name count" lines; returns how many. */
static unsigned read_counts(const unsigned char *text, struct named_count *counts, unsigned room)
{
	const char *lines = (const char *)text;
	unsigned used = 0;
	int length;

	while (lines && used < room &&
	       sscanf(lines, "%39s %" SCNu64 "\n%n", counts[used].name, &counts[used].count,
		      &length) == 2) {
		lines += length;
		used++;
	}
	return used;
}

static bool load_agents(struct state_file *file, struct agent_table *agents, struct error *err)
{
	sqlite3_stmt *statement = database_prepare(
		file->db, "SELECT " AGENTS_COLUMNS " FROM agents ORDER BY heard, last_seen", err);
	bool ok = statement;

	while (database_row(statement, &ok, err)) {
		struct named_count lost[BATCH_LOST_REASONS], stacks[BATCH_STACK_RESULTS];
		struct agent_row row = {.tenant = (uint32_t)sqlite3_column_int64(statement, 0)};
		struct agent_state *agent = &row.state;

		if (sqlite3_column_bytes(statement, 1) != sizeof row.id)
			continue;
		memcpy(row.id, sqlite3_column_blob(statement, 1), sizeof row.id);
		agent->host = (const char *)sqlite3_column_text(statement, 2);
		agent->version = (const char *)sqlite3_column_text(statement, 3);
		agent->kernel = (const char *)sqlite3_column_text(statement, 4);
		agent->rate_hz = (uint32_t)sqlite3_column_int64(statement, 5);
		row.seq = (uint64_t)sqlite3_column_int64(statement, 6);
		agent->taken = (uint64_t)sqlite3_column_int64(statement, 7);
		row.idle = (uint64_t)sqlite3_column_int64(statement, 8);
		agent->lost_by = lost;
		agent->lost_count = read_counts(sqlite3_column_text(statement, 9), lost,
						BATCH_LOST_REASONS);
		agent->last_seen_ms = sqlite3_column_int64(statement, 10);
		agent->lag_ms = sqlite3_column_int64(statement, 11);
		agent->stacks = stacks;
		agent->stacks_count = read_counts(sqlite3_column_text(statement, 12), stacks,
						  BATCH_STACK_RESULTS);
		agent->heard = (uint64_t)sqlite3_column_int64(statement, 13);
		ok = agent_table_put(agents, &row) ||
		     error_set(err, ERROR_MEMORY, "no memory for the agents");
	}
	sqlite3_finalize(statement);
	return ok;
}

static bool load_runs(struct state_file *file, struct report_window *window, struct error *err)
{
	sqlite3_stmt *statement = database_prepare(
		file->db, "SELECT " REPORTS_COLUMNS " FROM reports ORDER BY number", err);
	bool ok = statement;

	while (database_row(statement, &ok, err)) {
		struct report_run run = {.tenant = (uint32_t)sqlite3_column_int64(statement, 0),
					 .first = (uint32_t)sqlite3_column_int64(statement, 2),
					 .count = (uint32_t)sqlite3_column_int64(statement, 3)};

		if (sqlite3_column_bytes(statement, 1) != sizeof run.prefix)
			continue;
		memcpy(run.prefix, sqlite3_column_blob(statement, 1), sizeof run.prefix);
		ok = report_window_add(window, &run) ||
		     error_set(err, ERROR_MEMORY, "no memory for the profile ids");
	}
	window->persisted = window->added;
	sqlite3_finalize(statement);
	return ok;
}

bool state_file_load(struct state_file *file, struct agent_table *agents,
		     struct report_window *window, uint64_t *folded_through, struct error *err)
{
	int64_t folded;

	if (!database_get_fact(file->db, "folded_through", &folded, err))
		return false;
	*folded_through = (uint64_t)folded;
	return load_agents(file, agents, err) && load_runs(file, window, err);
}

/* --- writing --- */

static void take_runs(struct state_change *change, const struct report_window *window,
		      uint64_t first, uint64_t committed)
{
	for (uint64_t n = first; n < window->added; n++) {
		const struct report_run *run = report_window_at(window, n);

		if (run && run->count && run->group > committed)
			return;
		if (run && run->count)
			change->runs[change->run_count++] = *run;
		change->last_run = n + 1;
	}
}

static bool take_agents(struct state_change *change, struct agent_table *agents)
{
	uint32_t dirty = 0;

	for (uint32_t i = 0; i < agents->count; i++)
		dirty += agents->rows[i]->is_dirty;
	change->agents = arena_array(&change->arena, dirty + 1, sizeof *change->agents);
	for (uint32_t i = 0; change->agents && i < agents->count; i++)
		if (agents->rows[i]->is_dirty &&
		    !agent_row_copy(agents->rows[i], &change->arena,
				    &change->agents[change->agent_count++]))
			return false;
	for (uint32_t i = 0; change->agents && i < agents->count; i++)
		agents->rows[i]->is_dirty = false;
	return change->agents;
}

bool state_change_take(struct state_change *change, struct agent_table *agents,
		       struct report_window *window, uint64_t committed, uint64_t position,
		       int64_t now_ms)
{
	uint64_t first = window->persisted;

	if (window->added - first > window->capacity)
		first = window->added - window->capacity;
	*change = (struct state_change){.position = position, .now_ms = now_ms, .last_run = first};
	arena_init(&change->arena, CHANGE_BYTES_MAX);
	change->runs = calloc((size_t)(window->added - first) + 1, sizeof *change->runs);
	if (!change->runs || !take_agents(change, agents)) {
		state_change_release(change);
		return false;
	}
	take_runs(change, window, first, committed);
	window->persisted = change->last_run;
	return true;
}

void state_change_release(struct state_change *change)
{
	arena_release(&change->arena);
	free(change->runs);
	memset(change, 0, sizeof *change);
}

enum { COUNT_LINE = COUNT_NAME_BYTES + 24 };

/* text has room for COUNT_LINE bytes of each. */
static int write_counts(const struct named_count *counts, unsigned count, char *text)
{
	int used = 0;

	text[0] = '\0';
	for (unsigned i = 0; i < count; i++)
		used += snprintf(text + used, COUNT_LINE, "%s %" PRIu64 "\n", counts[i].name,
				 counts[i].count);
	return used;
}

static bool write_agent(struct state_file *file, const struct agent_row *row, struct error *err)
{
	const struct agent_state *agent = &row->state;
	sqlite3_stmt *put = file->put_agent;
	char lost[BATCH_LOST_REASONS * COUNT_LINE], stacks[BATCH_STACK_RESULTS * COUNT_LINE];
	int lost_length = write_counts(agent->lost_by, agent->lost_count, lost);
	int stacks_length = write_counts(agent->stacks, agent->stacks_count, stacks);

	sqlite3_bind_int64(put, 1, row->tenant);
	sqlite3_bind_blob(put, 2, row->id, sizeof row->id, SQLITE_STATIC);
	sqlite3_bind_text(put, 3, agent->host, -1, SQLITE_STATIC);
	sqlite3_bind_text(put, 4, agent->version, -1, SQLITE_STATIC);
	sqlite3_bind_text(put, 5, agent->kernel, -1, SQLITE_STATIC);
	DATABASE_BIND(put, 6, agent->rate_hz, (int64_t)row->seq, (int64_t)agent->taken,
		      (int64_t)row->idle);
	sqlite3_bind_text(put, 10, lost, lost_length, SQLITE_STATIC);
	DATABASE_BIND(put, 11, agent->last_seen_ms, agent->lag_ms);
	sqlite3_bind_text(put, 13, stacks, stacks_length, SQLITE_STATIC);
	sqlite3_bind_int64(put, 14, (int64_t)agent->heard);
	return database_run(put, err);
}

static bool write_run(struct state_file *file, const struct report_run *run, struct error *err)
{
	sqlite3_bind_int64(file->put_run, 1, run->tenant);
	sqlite3_bind_blob(file->put_run, 2, run->prefix, sizeof run->prefix, SQLITE_STATIC);
	DATABASE_BIND(file->put_run, 3, run->first, run->count);
	return database_run(file->put_run, err);
}

static bool write_change(struct state_file *file, const struct state_change *change,
			 struct error *err)
{
	for (uint32_t i = 0; i < change->agent_count; i++)
		if (!write_agent(file, &change->agents[i], err))
			return false;
	for (uint32_t i = 0; i < change->run_count; i++)
		if (!write_run(file, &change->runs[i], err))
			return false;
	sqlite3_bind_int64(file->delete_agents, 1, change->now_ms - forget_ms);
	sqlite3_bind_int64(file->delete_runs, 1, REPORT_WINDOW_MAX);
	return database_run(file->delete_agents, err) && database_run(file->delete_runs, err) &&
	       database_put_fact(file->db, "folded_through", (int64_t)change->position, err) &&
	       database_exec(file->db, "COMMIT", err);
}

bool state_file_write(struct state_file *file, const struct state_change *change, struct error *err)
{
	if (!database_exec(file->db, "BEGIN IMMEDIATE", err))
		return false;
	if (write_change(file, change, err))
		return true;
	sqlite3_exec(file->db, "ROLLBACK", NULL, NULL, NULL);
	return false;
}

/* --- forgetting --- */

static bool delete_host(struct state_file *file, const char *host, int64_t silent_since_ms,
			struct error *err)
{
	sqlite3_stmt *statement = database_prepare(
		file->db, "DELETE FROM agents WHERE host = ? AND last_seen < ?", err);
	bool ok = statement;

	if (statement) {
		sqlite3_bind_text(statement, 1, host, -1, SQLITE_STATIC);
		sqlite3_bind_int64(statement, 2, silent_since_ms);
		ok = database_run(statement, err);
	}
	sqlite3_finalize(statement);
	return ok;
}

/* One that has to be forgotten, or NULL; the caller's. */
static char *find_host(struct state_file *file, int64_t silent_since_ms,
		       bool (*forgets)(void *context, const char *host), void *context, bool *ok,
		       struct error *err)
{
	sqlite3_stmt *find = database_prepare(
		file->db, "SELECT DISTINCT host FROM agents WHERE last_seen < ?", err);
	char *host = NULL;

	*ok = find;
	if (find)
		sqlite3_bind_int64(find, 1, silent_since_ms);
	while (!host && database_row(find, ok, err)) {
		const char *text = (const char *)sqlite3_column_text(find, 0);

		if (text && forgets(context, text))
			host = strdup(text);
	}
	sqlite3_finalize(find);
	return host;
}

bool state_file_forget(struct state_file *file, int64_t silent_since_ms,
		       bool (*forgets)(void *context, const char *host), void *context,
		       struct error *err)
{
	bool ok = true, has_any = false;
	char *host;

	while (ok && (host = find_host(file, silent_since_ms, forgets, context, &ok, err))) {
		has_any = true;
		ok = database_exec(file->db, "PRAGMA secure_delete = 1", err) &&
		     delete_host(file, host, silent_since_ms, err);
		free(host);
	}
	return ok && (!has_any || database_exec(file->db, "PRAGMA wal_checkpoint(TRUNCATE)", err));
}
