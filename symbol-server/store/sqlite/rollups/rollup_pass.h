/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of one table added up into roll-ups of another or the same: what its three files share. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_ROLLUPS_ROLLUP_PASS_H
#define SYMBOL_SERVER_STORE_SQLITE_ROLLUPS_ROLLUP_PASS_H

#include "symbol-server/store/sqlite/rollups/rollup.h"

/* Adding up one stack's counts at a time; stacks come out in rising order. */
struct rollup_sums {
	struct rollup_sum {
		uint64_t samples, value;
	} * at;                   /* by stack */
	uint64_t *touched;        /* a bit per stack */
	uint32_t room, low, high; /* words of touched from low below high have bits */
};

static inline void rollup_sums_add(struct rollup_sums *sums, uint32_t stack, uint64_t samples,
				   uint64_t value)
{
	uint32_t word = stack / 64;

	sums->at[stack].samples += samples;
	sums->at[stack].value += value;
	sums->touched[word] |= UINT64_C(1) << stack % 64;
	if (word < sums->low)
		sums->low = word;
	if (word >= sums->high)
		sums->high = word + 1;
}

/* Rows of one table of one file, added up into roll-ups of another or the same. */
struct rollup_pass {
	struct sqlite_samples *store;
	struct day *day;            /* of the rows */
	const struct catalog *from; /* what the rows refer to */
	struct catalog *to;         /* what the roll-ups refer to */
	struct catalog_mark mark;   /* of from: greater numbers are damage */
	/* from's numbers → to's, 0: not met yet. NULL: the same numbers. */
	uint32_t *series_map, *stack_map, *string_map;
	uint32_t *fleet_of; /* to's series without labels of instances, by from's series */
	sqlite3_stmt *types, *keys, *row, *account_types, *accounts; /* read */
	sqlite3_stmt *put, *put_accounts, *get_accounts;             /* write */
	enum day_level level, account_level;
	struct rollup_sums series, fleet;
	struct rollup_key {
		uint32_t fleet, series, from, bucket;
	} * keys_found;
	size_t key_count, key_capacity;
	struct packed_pair *pairs;
	size_t pair_capacity;
	uint32_t *hosts;
	size_t host_count, host_capacity;
	struct packed_account *accounts_found;
	size_t account_count, account_capacity;
	uint32_t *account_of; /* index + 1, by to's string */
	uint32_t account_room;
	struct buffer data, hosts_data;
	uint64_t above, through;   /* folds */
	uint64_t pairs_read, rows; /* of this transaction */
	bool is_full, only_fleet;  /* only_fleet: no rows of whole series are written */
};

struct rollup_target { /* of the rows that are written; types are numbered from 0, tenants from 1
			*/
	uint32_t tenant, type, bucket;
};

/* Reads the samples and accounts of one file's minutes (DAY_RAW) or roll-ups of the level, with a
 * fold after pass->above, or of that fold only; writes roll-ups of another or the same. */
bool rollup_pass_prepare(struct rollup_pass *pass, sqlite3 *from, enum day_level level,
			 bool of_fold, sqlite3 *to, struct error *err);

/* ---- what rows refer to (rollup_copies.c) ---- */

/* The series in "to", with all labels and without those of instances. False: no room. */
bool rollup_pass_series(struct rollup_pass *pass, uint32_t from, uint32_t *series, uint32_t *fleet);
uint32_t rollup_pass_stack(struct rollup_pass *pass, uint32_t number);
uint32_t rollup_pass_string(struct rollup_pass *pass, uint32_t from);

/* ---- adding up ---- */

/* The next (tenant, type) that the table has at all. False: none, or an error. */
bool rollup_pass_next_type(sqlite3_stmt *types, struct rollup_target *target, struct error *err);
/* What there is from minute first below end goes to the bucket "to". */
bool rollup_pass_type(struct rollup_pass *pass, const struct rollup_target *target, uint32_t first,
		      uint32_t end, struct error *err);
/* The same of all tenants and types. */
bool rollup_pass_samples(struct rollup_pass *pass, uint32_t first, uint32_t end, uint32_t to,
			 struct error *err);
bool rollup_pass_accounts(struct rollup_pass *pass, uint32_t first, uint32_t end, uint32_t to,
			  struct error *err);
/* Buffers, and room for sums of so many stacks. */
bool rollup_pass_make_room(struct rollup_pass *pass, uint32_t stacks, struct error *err);
/* With what the dictionary got meanwhile. */
bool rollup_pass_commit(struct rollup_pass *pass, struct day_writer *writer, struct error *err);
void rollup_pass_release(struct rollup_pass *pass);

#endif
