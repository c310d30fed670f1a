/* SPDX-License-Identifier: Apache-2.0 */
/* What there is in ClickHouse by day, and what of it goes. Whole partitions are dropped: several
 * servers may do that at once, and it costs nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/log.h"
#include "common/array.h"
#include "symbol-server/store/clickhouse/marks.h"
#include "symbol-server/store/clickhouse/parts.h"

enum { PARTITIONS_MAX = 64 << 10, NAME_MAX_BYTES = 64 };

struct partition {
	char table[NAME_MAX_BYTES], name[NAME_MAX_BYTES];
	uint32_t number; /* 20261121, 202611 */
	uint64_t bytes;
};

struct tidy_work {
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
	struct tidy_work *work = context;
	struct text table = row_text(row), name = row_text(row);
	uint64_t bytes = row_number(row, 8);
	struct partition *to;

	if (row->is_short)
		return true;
	work->is_full = work->count >= PARTITIONS_MAX ||
			!ARRAY_GROW(work->partitions, work->count, work->room);
	if (work->is_full)
		return false;
	to = &work->partitions[work->count++];
	copy_name(to->table, table);
	copy_name(to->name, name);
	to->number = (uint32_t)strtoul(to->name, NULL, 10);
	to->bytes = bytes;
	return true;
}

static bool read_partitions(struct tidy_work *work, struct error *err)
{
	const struct clickhouse_address *address = clickhouse_address(work->store->client);
	char sql[400], from[160] = "system.parts";

	if (*address->cluster)
		snprintf(from, sizeof from, "cluster('%s', system, parts)", address->cluster);
	snprintf(sql, sizeof sql,
		 "SELECT table, partition, sum(bytes_on_disk) FROM %s WHERE database = '%s' AND "
		 "active GROUP BY table, partition ORDER BY partition",
		 from, address->database);
	return clickhouse_ask(
		       work->store->client,
		       &(struct clickhouse_question){
			       .sql = sql, .row = keep_partition, .context = work, .total_s = 60},
		       err) &&
	       (!work->is_full ||
		error_set(err, ERROR_LIMIT, "ClickHouse has more than %d partitions",
			  PARTITIONS_MAX));
}

static bool is_of(const struct tidy_work *work, const struct partition *partition,
		  const char *table)
{
	size_t length = strlen(table);

	return !strncmp(partition->table, table, length) &&
	       !strcmp(partition->table + length, work->store->local);
}

