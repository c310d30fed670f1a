/* SPDX-License-Identifier: Apache-2.0 */
/* Adding up: minutes to ten minutes, those to hours, by series and by series without the labels of
 * instances. One making of ten minutes is rows of one version; it counts when its mark is there,
 * and until somebody changes those minutes. Two servers that do it at the same time make two
 * versions, of which one counts. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/log.h"
#include "symbol-server/store/clickhouse/scope.h"
#include "symbol-server/store/clickhouse/id_set.h"
#include "symbol-server/store/clickhouse/marks.h"

enum {
	TURN_BUCKETS = 300, /* of one turn */
};

struct rollup_work {
	struct clickhouse_samples *store;
	struct marks marks;
	uint32_t closed; /* unix seconds: what ends before may be added up */
	uint32_t *days;  /* starts, newest first */
	size_t day_count, day_room;
	struct id_set filled; /* buckets or hours of one day that have rows, number since 1970 */
	struct buffer made;   /* rows of rollup_marks: of empty ones */
	unsigned done;
	bool is_full;
	uint64_t server;
};

uint64_t rollup_version(int64_t now_ms)
{
	uint32_t random = 0;

	if (getrandom(&random, sizeof random, 0) != sizeof random)
		random = (uint32_t)now_ms * 2654435761u;
	return (uint64_t)now_ms << 20 | (random & 0xfffff);
}

/* --- who --- */

static bool keep_server(void *context, struct row_reader *row)
{
	struct rollup_work *work = context;
	uint64_t server = row_number(row, 8);

	if (!row->is_short)
		work->server = server;
	return true;
}

static bool is_mine(struct rollup_work *work, bool *is, struct error *err)
{
	struct clickhouse *client = work->store->client;
	uint64_t own = work->store->rollup_server;
	char sql[300];

	snprintf(sql, sizeof sql,
		 "INSERT INTO rollup_servers (server, seen) SELECT toUInt64(%" PRIu64 "), now()",
		 own);
	if (!clickhouse_run(client, sql, err))
		return false;
	if (!clickhouse_ask(client,
			    &(struct clickhouse_question){
				    .sql = "SELECT min(server) FROM rollup_servers WHERE seen > "
					   "now() - 60",
				    .row = keep_server,
				    .context = work,
				    .total_s = 60},
			    err))
		return false;
	*is = work->server == own;
	return true;
}

/* --- which --- */

static bool keep_day(void *context, struct row_reader *row)
{
	struct rollup_work *work = context;
	uint32_t day = (uint32_t)row_number(row, 4);

	if (row->is_short)
		return true;
	if (!SCOPE_GROW(work->days, work->day_count, work->day_room)) {
		work->is_full = true;
		return false;
	}
	work->days[work->day_count++] = day;
	return true;
}

/* Days that there are minutes of. */
static bool read_days(struct rollup_work *work, struct error *err)
{
	const struct clickhouse_address *address = clickhouse_address(work->store->client);
	const char *local = work->store->local;
	char sql[600], from[160] = "system.parts";

	if (*address->cluster)
		snprintf(from, sizeof from, "cluster('%s', system, parts)", address->cluster);
	snprintf(sql, sizeof sql,
		 "SELECT DISTINCT toUInt32(toDateTime(concat(substring(partition, 1, 4), '-', "
		 "substring(partition, 5, 2), '-', substring(partition, 7, 2), ' 00:00:00'), "
		 "'UTC')) AS day FROM %s WHERE database = '%s' AND active AND table IN "
		 "('samples%s', 'reports%s') ORDER BY day DESC",
		 from, address->database, local, local);
	return clickhouse_ask(work->store->client,
			      &(struct clickhouse_question){
				      .sql = sql, .row = keep_day, .context = work, .total_s = 60},
			      err) &&
	       (!work->is_full || error_set(err, ERROR_MEMORY, "no memory for a list of days"));
}

static bool keep_filled(void *context, struct row_reader *row)
{
	uint32_t number = (uint32_t)row_number(row, 4);

	if (!row->is_short && number)
		id_set_add(context, number);
	return true;
}

