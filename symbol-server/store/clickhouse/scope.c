/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/clickhouse/scope.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "symbol-server/store/clickhouse/id_set.h"
#include "symbol-server/store/clickhouse/marks.h"
#include "symbol-server/store/rules/series_labels.h"

static bool widen(struct scope *scope, const struct rollup_wants *wants, struct error *err)
{
	const struct samples_query *query = scope->query;
	int64_t from = query->from_ms < 0 ? 0 : query->from_ms;
	int64_t until = query->until_ms < from ? from : query->until_ms;
	const int64_t end = (int64_t)UINT32_MAX / 60 * SAMPLES_BUCKET_MS; /* of DateTime */

	if (until > end)
		return error_set(err, ERROR_OPTION, "the end of the time range is beyond all time");
	until = (until + SAMPLES_BUCKET_MS - 1) / SAMPLES_BUCKET_MS * 60;
	if (!parts_choose(scope->store, clickhouse_now_ms(),
			  (uint32_t)(from / SAMPLES_BUCKET_MS * 60), (uint32_t)until, wants,
			  &scope->parts, err))
		return false;
	scope->from_ms = scope->parts.from * 1000ll;
	scope->until_ms = scope->parts.until * 1000ll;
	/* Whole days are dropped; until then what is too old of a day is not shown. */
	scope->kept_from_ms = scope->parts.kept_from * 1000ll;
	return true;
}

/* --- SQL --- */

static void put_time(const struct scope *scope, struct buffer *sql)
{
	buffer_printf(sql,
		      "tenant = %u AND minute >= toDateTime(%lld) AND minute < toDateTime(%lld)",
		      scope->query->tenant, (long long)scope->kept_from_ms / 1000,
		      (long long)scope->until_ms / 1000);
}

void scope_range(const struct scope *scope, struct buffer *sql)
{
	put_time(scope, sql);
	buffer_printf(sql, " AND hour >= toDateTime(%lld) AND hour < toDateTime(%lld)",
		      (long long)scope->kept_from_ms / 3600000 * 3600,
		      (long long)scope->until_ms / 1000);
	if (scope->type >= 0)
		buffer_printf(sql, " AND type = %d", scope->type);
}

static void put_type(const struct scope *scope, struct buffer *sql)
{
	buffer_printf(sql, "tenant = %u", scope->query->tenant);
	if (scope->type >= 0)
		buffer_printf(sql, " AND type = %d", scope->type);
}

static void put_chosen(const struct scope *scope, struct buffer *sql)
{
	if (scope->is_chosen)
		buffer_append_text(sql, " AND series IN (SELECT series FROM wanted)");
}

static void put_span(struct buffer *sql, uint32_t from, uint32_t until)
{
	buffer_printf(sql,
		      "hour >= toDateTime(%u) AND hour < toDateTime(%u) AND minute >= "
		      "toDateTime(%u) AND minute < toDateTime(%u)",
		      from / HOUR_S * HOUR_S, until, from, until);
}

/* Most contexts differ in the thread's id only: names are made one there. */
void scope_context(const struct samples_query *query, struct buffer *sql)
{
	bool is_whole = query->wants_context || query->wants_process ||
			(query->by_thread && !query->thread_names);

	for (unsigned i = 0; i < query->thread_name_count; i++)
		is_whole |= strcmp(query->thread_names[i], "thread") != 0;
	buffer_append_text(sql, is_whole ? "thread AS context, "
					 : "splitByChar('\x1f', thread)[1] AS context, ");
}

/* Of minutes. */
static void put_condition(const struct scope *scope, struct buffer *sql)
{
	put_type(scope, sql);
	for (unsigned i = 0; i < scope->parts.raw_count; i++) {
		buffer_append_text(sql, i ? " OR " : " AND (");
		put_span(sql, scope->parts.raw[i].from, scope->parts.raw[i].until);
	}
	buffer_append_text(sql, scope->parts.raw_count ? ")" : " AND 0");
	put_chosen(scope, sql);
}

static void put_twice(const struct scope *scope, struct buffer *sql)
{
	buffer_append_text(sql, "(SELECT id FROM duplicates WHERE ");
	put_time(scope, sql);
	buffer_append_char(sql, ')');
}

