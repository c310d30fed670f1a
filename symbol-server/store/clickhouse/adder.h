/* SPDX-License-Identifier: Apache-2.0 */
/* One clickhouse_samples_add() under way: what its three files share. add.c puts profiles,
 * add_definitions.c what they refer to, add_counters.c what agents say of themselves, all into the
 * open group. Of this folder only. */
#ifndef SYMBOL_SERVER_STORE_CLICKHOUSE_ADDER_H
#define SYMBOL_SERVER_STORE_CLICKHOUSE_ADDER_H

#include "symbol-server/store/clickhouse/parts.h"
#include "symbol-server/store/rules/repeats.h"

struct adder {
	struct clickhouse_samples *store;
	struct row_group *group;
	const struct sample_batch *batch;
	uint32_t month; /* of the profile under way */
	struct arena arena;
	uint64_t *locations; /* hashes; 0: not yet made */
	struct repeats repeats;
	uint32_t *order; /* of a profile's samples */
};

/* Where what is of that time goes: minutes so old are about to go, or gone. */
static inline bool adder_is_late(const struct adder *adder, uint32_t minute)
{
	int64_t from_ms = clickhouse_kept(adder->store, clickhouse_now_ms()).from_ms[SAMPLES_RAW];
	uint32_t day_end = minute / 86400 * 86400 + 86400;

	return rollup_outlives_minutes(adder->store->keep_ms) && from_ms &&
	       day_end < from_ms / 1000 + LATE_MARGIN_S;
}

static inline void adder_note_bucket(struct adder *adder, uint32_t minute)
{
	if (minute >= 600)
		id_set_add(&adder->group->buckets, minute / 600);
}

static inline uint32_t adder_minute(int64_t time_ms)
{
	int64_t seconds = time_ms > 0 ? time_ms / SAMPLES_BUCKET_MS * 60 : 0;

	return seconds > UINT32_MAX - 59 ? UINT32_MAX / 60 * 60 : (uint32_t)seconds;
}

/* What stands in column threads. */
static inline struct text adder_context(const struct batch_sample *sample)
{
	return sample->context.length ? sample->context : sample->thread;
}

/* Ids that are the same on every server; rows of what the store has not met yet go into the
 * group. */
uint64_t adder_define_stack(struct adder *adder, uint32_t number);
uint64_t adder_define_series(struct adder *adder, uint32_t number);
/* What the profile's contexts tell of processes. */
void adder_define_lifetimes(struct adder *adder, const struct batch_profile *profile);
/* The one series of all that are beyond a host's share. */
uint64_t adder_define_other(struct adder *adder, const struct batch_series *series);
/* What stands for samples of a host that are not stored. lost_by: why; NULL: "series_limit". */
uint64_t adder_define_host(struct adder *adder, const struct batch_series *series,
			   const char *lost_by);
uint64_t adder_series_id(const struct batch_series *series);

/* Times and spans of a profile's samples; key: what columns tenant to id have of it. */
void adder_put_singles(struct adder *adder, const struct batch_profile *profile, const uint8_t *key,
		       size_t key_length);
void adder_put_counters(struct adder *adder, const struct batch_counters *counters);
/* For /metrics: how stack walks ended and what was lost, as agents told this server. */
void adder_count_report(struct adder *adder, const struct batch_counters *counters);

#endif