/* What of a day has rows at all. */
static bool read_filled(struct rollup_work *work, uint32_t day, bool hours, struct error *err)
{
	char sql[800];

	if (hours)
		snprintf(sql, sizeof sql,
			 "SELECT DISTINCT toUInt32(intDiv(toUInt32(bucket), 3600)) FROM "
			 "rollups_10m WHERE bucket >= toDateTime(%u) AND bucket < toDateTime(%u)",
			 day, day + DAY_S);
	else
		snprintf(sql, sizeof sql,
			 "SELECT DISTINCT number FROM (SELECT toUInt32(intDiv(toUInt32(minute), "
			 "600)) AS number FROM samples WHERE minute >= toDateTime(%u) AND minute < "
			 "toDateTime(%u) GROUP BY number UNION ALL SELECT "
			 "toUInt32(intDiv(toUInt32(minute), 600)) AS number FROM reports WHERE "
			 "minute >= toDateTime(%u) AND minute < toDateTime(%u) GROUP BY number)",
			 day, day + DAY_S, day, day + DAY_S);
	id_set_clear(&work->filled);
	return clickhouse_ask(work->store->client,
			      &(struct clickhouse_question){
				      .sql = sql, .row = keep_filled, .context = &work->filled},
			      err);
}

/* --- rows --- */

/* What all makings have in common: rows of profiles or sums → sums, one array element per stack. */
#define SUMS_OF_STACKS                                                                           \
	"sum(all_samples), sum(all_value), sum(all_taken), sum(all_deleted), sum(all_refused), " \
	"groupArrayIf(stack, met > 0 OR worth > 0), groupArrayIf(met, met > 0 OR worth > 0), "   \
	"groupArrayIf(worth, met > 0 OR worth > 0)"
#define STACKS_OF_ROWS                                                                            \
	"stack, sum(stack_sample) AS met, sum(stack_value) AS worth, sumIf(samples, place <= 1) " \
	"AS all_samples, sumIf(value, place <= 1) AS all_value, sumIf(taken, place <= 1) AS "     \
	"all_taken, sumIf(deleted, place <= 1) AS all_deleted, sumIf(refused, place <= 1) AS "    \
	"all_refused"
#define JOINED_STACKS                                                                       \
	" LEFT ARRAY JOIN stacks AS stack, stack_samples AS stack_sample, stack_values AS " \
	"stack_value, arrayEnumerate(stacks) AS place "
#define ROLLED_COLUMNS \
	"samples, value, taken, deleted, refused, stacks, stack_samples, stack_values"

static bool run(struct rollup_work *work, struct buffer *sql, const struct clickhouse_set *set,
		struct error *err)
{
	bool ok;

	buffer_append_char(sql, '\0');
	ok = sql->failed ? error_set(err, ERROR_MEMORY, "no memory for a question")
			 : clickhouse_ask(work->store->client,
					  &(struct clickhouse_question){
						  .sql = (const char *)sql->bytes, .set = set},
					  err);
	buffer_release(sql);
	return ok;
}

static bool roll_minutes(struct rollup_work *work, uint32_t start, uint64_t version,
			 struct error *err)
{
	static const char columns[] =
		"tenant, type, hour, series, samples, value, if(is_counted = 0, samples + deleted "
		"+ refused, toUInt64(0)) AS taken, deleted, refused, stacks, stack_samples, "
		"stack_values";
	const char *global = *clickhouse_address(work->store->client)->cluster ? "GLOBAL " : "";
	char range[300], twice[300];
	struct buffer sql;

	snprintf(range, sizeof range,
		 "hour = toDateTime(%u) AND minute >= toDateTime(%u) AND minute < toDateTime(%u)",
		 start / HOUR_S * HOUR_S, start, start + BUCKET_S);
	snprintf(twice, sizeof twice,
		 "(SELECT id FROM duplicates WHERE minute >= toDateTime(%u) AND minute < "
		 "toDateTime(%u))",
		 start, start + BUCKET_S);
	buffer_init(&sql, 16 << 10);
	buffer_printf(&sql,
		      "INSERT INTO rollups_10m (tenant, is_whole, type, hour, series, bucket, "
		      "version, " ROLLED_COLUMNS ") SELECT tenant, toUInt8(0), type, hour, series, "
		      "toDateTime(%u), toUInt64(%" PRIu64 "), " SUMS_OF_STACKS
		      " FROM (SELECT tenant, type, hour, series, " STACKS_OF_ROWS " FROM ",
		      start, version);
	buffer_printf(&sql,
		      "(SELECT %s FROM samples WHERE %s AND id %sNOT IN %s UNION ALL SELECT "
		      "tenant, type, hour, series, " ROLLED_COLUMNS " FROM (SELECT id, %s FROM "
		      "samples WHERE %s AND id %sIN %s LIMIT 1 BY id))",
		      columns, range, global, twice, columns, range, global, twice);
	buffer_append_text(&sql,
			   JOINED_STACKS "GROUP BY tenant, type, hour, series, stack ORDER BY "
					 "tenant, type, hour, series, stack) GROUP BY tenant, "
					 "type, hour, series");
	return run(work, &sql, NULL, err);
}

