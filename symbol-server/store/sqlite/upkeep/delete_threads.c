/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/upkeep/deleting.h"

#include <stdlib.h>

struct sums {
	struct deleting *deleting;
	uint64_t samples, value, gone;
};

static bool keep_pair(void *context, const struct packed_pair *pair)
{
	struct sums *sums = context;
	struct deleting *deleting = sums->deleting;

	if (deleting_is_thread_wanted(deleting, pair->thread)) {
		sums->gone += pair->samples;
		return true;
	}
	if (deleting->kept_count == deleting->kept_room) {
		size_t room = deleting->kept_room ? deleting->kept_room * 2 : 1024;
		struct packed_pair *larger = realloc(deleting->kept, room * sizeof *larger);

		if (!larger)
			return false;
		deleting->kept = larger;
		deleting->kept_room = room;
	}
	deleting->kept[deleting->kept_count++] = *pair;
	sums->samples += pair->samples;
	sums->value += pair->value;
	return true;
}

static bool write_kept(struct deleting *deleting, const struct row_key *key,
		       const struct sums *sums, struct error *err)
{
	sqlite3_stmt *put = database_prepare(
		deleting->writer.db,
		"UPDATE samples SET pairs = ?, samples = ?, value = ?, data = ? WHERE tenant = ? "
		"AND type = ? AND bucket = ? AND series = ? AND fold = ?",
		err);
	bool ok = put;

	buffer_clear(&deleting->data);
	packed_encode(deleting->kept, deleting->kept_count, &deleting->data);
	if (ok && deleting->data.failed)
		ok = error_set(err, ERROR_MEMORY, "no memory to delete samples");
	if (ok) {
		sqlite3_bind_int64(put, 1, (int64_t)deleting->kept_count);
		sqlite3_bind_int64(put, 2, (int64_t)sums->samples);
		sqlite3_bind_int64(put, 3, (int64_t)sums->value);
		sqlite3_bind_blob64(put, 4, deleting->data.bytes, deleting->data.length,
				    SQLITE_STATIC);
		deleting_bind_key(put, 5, deleting, key);
		ok = database_run(put, err);
	}
	sqlite3_finalize(put);
	return ok;
}

bool deleting_threads(struct deleting *deleting, const struct row_key *key, const uint8_t *data,
		      size_t length, uint64_t *gone, struct error *err)
{
	struct sums sums = {.deleting = deleting};

	deleting->kept_count = 0;
	if (!packed_each(data, length, keep_pair, &sums))
		return error_set(err, ERROR_FORMAT, "a row of samples cannot be decoded");
	*gone = sums.gone;
	if (!sums.gone)
		return true;
	return deleting->kept_count ? write_kept(deleting, key, &sums, err)
				    : deleting_row(deleting, "samples", key, err);
}

struct moments_kept {
	struct deleting *deleting;
	struct moment *at;
	size_t count, room;
};

static bool keep_moment(void *context, const struct moment *moment)
{
	struct moments_kept *kept = context;

	if (deleting_is_thread_wanted(kept->deleting, moment->thread))
		return true;
	if (kept->count == kept->room) {
		size_t room = kept->room ? kept->room * 2 : 1024;
		struct moment *larger = realloc(kept->at, room * sizeof *larger);

		if (!larger)
			return false;
		kept->at = larger;
		kept->room = room;
	}
	kept->at[kept->count++] = *moment;
	return true;
}

static bool write_moments(struct deleting *deleting, const struct row_key *key,
			  struct moments_kept *kept, struct error *err)
{
	sqlite3_stmt *put = database_prepare(
		deleting->writer.db,
		"UPDATE moments SET count = ?, data = ? WHERE tenant = ? AND type = ? AND "
		"bucket = ? AND series = ? AND fold = ?",
		err);
	bool ok = put;

	buffer_clear(&deleting->data);
	moments_encode(kept->at, kept->count, &deleting->data);
	if (ok && deleting->data.failed)
		ok = error_set(err, ERROR_MEMORY, "no memory to delete samples");
	if (ok) {
		sqlite3_bind_int64(put, 1, (int64_t)kept->count);
		sqlite3_bind_blob64(put, 2, deleting->data.bytes, deleting->data.length,
				    SQLITE_STATIC);
		deleting_bind_key(put, 3, deleting, key);
		ok = database_run(put, err);
	}
	sqlite3_finalize(put);
	return ok;
}

bool deleting_thread_moments(struct deleting *deleting, const struct row_key *key,
			     struct error *err)
{
	sqlite3_stmt *find = database_prepare(
		deleting->writer.db,
		"SELECT data FROM moments WHERE tenant = ? AND type = ? AND bucket = ? AND "
		"series = ? AND fold = ?",
		err);
	struct moments_kept kept = {.deleting = deleting};
	bool ok = find, has_row = false;

	if (find) {
		deleting_bind_key(find, 1, deleting, key);
		has_row = sqlite3_step(find) == SQLITE_ROW;
		ok = !has_row ||
		     moments_each(sqlite3_column_blob(find, 0),
				  (size_t)sqlite3_column_bytes(find, 0), keep_moment, &kept) ||
		     error_set(err, ERROR_FORMAT, "times of samples cannot be decoded");
	}
	sqlite3_finalize(find);
	if (ok && has_row)
		ok = kept.count ? write_moments(deleting, key, &kept, err)
				: deleting_row(deleting, "moments", key, err);
	free(kept.at);
	return ok;
}
