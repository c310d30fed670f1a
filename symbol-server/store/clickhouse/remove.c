/* SPDX-License-Identifier: Apache-2.0 */
/* samples_delete(): the rows of profiles stay, without their stacks (or those of the threads
 * chosen), and say how many samples they
 * had: a report that is sent again is still known, and the accounting still closes. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "symbol-server/store/rules/answerable.h"
#include "symbol-server/store/clickhouse/scope.h"
#include "symbol-server/store/clickhouse/marks.h"
#include "symbol-server/store/clickhouse/remove_contexts.h"

enum {
	SERIES_AT_A_TIME = 6000, /* of a statement of 256 KiB, the least that versions take */
	POLL_MS = 100,
	WAIT_MS = 300000,
};

static const char *const tables[] = {"samples", "late_samples", "moments", "spans"};

static void put_on_cluster(const struct scope *scope, const char *table, struct buffer *sql)
{
	const struct clickhouse_address *address = clickhouse_address(scope->store->client);

	buffer_printf(sql, "ALTER TABLE %s%s", table, scope->store->local);
	if (*address->cluster)
		buffer_printf(sql, " ON CLUSTER %s", address->cluster);
}

/* What goes of the series chosen: everything, or some contexts. */
struct removal {
	struct scope *scope;
	const struct contexts_gone *gone; /* NULL: all */
	const struct context_part *part;
};

static bool start_table(const struct removal *removal, const char *table, const uint64_t *ids,
			size_t count, struct error *err)
{
	struct scope *scope = removal->scope;
	bool has_counts = !strcmp(table, "samples") || !strcmp(table, "late_samples");
	struct buffer sql;
	bool ok;

	buffer_init(&sql, 250 << 10);
	put_on_cluster(scope, table, &sql);
	if (removal->gone)
		contexts_gone_put(removal->gone, removal->part, table, &sql);
	else
		buffer_append_text(
			&sql,
			!has_counts
				? " DELETE WHERE "
				: " UPDATE deleted = deleted + samples, samples = 0, value = 0, "
				  "stacks = emptyArrayUInt64(), threads = emptyArrayString(), "
				  "stack_samples = emptyArrayUInt64(), stack_values = "
				  "emptyArrayUInt64() WHERE ");
	scope_range(scope, &sql);
	for (size_t i = 0; i < count; i++)
		buffer_printf(&sql, "%s%llu", i ? "," : " AND series IN (",
			      (unsigned long long)ids[i]);
	buffer_append_text(&sql, count ? ")" : "");
	buffer_append_char(&sql, '\0');
	ok = sql.failed ? error_set(err, ERROR_MEMORY, "no memory for a question")
			: clickhouse_run(scope->store->client, (const char *)sql.bytes, err);
	buffer_release(&sql);
	return ok;
}

static bool start_part(const struct removal *removal, const uint64_t *ids, size_t count,
		       struct error *err)
{
	for (unsigned i = 0; i < sizeof tables / sizeof *tables; i++)
		if (!start_table(removal, tables[i], ids, count, err))
			return false;
	return true;
}

/* A few series of several types have one id. */
static bool start(const struct removal *removal, struct error *err)
{
	const struct scope *scope = removal->scope;
	uint64_t ids[SERIES_AT_A_TIME];
	size_t count = 0;
	bool ok = scope->is_chosen || start_part(removal, NULL, 0, err);

	for (size_t i = 0; ok && scope->is_chosen && i < scope->series_count; i++) {
		if (!scope->series[i].is_wanted)
			continue;
		ids[count++] = scope->series[i].id;
		if (count == SERIES_AT_A_TIME) {
			ok = start_part(removal, ids, count, err);
			count = 0;
		}
	}
	return ok && (!count || start_part(removal, ids, count, err));
}

static bool keep_number(void *context, struct row_reader *row)
{
	uint64_t number = row_number(row, 8);

	if (!row->is_short)
		*(uint64_t *)context = number;
	return true;
}

