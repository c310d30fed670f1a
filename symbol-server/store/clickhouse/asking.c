/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/clickhouse/asking.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "symbol-server/store/clickhouse/id_set.h"
#include "symbol-server/store/clickhouse/marks.h"
#include "symbol-server/store/rules/series_labels.h"

bool asking_grow(void **array, size_t count, size_t *room, size_t size)
{
	return count < *room || (count <= ASKING_BYTES_MAX / 2 / size &&
				 array_grow(NULL, array, size, count + 1, room, SIZE_MAX));
}

static bool widen(struct asking *asking, const struct rollup_wants *wants, struct error *err)
{
	const struct samples_query *query = asking->query;
	int64_t from = query->from_ms < 0 ? 0 : query->from_ms;
	int64_t until = query->until_ms < from ? from : query->until_ms;
	const int64_t end = (int64_t)UINT32_MAX / 60 * SAMPLES_BUCKET_MS; /* of DateTime */

	if (until > end)
		return error_set(err, ERROR_OPTION, "the end of the time range is beyond all time");
	until = (until + SAMPLES_BUCKET_MS - 1) / SAMPLES_BUCKET_MS * 60;
	if (!parts_choose(asking->store, clickhouse_now_ms(),
			  (uint32_t)(from / SAMPLES_BUCKET_MS * 60), (uint32_t)until, wants,
			  &asking->parts, err))
		return false;
	asking->from_ms = asking->parts.from * 1000ll;
	asking->until_ms = asking->parts.until * 1000ll;
	/* Whole days are dropped; until then what is too old of a day is not shown. */
	asking->kept_from_ms = asking->parts.kept_from * 1000ll;
	return true;
}

/* --- SQL --- */

static void put_time(const struct asking *asking, struct buffer *sql)
{
	buffer_printf(sql,
		      "tenant = %u AND minute >= toDateTime(%lld) AND minute < toDateTime(%lld)",
		      asking->query->tenant, (long long)asking->kept_from_ms / 1000,
		      (long long)asking->until_ms / 1000);
}

void asking_range(const struct asking *asking, struct buffer *sql)
{
	put_time(asking, sql);
	buffer_printf(sql, " AND hour >= toDateTime(%lld) AND hour < toDateTime(%lld)",
		      (long long)asking->kept_from_ms / 3600000 * 3600,
		      (long long)asking->until_ms / 1000);
	if (asking->type >= 0)
		buffer_printf(sql, " AND type = %d", asking->type);
}

static void put_type(const struct asking *asking, struct buffer *sql)
{
	buffer_printf(sql, "tenant = %u", asking->query->tenant);
	if (asking->type >= 0)
		buffer_printf(sql, " AND type = %d", asking->type);
}

