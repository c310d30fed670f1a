/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/clickhouse/asking.h"
#include "symbol-server/store/series_labels.h"

#include <stdlib.h>
#include <string.h>

bool asking_grow(void **array, size_t count, size_t *room, size_t size)
{
	size_t larger = *room ? *room * 2 : 1024;
	void *copy;

	if (count < *room)
		return true;
	if (larger > ASKING_BYTES_MAX / size)
		return false;
	copy = realloc(*array, larger * size);
	if (!copy)
		return false;
	*array = copy;
	*room = larger;
	return true;
}

static bool widen(struct asking *asking, struct error *err)
{
	const struct samples_query *query = asking->query;
	int64_t keep_ms = asking->store->keep_ms[SAMPLES_RAW];
	/* Whole days are dropped; until then what is too old of a day is not shown. */
	int64_t kept_from = keep_ms && keep_ms < clickhouse_now_ms() ? clickhouse_now_ms() - keep_ms
								     : 0;
	int64_t from = query->from_ms < 0 ? 0 : query->from_ms;
	int64_t until = query->until_ms < from ? from : query->until_ms;
	const int64_t end = (int64_t)UINT32_MAX / 60 * SAMPLES_BUCKET_MS; /* of DateTime */

	asking->from_ms = from / SAMPLES_BUCKET_MS * SAMPLES_BUCKET_MS;
	asking->until_ms = (until + SAMPLES_BUCKET_MS - 1) / SAMPLES_BUCKET_MS * SAMPLES_BUCKET_MS;
	asking->kept_from_ms = asking->from_ms;
	if (kept_from > asking->from_ms)
		asking->kept_from_ms = (kept_from + SAMPLES_BUCKET_MS - 1) / SAMPLES_BUCKET_MS *
				       SAMPLES_BUCKET_MS;
	return asking->until_ms <= end ||
	       error_set(err, ERROR_OPTION, "the end of the time range is beyond all time");
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

static void put_condition(const struct asking *asking, struct buffer *sql)
{
	asking_range(asking, sql);
	if (asking->is_chosen)
		buffer_append_text(sql, " AND series IN (SELECT series FROM wanted)");
}

static void put_twice(const struct asking *asking, struct buffer *sql)
{
	buffer_append_text(sql, "(SELECT id FROM duplicates WHERE ");
	put_time(asking, sql);
	buffer_append_char(sql, ')');
}

void asking_source(const struct asking *asking, struct buffer *sql, const char *columns)
{
	const char *global = *clickhouse_address(asking->store->client)->cluster ? "GLOBAL " : "";

	buffer_printf(sql, "(SELECT %s FROM samples WHERE ", columns);
	put_condition(asking, sql);
	if (asking->has_duplicates) {
		buffer_printf(sql, " AND id %sNOT IN ", global);
		put_twice(asking, sql);
		buffer_printf(sql, " UNION ALL SELECT %s FROM (SELECT id, %s FROM samples WHERE ",
			      columns, columns);
		put_condition(asking, sql);
		buffer_printf(sql, " AND id %sIN ", global);
		put_twice(asking, sql);
		buffer_append_text(sql, " LIMIT 1 BY id)");
	}
	buffer_append_char(sql, ')');
}

static bool put_wanted(const struct asking *asking, struct buffer *rows)
{
	buffer_init(rows, ASKING_BYTES_MAX);
	for (size_t i = 0; i < asking->series_count; i++) {
		if (!asking->series[i].is_wanted)
			continue;
		row_put_u64(rows, asking->series[i].id);
		row_put_u32(rows, asking->series[i].group);
	}
	return !rows->failed;
}

bool asking_ask(struct asking *asking, struct buffer *sql, bool with_groups,
		bool (*row)(void *context, struct row_reader *row), void *context,
		struct error *err)
{
	const struct samples_query *query = asking->query;
	bool has_set = asking->is_chosen || with_groups, ok;
	struct buffer wanted = {0};
	struct clickhouse_set set = {"series UInt64, series_group UInt32", &wanted};

	buffer_append_char(sql, '\0');
	if (sql->failed || (has_set && !put_wanted(asking, &wanted))) {
		buffer_release(&wanted);
		return error_set(err, ERROR_MEMORY, "no memory for a question");
	}
	ok = clickhouse_ask(asking->store->client,
			    &(struct clickhouse_question){
				    .sql = (const char *)sql->bytes,
				    .set = has_set ? &set : NULL,
				    .limits = &query->limits,
				    .is_cancelled = query->is_cancelled,
				    .cancel_context = query->context,
				    .row = row,
				    .context = context,
			    },
			    err);
	buffer_release(&wanted);
	if (!ok)
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
	struct buffer sql;
	bool ok;

	buffer_init(&sql, 8192);
	buffer_append_text(&sql,
			   "SELECT type, series, sum(samples), sum(value), "
			   "sumIf(samples + deleted + refused, is_counted = 0), sum(deleted), "
			   "sum(refused) FROM ");
	asking_source(asking, &sql, "type, series, samples, value, deleted, refused, is_counted");
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

static void choose(struct asking *asking)
{
	const struct samples_query *query = asking->query;

	for (size_t i = 0; i < asking->series_count; i++) {
		struct series_sum *sum = &asking->series[i];
		const struct series_labels *labels = &asking_series(asking, sum)->labels;
		bool is_chosen = !query->series_wanted ||
				 query->series_wanted(query->context, labels);

		sum->is_wanted = is_chosen && (sum->samples || sum->value);
		asking->wanted_count += sum->is_wanted;
		asking->is_chosen |= !is_chosen;
	}
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
		ok = copy_labels(arena, asking->query, &asking_series(asking, sum)->labels, to);
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
		 const struct samples_query *query, int type, struct error *err)
{
	*asking = (struct asking){.store = store, .query = query, .type = type};
	if (!widen(asking, err))
		return false;
	asking->definitions = take_definitions(store);
	if (look_for_duplicates(asking, err) && read_sums(asking, err) &&
	    read_labels(asking, err)) {
		choose(asking);
		return true;
	}
	asking_close(asking);
	return false;
}

void asking_close(struct asking *asking)
{
	definitions_release(asking->definitions);
	free(asking->series);
	asking->definitions = NULL;
	asking->series = NULL;
}
