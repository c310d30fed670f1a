/* SPDX-License-Identifier: Apache-2.0 */
/* samples_add(): a decoded batch → journal records in the open group. */
#include "symbol-server/store/sqlite/intake/shares.h"

#include <stdio.h>
#include <string.h>

#include "symbol-server/store/rules/overload.h"
#include "symbol-server/store/rules/repeats.h"
#include "symbol-server/store/rules/series_limit.h"
#include "symbol-server/store/rules/tallies.h"

enum {
	PREFETCH_AHEAD = 12, /* samples */
};

struct adder {
	struct sqlite_samples *store;
	const struct sample_batch *batch;
	struct arena arena; /* the numbers a day's catalog gave, and what is done */
	struct catalog_translation translation;
	uint32_t *series;
	bool *is_other; /* per series: it is not itself, but its host's "other" */
	struct dictionary_share share;
	bool *is_done; /* one per profile, then one per counters */
	struct repeats repeats;
	struct day **days; /* of all items, sorted; in use */
	uint32_t day_count;
	unsigned refused, folded;
	uint64_t refused_samples, folded_samples, overflowed, times_refused;
	uint32_t second;             /* that the record has last; 60: none */
	struct report_run run;       /* ids collected and not written yet; count 0: none */
	struct buffer *body, *entry; /* the store's, under its lock */
	struct packed_pair *pairs;   /* of one profile */
};

static int64_t item_time(const struct sample_batch *batch, uint32_t item)
{
	return item < batch->profile_count
		       ? batch->profiles[item].time_ms
		       : batch->counters[item - batch->profile_count].numbers.time_ms;
}

static uint32_t day_of(int64_t time_ms)
{
	return time_ms > 0 ? (uint32_t)(time_ms / day_ms) : 0;
}

static uint32_t bucket_of(int64_t time_ms)
{
	return time_ms > 0 ? (uint32_t)(time_ms % day_ms / SAMPLES_BUCKET_MS) : 0;
}

/* What follows is of a report that began then. */
static void set_second(struct adder *adder, int64_t time_ms)
{
	uint32_t second = time_ms > 0 ? (uint32_t)(time_ms / 1000 % 60) : 0;

	if (second != adder->second)
		record_add_second(adder->body, second);
	adder->second = second;
}

static void set_day(struct adder *adder, uint32_t day)
{
	record_add_day(adder->body, day);
	adder->second = 60;
}

static uint32_t most_samples(const struct sample_batch *batch)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < batch->profile_count; i++)
		if (batch->profiles[i].sample_count > most)
			most = batch->profiles[i].sample_count;
	return most;
}

static bool adder_init(struct adder *adder, struct sqlite_samples *store,
		       const struct sample_batch *batch)
{
	uint32_t items = batch->profile_count + batch->counters_count;

	*adder = (struct adder){.store = store, .batch = batch};
	arena_init(&adder->arena, 64 << 20);
	adder->body = &store->body;
	adder->entry = &store->entry;
	adder->is_done = arena_alloc(&adder->arena, items);
	repeats_init(&adder->repeats, batch, arena_alloc(&adder->arena, items));
	adder->days = arena_array(&adder->arena, items + batch->untimely_count,
				  sizeof(struct day *));
	adder->translation.batch = batch;
	adder->translation.modules = arena_array(&adder->arena, batch->module_count,
						 sizeof(uint32_t));
	adder->translation.locations = arena_array(&adder->arena, batch->location_count,
						   sizeof(uint32_t));
	adder->translation.stacks = arena_array(&adder->arena, batch->stack_count,
						sizeof(uint32_t));
	adder->series = arena_array(&adder->arena, batch->series_count, sizeof(uint32_t));
	adder->is_other = arena_alloc(&adder->arena, batch->series_count);
	adder->pairs = arena_array(&adder->arena, most_samples(batch), sizeof *adder->pairs);
	return !adder->arena.failed;
}

static void adder_release(struct adder *adder)
{
	for (uint32_t i = 0; i < adder->day_count; i++)
		store_leave_day(adder->store, adder->days[i]);
	arena_release(&adder->arena);
	repeats_release(&adder->repeats);
}

