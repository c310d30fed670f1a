/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/upkeep/deletion.h"

#include <stdlib.h>

void deletion_take(struct deletion *deletion, const struct row_key *key, uint64_t samples)
{
	uint32_t host = catalog_series(deletion->catalog, key->series)->host;
	struct taken *taken = deletion->taken;
	unsigned i = deletion->taken_count;

	/* What is in a roll-up counts there. */
	if ((uint64_t)key->fold > deletion->rolled[key->bucket / ROLLUP_MINUTES])
		deletion->deleted->samples += samples;
	deletion->hours[key->bucket / 60] = true;
	while (i && taken[i - 1].bucket == key->bucket && taken[i - 1].type == key->type)
		if (taken[--i].host == host && taken[i].fold == key->fold) {
			taken[i].samples += samples;
			return;
		}
	taken[deletion->taken_count++] = (struct taken){key->type, key->bucket, host, key->fold,
							samples};
}

struct account_row {
	struct deletion *deletion;
	const struct taken *first;
	unsigned count;
	uint64_t left[SLICE_ROWS]; /* not found yet, of each */
	int64_t fold;              /* of the row that is looked at */
	bool is_any_fold, is_changed;
};

/* A reason without room is added to the last one, as account_add() does. */
static void lose(struct packed_account *account, uint32_t reason, uint64_t count)
{
	struct packed_account more = {.lost_count = 1};

	more.lost[0].reason = reason;
	more.lost[0].count = count;
	account_add(account, &more);
}

static bool change_account(void *context, const struct packed_account *account)
{
	struct account_row *row = context;
	struct packed_account changed = *account;

	for (unsigned i = 0; i < row->count; i++) {
		uint64_t part = row->left[i] < changed.samples ? row->left[i] : changed.samples;

		if (row->first[i].host != account->host || !part ||
		    (row->first[i].fold != row->fold && !row->is_any_fold))
			continue;
		row->left[i] -= part;
		changed.samples -= part;
		lose(&changed, row->deletion->reason, part);
		row->is_changed = true;
	}
	account_encode(&changed, &row->deletion->data);
	return true;
}

static bool write_account(struct deletion *deletion, const struct taken *of, int64_t fold,
			  struct error *err)
{
	sqlite3_stmt *put = database_prepare(
		deletion->writer.db,
		"UPDATE accounts SET data = ? WHERE tenant = ? AND type = ? AND bucket = ? "
		"AND fold = ?",
		err);
	bool ok = put && !deletion->data.failed;

	if (ok) {
		sqlite3_bind_blob64(put, 1, deletion->data.bytes, deletion->data.length,
				    SQLITE_STATIC);
		DATABASE_BIND(put, 2, deletion->query->tenant, of->type, of->bucket, fold);
		ok = database_run(put, err);
	} else if (put) {
		error_set(err, ERROR_MEMORY, "no memory to delete samples");
	}
	sqlite3_finalize(put);
	return ok;
}

/* The accounts of one minute, fold after fold, until all that was taken is found there. */
static bool change_minute(struct deletion *deletion, struct account_row *row, struct error *err)
{
	sqlite3_stmt *find = database_prepare(
		deletion->writer.db,
		"SELECT fold, data FROM accounts WHERE tenant = ? AND type = ? AND bucket = ? "
		"AND fold > ? ORDER BY fold LIMIT 1",
		err);
	int64_t fold = -1;
	bool ok = find, has_more = true;

	while (ok && has_more) {
		DATABASE_BIND(find, 1, deletion->query->tenant, row->first->type,
			      row->first->bucket, fold);
		ok = database_next(find, &has_more, err);
		row->is_changed = false;
		buffer_clear(&deletion->data);
		if (ok && has_more) {
			fold = row->fold = sqlite3_column_int64(find, 0);
			ok = account_each(sqlite3_column_blob(find, 1),
					  (size_t)sqlite3_column_bytes(find, 1), change_account,
					  row) ||
			     error_set(err, ERROR_FORMAT, "accounts cannot be decoded");
		}
		sqlite3_reset(find);
		if (ok && row->is_changed)
			ok = write_account(deletion, row->first, fold, err);
	}
	sqlite3_finalize(find);
	return ok;
}

static bool has_left(const struct account_row *row)
{
	for (unsigned i = 0; i < row->count; i++)
		if (row->left[i])
			return true;
	return false;
}

bool deletion_change_accounts(struct deletion *deletion, struct error *err)
{
	struct account_row *row = calloc(1, sizeof *row);
	bool ok = row || error_set(err, ERROR_MEMORY, "no memory to delete samples");

	for (unsigned first = 0, end; ok && first < deletion->taken_count; first = end) {
		const struct taken *taken = deletion->taken;

		for (end = first;
		     end < deletion->taken_count && taken[end].bucket == taken[first].bucket &&
		     taken[end].type == taken[first].type;
		     end++)
			row->left[end - first] = taken[end].samples;
		row->deletion = deletion;
		row->first = taken + first;
		row->count = end - first;
		/* Some folds may be in a roll-up and others not. */
		row->is_any_fold = false;
		ok = change_minute(deletion, row, err);
		row->is_any_fold = true;
		ok = ok && (!has_left(row) || change_minute(deletion, row, err));
	}
	free(row);
	return ok;
}