/* --- series without the labels of instances --- */

struct series_ids {
	uint32_t *tenants;
	uint64_t *ids;
	size_t count, tenant_room, id_room;
	bool is_full;
};

static bool keep_series(void *context, struct row_reader *row)
{
	struct series_ids *series = context;
	uint32_t tenant = (uint32_t)row_number(row, 4);
	uint64_t id = row_number(row, 8);

	if (row->is_short)
		return true;
	series->is_full = !SCOPE_GROW(series->tenants, series->count, series->tenant_room) ||
			  !SCOPE_GROW(series->ids, series->count, series->id_room);
	if (series->is_full)
		return false;
	series->tenants[series->count] = tenant;
	series->ids[series->count++] = id;
	return true;
}

/* Rows of (tenant, series, whole), of one tenant. */
static bool map_series(struct rollup_work *work, uint32_t month, uint32_t tenant,
		       const uint64_t *ids, size_t count, struct buffer *rows, struct error *err)
{
	const struct definitions_range range = {
		.tenant = tenant, .first_month = month, .last_month = month};
	struct definitions *definitions = definitions_new();
	uint32_t *numbers = calloc(count + 1, sizeof *numbers);
	bool ok = definitions && numbers;

	if (!ok)
		error_set(err, ERROR_MEMORY, "no memory to add samples up");
	ok = ok && definitions_read(definitions, work->store->client, DEFINITION_SERIES, &range,
				    ids, count, err);
	if (ok)
		definitions_numbers(definitions, DEFINITION_SERIES, ids, count, numbers);
	for (size_t i = 0; ok && i < count; i++) {
		const struct defined_series *series =
			numbers[i] == UINT32_MAX
				? NULL
				: definitions_at(definitions, DEFINITION_SERIES, numbers[i]);

		row_put_u32(rows, tenant);
		row_put_u64(rows, ids[i]);
		row_put_u64(rows, series ? whole_series_id(&series->labels) : ids[i]);
	}
	definitions_release(definitions);
	free(numbers);
	return ok;
}

static bool map_all(struct rollup_work *work, uint32_t start, uint64_t version, struct buffer *rows,
		    struct error *err)
{
	struct series_ids series = {0};
	char sql[400];
	bool ok;

	snprintf(sql, sizeof sql,
		 "SELECT DISTINCT tenant, series FROM rollups_10m WHERE bucket = toDateTime(%u) "
		 "AND version = %" PRIu64 " AND is_whole = 0 ORDER BY tenant, series",
		 start, version);
	ok = clickhouse_ask(work->store->client,
			    &(struct clickhouse_question){
				    .sql = sql, .row = keep_series, .context = &series},
			    err) &&
	     (!series.is_full || error_set(err, ERROR_MEMORY, "no memory to add samples up"));
	for (size_t i = 0, next; ok && i < series.count; i = next) {
		for (next = i; next < series.count && series.tenants[next] == series.tenants[i];)
			next++;
		ok = map_series(work, month_of(start * 1000ll), series.tenants[i], series.ids + i,
				next - i, rows, err);
	}
	free(series.tenants);
	free(series.ids);
	return ok;
}

static bool roll_series(struct rollup_work *work, uint32_t start, uint64_t version,
			struct error *err)
{
	struct buffer sql, rows;
	struct clickhouse_set set = {"tenant UInt32, series UInt64, whole UInt64", &rows, NULL,
				     NULL};
	bool ok;

	buffer_init(&rows, SCOPE_BYTES_MAX);
	ok = map_all(work, start, version, &rows, err);
	if (!ok || !rows.length) {
		buffer_release(&rows);
		return ok;
	}
	buffer_init(&sql, 16 << 10);
	buffer_printf(&sql,
		      "INSERT INTO rollups_10m (tenant, is_whole, type, hour, series, bucket, "
		      "version, " ROLLED_COLUMNS ") SELECT tenant, toUInt8(1), type, "
		      "toDateTime(%u), whole, toDateTime(%u), toUInt64(%" PRIu64
		      "), " SUMS_OF_STACKS " FROM (SELECT tenant, type, whole, " STACKS_OF_ROWS
		      " FROM (SELECT tenant, type, whole, " ROLLED_COLUMNS " FROM (SELECT tenant, "
		      "type, series, " ROLLED_COLUMNS " FROM rollups_10m WHERE bucket = "
		      "toDateTime(%u) AND version = %" PRIu64
		      " AND is_whole = 0) AS added ALL INNER "
		      "JOIN wanted USING (tenant, series))",
		      start / HOUR_S * HOUR_S, start, version, start, version);
	buffer_append_text(&sql, JOINED_STACKS "GROUP BY tenant, type, whole, stack ORDER BY "
					       "tenant, type, whole, stack) GROUP BY tenant, "
					       "type, whole");
	ok = run(work, &sql, &set, err);
	buffer_release(&rows);
	return ok;
}