static void put_raw(const struct scope *scope, struct buffer *sql,
		    const struct source_columns *columns)
{
	const char *global = *clickhouse_address(scope->store->client)->cluster ? "GLOBAL " : "";
	const char *raw = columns->raw ? columns->raw : columns->names;

	buffer_printf(sql, "SELECT %s FROM samples WHERE ", raw);
	put_condition(scope, sql);
	if (!scope->has_duplicates)
		return;
	buffer_printf(sql, " AND id %sNOT IN ", global);
	put_twice(scope, sql);
	buffer_printf(sql, " UNION ALL SELECT %s FROM (SELECT id, %s FROM samples WHERE ",
		      columns->names, raw);
	put_condition(scope, sql);
	buffer_printf(sql, " AND id %sIN ", global);
	put_twice(scope, sql);
	buffer_append_text(sql, " LIMIT 1 BY id)");
}

/* Minutes that came when the others of their time were gone. */
static void put_late(const struct scope *scope, struct buffer *sql,
		     const struct source_columns *columns)
{
	buffer_printf(sql, "SELECT %s FROM (SELECT id, %s FROM late_samples WHERE ", columns->names,
		      columns->raw ? columns->raw : columns->names);
	put_type(scope, sql);
	buffer_append_text(sql, " AND ");
	put_span(sql, scope->parts.kept_from, scope->parts.until);
	put_chosen(scope, sql);
	buffer_append_text(sql, " LIMIT 1 BY id)");
}

static void put_rolled(const struct scope *scope, struct buffer *sql,
		       const struct source_columns *columns, bool hours)
{
	const struct parts *parts = &scope->parts;
	uint32_t first = parts->rolled[0].start, end = parts->rolled[parts->rolled_count - 1].start;

	buffer_printf(sql, "SELECT %s FROM %s WHERE ", columns->rolled,
		      hours ? "rollups_1h" : "rollups_10m");
	put_type(scope, sql);
	buffer_printf(sql,
		      " AND is_whole = %d AND bucket >= toDateTime(%u) AND bucket <= "
		      "toDateTime(%u)",
		      columns->is_whole && scope->is_whole, first, end);
	if (!hours)
		buffer_printf(sql, " AND hour >= toDateTime(%u) AND hour <= toDateTime(%u)",
			      first / HOUR_S * HOUR_S, end);
	buffer_append_text(sql, " AND version IN (SELECT version FROM rolled)");
	put_chosen(scope, sql);
}

static bool has_rolled(const struct parts *parts, bool hours)
{
	for (size_t i = 0; i < parts->rolled_count; i++)
		if ((parts->rolled[i].length == HOUR_S) == hours)
			return true;
	return false;
}

void scope_source(const struct scope *scope, struct buffer *sql,
		  const struct source_columns *columns)
{
	buffer_append_char(sql, '(');
	put_raw(scope, sql, columns);
	for (unsigned hours = 0; hours < 2; hours++) {
		if (!has_rolled(&scope->parts, hours))
			continue;
		buffer_append_text(sql, " UNION ALL ");
		put_rolled(scope, sql, columns, hours);
	}
	if (scope->parts.has_late) {
		buffer_append_text(sql, " UNION ALL ");
		put_late(scope, sql, columns);
	}
	buffer_append_char(sql, ')');
}

/* The series' id without the labels of instances, as rollup.c has it. */
static uint64_t whole_of(const struct scope *scope, const struct series_sum *sum)
{
	return sum->number == UINT32_MAX ? sum->id
					 : whole_series_id(&scope_series(scope, sum)->labels);
}

static bool put_wanted(const struct scope *scope, struct buffer *rows)
{
	struct id_set put = {0};

	buffer_init(rows, SCOPE_BYTES_MAX);
	for (size_t i = 0; i < scope->series_count; i++) {
		const struct series_sum *sum = &scope->series[i];
		uint64_t ids[2] = {sum->id, sum->id};

		if (scope->is_whole && scope->parts.rolled_count && sum->is_wanted)
			ids[1] = whole_of(scope, sum);
		for (unsigned k = 0; sum->is_wanted && k < 2; k++) {
			if (!id_set_add(&put, ids[k]))
				continue;
			row_put_u64(rows, ids[k]);
			row_put_u32(rows, sum->group);
		}
	}
	id_set_release(&put);
	return !rows->failed;
}

static void put_versions(const struct scope *scope, struct buffer *rows)
{
	buffer_init(rows, SCOPE_BYTES_MAX);
	for (size_t i = 0; i < scope->parts.rolled_count; i++)
		row_put_u64(rows, scope->parts.rolled[i].version);
}

/* Its time is looked at here as well: ClickHouse does not at every step. */
static bool is_over(void *context)
{
	return !limit_watch_allows(&((struct scope *)context)->watch, 0, NULL);
}

