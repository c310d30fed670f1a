/* SPDX-License-Identifier: Apache-2.0 */
/* samples_add(): a decoded batch → rows in the open group. */
#include "symbol-server/store/clickhouse/adder.h"
#include "symbol-server/store/rules/overload.h"
#include "symbol-server/store/rules/series_labels.h"
#include "symbol-server/store/rules/series_limit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"

static bool adder_init(struct adder *adder, struct clickhouse_samples *store,
		       const struct sample_batch *batch)
{
	*adder = (struct adder){.store = store, .batch = batch};
	arena_init(&adder->arena, 64 << 20);
	adder->locations = arena_array(&adder->arena, batch->location_count, 8);
	repeats_init(&adder->repeats, batch, arena_alloc(&adder->arena, batch->profile_count));
	adder->order = arena_array(&adder->arena, batch->sample_count, 4);
	return !adder->arena.failed;
}

/* --- the limit of series --- */

static struct series_day *series_day_of(struct clickhouse_samples *store, uint32_t tenant,
					uint32_t day)
{
	unsigned i = 0;

	while (i < store->series_day_count &&
	       (store->series_days[i].tenant != tenant || store->series_days[i].day != day))
		i++;
	if (i == SERIES_DAYS || store->series_met.count > KNOWN_IDS_MAX) {
		id_set_clear(&store->series_met);
		sender_shares_release(&store->series_hosts);
		store->series_day_count = i = 0;
	}
	if (i == store->series_day_count)
		store->series_days[store->series_day_count++] =
			(struct series_day){.tenant = tenant, .day = day};
	return &store->series_days[i];
}

/* Counts what this server met since it was started: several servers let in so many each. */
static enum series_verdict take_series(struct adder *adder, uint64_t id,
				       const struct batch_series *series, uint32_t day)
{
	struct clickhouse_samples *store = adder->store;
	struct series_day *counted = series_day_of(store, adder->batch->tenant, day);
	struct text name = series_host(series);
	uint64_t key = hash_word(hash_word(id, day), adder->batch->tenant);
	uint64_t host = hash_word(hash_bytes(name.at, name.length, adder->batch->tenant), day);
	uint64_t other = hash_word(host, 0x6f74686572);
	bool is_known = id_set_has(&store->series_met, key);
	enum series_verdict verdict = series_limit_judge(&(struct series_asked){
		.is_known = is_known,
		.is_other_known = id_set_has(&store->series_met, other),
		.host = sender_shares_used(&store->series_hosts, host),
		.all = counted->count,
		.most = store->series_max,
	});

	if (verdict != SERIES_REFUSED)
		counted->count += id_set_add(&store->series_met,
					     verdict == SERIES_OWN ? key : other);
	if (verdict == SERIES_OWN && !is_known)
		sender_shares_add(&store->series_hosts, host, 1);
	return verdict;
}

static void tell_folded(struct adder *adder, uint64_t samples)
{
	adder->store->counters.series_folded_profiles++;
	adder->store->counters.series_folded_samples += samples;
	log_fault_write(&adder->store->series_folded, samples, LOG_WARN,
			"series of a host that has its share are one", "limit=%u",
			adder->store->series_max);
}

static void tell_refused(struct adder *adder, uint64_t samples)
{
	adder->store->counters.series_refused_profiles++;
	adder->store->counters.series_refused_samples += samples;
	series_limit_tell(adder->batch->refusals, adder->store->series_max);
}

/* --- profiles --- */

static int compare_texts(struct text a, struct text b)
{
	uint32_t length = a.length < b.length ? a.length : b.length;
	int order = a.at == b.at || !length ? 0 : memcmp(a.at, b.at, length);

	return order ? order : (a.length > b.length) - (a.length < b.length);
}

/* By context, then stack: neighbouring rows then have the same runs, which packs well. */
static int compare_samples(const void *a, const void *b, void *context)
{
	const struct sample_batch *batch = context;
	const struct batch_sample *x = &batch->samples[*(const uint32_t *)a];
	const struct batch_sample *y = &batch->samples[*(const uint32_t *)b];
	uint64_t p = batch->stacks[x->stack].hash[0], q = batch->stacks[y->stack].hash[0];
	int order = compare_texts(adder_context(x), adder_context(y));

	return order ? order : (p > q) - (p < q);
}

static void put_no_arrays(struct buffer *out)
{
	for (unsigned i = 0; i < 4; i++)
		buffer_append_varint(out, 0);
}

static void put_arrays(struct adder *adder, uint32_t count, struct buffer *out)
{
	const struct sample_batch *batch = adder->batch;

	buffer_append_varint(out, count);
	for (uint32_t i = 0; i < count; i++)
		row_put_u64(out, adder_define_stack(adder, batch->samples[adder->order[i]].stack));
	buffer_append_varint(out, count);
	for (uint32_t i = 0; i < count; i++)
		row_put_text(out, adder_context(&batch->samples[adder->order[i]]));
	buffer_append_varint(out, count);
	for (uint32_t i = 0; i < count; i++)
		row_put_u64(out, batch->samples[adder->order[i]].samples);
	buffer_append_varint(out, count);
	for (uint32_t i = 0; i < count; i++)
		row_put_u64(out, batch->samples[adder->order[i]].value);
}

