/* SPDX-License-Identifier: Apache-2.0 */
/* What there is in ClickHouse by day, and what of it goes. Whole partitions are dropped: several
 * servers may do that at once, and it costs nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/log.h"
#include "symbol-server/store/clickhouse/samples_store.h"

enum { PARTITIONS_MAX = 64 << 10, NAME_MAX_BYTES = 64 };

struct partition {
	char table[NAME_MAX_BYTES], name[NAME_MAX_BYTES];
	uint32_t number; /* 20261121, 202611 */
	uint64_t bytes;
};

struct tidying {
	struct clickhouse_samples *store;
	struct partition *partitions;
	size_t count, room;
	bool is_full;
};

static void copy_name(char to[NAME_MAX_BYTES], struct text from)
{
	snprintf(to, NAME_MAX_BYTES, "%.*s", (int)from.length, from.at);
}

static bool keep_partition(void *context, struct row_reader *row)
{
	struct tidying *tidying = context;
	struct text table = row_text(row), name = row_text(row);
	uint64_t bytes = row_number(row, 8);
	struct partition *to;

	if (row->is_short)
		return true;
	if (tidying->count == tidying->room) {
		size_t larger = tidying->room ? tidying->room * 2 : 64;
		void *copy = realloc(tidying->partitions, larger * sizeof *to);

		tidying->is_full = !copy || larger > PARTITIONS_MAX;
		if (copy)
			tidying->partitions = copy;
		if (tidying->is_full)
			return false;
		tidying->room = larger;
	}
	to = &tidying->partitions[tidying->count++];
	copy_name(to->table, table);
	copy_name(to->name, name);
	to->number = (uint32_t)strtoul(to->name, NULL, 10);
	to->bytes = bytes;
	return true;
}

static bool read_partitions(struct tidying *tidying, struct error *err)
{
	const struct clickhouse_address *address = clickhouse_address(tidying->store->client);
	char sql[400], from[160] = "system.parts";

	if (*address->cluster)
		snprintf(from, sizeof from, "cluster('%s', system, parts)", address->cluster);
	snprintf(sql, sizeof sql,
		 "SELECT table, partition, sum(bytes_on_disk) FROM %s WHERE database = '%s' AND "
		 "active GROUP BY table, partition ORDER BY partition",
		 from, address->database);
	return clickhouse_ask(tidying->store->client,
			      &(struct clickhouse_question){.sql = sql,
							    .row = keep_partition,
							    .context = tidying,
							    .total_s = 60},
			      err) &&
	       (!tidying->is_full ||
		error_set(err, ERROR_LIMIT, "ClickHouse has more than %d partitions",
			  PARTITIONS_MAX));
}

static bool is_of(const struct tidying *tidying, const struct partition *partition,
		  const char *table)
{
	size_t length = strlen(table);

	return !strncmp(partition->table, table, length) &&
	       !strcmp(partition->table + length, tidying->store->local);
}

static bool is_dated(const struct tidying *tidying, const struct partition *partition)
{
	return is_of(tidying, partition, "samples") || is_of(tidying, partition, "duplicates");
}

static uint32_t day_number(int64_t time_ms)
{
	time_t seconds = (time_t)(time_ms / 1000);
	struct tm tm;

	gmtime_r(&seconds, &tm);
	return (uint32_t)((tm.tm_year + 1900) * 10000 + (tm.tm_mon + 1) * 100 + tm.tm_mday);
}

/* --- what there is --- */

/* Days since 1970 of 20261121. */
static uint32_t day_of(uint32_t number)
{
	struct tm tm = {.tm_year = (int)(number / 10000) - 1900,
			.tm_mon = (int)(number / 100 % 100) - 1,
			.tm_mday = (int)(number % 100)};

	return (uint32_t)(timegm(&tm) / 86400);
}

