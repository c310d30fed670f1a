/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of samples of one bucket, series by series, added up into rows of roll-ups. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "symbol-server/store/sqlite/days/day_tables.h"
#include "symbol-server/store/sqlite/rollups/rollup_pass.h"

enum { ROW_BYTES_MAX = 256 << 20 };

/* --- the tables --- */

/* condition: of rows of the level, "" where the table has one only. */
static sqlite3_stmt *prepare(sqlite3 *db, const char *select, const char *table,
			     const char *condition, const char *end, struct error *err)
{
	char sql[256];

	snprintf(sql, sizeof sql, "SELECT %s FROM %s WHERE %s%s", select, table, condition, end);
	return database_prepare(db, sql, err);
}

bool rollup_pass_prepare(struct rollup_pass *pass, sqlite3 *from, enum day_level level,
			 bool of_fold, sqlite3 *to, struct error *err)
{
	static const char next_type[] = "(tenant, type) > (?, ?) ORDER BY tenant, type LIMIT 1";
	const char *samples = level == DAY_RAW ? "samples" : "rollups";
	const char *accounts = level == DAY_RAW ? "accounts" : "rollup_accounts";
	char of_level[32] = "", of_bucket[128], of_buckets[128];

	if (level != DAY_RAW)
		snprintf(of_level, sizeof of_level, "level = %d AND ", level);
	snprintf(of_bucket, sizeof of_bucket,
		 "tenant = ? AND type = ? AND bucket = ? AND series = ? AND fold %s ?",
		 of_fold ? "=" : ">");
	snprintf(of_buckets, sizeof of_buckets,
		 "tenant = ? AND type = ? AND bucket >= ? AND bucket < ? AND fold %s ?",
		 of_fold ? "=" : ">");
	pass->types = prepare(from, "tenant, type", samples, of_level, next_type, err);
	pass->keys = prepare(from, "bucket, series", samples, of_level, of_buckets, err);
	pass->row = prepare(from, "data", samples, of_level, of_bucket, err);
	pass->account_types = prepare(from, "tenant, type", accounts, of_level, next_type, err);
	pass->accounts = prepare(from, "data", accounts, of_level, of_buckets, err);
	pass->put = database_prepare_insert(to, "INSERT " INTO_ROLLUPS, err);
	pass->put_accounts = database_prepare_insert(to, "INSERT OR REPLACE " INTO_ROLLUP_ACCOUNTS,
						     err);
	return pass->types && pass->keys && pass->row && pass->account_types && pass->accounts &&
	       pass->put && pass->put_accounts;
}

/* --- sums by stack --- */

static bool sums_init(struct rollup_sums *sums, uint32_t stacks)
{
	sums->room = stacks;
	sums->low = UINT32_MAX;
	sums->high = 0;
	sums->at = calloc(stacks, sizeof *sums->at);
	sums->touched = calloc(stacks / 64 + 1, sizeof *sums->touched);
	return sums->at && sums->touched;
}

static void sums_release(struct rollup_sums *sums)
{
	free(sums->at);
	free(sums->touched);
	memset(sums, 0, sizeof *sums);
}

bool rollup_pass_make_room(struct rollup_pass *pass, uint32_t stacks, struct error *err)
{
	buffer_init(&pass->data, ROW_BYTES_MAX);
	buffer_init(&pass->hosts_data, ROW_BYTES_MAX);
	pass->fleet_of = calloc(pass->mark.count[CATALOG_SERIES], sizeof *pass->fleet_of);
	return (pass->fleet_of && sums_init(&pass->series, stacks) &&
		sums_init(&pass->fleet, stacks)) ||
	       error_set(err, ERROR_MEMORY, "no memory to add up samples");
}

static bool keep_pair(struct rollup_pass *pass, size_t count, uint32_t stack,
		      const struct rollup_sum *sum)
{
	if (!ARRAY_GROW(pass->pairs, count, pass->pair_capacity))
		return false;
	pass->pairs[count] = (struct packed_pair){0, stack, sum->samples, sum->value};
	return true;
}

struct row_sums {
	size_t pairs;
	uint64_t samples, value;
};

/* Moves the sums to pairs, and adds them to others when there are any. */
static bool take_pairs(struct rollup_pass *pass, struct rollup_sums *sums,
		       struct rollup_sums *others, struct row_sums *row)
{
	*row = (struct row_sums){0};
	for (uint32_t word = sums->low; word < sums->high; word++) {
		uint64_t bits = sums->touched[word];

		sums->touched[word] = 0;
		for (; bits; bits &= bits - 1) {
			uint32_t stack = word * 64 + (uint32_t)__builtin_ctzll(bits);
			struct rollup_sum sum = sums->at[stack];

			sums->at[stack] = (struct rollup_sum){0};
			if (!keep_pair(pass, row->pairs, stack, &sum))
				return false;
			row->pairs++;
			row->samples += sum.samples;
			row->value += sum.value;
			if (others)
				rollup_sums_add(others, stack, sum.samples, sum.value);
		}
	}
	sums->low = UINT32_MAX;
	sums->high = 0;
	return true;
}