static void put_chosen(const struct asking *asking, struct buffer *sql)
{
	if (asking->is_chosen)
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
void asking_context(const struct samples_query *query, struct buffer *sql)
{
	bool is_whole = query->wants_context || query->wants_process ||
			(query->by_thread && !query->thread_names);

	for (unsigned i = 0; i < query->thread_name_count; i++)
		is_whole |= strcmp(query->thread_names[i], "thread") != 0;
	buffer_append_text(sql, is_whole ? "thread AS context, "
					 : "splitByChar('\x1f', thread)[1] AS context, ");
}

/* Of minutes. */
static void put_condition(const struct asking *asking, struct buffer *sql)
{
	put_type(asking, sql);
	for (unsigned i = 0; i < asking->parts.raw_count; i++) {
		buffer_append_text(sql, i ? " OR " : " AND (");
		put_span(sql, asking->parts.raw[i].from, asking->parts.raw[i].until);
	}
	buffer_append_text(sql, asking->parts.raw_count ? ")" : " AND 0");
	put_chosen(asking, sql);
}

static void put_twice(const struct asking *asking, struct buffer *sql)
{
	buffer_append_text(sql, "(SELECT id FROM duplicates WHERE ");
	put_time(asking, sql);
	buffer_append_char(sql, ')');
}

static void put_raw(const struct asking *asking, struct buffer *sql,
		    const struct source_columns *columns)
{
	const char *global = *clickhouse_address(asking->store->client)->cluster ? "GLOBAL " : "";
	const char *raw = columns->raw ? columns->raw : columns->names;

	buffer_printf(sql, "SELECT %s FROM samples WHERE ", raw);
	put_condition(asking, sql);
	if (!asking->has_duplicates)
		return;
	buffer_printf(sql, " AND id %sNOT IN ", global);
	put_twice(asking, sql);
	buffer_printf(sql, " UNION ALL SELECT %s FROM (SELECT id, %s FROM samples WHERE ",
		      columns->names, raw);
	put_condition(asking, sql);
	buffer_printf(sql, " AND id %sIN ", global);
	put_twice(asking, sql);
	buffer_append_text(sql, " LIMIT 1 BY id)");
}

/* Minutes that came when the others of their time were gone. */
static void put_late(const struct asking *asking, struct buffer *sql,
		     const struct source_columns *columns)
{
	buffer_printf(sql, "SELECT %s FROM (SELECT id, %s FROM late_samples WHERE ", columns->names,
		      columns->raw ? columns->raw : columns->names);
	put_type(asking, sql);
	buffer_append_text(sql, " AND ");
	put_span(sql, asking->parts.kept_from, asking->parts.until);
	put_chosen(asking, sql);
	buffer_append_text(sql, " LIMIT 1 BY id)");
}

static void put_rolled(const struct asking *asking, struct buffer *sql,
		       const struct source_columns *columns, bool hours)
{
	const struct parts *parts = &asking->parts;
	uint32_t first = parts->rolled[0].start, end = parts->rolled[parts->rolled_count - 1].start;

	buffer_printf(sql, "SELECT %s FROM %s WHERE ", columns->rolled,
		      hours ? "rollups_1h" : "rollups_10m");
	put_type(asking, sql);
	buffer_printf(sql,
		      " AND is_whole = %d AND bucket >= toDateTime(%u) AND bucket <= "
		      "toDateTime(%u)",
		      columns->is_whole && asking->is_whole, first, end);
	if (!hours)
		buffer_printf(sql, " AND hour >= toDateTime(%u) AND hour <= toDateTime(%u)",
			      first / HOUR_S * HOUR_S, end);
	buffer_append_text(sql, " AND version IN (SELECT version FROM rolled)");
	put_chosen(asking, sql);
}

static bool has_rolled(const struct parts *parts, bool hours)
{
	for (size_t i = 0; i < parts->rolled_count; i++)
		if ((parts->rolled[i].length == HOUR_S) == hours)
			return true;
	return false;
}

void asking_source(const struct asking *asking, struct buffer *sql,
		   const struct source_columns *columns)
{
	buffer_append_char(sql, '(');
	put_raw(asking, sql, columns);
	for (unsigned hours = 0; hours < 2; hours++) {
		if (!has_rolled(&asking->parts, hours))
			continue;
		buffer_append_text(sql, " UNION ALL ");
		put_rolled(asking, sql, columns, hours);
	}
	if (asking->parts.has_late) {
		buffer_append_text(sql, " UNION ALL ");
		put_late(asking, sql, columns);
	}
	buffer_append_char(sql, ')');
}

/* The series' id without the labels of instances, as rollup.c has it. */
static uint64_t whole_of(const struct asking *asking, const struct series_sum *sum)
{
	return sum->number == UINT32_MAX ? sum->id
					 : whole_series_id(&asking_series(asking, sum)->labels);
}

static bool put_wanted(const struct asking *asking, struct buffer *rows)
{
	struct id_set put = {0};

	buffer_init(rows, ASKING_BYTES_MAX);
	for (size_t i = 0; i < asking->series_count; i++) {
		const struct series_sum *sum = &asking->series[i];
		uint64_t ids[2] = {sum->id, sum->id};

		if (asking->is_whole && asking->parts.rolled_count && sum->is_wanted)
			ids[1] = whole_of(asking, sum);
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

static void put_versions(const struct asking *asking, struct buffer *rows)
{
	buffer_init(rows, ASKING_BYTES_MAX);
	for (size_t i = 0; i < asking->parts.rolled_count; i++)
		row_put_u64(rows, asking->parts.rolled[i].version);
}

/* Its time is looked at here as well: ClickHouse does not at every step. */
static bool is_over(void *context)
{
	return !limit_watch_allows(&((struct asking *)context)->watch, 0, NULL);
}

bool asking_ask(struct asking *asking, struct buffer *sql, bool with_groups,
		bool (*row)(void *context, struct row_reader *row), void *context,
		struct error *err)
{
	const struct samples_query *query = asking->query;
	bool has_set = asking->is_chosen || with_groups, ok;
	struct buffer wanted = {0}, versions;
	struct clickhouse_set rolled = {"version UInt64", &versions, "rolled", NULL};
	struct clickhouse_set set = {"series UInt64, series_group UInt32", &wanted, NULL,
				     asking->parts.rolled_count ? &rolled : NULL};

	put_versions(asking, &versions);
	buffer_append_char(sql, '\0');
	if (sql->failed || versions.failed || (has_set && !put_wanted(asking, &wanted))) {
		buffer_release(&wanted);
		buffer_release(&versions);
		return error_set(err, ERROR_MEMORY, "no memory for a question");
	}
	ok = clickhouse_ask(asking->store->client,
			    &(struct clickhouse_question){
				    .sql = (const char *)sql->bytes,
				    .set = has_set ? &set : set.next,
				    .limits = &query->limits,
				    .is_cancelled = is_over,
				    .cancel_context = asking,
				    .row = row,
				    .context = context,
			    },
			    err);
	buffer_release(&wanted);
	buffer_release(&versions);
	if (asking->watch.why.kind != ERROR_NONE && err)
		*err = asking->watch.why;
	if (!ok || asking->watch.why.kind != ERROR_NONE)
		return false;
	return !asking->is_full ||
	       error_set(err, ERROR_LIMIT,
			 "the answer does not fit %zu MiB: narrow the time range or the selection",
			 ASKING_BYTES_MAX >> 20);
}

/* --- sums of series --- */

static bool note_duplicates(void *context, struct row_reader *row)
{
	uint64_t count = row_number(row, 8);

	if (!row->is_short)
		*(bool *)context = count > 0;
	return true;
}

static bool look_for_duplicates(struct asking *asking, struct error *err)
{
	struct buffer sql;
	bool ok;

	buffer_init(&sql, 1024);
	buffer_append_text(&sql, "SELECT count() FROM duplicates WHERE ");
	put_time(asking, &sql);
	ok = asking_ask(asking, &sql, false, note_duplicates, &asking->has_duplicates, err);
	buffer_release(&sql);
	return ok;
}

static bool keep_sum(void *context, struct row_reader *row)
{
	struct asking *asking = context;
	struct series_sum sum = {.type = (uint8_t)row_number(row, 1), .number = UINT32_MAX};

	sum.id = row_number(row, 8);
	sum.samples = row_number(row, 8);
	sum.value = row_number(row, 8);
	sum.taken = row_number(row, 8);
	sum.deleted = row_number(row, 8);
	sum.refused = row_number(row, 8);
	if (row->is_short)
		return true;
	if (!asking_grow((void **)&asking->series, asking->series_count, &asking->series_room,
			 sizeof sum)) {
		asking->is_full = true;
		return false;
	}
	asking->series[asking->series_count++] = sum;
	return true;
}

static bool read_sums(struct asking *asking, struct error *err)
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
	asking_source(asking, &sql, &columns);
	buffer_append_text(&sql, " GROUP BY type, series ORDER BY type, series");
	ok = asking_ask(asking, &sql, false, keep_sum, asking, err);
	buffer_release(&sql);
	return ok;
}

struct definitions_range asking_definitions_range(const struct asking *asking)
{
	return (struct definitions_range){
		.tenant = asking->query->tenant,
		.first_month = month_of(asking->kept_from_ms),
		.last_month = month_of(asking->until_ms),
		.limits = &asking->query->limits,
		.is_cancelled = asking->query->is_cancelled,
		.context = asking->query->context,
	};
}

static bool read_labels(struct asking *asking, struct error *err)
{
	struct definitions_range range = asking_definitions_range(asking);
	uint64_t *ids = calloc(asking->series_count + 1, sizeof *ids);
	uint32_t *numbers = calloc(asking->series_count + 1, sizeof *numbers);
	bool ok = ids && numbers;

	for (size_t i = 0; ok && i < asking->series_count; i++)
		ids[i] = asking->series[i].id;
	if (!ok)
		error_set(err, ERROR_MEMORY, "no memory for an answer");
	ok = ok && definitions_read(asking->definitions, asking->store->client, DEFINITION_SERIES,
				    &range, ids, asking->series_count, err);
	if (ok)
		definitions_numbers(asking->definitions, DEFINITION_SERIES, ids,
				    asking->series_count, numbers);
	for (size_t i = 0; ok && i < asking->series_count; i++)
		asking->series[i].number = numbers[i];
	free(ids);
	free(numbers);
	return ok;
}

const struct defined_series *asking_series(const struct asking *asking,
					   const struct series_sum *sum)
{
	static const struct defined_series none = {.host = ""};

	return sum->number == UINT32_MAX
		       ? &none
		       : definitions_at(asking->definitions, DEFINITION_SERIES, sum->number);
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

bool asking_groups(struct asking *asking, struct arena *arena, struct series_labels **labels,
		   uint32_t *count)
{
	struct hash_table index;
	bool ok;

	hash_table_init(&index, UINT32_MAX >> 1);
	*count = 0;
	*labels = arena_array(arena, asking->series_count, sizeof **labels);
	ok = *labels != NULL;
	for (size_t i = 0; ok && i < asking->series_count; i++) {
		struct series_sum *sum = &asking->series[i];
		struct series_labels *to = &(*labels)[*count];
		uint32_t probe = 0, group;
		uint64_t hash;

		if (!sum->is_wanted)
			continue;
		ok = limit_watch_goes_on(&asking->watch, NULL) &&
		     copy_labels(arena, asking->query, &asking_series(asking, sum)->labels, to);
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

bool asking_again(struct clickhouse_samples *store, struct definitions *used, int attempt,
		  const struct error *err)
{
	bool is_broken = __atomic_load_n(&used->is_broken, __ATOMIC_ACQUIRE);

	(void)store;
	return !attempt && is_broken && (err->kind == ERROR_LIMIT || err->kind == ERROR_CONFLICT);
}

bool asking_open(struct asking *asking, struct clickhouse_samples *store,
		 const struct samples_query *query, int type, const struct rollup_wants *wants,
		 struct error *err)
{
	*asking = (struct asking){.store = store, .query = query, .type = type};
	limit_watch_start(&asking->watch, query);
	if (!widen(asking, wants, err))
		return false;
	asking->is_whole = !rollup_wants_of(query).by_instance;
	asking->definitions = take_definitions(store);
	if (look_for_duplicates(asking, err) && read_sums(asking, err) &&
	    read_labels(asking, err) && asking_choose(asking, err))
		return true;
	asking_close(asking);
	return false;
}

void asking_close(struct asking *asking)
{
	definitions_release(asking->definitions);
	parts_release(&asking->parts);
	free(asking->series);
	asking->definitions = NULL;
	asking->series = NULL;
}