bool scope_ask(struct scope *scope, struct buffer *sql, bool with_groups,
	       bool (*row)(void *context, struct row_reader *row), void *context, struct error *err)
{
	const struct samples_query *query = scope->query;
	bool has_set = scope->is_chosen || with_groups, ok;
	struct buffer wanted = {0}, versions;
	struct clickhouse_set rolled = {"version UInt64", &versions, "rolled", NULL};
	struct clickhouse_set set = {"series UInt64, series_group UInt32", &wanted, NULL,
				     scope->parts.rolled_count ? &rolled : NULL};

	put_versions(scope, &versions);
	buffer_append_char(sql, '\0');
	if (sql->failed || versions.failed || (has_set && !put_wanted(scope, &wanted))) {
		buffer_release(&wanted);
		buffer_release(&versions);
		return error_set(err, ERROR_MEMORY, "no memory for a question");
	}
	ok = clickhouse_ask(scope->store->client,
			    &(struct clickhouse_question){
				    .sql = (const char *)sql->bytes,
				    .set = has_set ? &set : set.next,
				    .limits = &query->limits,
				    .is_cancelled = is_over,
				    .cancel_context = scope,
				    .row = row,
				    .context = context,
			    },
			    err);
	buffer_release(&wanted);
	buffer_release(&versions);
	if (scope->watch.why.kind != ERROR_NONE && err)
		*err = scope->watch.why;
	if (!ok || scope->watch.why.kind != ERROR_NONE)
		return false;
	return !scope->is_full ||
	       error_set(err, ERROR_LIMIT,
			 "the answer does not fit %zu MiB: narrow the time range or the selection",
			 SCOPE_BYTES_MAX >> 20);
}

/* --- sums of series --- */

static bool note_duplicates(void *context, struct row_reader *row)
{
	uint64_t count = row_number(row, 8);

	if (!row->is_short)
		*(bool *)context = count > 0;
	return true;
}

static bool look_for_duplicates(struct scope *scope, struct error *err)
{
	struct buffer sql;
	bool ok;

	buffer_init(&sql, 1024);
	buffer_append_text(&sql, "SELECT count() FROM duplicates WHERE ");
	put_time(scope, &sql);
	ok = scope_ask(scope, &sql, false, note_duplicates, &scope->has_duplicates, err);
	buffer_release(&sql);
	return ok;
}

static bool keep_sum(void *context, struct row_reader *row)
{
	struct scope *scope = context;
	struct series_sum sum = {.type = (uint8_t)row_number(row, 1), .number = UINT32_MAX};

	sum.id = row_number(row, 8);
	sum.samples = row_number(row, 8);
	sum.value = row_number(row, 8);
	sum.taken = row_number(row, 8);
	sum.deleted = row_number(row, 8);
	sum.refused = row_number(row, 8);
	if (row->is_short)
		return true;
	if (!SCOPE_GROW(scope->series, scope->series_count, scope->series_room)) {
		scope->is_full = true;
		return false;
	}
	scope->series[scope->series_count++] = sum;
	return true;
}

static bool read_sums(struct scope *scope, struct error *err)
{
	static const struct source_columns columns = {
		.names = "type, series, samples, value, uncounted, deleted, refused",
		.raw = "type, series, samples, value, if(is_counted = 0, samples + deleted + "
		       "refused, toUInt64(0)) AS uncounted, deleted, refused",
		.rolled = "type, series, samples, value, taken AS uncounted, deleted, refused",
	};
	struct buffer sql;
	bool ok;

	buffer_init(&sql, 8192);
	buffer_append_text(&sql, "SELECT type, series, sum(samples), sum(value), sum(uncounted), "
				 "sum(deleted), sum(refused) FROM ");
	scope_source(scope, &sql, &columns);
	buffer_append_text(&sql, " GROUP BY type, series ORDER BY type, series");
	ok = scope_ask(scope, &sql, false, keep_sum, scope, err);
	buffer_release(&sql);
	return ok;
}

struct definitions_range scope_definitions_range(const struct scope *scope)
{
	return (struct definitions_range){
		.tenant = scope->query->tenant,
		.first_month = month_of(scope->kept_from_ms),
		.last_month = month_of(scope->until_ms),
		.limits = &scope->query->limits,
		.is_cancelled = scope->query->is_cancelled,
		.context = scope->query->context,
	};
}