/* --- rows --- */

static bool put_row(struct rollup_pass *pass, const struct rollup_target *target,
		    enum day_level level, uint32_t series, const struct row_sums *row,
		    struct error *err)
{
	sqlite3_stmt *put = pass->put;

	buffer_clear(&pass->data);
	packed_encode(pass->pairs, row->pairs, &pass->data);
	if (pass->data.failed)
		return error_set(err, ERROR_LIMIT, "a roll-up does not fit a row");
	DATABASE_BIND(put, 1, level, target->tenant, target->type, target->bucket, series,
		      (int64_t)pass->through, (int64_t)row->pairs, (int64_t)row->samples,
		      (int64_t)row->value);
	sqlite3_bind_blob64(put, 10, pass->hosts_data.length ? (void *)pass->hosts_data.bytes : "",
			    pass->hosts_data.length, SQLITE_STATIC);
	sqlite3_bind_blob64(put, 11, pass->data.bytes, pass->data.length, SQLITE_STATIC);
	pass->rows++;
	return database_run(put, err);
}

static int compare_numbers(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void encode_hosts(struct rollup_pass *pass)
{
	uint32_t previous = 0;

	buffer_clear(&pass->hosts_data);
	if (pass->host_count)
		qsort(pass->hosts, pass->host_count, sizeof *pass->hosts, compare_numbers);
	for (size_t i = 0; i < pass->host_count; i++) {
		if (pass->hosts[i] == previous)
			continue;
		buffer_append_varint(&pass->hosts_data, pass->hosts[i] - previous);
		previous = pass->hosts[i];
	}
	pass->host_count = 0;
}

static bool keep_host(struct rollup_pass *pass, uint32_t host)
{
	if (!host)
		return true;
	if (!ARRAY_GROW(pass->hosts, pass->host_count, pass->host_capacity))
		return false;
	pass->hosts[pass->host_count++] = host;
	return true;
}

/* --- one row to be added --- */

static bool add_pair(void *context, const struct packed_pair *pair)
{
	struct rollup_pass *pass = context;
	uint32_t stack = pair->stack;

	if (!stack || stack >= pass->mark.count[CATALOG_STACKS])
		return true; /* refers to nothing */
	if (pass->stack_map) {
		if (!pass->stack_map[stack])
			pass->stack_map[stack] = rollup_pass_stack(pass, stack);
		stack = pass->stack_map[stack];
	}
	if (stack >= pass->series.room) {
		pass->is_full = true;
		return false;
	}
	rollup_sums_add(&pass->series, stack, pair->samples, pair->value);
	pass->pairs_read++;
	return true;
}

static bool add_rows(struct rollup_pass *pass, const struct rollup_target *target,
		     const struct rollup_key *key, struct error *err)
{
	sqlite3_stmt *row = pass->row;
	bool ok = true;

	DATABASE_BIND(row, 1, target->tenant, target->type, key->bucket, key->from,
		      (int64_t)pass->above);
	while (database_row(row, &ok, err)) {
		const void *data = sqlite3_column_blob(row, 0);

		ok = packed_each(data, (size_t)sqlite3_column_bytes(row, 0), add_pair, pass) ||
		     error_set(err, ERROR_FORMAT, "samples of a minute are damaged");
	}
	sqlite3_reset(row);
	return pass->is_full ? error_set(err, ERROR_LIMIT, "the dictionary of roll-ups is full")
			     : ok;
}

/* --- a bucket of one type --- */

/* The next (tenant, type) that the table has at all. False: none, or an error. */
bool rollup_pass_next_type(sqlite3_stmt *types, struct rollup_target *target, struct error *err)
{
	int code;

	DATABASE_BIND(types, 1, target->tenant, target->type);
	code = sqlite3_step(types);
	if (code == SQLITE_ROW) {
		target->tenant = (uint32_t)sqlite3_column_int64(types, 0);
		target->type = (uint32_t)sqlite3_column_int64(types, 1);
	} else if (code != SQLITE_DONE) {
		database_error(sqlite3_db_handle(types), "read", err);
	}
	sqlite3_reset(types);
	return code == SQLITE_ROW;
}

static int compare_keys(const void *a, const void *b)
{
	const struct rollup_key *x = a, *y = b;

	if (x->fleet != y->fleet)
		return x->fleet < y->fleet ? -1 : 1;
	if (x->series != y->series)
		return x->series < y->series ? -1 : 1;
	return (x->bucket > y->bucket) - (x->bucket < y->bucket);
}

static bool keep_key(struct rollup_pass *pass, const struct rollup_key *key)
{
	/* Folds of one minute follow each other. */
	if (pass->key_count && pass->keys_found[pass->key_count - 1].from == key->from &&
	    pass->keys_found[pass->key_count - 1].bucket == key->bucket)
		return true;
	if (!ARRAY_GROW(pass->keys_found, pass->key_count, pass->key_capacity))
		return false;
	pass->keys_found[pass->key_count++] = *key;
	return true;
}

static bool find_keys(struct rollup_pass *pass, const struct rollup_target *target, uint32_t first,
		      uint32_t end, struct error *err)
{
	sqlite3_stmt *keys = pass->keys;
	bool ok = true;

	pass->key_count = 0;
	DATABASE_BIND(keys, 1, target->tenant, target->type, first, end, (int64_t)pass->above);
	while (database_row(keys, &ok, err)) {
		struct rollup_key key = {.bucket = (uint32_t)sqlite3_column_int64(keys, 0),
					 .from = (uint32_t)sqlite3_column_int64(keys, 1)};

		if (!key.from || key.from >= pass->mark.count[CATALOG_SERIES])
			continue; /* refers to nothing */
		ok = (rollup_pass_series(pass, key.from, &key.series, &key.fleet) &&
		      keep_key(pass, &key)) ||
		     error_set(err, ERROR_LIMIT, "no room to roll samples up");
	}
	sqlite3_reset(keys);
	return ok;
}

static bool put_series(struct rollup_pass *pass, const struct rollup_target *target,
		       uint32_t series, struct error *err)
{
	struct row_sums row;

	buffer_clear(&pass->hosts_data);
	if (!take_pairs(pass, &pass->series, &pass->fleet, &row) ||
	    !keep_host(pass, catalog_series(pass->to, series)->host))
		return error_set(err, ERROR_MEMORY, "no memory to roll samples up");
	return pass->only_fleet || put_row(pass, target, pass->level, series, &row, err);
}

static bool put_fleet(struct rollup_pass *pass, const struct rollup_target *target, uint32_t fleet,
		      struct error *err)
{
	struct row_sums row;

	encode_hosts(pass);
	if (pass->hosts_data.failed || !take_pairs(pass, &pass->fleet, NULL, &row))
		return error_set(err, ERROR_MEMORY, "no memory to roll samples up");
	return put_row(pass, target, pass->level + 1, fleet, &row, err);
}

bool rollup_pass_type(struct rollup_pass *pass, const struct rollup_target *target, uint32_t first,
		      uint32_t end, struct error *err)
{
	const struct rollup_key *keys;
	size_t count;

	if (!find_keys(pass, target, first, end, err))
		return false;
	keys = pass->keys_found;
	count = pass->key_count;
	if (count)
		qsort(pass->keys_found, count, sizeof *keys, compare_keys);
	for (size_t i = 0; i < count; i++) {
		bool ends_fleet = i + 1 == count || keys[i + 1].fleet != keys[i].fleet;
		bool ends_series = ends_fleet || keys[i + 1].series != keys[i].series;

		if (!add_rows(pass, target, &keys[i], err) ||
		    (ends_series && !put_series(pass, target, keys[i].series, err)) ||
		    (ends_fleet && !put_fleet(pass, target, keys[i].fleet, err)))
			return false;
	}
	return true;
}

/* Types are numbered from 0, tenants from 1: before all of them is (0, anything). */
bool rollup_pass_samples(struct rollup_pass *pass, uint32_t first, uint32_t end, uint32_t to,
			 struct error *err)
{
	struct rollup_target target = {.bucket = to};

	while (rollup_pass_next_type(pass->types, &target, err))
		if (!rollup_pass_type(pass, &target, first, end, err))
			return false;
	return !err->kind;
}

void rollup_pass_release(struct rollup_pass *pass)
{
	sqlite3_stmt *const statements[] = {pass->types,         pass->keys,        pass->row,
					    pass->account_types, pass->accounts,    pass->put,
					    pass->put_accounts,  pass->get_accounts};

	for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
		sqlite3_finalize(statements[i]);
	sums_release(&pass->series);
	sums_release(&pass->fleet);
	free(pass->series_map);
	free(pass->stack_map);
	free(pass->string_map);
	free(pass->fleet_of);
	free(pass->keys_found);
	free(pass->pairs);
	free(pass->hosts);
	free(pass->accounts_found);
	free(pass->account_of);
	buffer_release(&pass->data);
	buffer_release(&pass->hosts_data);
}