/* How many changes of the table are not through yet, also somebody else's. */
static bool ask_left(struct scope *scope, uint64_t *left, struct error *err)
{
	const struct clickhouse_address *address = clickhouse_address(scope->store->client);
	char sql[400], from[160] = "system.mutations";

	if (*address->cluster)
		snprintf(from, sizeof from, "cluster('%s', system, mutations)", address->cluster);
	snprintf(sql, sizeof sql,
		 "SELECT count() FROM %s WHERE database = '%s' AND table IN ('samples%s', "
		 "'late_samples%s', 'moments%s', 'spans%s') AND is_done = 0",
		 from, address->database, scope->store->local, scope->store->local,
		 scope->store->local, scope->store->local);
	return clickhouse_ask(
		scope->store->client,
		&(struct clickhouse_question){.sql = sql, .row = keep_number, .context = left},
		err);
}

static bool finish(struct scope *scope, struct error *err)
{
	const struct samples_query *query = scope->query;
	int64_t until = clickhouse_now_ms() + WAIT_MS;
	uint64_t left = 0;

	for (;;) {
		if (!ask_left(scope, &left, err))
			return false;
		if (!left)
			return true;
		if (clickhouse_now_ms() > until ||
		    (query->is_cancelled && query->is_cancelled(query->context)))
			return error_set(err, ERROR_BUSY,
					 "ClickHouse is still deleting; it goes on by itself");
		nanosleep(&(struct timespec){.tv_nsec = POLL_MS * 1000000l}, NULL);
	}
}

/* Sums of that time are made anew, and until then they do not count. */
static bool mark_late(struct scope *scope, struct error *err)
{
	char sql[400];

	snprintf(sql, sizeof sql,
		 "INSERT INTO late_buckets (bucket, token) SELECT DISTINCT bucket, toUInt64(%llu) "
		 "FROM rollup_marks WHERE level = %d AND bucket >= toDateTime(%u) AND bucket < "
		 "toDateTime(%u)",
		 (unsigned long long)rollup_version(clickhouse_now_ms()), LEVEL_10M,
		 scope->parts.kept_from / BUCKET_S * BUCKET_S, scope->parts.until);
	return clickhouse_run(scope->store->client, sql, err);
}

static bool remove_all(struct scope *scope, struct samples_deleted *deleted, struct error *err)
{
	for (size_t i = 0; i < scope->series_count; i++)
		if (scope->series[i].is_wanted)
			deleted->samples += scope->series[i].samples;
	return start(&(struct removal){.scope = scope}, err) && finish(scope, err);
}

static bool remove_contexts(struct scope *scope, struct samples_deleted *deleted, struct error *err)
{
	struct contexts_gone gone;
	bool ok = contexts_gone_read(&gone, scope, err);

	for (size_t i = 0; ok && i < gone.part_count; i++)
		ok = start(&(struct removal){scope, &gone, &gone.parts[i]}, err) &&
		     finish(scope, err);
	deleted->samples += gone.samples;
	contexts_gone_release(&gone);
	return ok;
}

bool clickhouse_samples_remove(struct samples_store *base, const struct samples_query *query,
			       struct samples_deleted *deleted, struct error *err)
{
	const struct rollup_wants wants = {.sums = false};
	struct scope scope;
	bool ok = true;
	int type;

	if (!answerable_any_type(query, &type, err))
		return false;
	if (!clickhouse_samples_fold(base, err) ||
	    !scope_open(&scope, clickhouse_samples_of(base), query, type, &wants, err))
		return false;
	if (scope.parts.rolled_count)
		ok = error_set(err, ERROR_UNSUPPORTED,
			       "of a part of that time ClickHouse has sums only, of which nothing "
			       "can be deleted: they go with --retention");
	if (ok && scope.wanted_count)
		ok = (query->thread_wanted ? remove_contexts(&scope, deleted, err)
					   : remove_all(&scope, deleted, err)) &&
		     mark_late(&scope, err);
	scope_close(&scope);
	return ok;
}