/* The first and the last report of each agent tell what it counted. */
static bool keep_reports(struct rollup_work *work, uint32_t start, const char *order,
			 struct error *err)
{
	static const char columns[] =
		"tenant, agent, minute, seq, host, version, kernel, rate_hz, acknowledged, taken, "
		"idle, own_samples, lost_names, lost_counts, stack_names, stack_counts, end_ms, "
		"received_ms, sent_ms";
	struct buffer sql;

	buffer_init(&sql, 4096);
	buffer_printf(&sql,
		      "INSERT INTO reports_kept (%s) SELECT %s FROM reports WHERE minute >= "
		      "toDateTime(%u) AND minute < toDateTime(%u) ORDER BY tenant, agent, seq %s "
		      "LIMIT 1 BY tenant, agent",
		      columns, columns, start, start + BUCKET_S, order);
	return run(work, &sql, NULL, err);
}

static bool roll_hour(struct rollup_work *work, uint32_t start, uint64_t version, struct error *err)
{
	const struct marks *marks = &work->marks;
	struct buffer sql;

	buffer_init(&sql, 16 << 10);
	buffer_printf(&sql,
		      "INSERT INTO rollups_1h (tenant, is_whole, type, series, bucket, "
		      "version, " ROLLED_COLUMNS ") SELECT tenant, is_whole, type, series, "
		      "toDateTime(%u), toUInt64(%" PRIu64 "), " SUMS_OF_STACKS
		      " FROM (SELECT tenant, is_whole, type, series, " STACKS_OF_ROWS
		      " FROM (SELECT tenant, is_whole, type, series, " ROLLED_COLUMNS
		      " FROM rollups_10m WHERE bucket >= toDateTime(%u) AND bucket < "
		      "toDateTime(%u) AND version IN (0",
		      start, version, start, start + HOUR_S);
	for (unsigned i = 0; i < HOUR_S / BUCKET_S; i++) {
		const struct mark *mark = marks_find(marks->buckets, marks->bucket_count,
						     start + i * BUCKET_S);

		buffer_printf(&sql, ", %" PRIu64, mark ? mark->version : 0);
	}
	buffer_append_text(&sql, "))" JOINED_STACKS
				 "GROUP BY tenant, is_whole, type, series, stack ORDER BY tenant, "
				 "is_whole, type, series, stack) GROUP BY tenant, is_whole, type, "
				 "series");
	return run(work, &sql, NULL, err);
}

/* --- marks --- */

static void put_mark(struct buffer *rows, unsigned level, uint32_t start, uint64_t version,
		     uint64_t covered)
{
	row_put_u8(rows, (uint8_t)level);
	row_put_u32(rows, start);
	row_put_u64(rows, version);
	row_put_u64(rows, covered);
}

static bool insert_marks(struct rollup_work *work, const struct buffer *rows, struct error *err)
{
	return !rows->length || clickhouse_insert(work->store->client,
						  "INSERT INTO rollup_marks (level, bucket, "
						  "version, covered)",
						  rows, err);
}

static bool finish(struct rollup_work *work, unsigned level, uint32_t start, uint64_t version,
		   uint64_t covered, struct error *err)
{
	struct buffer rows;
	bool ok;

	buffer_init(&rows, 64);
	put_mark(&rows, level, start, version, covered);
	ok = insert_marks(work, &rows, err);
	buffer_release(&rows);
	work->done++;
	return ok;
}

/* --- a day --- */

static bool is_due(const struct mark *mark)
{
	return !mark || !mark->is_made ||
	       (!mark_is_clean(mark) && mark->age_s >= ROLLUP_LATE_PAUSE_MS / 1000);
}

/* Tokens were read before the rows are: what has one is in them. */
static bool roll_bucket(struct rollup_work *work, uint32_t start, struct error *err)
{
	const struct mark *mark = marks_find(work->marks.buckets, work->marks.bucket_count, start);
	uint64_t version = rollup_version(clickhouse_now_ms());
	uint64_t covered = mark ? mark->tokens : 0;

	if (!is_due(mark))
		return true;
	if (!id_set_has(&work->filled, start / BUCKET_S)) {
		put_mark(&work->made, LEVEL_10M, start, version, covered);
		work->done++;
		return true;
	}
	return roll_minutes(work, start, version, err) && roll_series(work, start, version, err) &&
	       keep_reports(work, start, "", err) && keep_reports(work, start, "DESC", err) &&
	       finish(work, LEVEL_10M, start, version, covered, err);
}