static void put_key(const struct adder *adder, const struct batch_profile *profile, uint8_t type,
		    uint64_t series, struct buffer *out)
{
	uint32_t minute = adder_minute(profile->time_ms);
	uint64_t id[2];

	memcpy(id, profile->id, sizeof id);
	if (!profile_has_id(profile)) {
		id[0] = adder->store->random[0];
		id[1] = adder->store->random[1]++;
	}
	row_put_u32(out, adder->batch->tenant);
	row_put_u8(out, type);
	row_put_u32(out, minute / 3600 * 3600);
	row_put_u64(out, series);
	row_put_u32(out, minute);
	buffer_append(out, id, sizeof id);
}

static void put_profile(struct adder *adder, const struct batch_profile *profile)
{
	uint32_t minute = adder_minute(profile->time_ms);
	bool late = adder_is_late(adder, minute);
	struct buffer *out = &adder->group->tables[late ? GROUP_LATE_SAMPLES : GROUP_SAMPLES];
	size_t key = out->length;
	uint8_t type = (uint8_t)profile_type_find(profile->type, strlen(profile->type));
	uint64_t series = adder_series_id(&adder->batch->series[profile->series]);
	enum series_verdict taken =
		take_series(adder, series, &adder->batch->series[profile->series], minute / 86400);
	bool is_taken = taken != SERIES_REFUSED;
	uint64_t samples = 0, value = 0;

	if (month_of(minute * 1000ll) != adder->month) /* every month has its own definitions */
		memset(adder->locations, 0, adder->batch->location_count * sizeof(uint64_t));
	adder->month = month_of(minute * 1000ll);
	series = taken == SERIES_OWN ? adder_define_series(adder, profile->series)
		 : is_taken
			 ? adder_define_other(adder, &adder->batch->series[profile->series])
			 : adder_define_host(adder, &adder->batch->series[profile->series], NULL);
	for (uint32_t i = 0; i < profile->sample_count; i++) {
		const struct batch_sample *sample =
			&adder->batch->samples[profile->first_sample + i];

		adder->order[i] = profile->first_sample + i;
		samples += sample->samples;
		value += sample->value;
	}
	qsort_r(adder->order, profile->sample_count, sizeof *adder->order, compare_samples,
		(void *)adder->batch);
	if (profile_has_id(profile) && !late)
		put_key(adder, profile, type, series, &adder->group->ids);
	put_key(adder, profile, type, series, out);
	if (is_taken && !late && !out->failed)
		adder_put_singles(adder, profile, out->bytes + key, out->length - key);
	if (!late)
		adder_note_bucket(adder, minute);
	row_put_u8(out, profile->is_counted);
	row_put_u64(out, is_taken ? samples : 0);
	row_put_u64(out, is_taken ? value : 0);
	row_put_u64(out, 0);
	row_put_u64(out, is_taken ? 0 : samples);
	if (is_taken) {
		adder_define_lifetimes(adder, profile);
		put_arrays(adder, profile->sample_count, out);
	} else {
		put_no_arrays(out);
		tell_refused(adder, samples);
		samples = 0;
	}
	if (taken == SERIES_OTHER)
		tell_folded(adder, samples);
	adder->group->profiles++;
	adder->group->samples += samples;
	if (minute < adder->group->first_minute)
		adder->group->first_minute = minute;
	if (minute > adder->group->last_minute)
		adder->group->last_minute = minute;
}

/* Counted as lost when it came: the day of its own time may be gone. */
static void put_untimely(struct adder *adder, const struct batch_untimely *untimely)
{
	const struct batch_profile when = {.time_ms = untimely->received_ms};
	struct buffer *out = &adder->group->tables[GROUP_SAMPLES];
	uint32_t minute = adder_minute(untimely->received_ms);
	uint8_t type = (uint8_t)profile_type_find(untimely->type, strlen(untimely->type));

	adder->month = month_of(minute * 1000ll);
	put_key(adder, &when, type,
		adder_define_host(adder, &adder->batch->series[untimely->series], untimely->reason),
		out);
	row_put_u8(out, 0);
	row_put_u64(out, 0);
	row_put_u64(out, 0);
	row_put_u64(out, 0);
	row_put_u64(out, untimely->samples);
	put_no_arrays(out);
	adder_note_bucket(adder, minute);
}

/* --- days --- */

/* The day of the time among the group's, and among those there are partitions of: with every day
 * come parts in every table, and a sender may send any time. */
