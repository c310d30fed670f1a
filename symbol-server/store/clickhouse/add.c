/* SPDX-License-Identifier: Apache-2.0 */
/* samples_add(): a decoded batch → rows in the open group. */
#include "symbol-server/store/clickhouse/parts.h"
#include "symbol-server/store/moments.h"
#include "symbol-server/store/series_labels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct adder {
	struct clickhouse_samples *store;
	struct row_group *group;
	const struct sample_batch *batch;
	uint32_t month; /* of the profile under way */
	struct arena arena;
	uint64_t *locations; /* hashes; 0: not yet made */
	bool *is_repeated;
	uint32_t *order;       /* of a profile's samples */
	struct hash_table ids; /* of this batch's profiles */
	uint64_t own_samples;
	unsigned duplicates;
};

static uint64_t text_hash(uint64_t hash, struct text text)
{
	return hash_word(hash, hash_bytes(text.at, text.length, 0));
}

static bool has_id(const struct batch_profile *profile)
{
	static const uint8_t none[16];

	return memcmp(profile->id, none, sizeof none);
}

/* Where what is of that time goes: minutes so old are about to go, or gone. */
static bool is_late(const struct adder *adder, uint32_t minute)
{
	int64_t from_ms = clickhouse_kept_from_ms(adder->store, SAMPLES_RAW, clickhouse_now_ms());
	uint32_t day_end = minute / 86400 * 86400 + 86400;

	return clickhouse_keeps_sums(adder->store) && from_ms &&
	       day_end < from_ms / 1000 + LATE_MARGIN_S;
}

static void note_bucket(struct adder *adder, uint32_t minute)
{
	if (minute >= 600)
		id_set_add(&adder->group->buckets, minute / 600);
}

static uint32_t minute_of(int64_t time_ms)
{
	int64_t seconds = time_ms > 0 ? time_ms / SAMPLES_BUCKET_MS * 60 : 0;

	return seconds > UINT32_MAX - 59 ? UINT32_MAX / 60 * 60 : (uint32_t)seconds;
}

static bool adder_init(struct adder *adder, struct clickhouse_samples *store,
		       const struct sample_batch *batch)
{
	*adder = (struct adder){.store = store, .batch = batch};
	arena_init(&adder->arena, 64 << 20);
	hash_table_init(&adder->ids, UINT32_MAX >> 1);
	adder->locations = arena_array(&adder->arena, batch->location_count, 8);
	adder->is_repeated = arena_alloc(&adder->arena, batch->profile_count);
	adder->order = arena_array(&adder->arena, batch->sample_count, 4);
	return !adder->arena.failed;
}

/* --- definitions --- */

/* True: this group has to bring the definition. */
static bool is_new(struct adder *adder, uint64_t id)
{
	uint64_t key = hash_word(id, adder->month);

	return !id_set_has(&adder->store->known, key) && id_set_add(&adder->group->defined, key);
}

static uint64_t define_module(struct adder *adder, uint32_t number)
{
	const struct batch_module *module = &adder->batch->modules[number];
	struct buffer *out = &adder->group->tables[GROUP_MODULES];
	uint64_t id = hash_bytes(module->id.bytes, module->id.length, 0x6d6f64 + module->base);

	id = text_hash(text_hash(id, module->name), module->go_id);
	if (!is_new(adder, id))
		return id;
	row_put_u32(out, adder->month);
	row_put_u64(out, id);
	row_put_bytes(out, module->id.bytes, module->id.length);
	row_put_bytes(out, module->htlhash.bytes, module->htlhash.length);
	row_put_text(out, module->go_id);
	row_put_text(out, module->name);
	row_put_u8(out, (uint8_t)module->base);
	return id;
}