/* --- days --- */

/* Where the day is, or belongs. */
static uint32_t place_of_day(const struct adder *adder, uint32_t number)
{
	uint32_t low = 0, high = adder->day_count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (adder->days[middle]->day < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool open_day(struct adder *adder, uint32_t number, struct error *err)
{
	uint32_t at = place_of_day(adder, number);
	struct day *day;

	if (at < adder->day_count && adder->days[at]->day == number)
		return true;
	day = store_open_day(adder->store, number, false, err);
	if (!day)
		return false;
	memmove(adder->days + at + 1, adder->days + at,
		(adder->day_count++ - at) * sizeof(struct day *));
	adder->days[at] = day;
	return true;
}

/* Without the lock: a late sample's dictionary is read while others add. */
static bool open_days(struct adder *adder, struct error *err)
{
	const struct sample_batch *batch = adder->batch;
	uint32_t items = batch->profile_count + batch->counters_count;
	bool ok = true;

	for (uint32_t i = 0; ok && i < items; i++)
		ok = open_day(adder, day_of(item_time(batch, i)), err);
	for (uint32_t i = 0; ok && i < batch->untimely_count; i++)
		ok = open_day(adder, day_of(batch->untimely[i].received_ms), err);
	return ok;
}

/* One that is open, to be added to. */
static struct day *take_day(struct adder *adder, uint32_t number)
{
	struct day *day = adder->days[place_of_day(adder, number)];

	store_lock_days(adder->store);
	store_count_written(adder->store, day);
	store_unlock_days(adder->store);
	return day;
}

/* Numbers are a day's own. */
static void forget_numbers(struct adder *adder)
{
	const struct sample_batch *batch = adder->batch;

	memset(adder->translation.modules, 0, batch->module_count * sizeof(uint32_t));
	memset(adder->translation.locations, 0, batch->location_count * sizeof(uint32_t));
	memset(adder->translation.stacks, 0, batch->stack_count * sizeof(uint32_t));
	memset(adder->series, 0, batch->series_count * sizeof(uint32_t));
	memset(adder->is_other, 0, batch->series_count);
}

/* --- entries --- */

/* Where the dictionary will be asked for a sample's stack: a large table is in no cache. */
static void prefetch_stack(const struct adder *adder, const struct catalog *catalog,
			   const struct batch_sample *sample)
{
	hash_table_prefetch(&catalog->index[CATALOG_STACKS],
			    adder->batch->stacks[sample->stack].hash[0]);
}

/* Short-lived threads are many: half of the dictionary's room is for what else it has. */
static uint32_t add_context(struct catalog *catalog, const struct batch_sample *sample)
{
	struct text context = sample->context.length ? sample->context : sample->thread;
	uint32_t known;
	bool is_much = catalog_bytes(catalog) > CATALOG_BYTES_MAX / 2;

	if (!catalog->is_closed)
		return catalog_add_string(catalog, is_much ? sample->thread : context);
	known = catalog_find_string(catalog, context);
	return known ? known : catalog_find_string(catalog, sample->thread);
}

static void add_samples(struct adder *adder, struct catalog *catalog,
			const struct batch_profile *profile, struct buffer *samples)
{
	const struct batch_sample *first = &adder->batch->samples[profile->first_sample];
	struct text last = {"", 0}, context;
	uint32_t thread = 0;

	for (uint32_t i = 0; i < PREFETCH_AHEAD && i < profile->sample_count; i++)
		prefetch_stack(adder, catalog, &first[i]);
	for (uint32_t i = 0; i < profile->sample_count; i++) {
		const struct batch_sample *sample = &first[i];
		struct packed_pair *pair = &adder->pairs[i];

		if (i + PREFETCH_AHEAD < profile->sample_count)
			prefetch_stack(adder, catalog, &first[i + PREFETCH_AHEAD]);

		/* Runs of samples of one thread are the rule. */
		context = sample->context.length ? sample->context : sample->thread;
		if (context.length != last.length || context.at != last.at) {
			thread = add_context(catalog, sample);
			last = context;
		}
		pair->thread = thread;
		pair->stack = catalog_add_stack(catalog, &adder->translation, sample->stack);
		pair->samples = sample->samples;
		pair->value = sample->value;
		if (pair->stack == CATALOG_OVERFLOW_STACK)
			adder->overflowed += sample->samples;
	}
	packed_encode(adder->pairs, packed_merge(adder->pairs, profile->sample_count), samples);
}

/* When single samples were taken, of those whose sender says it; a time that cannot be the report's
 * is left out. */
static void add_moments(struct adder *adder, struct catalog *catalog,
			const struct batch_profile *profile, struct buffer *moments)
{
	const struct sample_batch *batch = adder->batch;
	int64_t from_ms = moments_from_ms(profile->time_ms);

	for (uint32_t i = 0; i < profile->sample_count; i++) {
		const struct batch_sample *sample = &batch->samples[profile->first_sample + i];
		struct moment moment = {0};

		for (uint32_t k = 0; k < sample->time_count; k++) {
			struct moment_time time;

			if (!moment_time_get(batch, sample, k, from_ms, &time)) {
				adder->times_refused++;
				continue;
			}
			if (!moment.stack) {
				moment.thread = add_context(catalog, sample);
				moment.stack = catalog_add_stack(catalog, &adder->translation,
								 sample->stack);
			}
			moment.time_ms = (uint32_t)(time.time_ms - from_ms);
			moment.value = time.value;
			moment_encode_raw(&moment, moments);
		}
	}
}

/* The samples that came with a trace. */
static void add_spans(struct adder *adder, struct catalog *catalog,
		      const struct batch_profile *profile, struct buffer *spans)
{
	for (uint32_t i = 0; i < profile->sample_count; i++) {
		const struct batch_sample *sample =
			&adder->batch->samples[profile->first_sample + i];
		struct span_sample span = {.samples = sample->samples, .value = sample->value};

		if (!sample->link)
			continue;
		memcpy(span.ids, sample->link, SPAN_IDS_BYTES);
		span.thread = add_context(catalog, sample);
		span.stack = catalog_add_stack(catalog, &adder->translation, sample->stack);
		span_encode_raw(&span, spans);
	}
}

/* Counts for its host: samples of a profile that are lost, or were taken as less than they are. */
static void add_note(struct adder *adder, struct catalog *catalog,
		     const struct batch_profile *profile, uint32_t type, const char *reason,
		     uint64_t samples, bool is_lost)
{
	struct record_refused entry = {
		.tenant = adder->batch->tenant,
		.type = type,
		.bucket = bucket_of(profile->time_ms),
		.host = catalog_add_string(catalog,
					   series_host(&adder->batch->series[profile->series])),
		.reason = catalog_add_string(catalog,
					     (struct text){reason, (uint32_t)strlen(reason)}),
		.is_counted = profile->is_counted || !is_lost,
		.has_id = profile_has_id(profile),
		.id_number = report_number(profile->id),
		.samples = samples,
	};

	record_add_refused(adder->body, &adder->store->scratch, &entry);
}

static uint64_t samples_of(const struct adder *adder, const struct batch_profile *profile)
{
	uint64_t samples = 0;

	for (uint32_t i = 0; i < profile->sample_count; i++)
		samples += adder->batch->samples[profile->first_sample + i].samples;
	return samples;
}

/* A profile that is left out: its sender is told, and its samples count as lost. */
static void refuse_profile(struct adder *adder, struct catalog *catalog,
			   const struct batch_profile *profile, uint32_t type)
{
	uint64_t samples = samples_of(adder, profile);

	add_note(adder, catalog, profile, type, "series_limit", samples, true);
	adder->refused++;
	adder->refused_samples += samples;
	series_limit_tell(adder->batch->refusals, adder->store->series_max);
}

/* Counted as lost when it came: the day of its own time may be gone. */
static void add_untimely(struct adder *adder, const struct batch_untimely *untimely)
{
	uint32_t number = day_of(untimely->received_ms);
	int type = profile_type_find(untimely->type, strlen(untimely->type));
	struct text reason = {untimely->reason, (uint32_t)strlen(untimely->reason)};
	struct record_refused entry = {.tenant = adder->batch->tenant,
				       .bucket = bucket_of(untimely->received_ms),
				       .samples = untimely->samples};
	struct catalog *catalog;

	if (type < 0 || untimely_ids_have(&adder->store->untimely, untimely))
		return;
	catalog = take_day(adder, number)->catalog;
	entry.type = (uint32_t)type;
	entry.host = catalog_add_string(catalog,
					series_host(&adder->batch->series[untimely->series]));
	entry.reason = catalog_add_string(catalog, reason);
	set_day(adder, number);
	set_second(adder, untimely->received_ms);
	record_add_refused(adder->body, &adder->store->scratch, &entry);
}

/* What is taken, but not as what it is. */
static void note_folded(struct adder *adder, struct catalog *catalog,
			const struct batch_profile *profile, uint32_t type, uint64_t overflowed)
{
	if (overflowed)
		add_note(adder, catalog, profile, type, TALLY_STACKS_FOLDED, overflowed, false);
	if (adder->is_other[profile->series]) {
		uint64_t samples = samples_of(adder, profile);

		add_note(adder, catalog, profile, type, TALLY_SERIES_FOLDED, samples, false);
		adder->folded++;
		adder->folded_samples += samples;
	}
}

/* With which requests its samples came, and when. */
static void add_details(struct adder *adder, struct catalog *catalog,
			const struct batch_profile *profile, struct record_profile *entry)
{
	if (adder->store->trace_keep_ms) {
		buffer_clear(adder->entry);
		add_spans(adder, catalog, profile, adder->entry);
		entry->samples = (struct bytes){adder->entry->bytes, adder->entry->length};
		if (entry->samples.length)
			record_add_spans(adder->body, &adder->store->scratch, entry);
	}
	if (!adder->batch->time_count)
		return;
	buffer_clear(adder->entry);
	add_moments(adder, catalog, profile, adder->entry);
	entry->samples = (struct bytes){adder->entry->bytes, adder->entry->length};
	if (entry->samples.length)
		record_add_moments(adder->body, &adder->store->scratch, entry);
}

static bool add_profile(struct adder *adder, struct day *day, uint32_t number, struct error *err)
{
	const struct sample_batch *batch = adder->batch;
	const struct batch_profile *profile = &batch->profiles[number];
	struct record_profile entry = {.tenant = batch->tenant,
				       .bucket = bucket_of(profile->time_ms),
				       .is_counted = profile->is_counted,
				       .has_id = profile_has_id(profile)};
	uint32_t *series = &adder->series[profile->series];
	uint64_t overflowed = adder->overflowed;
	int type = profile_type_find(profile->type, strlen(profile->type));

	if (type < 0)
		return error_set(err, ERROR_LIMIT, "'%s' is not a profile type", profile->type);
	set_second(adder, profile->time_ms);
	share_begin(&adder->share, series_host(&batch->series[profile->series]));
	if (!*series)
		*series = share_take_series(adder->store, day, batch->tenant,
					    &batch->series[profile->series],
					    &adder->is_other[profile->series]);
	entry.type = (uint32_t)type;
	entry.series = *series;
	entry.id_number = report_number(profile->id);
	if (entry.has_id && !report_run_has(&adder->run, profile)) {
		adder->run = repeats_run(&adder->repeats, number);
		record_add_ids(adder->body, &adder->store->scratch, &adder->run);
	}
	if (!*series) {
		refuse_profile(adder, day->catalog, profile, entry.type);
		return true;
	}
	buffer_clear(adder->entry);
	add_samples(adder, day->catalog, profile, adder->entry);
	entry.samples = (struct bytes){adder->entry->bytes, adder->entry->length};
	record_add_profile(adder->body, &adder->store->scratch, &entry);
	add_details(adder, day->catalog, profile, &entry);
	note_folded(adder, day->catalog, profile, entry.type, adder->overflowed - overflowed);
	return true;
}

static void add_counters(struct adder *adder, struct catalog *catalog,
			 const struct batch_counters *counters)
{
	struct record_counters entry = {
		.tenant = adder->batch->tenant,
		.host = catalog_add_string(catalog, counters->host),
		.version = catalog_add_string(catalog, counters->agent_version),
		.kernel = catalog_add_string(catalog, counters->kernel_release),
		.bucket = bucket_of(counters->numbers.time_ms),
		.own_samples = adder->repeats.new_samples,
		.numbers = counters->numbers,
		.reported_reason = catalog_add_string(
			catalog, (struct text){TALLY_REPORTED, sizeof TALLY_REPORTED - 1}),
	};

	memcpy(entry.agent_id, counters->agent_id, sizeof entry.agent_id);
	for (unsigned i = 0; i < entry.numbers.lost_count; i++)
		entry.lost[i] = catalog_add_string(catalog, counters->lost[i]);
	for (unsigned i = 0; i < entry.numbers.stacks_count; i++)
		entry.stacks[i] = catalog_add_string(catalog, counters->stacks[i]);
	set_second(adder, counters->numbers.time_ms);
	record_add_counters(adder->body, &adder->store->scratch, &entry);
	agent_table_note(&adder->store->agents, entry.tenant, entry.agent_id, counters->lacks,
			 counters->clock_jumps, counters->cpus);
}

/* Everything of the batch that belongs to one day. */
static bool add_day(struct adder *adder, uint32_t number, struct error *err)
{
	const struct sample_batch *batch = adder->batch;
	struct day *day = take_day(adder, number);

	forget_numbers(adder);
	adder->share = (struct dictionary_share){.store = adder->store, .day = day};
	adder->run.count = 0;
	set_day(adder, number);
	for (uint32_t i = 0; i < batch->profile_count; i++) {
		if (adder->is_done[i] || day_of(batch->profiles[i].time_ms) != number)
			continue;
		adder->is_done[i] = true;
		if (!add_profile(adder, day, i, err)) {
			share_end(&adder->share);
			return false;
		}
	}
	share_end(&adder->share);
	for (uint32_t i = 0; i < batch->counters_count; i++) {
		bool *is_done = &adder->is_done[batch->profile_count + i];

		if (*is_done || day_of(batch->counters[i].numbers.time_ms) != number)
			continue;
		*is_done = true;
		add_counters(adder, day->catalog, &batch->counters[i]);
	}
	return true;
}

/* --- the batch --- */

/* Definitions first, then what refers to them; all or, for a group without room, an error. */
static bool log_batch(struct adder *adder, struct error *err)
{
	struct sqlite_samples *store = adder->store;

	for (uint32_t i = 0; i < adder->day_count; i++)
		if (!store_log_definitions(store, adder->days[i]))
			goto fail;
	if (adder->body->length && !group_add_record(store->group, adder->body))
		goto fail;
	return true;
fail:
	return error_set(err, ERROR_BUSY, "too much is waiting to be written");
}

static bool is_overloaded(const struct sqlite_samples *store, struct error *err)
{
	struct error is_short = {0};

	if (store->is_short)
		store_set_short(&is_short);
	return store_is_overloaded(
		&(struct store_load){
			.is_closing = store->is_closing,
			.refused = &is_short,
			.waiting = store->group->bytes.length,
			.most_waiting = GROUP_BYTES_MAX,
			.waiting_for = "to be written",
			.max_disk = store->max_disk_bytes,
			.disk_left = store->disk_left_bytes,
			.disk = store->counters.disk_bytes,
			.unfolded = store_memory_bytes(store),
			.most_unfolded = MEMORY_BYTES_MAX,
			.fold_error = &store->fold_error,
		},
		err);
}

/* Which of the profiles are to be added. */
static bool find_new(struct adder *adder, struct error *err)
{
	const struct sqlite_samples *store = adder->store;

	if (!repeats_find(&adder->repeats, &store->window, store->committed, err))
		return false;
	memcpy(adder->is_done, adder->repeats.is_repeated, adder->batch->profile_count);
	return true;
}

static bool add_locked(struct adder *adder, samples_done_fn *done, void *context, struct error *err)
{
	const struct sample_batch *batch = adder->batch;
	uint32_t items = batch->profile_count + batch->counters_count;
	struct sqlite_samples *store = adder->store;

	if (is_overloaded(store, err) || !find_new(adder, err))
		return false;
	buffer_clear(adder->body);
	buffer_clear(adder->entry);
	for (uint32_t i = 0; i < items; i++)
		if (!adder->is_done[i] && !add_day(adder, day_of(item_time(batch, i)), err))
			return false;
	for (uint32_t i = 0; i < batch->untimely_count; i++)
		add_untimely(adder, &batch->untimely[i]);
	if (adder->body->failed || adder->entry->failed)
		return error_set(err, ERROR_LIMIT,
				 "the report does not fit a journal record of %d MiB",
				 JOURNAL_RECORD_MAX >> 20);
	for (uint32_t i = 0; i < adder->day_count; i++)
		if (!group_add_day(store, store->group, adder->days[i]))
			return error_set(err, ERROR_MEMORY, "no memory to record a report");
	if (!log_batch(adder, err))
		return false;
	if (!repeats_remember(&adder->repeats, &store->window, store->group->number) ||
	    !pending_reports_add(&store->group->pending, done, context))
		return error_set(err, ERROR_MEMORY, "no memory to record a report");
	untimely_ids_note(&store->untimely, batch);
	store->counters.reports++;
	store->counters.duplicates += adder->repeats.count;
	store->counters.series_refused_profiles += adder->refused;
	store->counters.series_refused_samples += adder->refused_samples;
	store->counters.series_folded_profiles += adder->folded;
	store->counters.series_folded_samples += adder->folded_samples;
	store->counters.stacks_overflowed += adder->overflowed;
	store->counters.times_refused += adder->times_refused;
	return true;
}

/* A day that is full stays full: a line at first, then ever fewer. */
static void tell_folded(struct adder *adder)
{
	struct text host = adder->share.host;

	if (adder->folded)
		log_fault_write(&adder->store->series_folded, adder->folded_samples, LOG_WARN,
				"series of a host that has its share are one",
				"host=\"%.*s\" profiles=%u limit=%u", (int)host.length, host.at,
				adder->folded, adder->store->series_max);
	if (adder->overflowed)
		log_fault_write(&adder->store->stacks_folded, adder->overflowed, LOG_WARN,
				"new stacks find no room in the dictionary",
				"host=\"%.*s\" samples=%llu limit=%llu", (int)host.length, host.at,
				(unsigned long long)adder->overflowed,
				(unsigned long long)adder->store->dictionary_max);
}

bool sqlite_samples_add(struct samples_store *base, const struct sample_batch *batch,
			samples_done_fn *done, void *context, unsigned *duplicates,
			struct error *err)
{
	struct sqlite_samples *store = sqlite_samples_of(base);
	struct error why = {0};
	struct adder adder;
	bool ok = adder_init(&adder, store, batch);

	if (!ok) {
		error_set(&why, ERROR_MEMORY, "no memory to record a report");
	} else {
		pthread_mutex_lock(&store->lock);
		ok = !is_overloaded(store, &why);
		pthread_mutex_unlock(&store->lock);
		ok = ok && open_days(&adder, &why);
		pthread_mutex_lock(&store->lock);
		ok = ok && add_locked(&adder, done, context, &why);
		store->counters.refused_busy += why.kind == ERROR_BUSY;
		if (ok)
			pthread_cond_signal(&store->commit_wake);
		pthread_mutex_unlock(&store->lock);
		tell_folded(&adder);
	}
	if (duplicates)
		*duplicates = adder.repeats.count;
	adder_release(&adder);
	if (!ok && err)
		*err = why;
	return ok;
}
