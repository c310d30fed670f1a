/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/days/single_rows.h"

#include <stdlib.h>

#include "common/array.h"

/* --- writing --- */

bool day_writer_singles(struct day_writer *writer, const struct single_table *table,
			const struct day_row *row, size_t count, const struct buffer *filter,
			struct error *err)
{
	sqlite3_stmt *put;
	bool ok;

	if (writer->data.failed || (filter && filter->failed))
		return error_set(err, ERROR_LIMIT, "%s of one minute's samples do not fit a row",
				 table->what);
	put = database_prepare_insert(writer->db, table->insert, err);
	if (!put)
		return false;
	DATABASE_BIND(put, 1, row->tenant, row->type, row->bucket, row->series, writer->fold,
		      (int64_t)count);
	sqlite3_bind_blob64(put, 7, writer->data.bytes, writer->data.length, SQLITE_STATIC);
	if (filter)
		sqlite3_bind_blob64(put, 8, filter->bytes, filter->length, SQLITE_STATIC);
	ok = database_run(put, err);
	sqlite3_finalize(put);
	return ok;
}

/* --- rows of counted stacks --- */

bool single_rows_add(struct single_rows *rows, uint32_t thread, uint32_t stack, uint64_t samples,
		     uint64_t value)
{
	rows->is_full |= !ARRAY_GROW(rows->pairs, rows->count, rows->capacity);
	if (!rows->is_full)
		rows->pairs[rows->count++] = (struct packed_pair){thread, stack, samples, value};
	return !rows->is_full;
}

void single_rows_give(struct single_rows *rows)
{
	struct view_row *row = &rows->row;

	if (!rows->count || rows->is_full || rows->is_stopped)
		return;
	rows->count = packed_merge(rows->pairs, rows->count);
	row->samples = row->value = 0;
	for (size_t i = 0; i < rows->count; i++) {
		row->samples += rows->pairs[i].samples;
		row->value += rows->pairs[i].value;
	}
	buffer_clear(&rows->packed);
	packed_encode(rows->pairs, rows->count, &rows->packed);
	rows->count = 0;
	rows->is_full = rows->packed.failed;
	row->packed = rows->packed.bytes;
	row->length = rows->packed.length;
	rows->is_stopped = rows->is_full || !rows->fn(rows->context, row);
}

/* --- reading --- */

bool single_rows_goes_on(struct single_rows *rows)
{
	rows->is_stopped |= !limit_watch_goes_on(&rows->view->watch, NULL);
	return !rows->is_stopped;
}

bool single_rows_is_defined(const struct single_rows *rows, uint32_t thread, uint32_t stack)
{
	const uint32_t *defined = rows->row.day->mark.count;

	return thread < defined[CATALOG_STRINGS] && stack < defined[CATALOG_STACKS];
}

static bool is_over(const struct single_rows *rows)
{
	return rows->is_stopped || rows->is_full;
}

static bool read_row(struct single_rows *rows, sqlite3_stmt *row, struct error *err)
{
	const struct single_table *table = rows->table;

	rows->row.bucket = (uint32_t)sqlite3_column_int64(row, 0);
	rows->row.series = (uint32_t)sqlite3_column_int64(row, 1);
	if (!view_has_series(rows->row.day, rows->row.series) ||
	    (table->may_have && !table->may_have(rows->query, row)))
		return true;
	if (!limit_watch_row(&rows->view->watch, err))
		return false;
	if (!table->each(rows, sqlite3_column_blob(row, 2), (size_t)sqlite3_column_bytes(row, 2)) &&
	    !is_over(rows))
		return error_set(err, ERROR_FORMAT, "%s of samples are damaged", table->what);
	table->end(rows);
	return true;
}

static bool each_stored(struct single_rows *rows, struct error *err)
{
	const struct view_day *day = rows->row.day;
	sqlite3_stmt *select = database_prepare(day->reader->db, rows->table->select, err);
	bool ok = select;

	if (!ok)
		return false;
	DATABASE_BIND(select, 1, rows->query->tenant, rows->row.type, day->from, day->until);
	while (!is_over(rows) && database_row(select, &ok, err))
		ok = read_row(rows, select, err);
	sqlite3_finalize(select);
	return ok;
}

/* What the file's transaction does not have. */
static void each_cell(struct single_rows *rows)
{
	const struct view_day *day = rows->row.day;

	for (size_t i = 0; !is_over(rows) && i < day->cell_count; i++) {
		const struct memory_snapshot *snapshot = &day->cells[i].snapshot;
		const struct cell_key *key = &snapshot->key;

		if (key->type != (rows->row.type | rows->table->cells) ||
		    day->cells[i].start < day->folded_through || key->bucket < day->from ||
		    key->bucket >= day->until || !view_has_series(day, key->series))
			continue;
		if (!limit_watch_row(&rows->view->watch, NULL))
			return;
		rows->row.bucket = key->bucket;
		rows->row.series = key->series;
		memory_snapshot_each(snapshot, rows->table->each_raw, rows);
		rows->table->end(rows);
	}
}

bool single_rows_walk(struct single_rows *rows, bool has_table, struct error *err)
{
	struct view_day *day = rows->row.day;
	bool ok;

	if (!day->catalog)
		return true;
	buffer_init(&rows->packed, 64 << 20);
	ok = !day->reader || !has_table || each_stored(rows, err);
	if (ok)
		each_cell(rows);
	if (!ok || rows->view->watch.why.kind != ERROR_NONE)
		ok = view_read_failed(rows->view, day, err);
	buffer_release(&rows->packed);
	free(rows->pairs);
	return rows->is_full ? error_set(err, ERROR_MEMORY, "no memory for an answer") : ok;
}