static uint64_t define_location(struct adder *adder, uint32_t number)
{
	const struct batch_location *location = &adder->batch->locations[number];
	struct buffer *out = &adder->group->tables[GROUP_LOCATIONS];
	uint64_t module = 0, id;

	if (location->module != UINT32_MAX)
		module = define_module(adder, location->module);
	id = hash_word(hash_word(0x6c6f63 + location->kind, module), location->address);
	id = text_hash(text_hash(id, location->function), location->file);
	id = hash_word(text_hash(id, location->type), location->line);
	if (!is_new(adder, id))
		return id;
	row_put_u32(out, adder->month);
	row_put_u64(out, id);
	row_put_u8(out, (uint8_t)location->kind);
	row_put_u64(out, module);
	row_put_u64(out, location->address);
	row_put_text(out, location->function);
	row_put_text(out, location->file);
	row_put_text(out, location->type);
	row_put_u32(out, location->line);
	return id;
}

/* The stack's id, stable over all servers and versions: schema/README.md. */
static uint64_t define_stack(struct adder *adder, uint32_t number)
{
	const struct batch_stack *stack = &adder->batch->stacks[number];
	struct buffer *out = &adder->group->tables[GROUP_STACKS];
	uint32_t depth = stack->depth < SAMPLES_DEPTH_MAX ? stack->depth : SAMPLES_DEPTH_MAX;

	if (!is_new(adder, stack->hash[0]))
		return stack->hash[0];
	row_put_u32(out, adder->month);
	row_put_u64(out, stack->hash[0]);
	buffer_append_varint(out, depth);
	for (uint32_t i = 0; i < depth; i++) {
		uint32_t location = adder->batch->location_indices[stack->first_index + i];
		uint64_t *id = &adder->locations[location];

		if (!*id)
			*id = define_location(adder, location);
		row_put_u64(out, *id);
	}
	return stack->hash[0];
}

/* The upper 16 bits are of the service, so that its series are neighbours in the table. */
static uint64_t series_id(const struct batch_series *series)
{
	uint64_t id = 0x736572, service = 0;

	for (uint32_t i = 0; i < series->label_count; i++) {
		const struct batch_label *label = &series->labels[i];

		id = text_hash(text_hash(id, label->name), label->value);
		if (label->name.length == 7 && !memcmp(label->name.at, "service", 7))
			service = hash_bytes(label->value.at, label->value.length, 0);
	}
	return (id & 0xffffffffffffull) | service >> 48 << 48;
}

uint64_t whole_series_id(const struct series_labels *labels)
{
	struct batch_label kept[SAMPLES_LABELS_MAX];
	struct batch_series series = {kept, 0};

	for (uint32_t i = 0; i < labels->count && series.label_count < SAMPLES_LABELS_MAX; i++)
		if (!rollup_drops_label(labels->names[i]))
			kept[series.label_count++] = (struct batch_label){
				{labels->names[i], (uint32_t)strlen(labels->names[i])},
				{labels->values[i], (uint32_t)strlen(labels->values[i])}};
	return series_id(&series);
}

static void put_series(const struct adder *adder, uint64_t id, const struct batch_series *series,
		       struct buffer *out)
{
	row_put_u32(out, adder->month);
	row_put_u32(out, adder->batch->tenant);
	row_put_u64(out, id);
	buffer_append_varint(out, series->label_count);
	for (uint32_t i = 0; i < series->label_count; i++)
		row_put_text(out, series->labels[i].name);
	buffer_append_varint(out, series->label_count);
	for (uint32_t i = 0; i < series->label_count; i++)
		row_put_text(out, series->labels[i].value);
}

static uint64_t define_series(struct adder *adder, uint32_t number)
{
	const struct batch_series *series = &adder->batch->series[number];
	struct buffer *out = &adder->group->tables[GROUP_SERIES];
	uint64_t id = series_id(series);

	if (is_new(adder, hash_word(id, adder->batch->tenant)))
		put_series(adder, id, series, out);
	return id;
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
		store->series_day_count = i = 0;
	}
	if (i == store->series_day_count)
		store->series_days[store->series_day_count++] =
			(struct series_day){.tenant = tenant, .day = day};
	return &store->series_days[i];
}

/* Counts what this server met since it was started: several servers let in so many each. */
static bool takes_series(struct adder *adder, uint64_t id, uint32_t day)
{
	struct clickhouse_samples *store = adder->store;
	struct series_day *counted = series_day_of(store, adder->batch->tenant, day);
	uint64_t key = hash_word(hash_word(id, day), adder->batch->tenant);

	if (id_set_has(&store->series_met, key))
		return true;
	if (counted->count >= store->series_max)
		return false;
	counted->count += id_set_add(&store->series_met, key);
	return true;
}