static void note_days(struct tidying *tidying)
{
	struct clickhouse_samples *store = tidying->store;
	uint64_t bytes = 0, days = 0;

	pthread_mutex_lock(&store->lock);
	memset(store->days, 0, sizeof store->days);
	store->day_count = 0;
	for (size_t i = 0; i < tidying->count; i++) {
		const struct partition *partition = &tidying->partitions[i];
		uint32_t day = day_of(partition->number);

		bytes += partition->bytes;
		days += is_of(tidying, partition, "samples") && partition->bytes;
		if (partition->number < 10000000 || !partition->bytes || day >= DAY_NUMBERS ||
		    store->days[day / 8] & 1 << day % 8)
			continue;
		store->days[day / 8] |= (uint8_t)(1 << day % 8);
		store->day_count++;
	}
	store->counters.disk_bytes = bytes;
	store->counters.days = days;
	pthread_mutex_unlock(&store->lock);
}

/* --- what goes --- */

static bool drop(struct tidying *tidying, struct partition *partition, const char *why,
		 struct error *err)
{
	const struct clickhouse_address *address = clickhouse_address(tidying->store->client);
	char sql[400];

	snprintf(sql, sizeof sql, "ALTER TABLE %s%s%s DROP PARTITION %u", partition->table,
		 *address->cluster ? " ON CLUSTER " : "", address->cluster, partition->number);
	if (!clickhouse_run(tidying->store->client, sql, err))
		return false;
	log_info("partition dropped", "table=%s partition=%s bytes=%llu reason=\"%s\"",
		 partition->table, partition->name, (unsigned long long)partition->bytes, why);
	partition->bytes = 0;
	return true;
}

/* Samples by their own time; what they and their accounts refer to when nothing can any more. */
static bool drop_old(struct tidying *tidying, int64_t now_ms, struct error *err)
{
	const int64_t *keep_ms = tidying->store->keep_ms;
	int64_t longest = keep_ms[SAMPLES_RAW];
	uint32_t oldest, oldest_month;

	if (!keep_ms[SAMPLES_RAW] || keep_ms[SAMPLES_RAW] > now_ms)
		return true;
	oldest = day_number(now_ms - longest);
	oldest_month = month_of(now_ms - longest);
	for (size_t i = 0; i < tidying->count; i++) {
		struct partition *partition = &tidying->partitions[i];
		bool is_day = partition->number > 10000000;

		if (!partition->bytes || partition->number < 100000 ||
		    partition->number >= (is_day ? oldest : oldest_month))
			continue;
		if (!drop(tidying, partition, "older than --retention", err))
			return false;
	}
	return true;
}

/* The oldest day of samples first; never the last one. */
static bool drop_too_much(struct tidying *tidying, struct error *err)
{
	uint64_t most = tidying->store->max_disk_bytes, bytes = 0;
	uint32_t newest = 0;

	for (size_t i = 0; i < tidying->count; i++) {
		bytes += tidying->partitions[i].bytes;
		if (is_dated(tidying, &tidying->partitions[i]) &&
		    tidying->partitions[i].number > newest)
			newest = tidying->partitions[i].number;
	}
	for (size_t i = 0; most && bytes > most && i < tidying->count; i++) {
		struct partition *partition = &tidying->partitions[i]; /* oldest first */
		uint64_t size = partition->bytes;

		if (!size || !is_dated(tidying, partition) || partition->number == newest)
			continue;
		if (!drop(tidying, partition, "more than --max-disk", err))
			return false;
		bytes -= size;
	}
	return true;
}

bool tidy(struct clickhouse_samples *store, int64_t now_ms, struct error *err)
{
	struct tidying tidying = {.store = store};
	bool ok = read_partitions(&tidying, err) && drop_old(&tidying, now_ms, err) &&
		  drop_too_much(&tidying, err);

	if (ok)
		note_days(&tidying);
	free(tidying.partitions);
	return ok;
}

void *tidy_thread(void *context)
{
	struct clickhouse_samples *store = context;

	pthread_mutex_lock(&store->lock);
	while (!store->is_closing) {
		struct error err = {0};
		struct timespec until;
		bool ok;

		pthread_mutex_unlock(&store->lock);
		ok = tidy(store, clickhouse_now_ms(), &err);
		pthread_mutex_lock(&store->lock);
		if (!ok && !store->is_closing && !store->is_away)
			log_warn("old samples stay", "reason=\"%s\"", err.message);
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += TIDY_INTERVAL_MS / 1000;
		if (!store->is_closing)
			pthread_cond_timedwait(&store->tidy_wake, &store->lock, &until);
	}
	pthread_mutex_unlock(&store->lock);
	return NULL;
}
