/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/upkeep/deletion.h"

#include <stdlib.h>

#include "common/array.h"

struct sums {
	struct deletion *deletion;
	uint64_t samples, value, gone;
};

static bool keep_pair(void *context, const struct packed_pair *pair)
{
	struct sums *sums = context;
	struct deletion *deletion = sums->deletion;

	if (deletion_is_thread_wanted(deletion, pair->thread)) {
		sums->gone += pair->samples;
		return true;
	}
	if (!ARRAY_GROW(deletion->kept, deletion->kept_count, deletion->kept_room))
		return false;
	deletion->kept[deletion->kept_count++] = *pair;
	sums->samples += pair->samples;
	sums->value += pair->value;
	return true;
}

static bool write_kept(struct deletion *deletion, const struct row_key *key,
		       const struct sums *sums, struct error *err)
{
	sqlite3_stmt *put = database_prepare(
		deletion->writer.db,
		"UPDATE samples SET pairs = ?, samples = ?, value = ?, data = ? WHERE tenant = ? "
		"AND type = ? AND bucket = ? AND series = ? AND fold = ?",
		err);
	bool ok = put;

	buffer_clear(&deletion->data);
	packed_encode(deletion->kept, deletion->kept_count, &deletion->data);
	if (ok && deletion->data.failed)
		ok = error_set(err, ERROR_MEMORY, "no memory to delete samples");
	if (ok) {
		sqlite3_bind_int64(put, 1, (int64_t)deletion->kept_count);
		sqlite3_bind_int64(put, 2, (int64_t)sums->samples);
		sqlite3_bind_int64(put, 3, (int64_t)sums->value);
		sqlite3_bind_blob64(put, 4, deletion->data.bytes, deletion->data.length,
				    SQLITE_STATIC);
		deletion_bind_key(put, 5, deletion, key);
		ok = database_run(put, err);
	}
	sqlite3_finalize(put);
	return ok;
}

bool deletion_threads(struct deletion *deletion, const struct row_key *key, const uint8_t *data,
		      size_t length, uint64_t *gone, struct error *err)
{
	struct sums sums = {.deletion = deletion};

	deletion->kept_count = 0;
	if (!packed_each(data, length, keep_pair, &sums))
		return error_set(err, ERROR_FORMAT, "a row of samples cannot be decoded");
	*gone = sums.gone;
	if (!sums.gone)
		return true;
	return deletion->kept_count ? write_kept(deletion, key, &sums, err)
				    : deletion_row(deletion, "samples", key, err);
}

/* --- what came beside the samples --- */

struct kept { /* of one row, decoded: one of both lists */
	struct deletion *deletion;
	struct moment *moments;
	struct span_sample *spans;
	size_t count, room;
};

static bool keep_moment(void *context, const struct moment *moment)
{
	struct kept *kept = context;

	if (deletion_is_thread_wanted(kept->deletion, moment->thread))
		return true;
	if (!ARRAY_GROW(kept->moments, kept->count, kept->room))
		return false;
	kept->moments[kept->count++] = *moment;
	return true;
}

static bool keep_span(void *context, const struct span_sample *span)
{
	struct kept *kept = context;

	if (deletion_is_thread_wanted(kept->deletion, span->thread))
		return true;
	if (!ARRAY_GROW(kept->spans, kept->count, kept->room))
		return false;
	kept->spans[kept->count++] = *span;
	return true;
}

static bool read_moments(struct kept *kept, const uint8_t *data, size_t length)
{
	return moments_each(data, length, keep_moment, kept);
}

static bool read_spans(struct kept *kept, const uint8_t *data, size_t length)
{
	return spans_each(data, length, keep_span, kept);
}

static void encode_moments(struct kept *kept, struct buffer *data, struct buffer *filter)
{
	(void)filter;
	moments_encode(kept->moments, kept->count, data);
}

static void encode_spans(struct kept *kept, struct buffer *data, struct buffer *filter)
{
	spans_encode(kept->spans, kept->count, data);
	spans_filter(kept->spans, kept->count, filter);
}

struct beside {
	const char *table, *find, *put;
	bool (*read)(struct kept *kept, const uint8_t *data, size_t length);
	void (*encode)(struct kept *kept, struct buffer *data, struct buffer *filter);
};

static const struct beside of_moments = {
	"moments",
	"SELECT data FROM moments WHERE tenant = ? AND type = ? AND bucket = ? AND series = ? AND "
	"fold = ?",
	"UPDATE moments SET count = ?1, data = ?2 WHERE tenant = ?4 AND type = ?5 AND bucket = ?6 "
	"AND series = ?7 AND fold = ?8",
	read_moments,
	encode_moments,
};

static const struct beside of_spans = {
	"spans",
	"SELECT data FROM spans WHERE tenant = ? AND type = ? AND bucket = ? AND series = ? AND "
	"fold = ?",
	"UPDATE spans SET count = ?1, data = ?2, filter = ?3 WHERE tenant = ?4 AND type = ?5 AND "
	"bucket = ?6 AND series = ?7 AND fold = ?8",
	read_spans,
	encode_spans,
};

static bool write_beside(struct deletion *deletion, const struct row_key *key,
			 const struct beside *beside, struct kept *kept, struct error *err)
{
	sqlite3_stmt *put = database_prepare(deletion->writer.db, beside->put, err);
	struct buffer filter;
	bool ok = put;

	buffer_init(&filter, ROW_BYTES_MAX);
	buffer_clear(&deletion->data);
	beside->encode(kept, &deletion->data, &filter);
	if (ok && (deletion->data.failed || filter.failed))
		ok = error_set(err, ERROR_MEMORY, "no memory to delete samples");
	if (ok) {
		sqlite3_bind_int64(put, 1, (int64_t)kept->count);
		sqlite3_bind_blob64(put, 2, deletion->data.bytes, deletion->data.length,
				    SQLITE_STATIC);
		if (filter.length)
			sqlite3_bind_blob64(put, 3, filter.bytes, filter.length, SQLITE_STATIC);
		deletion_bind_key(put, 4, deletion, key);
		ok = database_run(put, err);
	}
	sqlite3_finalize(put);
	buffer_release(&filter);
	return ok;
}

/* The row without those threads, or the whole of it when nothing is left. */
static bool delete_beside(struct deletion *deletion, const struct row_key *key,
			  const struct beside *beside, struct error *err)
{
	sqlite3_stmt *find = database_prepare(deletion->writer.db, beside->find, err);
	struct kept kept = {.deletion = deletion};
	bool ok = find, has_row = false;

	if (find) {
		deletion_bind_key(find, 1, deletion, key);
		ok = database_next(find, &has_row, err);
		if (ok && has_row)
			ok = beside->read(&kept, sqlite3_column_blob(find, 0),
					  (size_t)sqlite3_column_bytes(find, 0)) ||
			     error_set(err, ERROR_FORMAT, "a row of %s cannot be decoded",
				       beside->table);
	}
	sqlite3_finalize(find);
	if (ok && has_row)
		ok = kept.count ? write_beside(deletion, key, beside, &kept, err)
				: deletion_row(deletion, beside->table, key, err);
	free(kept.moments);
	free(kept.spans);
	return ok;
}

bool deletion_threads_beside(struct deletion *deletion, const struct row_key *key,
			     struct error *err)
{
	return (!deletion->has_moments || delete_beside(deletion, key, &of_moments, err)) &&
	       (!deletion->has_spans || delete_beside(deletion, key, &of_spans, err));
}