/* What stands for the refused series of a host. */
static uint64_t define_host(struct adder *adder, const struct batch_series *series)
{
	struct buffer *out = &adder->group->tables[GROUP_SERIES];
	struct batch_label host = {{"host", 4}, {"", 0}};
	const struct batch_series alone = {&host, 1};
	uint64_t id;

	for (uint32_t i = 0; i < series->label_count; i++)
		if (series->labels[i].name.length == 4 &&
		    !memcmp(series->labels[i].name.at, "host", 4))
			host = series->labels[i];
	id = series_id(&alone);
	if (is_new(adder, hash_word(id, adder->batch->tenant)))
		put_series(adder, id, &alone, out);
	return id;
}

static void tell_refused(struct adder *adder, uint64_t samples)
{
	struct batch_refusals *told = adder->batch->refusals;

	adder->store->counters.series_refused_profiles++;
	adder->store->counters.series_refused_samples += samples;
	if (told && !told->profiles++)
		snprintf(told->sentence, sizeof told->sentence,
			 "the limit of %u series a day is reached (--series-limit): profiles of "
			 "series that are new today are not stored",
			 adder->store->series_max);
}

/* --- profiles --- */

static int compare_texts(struct text a, struct text b)
{
	uint32_t length = a.length < b.length ? a.length : b.length;
	int order = a.at == b.at || !length ? 0 : memcmp(a.at, b.at, length);

	return order ? order : (a.length > b.length) - (a.length < b.length);
}