static bool read_labels(struct scope *scope, struct error *err)
{
	struct definitions_range range = scope_definitions_range(scope);
	uint64_t *ids = calloc(scope->series_count + 1, sizeof *ids);
	uint32_t *numbers = calloc(scope->series_count + 1, sizeof *numbers);
	bool ok = ids && numbers;

	for (size_t i = 0; ok && i < scope->series_count; i++)
		ids[i] = scope->series[i].id;
	if (!ok)
		error_set(err, ERROR_MEMORY, "no memory for an answer");
	ok = ok && definitions_read(scope->definitions, scope->store->client, DEFINITION_SERIES,
				    &range, ids, scope->series_count, err);
	if (ok)
		definitions_numbers(scope->definitions, DEFINITION_SERIES, ids, scope->series_count,
				    numbers);
	for (size_t i = 0; ok && i < scope->series_count; i++)
		scope->series[i].number = numbers[i];
	free(ids);
	free(numbers);
	return ok;
}

const struct defined_series *scope_series(const struct scope *scope, const struct series_sum *sum)
{
	static const struct defined_series none = {.host = ""};

	return sum->number == UINT32_MAX
		       ? &none
		       : definitions_at(scope->definitions, DEFINITION_SERIES, sum->number);
}

/* --- series that nobody tells apart --- */

static bool copy_labels(struct arena *arena, const struct samples_query *query,
			const struct series_labels *from, struct series_labels *to)
{
	const char **names = arena_array(arena, from->count, sizeof *names);
	const char **values = arena_array(arena, from->count, sizeof *values);
	uint32_t count = 0;

	for (uint32_t i = 0; names && values && i < from->count; i++) {
		if (!samples_query_asks(query, from->names[i]))
			continue;
		names[count] = arena_text(arena, from->names[i], strlen(from->names[i]));
		values[count++] = arena_text(arena, from->values[i], strlen(from->values[i]));
	}
	*to = (struct series_labels){names, values, count};
	return !arena->failed;
}

bool scope_groups(struct scope *scope, struct arena *arena, struct series_labels **labels,
		  uint32_t *count)
{
	struct hash_table index;
	bool ok;

	hash_table_init(&index, UINT32_MAX >> 1);
	*count = 0;
	*labels = arena_array(arena, scope->series_count, sizeof **labels);
	ok = *labels != NULL;
	for (size_t i = 0; ok && i < scope->series_count; i++) {
		struct series_sum *sum = &scope->series[i];
		struct series_labels *to = &(*labels)[*count];
		uint32_t probe = 0, group;
		uint64_t hash;

		if (!sum->is_wanted)
			continue;
		ok = limit_watch_goes_on(&scope->watch, NULL) &&
		     copy_labels(arena, scope->query, &scope_series(scope, sum)->labels, to);
		if (!ok)
			break;
		hash = series_labels_hash(to);
		group = hash_table_first(&index, hash, &probe);
		while (group != HASH_TABLE_NONE && !series_labels_equal(&(*labels)[group], to))
			group = hash_table_next(&index, hash, &probe);
		sum->group = group == HASH_TABLE_NONE ? *count : group;
		if (group == HASH_TABLE_NONE)
			ok = hash_table_add(&index, hash, (*count)++);
	}
	hash_table_release(&index);
	return ok;
}

/* --- opening --- */

static struct definitions *take_definitions(struct clickhouse_samples *store)
{
	struct definitions *taken;

	pthread_mutex_lock(&store->lock);
	if (__atomic_load_n(&store->definitions->is_broken, __ATOMIC_ACQUIRE)) {
		struct definitions *fresh = definitions_new();

		if (fresh) {
			definitions_release(store->definitions);
			store->definitions = fresh;
		}
	}
	taken = definitions_take(store->definitions);
	pthread_mutex_unlock(&store->lock);
	return taken;
}

bool scope_again(struct clickhouse_samples *store, struct definitions *used, int attempt,
		 const struct error *err)
{
	bool is_broken = __atomic_load_n(&used->is_broken, __ATOMIC_ACQUIRE);

	(void)store;
	return !attempt && is_broken && (err->kind == ERROR_LIMIT || err->kind == ERROR_CONFLICT);
}

bool scope_open(struct scope *scope, struct clickhouse_samples *store,
		const struct samples_query *query, int type, const struct rollup_wants *wants,
		struct error *err)
{
	*scope = (struct scope){.store = store, .query = query, .type = type};
	limit_watch_start(&scope->watch, query);
	if (!widen(scope, wants, err))
		return false;
	scope->is_whole = !rollup_wants_of(query).by_instance;
	scope->definitions = take_definitions(store);
	if (look_for_duplicates(scope, err) && read_sums(scope, err) && read_labels(scope, err) &&
	    scope_choose(scope, err))
		return true;
	scope_close(scope);
	return false;
}

void scope_close(struct scope *scope)
{
	definitions_release(scope->definitions);
	parts_release(&scope->parts);
	free(scope->series);
	scope->definitions = NULL;
	scope->series = NULL;
}
