/* SPDX-License-Identifier: Apache-2.0 */
/* Adding up: minutes of a day to ten minutes in the same file. What a roll-up stands for is in the
 * same transaction as its rows, so that a crash anywhere leaves each sample in exactly one of the
 * two. Of this folder only. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_ROLLUP_H
#define SYMBOL_SERVER_STORE_SQLITE_ROLLUP_H

#include "symbol-server/store/sqlite/samples_store.h"

enum {
	ROLLUP_BUCKET_MS = ROLLUP_MINUTES * SAMPLES_BUCKET_MS,
	hour_ms = 3600000,
	ROLLUP_CLOSED_MS = 60000,      /* a bucket is rolled up when its end is so long ago */
	ROLLUP_LATE_PAUSE_MS = 300000, /* late samples of a day are collected so long */
	ROLLUP_SLICE_MS = 2000,        /* of one turn of the fold thread */
	ROLLUP_RETRY_MS = 60000,
};

/* Whether the label names one instance of many alike; fleet series are without those. */
bool rollup_drops_label(const char *name);

/* Adding up one stack's counts at a time; stacks come out in rising order. */
struct rollup_sums {
	struct rollup_sum {
		uint64_t samples, value;
	} * at;                   /* by stack */
	uint64_t *touched;        /* a bit per stack */
	uint32_t room, low, high; /* words of touched from low below high have bits */
};
bool rollup_sums_init(struct rollup_sums *sums, uint32_t stacks);
void rollup_sums_release(struct rollup_sums *sums);
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
struct rolling {
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
	bool is_full;
};

/* What there is from minute first below end goes to the bucket "to". */
bool rolling_samples(struct rolling *rolling, uint32_t first, uint32_t end, uint32_t to,
		     struct error *err);
bool rolling_accounts(struct rolling *rolling, uint32_t first, uint32_t end, uint32_t to,
		      struct error *err);
/* With what the dictionary got meanwhile. */
bool rolling_commit(struct rolling *rolling, struct day_writer *writer, struct error *err);
void rolling_release(struct rolling *rolling);

/* The ten-minute roll-ups of what is closed of one day, newest fold included, until until_ms. The
 * files are locked, of the fold thread. *is_done: nothing is left to do now. */
bool rollup_day(struct sqlite_samples *store, struct day *day, int64_t now_ms, int64_t until_ms,
		bool *is_done, struct error *err);

/* A turn of the fold thread: days that need it, the newest first, for ROLLUP_SLICE_MS. */
void rollup_turn(struct sqlite_samples *store, int64_t now_ms);

#endif