/* By thread, then stack: neighbouring rows then have the same runs, which packs well. */
static int compare_samples(const void *a, const void *b, void *context)
{
	const struct sample_batch *batch = context;
	const struct batch_sample *x = &batch->samples[*(const uint32_t *)a];
	const struct batch_sample *y = &batch->samples[*(const uint32_t *)b];
	uint64_t p = batch->stacks[x->stack].hash[0], q = batch->stacks[y->stack].hash[0];
	int order = compare_texts(x->thread, y->thread);

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
		row_put_u64(out, define_stack(adder, batch->samples[adder->order[i]].stack));
	buffer_append_varint(out, count);
	for (uint32_t i = 0; i < count; i++)
		row_put_text(out, batch->samples[adder->order[i]].thread);
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
	uint32_t minute = minute_of(profile->time_ms);
	uint64_t id[2];

	memcpy(id, profile->id, sizeof id);
	if (!has_id(profile)) {
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

/* --- times of single samples --- */

struct adder_time {
	int64_t time_ms;
	uint64_t value;
	const struct batch_sample *sample;
};

static int compare_times(const void *left, const void *right)
{
	const struct adder_time *a = left, *b = right;

	return (a->time_ms > b->time_ms) - (a->time_ms < b->time_ms);
}

/* Those that can be the report's; how many. A value is shared out as SQLite's add.c does. */
static size_t collect_times(struct adder *adder, const struct batch_profile *profile,
			    struct adder_time *times)
{
	int64_t start_ms = profile->time_ms / SAMPLES_BUCKET_MS * SAMPLES_BUCKET_MS -
			   MOMENT_BEFORE_MS;
	size_t count = 0;

	for (uint32_t i = 0; i < profile->sample_count; i++) {
		const struct batch_sample *sample =
			&adder->batch->samples[profile->first_sample + i];

		for (uint32_t k = 0; k < sample->time_count; k++) {
			int64_t time_ms =
				(int64_t)(adder->batch->times[sample->first_time + k] / 1000000);

			if (time_ms < start_ms || time_ms >= start_ms + MOMENT_SPAN_MS) {
				adder->store->counters.times_refused++;
				continue;
			}
			times[count++] = (struct adder_time){
				time_ms,
				sample->value / sample->time_count +
					(k < sample->value % sample->time_count),
				sample};
		}
	}
	return count;
}

static void put_times(struct adder *adder, const struct adder_time *times, size_t count,
		      struct buffer *out)
{
	buffer_append_varint(out, count);
	for (size_t i = 0; i < count; i++)
		row_put_u64(out, (uint64_t)times[i].time_ms);
	buffer_append_varint(out, count);
	for (size_t i = 0; i < count; i++)
		row_put_u64(out, adder->batch->stacks[times[i].sample->stack].hash[0]);
	buffer_append_varint(out, count);
	for (size_t i = 0; i < count; i++)
		row_put_text(out, times[i].sample->thread);
	buffer_append_varint(out, count);
	for (size_t i = 0; i < count; i++)
		row_put_u64(out, times[i].value);
}

/* key: what put_key() wrote of the profile. */
static void put_moments(struct adder *adder, const struct batch_profile *profile,
			const uint8_t *key, size_t key_length)
{
	struct buffer *out = &adder->group->tables[GROUP_MOMENTS];
	struct adder_time *times;
	size_t count = 0;

	for (uint32_t i = 0; i < profile->sample_count; i++)
		count += adder->batch->samples[profile->first_sample + i].time_count;
	if (!count)
		return;
	times = calloc(count, sizeof *times);
	if (!times) {
		out->failed = true;
		return;
	}
	count = collect_times(adder, profile, times);
	qsort(times, count, sizeof *times, compare_times);
	if (count) {
		buffer_append(out, key, key_length);
		put_times(adder, times, count, out);
		adder->store->counters.moments += count;
	}
	free(times);
}

static void put_profile(struct adder *adder, const struct batch_profile *profile)
{
	uint32_t minute = minute_of(profile->time_ms);
	bool late = is_late(adder, minute);
	struct buffer *out = &adder->group->tables[late ? GROUP_LATE_SAMPLES : GROUP_SAMPLES];
	size_t key = out->length;
	uint8_t type = (uint8_t)profile_type_find(profile->type, strlen(profile->type));
	uint64_t series = series_id(&adder->batch->series[profile->series]);
	bool is_taken = takes_series(adder, series, minute / 86400);
	uint64_t samples = 0, value = 0;

	if (month_of(minute * 1000ll) != adder->month) /* every month has its own definitions */
		memset(adder->locations, 0, adder->batch->location_count * sizeof(uint64_t));
	adder->month = month_of(minute * 1000ll);
	series = is_taken ? define_series(adder, profile->series)
			  : define_host(adder, &adder->batch->series[profile->series]);
	for (uint32_t i = 0; i < profile->sample_count; i++) {
		const struct batch_sample *sample =
			&adder->batch->samples[profile->first_sample + i];

		adder->order[i] = profile->first_sample + i;
		samples += sample->samples;
		value += sample->value;
	}
	qsort_r(adder->order, profile->sample_count, sizeof *adder->order, compare_samples,
		(void *)adder->batch);
	if (has_id(profile) && !late)
		put_key(adder, profile, type, series, &adder->group->ids);
	put_key(adder, profile, type, series, out);
	if (is_taken && !late && !out->failed)
		put_moments(adder, profile, out->bytes + key, out->length - key);
	if (!late)
		note_bucket(adder, minute);
	row_put_u8(out, profile->is_counted);
	row_put_u64(out, is_taken ? samples : 0);
	row_put_u64(out, is_taken ? value : 0);
	row_put_u64(out, 0);
	row_put_u64(out, is_taken ? 0 : samples);
	if (is_taken) {
		put_arrays(adder, profile->sample_count, out);
	} else {
		put_no_arrays(out);
		tell_refused(adder, samples);
		samples = 0;
	}
	adder->group->profiles++;
	adder->group->samples += samples;
	if (minute < adder->group->first_minute)
		adder->group->first_minute = minute;
	if (minute > adder->group->last_minute)
		adder->group->last_minute = minute;
}

/* --- agents' counters --- */

static void put_counts(struct buffer *out, const struct batch_count *counts, unsigned count)
{
	buffer_append_varint(out, count);
	for (unsigned i = 0; i < count; i++)
		row_put_text(out, counts[i].name);
	buffer_append_varint(out, count);
	for (unsigned i = 0; i < count; i++)
		row_put_u64(out, counts[i].count);
}

static void note_late(struct row_group *group, uint32_t tenant,
		      const struct batch_counters *counters)
{
	uint32_t minute = minute_of(counters->time_ms);

	row_put_u32(&group->late, tenant);
	buffer_append(&group->late, counters->agent_id, sizeof counters->agent_id);
	row_put_u64(&group->late, counters->report_seq);
	row_put_u32(&group->late, minute);
	if (minute < group->first_late)
		group->first_late = minute;
}

static void put_counters(struct adder *adder, const struct batch_counters *counters)
{
	uint32_t minute = minute_of(counters->time_ms);
	bool late = is_late(adder, minute);
	struct buffer *out = &adder->group->tables[late ? GROUP_LATE_REPORTS : GROUP_REPORTS];

	if (!late)
		note_bucket(adder, minute);
	if (counters->received_ms - counters->time_ms - counters->duration_ms > LATE_MS)
		note_late(adder->group, adder->batch->tenant, counters);

	row_put_u32(out, adder->batch->tenant);
	buffer_append(out, counters->agent_id, sizeof counters->agent_id);
	row_put_u32(out, minute);
	row_put_u64(out, counters->report_seq);
	row_put_text(out, counters->host);
	row_put_text(out, counters->agent_version);
	row_put_text(out, counters->kernel_release);
	row_put_u32(out, counters->rate_hz);
	row_put_u64(out, counters->acknowledged_seq);
	row_put_u64(out, counters->taken);
	row_put_u64(out, counters->idle);
	row_put_u64(out, adder->own_samples);
	put_counts(out, counters->lost, counters->lost_count);
	put_counts(out, counters->stacks, counters->stacks_count);
	row_put_u64(out, (uint64_t)(counters->time_ms + counters->duration_ms));
	row_put_u64(out, (uint64_t)counters->received_ms);
	row_put_u64(out, (uint64_t)counters->sent_ms);
}

static const char *terminated(struct arena *arena, struct text text)
{
	const char *copy = arena_text(arena, text.at, text.length);

	return copy ? copy : "";
}

/* For /metrics: how stack walks ended, as agents told this server. */
static void count_walks(struct adder *adder, const struct batch_counters *counters)
{
	struct samples_counters *to = &adder->store->counters;
	struct agent_report report = {
		.tenant = adder->batch->tenant,
		.id = counters->agent_id,
		.host = "",
		.version = "",
		.kernel = "",
		.seq = counters->report_seq,
		.acknowledged = counters->acknowledged_seq,
		.stacks_count = counters->stacks_count,
		.received_ms = counters->received_ms,
	};
	struct agent_delta delta;

	for (unsigned i = 0; i < counters->stacks_count; i++) {
		report.stacks[i].name = terminated(&adder->arena, counters->stacks[i].name);
		report.stacks[i].count = counters->stacks[i].count;
	}
	if (!agent_table_apply(&adder->store->agents, &report, &delta))
		return;
	for (unsigned i = 0; i < counters->stacks_count; i++) {
		uint64_t *count = named_count_take(to->walks, &to->walk_count,
						   BATCH_STACK_RESULTS - 1, report.stacks[i].name);

		if (!count)
			count = named_count_take(to->walks, &to->walk_count, BATCH_STACK_RESULTS,
						 "other");
		if (count)
			*count += delta.stacks[i];
	}
}

/* --- ids seen before --- */

/* Whether an earlier profile of the same batch has the same id. */
static bool is_twice(struct adder *adder, uint32_t number)
{
	const struct batch_profile *profiles = adder->batch->profiles;
	uint64_t hash = hash_bytes(profiles[number].id, 16, 0);
	uint32_t probe = 0;

	for (uint32_t i = hash_table_first(&adder->ids, hash, &probe); i != HASH_TABLE_NONE;
	     i = hash_table_next(&adder->ids, hash, &probe))
		if (!memcmp(profiles[i].id, profiles[number].id, 16))
			return true;
	hash_table_add(&adder->ids, hash, number);
	return false;
}

/* own_samples is of all that came with the report, also again: its row is then the same again. */
static bool find_repeated(struct adder *adder, struct error *err)
{
	const struct sample_batch *batch = adder->batch;

	for (uint32_t i = 0; i < batch->profile_count; i++) {
		const struct batch_profile *profile = &batch->profiles[i];
		enum report_seen seen = REPORT_NEW;
		bool is_copy = has_id(profile) && is_twice(adder, i);

		if (has_id(profile))
			seen = report_window_find(&adder->store->window, batch->tenant, profile->id,
						  adder->store->committed);
		if (seen == REPORT_PENDING)
			return error_set(err, ERROR_BUSY,
					 "the same report is being written by another request");
		adder->is_repeated[i] = seen == REPORT_SEEN || is_copy;
		adder->duplicates += adder->is_repeated[i];
		for (uint32_t k = 0; profile->is_counted && !is_copy && k < profile->sample_count;
		     k++)
			adder->own_samples += batch->samples[profile->first_sample + k].samples;
	}
	return true;
}

/* Ids that count up are one entry of the window. */
static bool remember_ids(struct adder *adder)
{
	struct report_run run = {.tenant = adder->batch->tenant, .group = adder->group->number};
	bool ok = true;

	for (uint32_t i = 0; i < adder->batch->profile_count; i++) {
		const struct batch_profile *profile = &adder->batch->profiles[i];
		uint32_t number = report_number(profile->id);

		if (adder->is_repeated[i] || !has_id(profile))
			continue;
		if (run.count && number == run.first + run.count &&
		    !memcmp(run.prefix, profile->id, sizeof run.prefix)) {
			run.count++;
			continue;
		}
		ok &= !run.count || report_window_add(&adder->store->window, &run);
		run.first = number;
		run.count = 1;
		memcpy(run.prefix, profile->id, sizeof run.prefix);
	}
	return ok && (!run.count || report_window_add(&adder->store->window, &run));
}

/* --- days --- */

/* The day of the time among the group's, and among those there are partitions of: with every day
 * come parts in every table, and a sender may send any time. */
static bool add_day(struct adder *adder, int64_t time_ms, struct error *err)
{
	uint32_t day = minute_of(time_ms) / 86400;
	struct clickhouse_samples *store = adder->store;
	struct row_group *group = adder->group;
	unsigned i = 0;

	while (i < group->day_count && group->days[i] != day)
		i++;
	if (i < group->day_count)
		return true;
	if (group->day_count == GROUP_DAYS_MAX)
		return error_set(err, group->pending_count ? ERROR_BUSY : ERROR_LIMIT,
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
		if (!add_day(adder, batch->counters[i].time_ms, err))
			return false;
	return true;
}

/* --- the batch --- */

static bool is_overloaded(const struct clickhouse_samples *store, struct error *err)
{
	if (store->is_closing)
		return !error_set(err, ERROR_BUSY, "the store is closing");
	if (store->is_away)
		return !error_set(err, ERROR_BUSY, "%s", store->why.message);
	if (row_group_bytes(store->group) > GROUP_BYTES_MAX)
		return !error_set(err, ERROR_BUSY, "too much is waiting for ClickHouse");
	return false;
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
	    !find_repeated(adder, err) || !add_days(adder, err))
		return false;
	if (!row_group_add_pending(adder->group, done, context))
		return error_set(err, ERROR_MEMORY, "no memory to record a report");
	for (uint32_t i = 0; i < batch->profile_count; i++)
		if (!adder->is_repeated[i])
			put_profile(adder, &batch->profiles[i]);
	for (uint32_t i = 0; i < batch->counters_count; i++) {
		put_counters(adder, &batch->counters[i]);
		count_walks(adder, &batch->counters[i]);
	}
	if (adder->group->pending_count == 1)
		adder->group->begin_ms = clickhouse_now_ms();
	store->counters.duplicates += adder->duplicates;
	/* A group that is not whole is not sent: the insert thread asks the same. */
	if (!remember_ids(adder) || group_failed(adder->group))
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
		*duplicates = adder.duplicates;
	arena_release(&adder.arena);
	hash_table_release(&adder.ids);
	if (!ok && err)
		*err = why;
	return ok;
}