static bool is_dated(const struct tidy_work *work, const struct partition *partition)
{
	return is_of(work, partition, "samples") || is_of(work, partition, "duplicates") ||
	       is_of(work, partition, "moments") || is_of(work, partition, "spans") ||
	       is_of(work, partition, "lifetimes") || is_of(work, partition, "rollups_10m") ||
	       is_of(work, partition, "rollups_1h") || is_of(work, partition, "late_samples");
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

static void note_days(struct tidy_work *work)
{
	struct clickhouse_samples *store = work->store;
	uint64_t bytes = 0, days = 0;
	int64_t oldest_ms = 0;

	pthread_mutex_lock(&store->lock);
	memset(store->days, 0, sizeof store->days);
	store->day_count = 0;
	for (size_t i = 0; i < work->count; i++) {
		const struct partition *partition = &work->partitions[i];
		const bool is_month = partition->number < 10000000;
		uint32_t day = day_of(is_month ? partition->number * 100 + 1 : partition->number);
		int64_t begin_ms = (int64_t)day * 86400000;

		bytes += partition->bytes;
		if (partition->bytes && day < DAY_NUMBERS && (!oldest_ms || begin_ms < oldest_ms))
			oldest_ms = begin_ms;
		days += is_of(work, partition, "samples") && partition->bytes;
		if (is_month || !partition->bytes || day >= DAY_NUMBERS ||
		    store->days[day / 8] & 1 << day % 8)
			continue;
		store->days[day / 8] |= (uint8_t)(1 << day % 8);
		store->day_count++;
	}
	store->counters.disk_bytes = bytes;
	store->counters.days = days;
	store->counters.oldest_ms = oldest_ms;
	pthread_mutex_unlock(&store->lock);
}

/* The newest days of samples, of all servers': a clock far after them is not believed at once. */
static void age(struct tidy_work *work, int64_t now_ms)
{
	struct clickhouse_samples *store = work->store;
	uint32_t days[AGING_DAYS];
	unsigned count = 0;
	int64_t newest_ms;

	for (size_t i = 0; i < work->count; i++) { /* rising, months among them */
		const struct partition *partition = &work->partitions[i];
		uint32_t day = day_of(partition->number);

		if (partition->number < 10000000 || !is_dated(work, partition) ||
		    (count && days[count - 1] == day))
			continue;
		if (count == AGING_DAYS)
			memmove(days, days + 1, --count * sizeof *days);
		days[count++] = day;
	}
	newest_ms = aging_newest_ms(days, count);
	aging_turn(&store->aging, newest_ms, now_ms);
	pthread_mutex_lock(&store->lock);
	store->counters.newest_ms = newest_ms;
	pthread_mutex_unlock(&store->lock);
}

/* --- what goes --- */

static bool drop(struct tidy_work *work, struct partition *partition, const char *why,
		 struct error *err)
{
	const struct clickhouse_address *address = clickhouse_address(work->store->client);
	char sql[400];

	snprintf(sql, sizeof sql, "ALTER TABLE %s%s%s DROP PARTITION %u", partition->table,
		 *address->cluster ? " ON CLUSTER " : "", address->cluster, partition->number);
	if (!clickhouse_run(work->store->client, sql, err))
		return false;
	log_info("partition dropped", "table=%s partition=%s bytes=%llu reason=\"%s\"",
		 partition->table, partition->name, (unsigned long long)partition->bytes, why);
	partition->bytes = 0;
	return true;
}

/* Minutes, ten minutes, hours each as long as they are to be kept; what they refer to when nothing
 * can any more. */
static enum samples_resolution resolution_of(const struct tidy_work *work,
					     const struct partition *partition)
{
	static const char *const minutes[] = {"samples", "duplicates", "reports",
					      "moments", "spans",      "lifetimes"};

	for (unsigned i = 0; i < sizeof minutes / sizeof *minutes; i++)
		if (is_of(work, partition, minutes[i]))
			return SAMPLES_RAW;
	return is_of(work, partition, "rollups_10m") ? SAMPLES_10M : SAMPLES_1H;
}

/* Whether sums stand for all of the day. */
static bool is_rolled_up(struct tidy_work *work, uint32_t number, bool *is, struct error *err)
{
	uint32_t start = day_of(number) * DAY_S;
	struct marks marks;

	if (!marks_read(work->store->client, start, start + DAY_S, &marks, err))
		return false;
	*is = marks.bucket_count == DAY_S / BUCKET_S && marks.hour_count == DAY_S / HOUR_S;
	for (size_t i = 0; i < marks.bucket_count; i++)
		*is &= mark_is_clean(&marks.buckets[i]);
	for (size_t i = 0; i < marks.hour_count; i++)
		*is &= mark_is_clean(&marks.hours[i]);
	marks_release(&marks);
	return true;
}

static int64_t spans_kept_ms(const struct clickhouse_samples *store, int64_t now_ms)
{
	int64_t from_ms = now_ms - aging_behind_ms(&store->aging) - store->trace_keep_ms;

	return from_ms > 0 ? from_ms : 0;
}

static bool drop_partition(struct tidy_work *work, struct partition *partition, int64_t now_ms,
			   struct error *err)
{
	enum samples_resolution resolution = resolution_of(work, partition);
	bool is_day = partition->number > 10000000, is_rolled = true;
	struct rollup_kept kept = clickhouse_kept(work->store, now_ms);
	int64_t from_ms = kept.from_ms[resolution];

	for (unsigned i = 0; resolution == SAMPLES_1H && i < SAMPLES_RESOLUTIONS; i++)
		if (kept.from_ms[i] < from_ms)
			from_ms = kept.from_ms[i];
	if (is_of(work, partition, "spans") &&
	    partition->number < day_number(spans_kept_ms(work->store, now_ms)))
		return drop(work, partition, "older than --trace-retention", err);
	if (!from_ms || partition->number >= (is_day ? day_number(from_ms) : month_of(from_ms)))
		return true;
	if (is_day && rollup_outlives_minutes(work->store->keep_ms) &&
	    !is_rolled_up(work, partition->number, &is_rolled, err))
		return false;
	return !is_rolled || drop(work, partition, "older than --retention", err);
}

static bool drop_old(struct tidy_work *work, int64_t now_ms, struct error *err)
{
	for (size_t i = 0; i < work->count; i++) {
		struct partition *partition = &work->partitions[i];

		if (partition->bytes && partition->number >= 100000 &&
		    !drop_partition(work, partition, now_ms, err))
			return false;
	}
	return true;
}

/* 20261121; of a month its 31st. */
static uint32_t last_day(const struct partition *partition)
{
	return partition->number > 10000000 ? partition->number : partition->number * 100 + 31;
}

static int compare_partitions(const void *a, const void *b)
{
	uint32_t x = last_day(a), y = last_day(b);

	return (x > y) - (x < y);
}

/* The oldest day of samples first; never the last one. */
static bool drop_too_much(struct tidy_work *work, struct error *err)
{
	uint64_t most = work->store->max_disk_bytes, bytes = 0;
	uint32_t newest = 0;

	if (work->count)
		qsort(work->partitions, work->count, sizeof *work->partitions, compare_partitions);
	for (size_t i = 0; i < work->count; i++) {
		bytes += work->partitions[i].bytes;
		if (is_dated(work, &work->partitions[i]) && last_day(&work->partitions[i]) > newest)
			newest = last_day(&work->partitions[i]);
	}
	for (size_t i = 0; most && bytes > most && i < work->count; i++) {
		struct partition *partition = &work->partitions[i]; /* oldest first */
		uint64_t size = partition->bytes;

		if (!size || !is_dated(work, partition) || last_day(partition) >= newest)
			continue;
		if (!drop(work, partition, "more than --max-disk", err))
			return false;
		bytes -= size;
	}
	return true;
}

bool clickhouse_tidy(struct clickhouse_samples *store, int64_t now_ms, struct error *err)
{
	struct tidy_work work = {.store = store};
	bool ok = read_partitions(&work, err);

	if (ok)
		age(&work, now_ms);
	ok = ok && drop_old(&work, now_ms, err) && drop_too_much(&work, err);
	if (ok)
		note_days(&work);
	free(work.partitions);
	return ok;
}

/* Once a minute, and once it was said what there is; then sums are made. */
static void turn(struct clickhouse_samples *store, int64_t *tidied_ms, bool *is_done)
{
	int64_t now_ms = clickhouse_now_ms();
	struct error err = {0};
	bool ok = true;

	if (now_ms - *tidied_ms >= TIDY_INTERVAL_MS || now_ms < *tidied_ms) {
		ok = clickhouse_tidy(store, now_ms, &err);
		*tidied_ms = now_ms;
	}
	if (ok && !clickhouse_rollup_turn(store, now_ms, is_done, &err))
		ok = false;
	*is_done |= !ok;
	pthread_mutex_lock(&store->lock);
	if (!ok && !store->is_closing && !store->is_away)
		log_warn("old samples stay, or sums are not made", "reason=\"%s\"", err.message);
	pthread_mutex_unlock(&store->lock);
}

void *tidy_thread(void *context)
{
	struct clickhouse_samples *store = context;
	int64_t tidied_ms = 0;

	pthread_mutex_lock(&store->lock);
	while (!store->is_closing) {
		struct timespec until;
		bool is_done = true;

		pthread_mutex_unlock(&store->lock);
		turn(store, &tidied_ms, &is_done);
		pthread_mutex_lock(&store->lock);
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += is_done ? ROLLUP_INTERVAL_MS / 1000 : 0;
		if (!store->is_closing && is_done)
			pthread_cond_timedwait(&store->tidy_wake, &store->lock, &until);
	}
	pthread_mutex_unlock(&store->lock);
	return NULL;
}