static bool is_over(const struct rollup_work *work)
{
	return work->store->is_closing || work->done >= TURN_BUCKETS;
}

static bool has_due(const struct rollup_work *work, uint32_t day)
{
	for (uint32_t start = day; start < day + DAY_S; start += BUCKET_S)
		if (start + BUCKET_S <= work->closed &&
		    is_due(marks_find(work->marks.buckets, work->marks.bucket_count, start)))
			return true;
	return false;
}

static bool roll_day(struct rollup_work *work, uint32_t day, struct error *err)
{
	bool ok = true;

	if (!has_due(work, day))
		return true;
	ok = read_filled(work, day, false, err);
	buffer_init(&work->made, 64 << 10);
	for (uint32_t start = day; ok && start < day + DAY_S && !is_over(work); start += BUCKET_S)
		if (start + BUCKET_S <= work->closed)
			ok = roll_bucket(work, start, err);
	ok = ok && insert_marks(work, &work->made, err);
	buffer_release(&work->made);
	return ok;
}

/* All of its buckets are made and unchanged, and it is not. */
static bool is_hour_due(const struct rollup_work *work, uint32_t start)
{
	const struct marks *marks = &work->marks;
	const struct mark *hour = marks_find(marks->hours, marks->hour_count, start);

	if (!hour || mark_is_clean(hour))
		return false;
	for (unsigned i = 0; i < HOUR_S / BUCKET_S; i++) {
		const struct mark *mark = marks_find(marks->buckets, marks->bucket_count,
						     start + i * BUCKET_S);

		if (!mark || !mark_is_clean(mark))
			return false;
	}
	return true;
}

static bool roll_hours(struct rollup_work *work, uint32_t day, struct error *err)
{
	bool ok = true, has_filled = false;

	buffer_init(&work->made, 64 << 10);
	for (uint32_t start = day; ok && start < day + DAY_S && !is_over(work); start += HOUR_S) {
		uint64_t version = rollup_version(clickhouse_now_ms());
		const struct mark *hour;

		if (!is_hour_due(work, start))
			continue;
		hour = marks_find(work->marks.hours, work->marks.hour_count, start);
		ok = has_filled || read_filled(work, day, true, err);
		has_filled = true;
		if (ok && id_set_has(&work->filled, start / HOUR_S)) {
			ok = roll_hour(work, start, version, err) &&
			     finish(work, LEVEL_1H, start, version, hour->tokens, err);
		} else {
			put_mark(&work->made, LEVEL_1H, start, version, hour->tokens);
			work->done++;
		}
	}
	ok = ok && insert_marks(work, &work->made, err);
	buffer_release(&work->made);
	return ok;
}

/* --- the turn --- */

static bool read_marks(struct rollup_work *work, struct error *err)
{
	uint32_t first = work->days[work->day_count - 1];
	uint32_t end = work->days[0];

	marks_release(&work->marks);
	return marks_read(work->store->client, first,
			  end > UINT32_MAX - DAY_S ? UINT32_MAX : end + DAY_S, &work->marks, err);
}

static bool roll_days(struct rollup_work *work, struct error *err)
{
	if (!work->day_count || !read_marks(work, err))
		return !work->day_count;
	for (size_t i = 0; i < work->day_count && !is_over(work); i++)
		if (work->days[i] < work->closed && !roll_day(work, work->days[i], err))
			return false;
	if (!read_marks(work, err))
		return false;
	for (size_t i = 0; i < work->day_count && !is_over(work); i++)
		if (work->days[i] < work->closed && !roll_hours(work, work->days[i], err))
			return false;
	return true;
}

bool clickhouse_rollup_turn(struct clickhouse_samples *store, int64_t now_ms, bool *is_done,
			    struct error *err)
{
	struct rollup_work work = {.store = store,
				   .closed = (uint32_t)((now_ms - ROLLUP_CLOSED_MS) / 1000) -
					     SERVERS_APART_S};
	bool is = false;
	bool ok = is_mine(&work, &is, err) &&
		  (!is || (read_days(&work, err) && roll_days(&work, err)));

	*is_done = !is_over(&work);
	marks_release(&work.marks);
	id_set_release(&work.filled);
	free(work.days);
	return ok;
}