static bool add_day(struct adder *adder, int64_t time_ms, struct error *err)
{
	uint32_t day = adder_minute(time_ms) / 86400;
	struct clickhouse_samples *store = adder->store;
	struct row_group *group = adder->group;
	unsigned i = 0;

	while (i < group->day_count && group->days[i] != day)
		i++;
	if (i < group->day_count)
		return true;
	if (group->day_count == GROUP_DAYS_MAX)
		return error_set(err, group->pending.count ? ERROR_BUSY : ERROR_LIMIT,
				 "reports of more than %d days at a time", GROUP_DAYS_MAX);
	if (!(store->days[day / 8] & 1 << day % 8)) {
		if (store->day_count >= DAYS_MAX)
			return error_set(err, ERROR_LIMIT, "there are samples of %d days already",
					 DAYS_MAX);
		store->days[day / 8] |= (uint8_t)(1 << day % 8);
		store->day_count++;
	}
	group->days[group->day_count++] = day;
	return true;
}

static bool add_days(struct adder *adder, struct error *err)
{
	const struct sample_batch *batch = adder->batch;

	for (uint32_t i = 0; i < batch->profile_count; i++)
		if (!add_day(adder, batch->profiles[i].time_ms, err))
			return false;
	for (uint32_t i = 0; i < batch->counters_count; i++)
		if (!add_day(adder, batch->counters[i].numbers.time_ms, err))
			return false;
	for (uint32_t i = 0; i < batch->untimely_count; i++)
		if (!add_day(adder, batch->untimely[i].received_ms, err))
			return false;
	return true;
}

/* --- the batch --- */

static bool is_overloaded(const struct clickhouse_samples *store, struct error *err)
{
	struct error away = {0};

	if (store->is_away)
		error_set(&away, ERROR_BUSY, "%s", store->why.message);
	return store_is_overloaded(
		&(struct store_load){
			.is_closing = store->is_closing,
			.refused = &away,
			.waiting = row_group_bytes(store->group),
			.most_waiting = GROUP_BYTES_MAX,
			.waiting_for = "for ClickHouse",
		},
		err);
}

static bool types_are_known(const struct sample_batch *batch, struct error *err)
{
	for (uint32_t i = 0; i < batch->profile_count; i++) {
		const char *type = batch->profiles[i].type;

		if (profile_type_find(type, strlen(type)) < 0)
			return error_set(err, ERROR_FORMAT, "'%s' is not a profile type", type);
		if (batch->series[batch->profiles[i].series].label_count > SAMPLES_LABELS_MAX)
			return error_set(err, ERROR_LIMIT, "a series has more than %d labels",
					 SAMPLES_LABELS_MAX);
	}
	return true;
}

static bool group_failed(const struct row_group *group)
{
	bool failed = group->ids.failed || group->late.failed;

	for (unsigned i = 0; i < GROUP_TABLES; i++)
		failed |= group->tables[i].failed;
	return failed;
}

static bool add_locked(struct adder *adder, samples_done_fn *done, void *context, struct error *err)
{
	struct clickhouse_samples *store = adder->store;
	const struct sample_batch *batch = adder->batch;

	adder->group = store->group;
	if (is_overloaded(store, err) || !types_are_known(batch, err) ||
	    !repeats_find(&adder->repeats, &store->window, store->committed, err) ||
	    !add_days(adder, err))
		return false;
	if (!pending_reports_add(&adder->group->pending, done, context))
		return error_set(err, ERROR_MEMORY, "no memory to record a report");
	for (uint32_t i = 0; i < batch->profile_count; i++)
		if (!adder->repeats.is_repeated[i])
			put_profile(adder, &batch->profiles[i]);
	for (uint32_t i = 0; i < batch->untimely_count; i++)
		if (!untimely_ids_have(&store->untimely, &batch->untimely[i]))
			put_untimely(adder, &batch->untimely[i]);
	untimely_ids_note(&store->untimely, batch);
	for (uint32_t i = 0; i < batch->counters_count; i++) {
		adder_put_counters(adder, &batch->counters[i]);
		adder_count_report(adder, &batch->counters[i]);
	}
	if (adder->group->pending.count == 1)
		adder->group->begin_ms = clickhouse_now_ms();
	store->counters.duplicates += adder->repeats.count;
	/* A group that is not whole is not sent: the insert thread asks the same. */
	if (!repeats_remember(&adder->repeats, &store->window, adder->group->number) ||
	    group_failed(adder->group))
		adder->group->tables[GROUP_SAMPLES].failed = true;
	return true;
}

bool clickhouse_samples_add(struct samples_store *base, const struct sample_batch *batch,
			    samples_done_fn *done, void *context, unsigned *duplicates,
			    struct error *err)
{
	struct clickhouse_samples *store = clickhouse_samples_of(base);
	struct error why = {0};
	struct adder adder;
	bool ok = adder_init(&adder, store, batch);

	if (!ok) {
		error_set(&why, ERROR_MEMORY, "no memory to record a report");
	} else {
		pthread_mutex_lock(&store->lock);
		ok = add_locked(&adder, done, context, &why);
		store->counters.refused_busy += why.kind == ERROR_BUSY;
		if (ok)
			pthread_cond_signal(&store->insert_wake);
		pthread_mutex_unlock(&store->lock);
	}
	if (duplicates)
		*duplicates = adder.repeats.count;
	arena_release(&adder.arena);
	repeats_release(&adder.repeats);
	if (!ok && err)
		*err = why;
	return ok;
}
