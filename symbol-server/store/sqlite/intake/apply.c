/* SPDX-License-Identifier: Apache-2.0 */
/* A record of the journal → the active table, the newest minutes, what agents count: as it is
 * written, and again when a start reads it. Under the store's lock. */
#include "symbol-server/store/sqlite/samples_store.h"

#include <string.h>

#include "common/log.h"
#include "symbol-server/store/rules/tallies.h"
#include "symbol-server/store/sqlite/intake/replay_losses.h"

enum { RAW_RUN = 2048 /* bytes of raw samples appended at a time */ };

struct applier {
	struct sqlite_samples *store;
	uint64_t end;
	bool is_replay;
	int64_t now_ms;
	uint32_t second; /* as the record says; none: 0 */
	struct day *day;
	struct report_run ids;
};

/* What a profile's samples come to; reading stops at the first that refers nowhere. */
struct pair_sums {
	uint32_t strings, stacks; /* defined numbers are below */
	uint32_t pairs;
	uint64_t samples, value;
};

/* The day's file has this record already. */
static bool is_folded(const struct applier *applier)
{
	return applier->is_replay && applier->end <= applier->day->folded_through;
}

static void note_damage(struct applier *applier, const char *what)
{
	applier->store->damaged_records++;
	applier->store->counters.journal_damaged++;
	log_warn("journal record not usable", "position=%llu reason=\"%s\"",
		 (unsigned long long)applier->end, what);
}

static struct memory_cell *cell_of(struct applier *applier, uint32_t tenant, uint32_t type,
				   uint32_t bucket, uint32_t series)
{
	struct cell_key key = {applier->day->day, bucket, tenant, type, series};

	return memory_table_cell(applier->store->active, &key);
}

static int64_t minute_of(const struct applier *applier, uint32_t bucket)
{
	return (int64_t)applier->day->day * MINUTES_PER_DAY + bucket;
}

/* By the second, too. What comes from the journal may be the rest of a minute that is in a file. */
static void keep_recent(struct applier *applier, const struct record_profile *profile,
			const struct pair_sums *sums, uint32_t host)
{
	struct recent *recent = &applier->store->recent;
	struct cell_key key = {applier->day->day, profile->bucket, profile->tenant, profile->type,
			       .second = applier->second};
	struct recent_row row = {profile->series, sums->samples, sums->value, profile->samples};

	if (applier->is_replay)
		recent_miss(recent, minute_of(applier, profile->bucket));
	else
		recent_add(recent, applier->now_ms, &key, host, &row);
}

static void keep_recent_account(struct applier *applier, const struct cell_key *key,
				const struct buffer *account)
{
	struct bytes bytes = {account->bytes, account->length};

	if (applier->is_replay)
		recent_miss(&applier->store->recent, minute_of(applier, key->bucket));
	else
		recent_add_account(&applier->store->recent, applier->now_ms, key, &bytes);
}

static void add_account(struct applier *applier, uint32_t tenant, uint32_t type, uint32_t bucket,
			const struct packed_account *account)
{
	struct cell_key key = {applier->day->day, bucket, tenant, type, .second = applier->second};
	struct memory_cell *cell = cell_of(applier, tenant, type, bucket, 0);
	struct buffer *scratch = &applier->store->scratch;

	buffer_clear(scratch);
	account_encode(account, scratch);
	if (!cell || scratch->failed ||
	    !memory_cell_append(applier->store->active, cell, scratch->bytes,
				(uint32_t)scratch->length))
		note_damage(applier, "no memory for a host's account");
	else
		keep_recent_account(applier, &key, scratch);
}

static bool see_pair(void *context, const struct packed_pair *pair)
{
	struct pair_sums *sums = context;

	sums->pairs++;
	sums->samples += pair->samples;
	sums->value += pair->value;
	return pair->thread < sums->strings && pair->stack && pair->stack < sums->stacks;
}

/* All of a profile's samples, as the run that memory keeps (packed.h), or none. */
static bool append_samples(struct applier *applier, const struct record_profile *profile,
			   struct pair_sums *sums)
{
	const struct bytes *samples = &profile->samples;
	struct memory_table *table = applier->store->active;
	struct buffer *scratch = &applier->store->scratch;
	struct memory_cell *cell = cell_of(applier, profile->tenant, profile->type, profile->bucket,
					   profile->series);

	if (!cell || !packed_each(samples->at, samples->length, see_pair, sums))
		return false;
	buffer_clear(scratch);
	buffer_append_varint(scratch, samples->length);
	buffer_append(scratch, samples->at, samples->length);
	if (scratch->failed ||
	    !memory_cell_append(table, cell, scratch->bytes, (uint32_t)scratch->length))
		return false;
	cell->samples += sums->samples;
	cell->value += sums->value;
	cell->pairs += sums->pairs;
	table->pairs += sums->pairs;
	return true;
}

/* Its series, type and minute are there. */
static bool has_place(const struct applier *applier, const struct record_profile *profile)
{
	return profile->series &&
	       profile->series < applier->day->catalog->items[CATALOG_SERIES].count &&
	       profile_type_name(profile->type) && profile->bucket < MINUTES_PER_DAY;
}

static void apply_profile(struct applier *applier, const struct record_profile *profile)
{
	const struct catalog *catalog = applier->day->catalog;
	struct packed_account account = {0};
	struct pair_sums sums = {0};
	const char *why = NULL;

	if (is_folded(applier))
		return;
	if (applier->is_replay)
		replay_mend(applier->store, applier->day->catalog, profile);
	sums.strings = catalog->items[CATALOG_STRINGS].count;
	sums.stacks = catalog->items[CATALOG_STACKS].count;
	if (!has_place(applier, profile) || !catalog_series(catalog, profile->series)->label_count)
		why = "it refers to a series that is not defined";
	else if (!append_samples(applier, profile, &sums))
		why = "samples without room or stacks that are not defined";
	if (why && applier->is_replay)
		replay_lose(applier->store, applier->day, profile);
	if (why) {
		note_damage(applier, why);
		return;
	}
	account.host = catalog_series(catalog, profile->series)->host;
	account.samples = sums.samples;
	account.taken = profile->is_counted ? 0 : sums.samples;
	keep_recent(applier, profile, &sums, account.host);
	add_account(applier, profile->tenant, profile->type, profile->bucket, &account);
	applier->store->counters.samples += sums.samples;
	applier->store->counters.profiles++;
}

struct moment_sink {
	uint32_t strings, stacks; /* defined numbers are below */
	uint64_t count;
};

static bool see_moment(void *context, const struct moment *moment)
{
	struct moment_sink *sink = context;

	sink->count++;
	return moment->thread < sink->strings && moment->stack && moment->stack < sink->stacks;
}

/* All of a profile's times or none; whole runs stay together, entries are never split. */
static void apply_moments(struct applier *applier, const struct record_profile *profile)
{
	const struct catalog *catalog = applier->day->catalog;
	struct moment_sink sink = {catalog->items[CATALOG_STRINGS].count,
				   catalog->items[CATALOG_STACKS].count, 0};
	const uint8_t *at = profile->samples.at, *end = at + profile->samples.length;
	struct memory_cell *cell;

	if (is_folded(applier))
		return;
	if (!has_place(applier, profile) ||
	    !moments_each_raw(at, profile->samples.length, see_moment, &sink)) {
		note_damage(applier, "times of samples that are not defined");
		return;
	}
	cell = cell_of(applier, profile->tenant, profile->type | MOMENTS_OF, profile->bucket,
		       profile->series);
	while (cell && at < end) {
		const uint8_t *run = at;
		uint64_t ignored;

		while (at < end && at - run < RAW_RUN)
			for (int i = 0; i < 4; i++)
				varint_read(&at, end, &ignored);
		if (!memory_cell_append(applier->store->active, cell, run, (uint32_t)(at - run)))
			cell = NULL;
	}
	if (!cell)
		note_damage(applier, "no room for the times of samples");
	applier->store->counters.moments += sink.count;
}

struct span_sink {
	struct applier *applier;
	struct memory_cell *cell;
	uint32_t strings, stacks; /* defined numbers are below */
};

static bool see_span(void *context, const struct span_sample *span)
{
	struct span_sink *sink = context;

	return span->thread < sink->strings && span->stack && span->stack < sink->stacks;
}

/* Each is appended whole. */
static bool append_span(void *context, const struct span_sample *span)
{
	struct span_sink *sink = context;
	struct buffer *scratch = &sink->applier->store->scratch;

	buffer_clear(scratch);
	span_encode_raw(span, scratch);
	return !scratch->failed && memory_cell_append(sink->applier->store->active, sink->cell,
						      scratch->bytes, (uint32_t)scratch->length);
}

/* All of a profile's spans, or none. */
static void apply_spans(struct applier *applier, const struct record_profile *profile)
{
	const struct catalog *catalog = applier->day->catalog;
	struct span_sink sink = {.applier = applier,
				 .strings = catalog->items[CATALOG_STRINGS].count,
				 .stacks = catalog->items[CATALOG_STACKS].count};

	if (is_folded(applier))
		return;
	if (!has_place(applier, profile) ||
	    !spans_each_raw(profile->samples.at, profile->samples.length, see_span, &sink)) {
		note_damage(applier, "spans of samples that are not defined");
		return;
	}
	sink.cell = cell_of(applier, profile->tenant, profile->type | SPANS_OF, profile->bucket,
			    profile->series);
	if (!sink.cell ||
	    !spans_each_raw(profile->samples.at, profile->samples.length, append_span, &sink))
		note_damage(applier, "no room for the spans of samples");
}

/* At replay: was this profile in an earlier record? Ids up to the state file's position are its
 * own. */
static bool is_repeated(const struct applier *applier, uint32_t tenant, bool has_id,
			uint32_t id_number)
{
	uint8_t id[16];

	if (!applier->is_replay || !has_id || applier->end <= applier->store->state_position)
		return false;
	memcpy(id, applier->ids.prefix, sizeof applier->ids.prefix);
	for (int i = 0; i < 4; i++)
		id[12 + i] = (uint8_t)(id_number >> (24 - 8 * i));
	return report_window_find(&applier->store->window, tenant, id, UINT64_MAX) != REPORT_NEW;
}

/* Its samples were taken, and are lost. */
static void apply_refused(struct applier *applier, const struct record_refused *refused)
{
	struct packed_account account = {.host = refused->host, .lost_count = 1};

	if (is_folded(applier))
		return;
	if (!profile_type_name(refused->type) || refused->bucket >= MINUTES_PER_DAY) {
		note_damage(applier, "it refers to a type or minute that there is not");
		return;
	}
	account.taken = refused->is_counted ? 0 : refused->samples;
	account.lost[0].reason = refused->reason;
	account.lost[0].count = refused->samples;
	add_account(applier, refused->tenant, refused->type, refused->bucket, &account);
}

static const char *text_at(const struct catalog *catalog, uint32_t string)
{
	return string < catalog->items[CATALOG_STRINGS].count
		       ? catalog_string(catalog, string)->text
		       : "";
}

/* What is no loss belongs to its own type. */
static void add_tally(struct applier *applier, const struct record_counters *counters,
		      const struct tally *tally, uint32_t name, uint64_t count)
{
	struct packed_account account = {.host = counters->host, .lost_count = 1};
	int type = profile_type_find(tally->type, strlen(tally->type));

	account.lost[0].reason = name;
	account.lost[0].count = count;
	if (count)
		add_account(applier, counters->tenant, (unsigned)type, counters->bucket, &account);
}

/* Before what was lost: when there is no room for more reasons, those that were there stay. */
static void add_reported(struct applier *applier, const struct record_counters *counters,
			 const struct agent_report *report)
{
	struct packed_account account = {.host = counters->host, .lost_count = 1};

	account.lost[0].reason = counters->reported_reason;
	account.lost[0].count = reported_time_take(&applier->store->reported, counters->tenant,
						   report->host, counters->numbers.time_ms,
						   agent_numbers_end_ms(&counters->numbers));
	if (account.lost[0].count && counters->reported_reason)
		add_account(applier, counters->tenant, 0, counters->bucket, &account);
}

static void add_counted(struct applier *applier, const struct record_counters *counters,
			const struct agent_report *report, const struct agent_delta *delta)
{
	struct packed_account account = {
		.host = counters->host, .taken = delta->taken, .idle = delta->idle};

	for (unsigned i = 0; i < counters->numbers.lost_count; i++) {
		const struct tally *tally = tally_find(report->lost[i]);

		if (tally) {
			add_tally(applier, counters, tally, counters->lost[i], delta->lost[i]);
			continue;
		}
		account.lost[account.lost_count].reason = counters->lost[i];
		account.lost[account.lost_count++].count = delta->lost[i];
	}
	add_account(applier, counters->tenant, 0, counters->bucket, &account);
}

static void apply_counters(struct applier *applier, const struct record_counters *counters)
{
	const struct catalog *catalog = applier->day->catalog;
	struct agent_report report = {
		.tenant = counters->tenant,
		.id = counters->agent_id,
		.host = text_at(catalog, counters->host),
		.version = text_at(catalog, counters->version),
		.kernel = text_at(catalog, counters->kernel),
		.own_samples = counters->own_samples,
		.numbers = &counters->numbers,
	};
	struct agent_delta delta;

	if (applier->is_replay && applier->end <= applier->store->state_position)
		return;
	for (unsigned i = 0; i < counters->numbers.lost_count; i++)
		report.lost[i] = text_at(catalog, counters->lost[i]);
	for (unsigned i = 0; i < counters->numbers.stacks_count; i++)
		report.stacks[i] = text_at(catalog, counters->stacks[i]);
	if (!agent_table_apply(&applier->store->agents, &report, &delta))
		note_damage(applier, "no memory for one more agent");
	if (!applier->is_replay)
		agent_report_count(&report, &delta, &applier->store->counters);
	if (is_folded(applier) || counters->bucket >= MINUTES_PER_DAY)
		return;
	if (delta.is_next)
		add_reported(applier, counters, &report);
	add_counted(applier, counters, &report, &delta);
	if (applier->is_replay)
		replay_lose_missing(applier->store, applier->day, counters, &report, &delta);
}

static void apply_definitions(struct applier *applier, const struct record_item *item)
{
	struct error err = {0};

	/* Whoever wrote the record defined them; only a new process has to, if the file has not. */
	if (!applier->is_replay || is_folded(applier))
		return;
	if (!replay_define(applier->day->catalog, item, &err))
		note_damage(applier, err.message);
}

/* The group uses it. At replay there are no others yet, who could make it go. */
static void take_day(struct applier *applier, uint32_t number)
{
	struct sqlite_samples *store = applier->store;
	struct error err = {0};

	if (applier->is_replay) {
		applier->day = store_open_day(store, number, false, &err);
		if (!applier->day)
			return note_damage(applier, err.message);
		store_leave_day(store, applier->day);
	}
	store_lock_days(store);
	if (applier->is_replay)
		store_count_written(store, applier->day);
	else
		applier->day = store_find_day(store, number);
	store_unlock_days(store);
}

static void apply_of_profile(struct applier *applier, enum record_kind kind,
			     const struct record_profile *profile)
{
	if (kind == RECORD_PACKED)
		apply_profile(applier, profile);
	else if (kind == RECORD_MOMENTS)
		apply_moments(applier, profile);
	else if (kind == RECORD_SPANS)
		apply_spans(applier, profile);
}

static bool apply_item(struct applier *applier, const struct record_item *item)
{
	if (item->kind == RECORD_DAY) {
		applier->day = NULL;
		applier->second = 0;
		take_day(applier, item->day);
		return applier->day;
	}
	if (!applier->day) {
		note_damage(applier, "it names no day");
		return false;
	}
	switch (item->kind) {
	case RECORD_DEFINITIONS:
		apply_definitions(applier, item);
		break;
	case RECORD_IDS:
		applier->ids = item->ids;
		break;
	case RECORD_SECOND:
		applier->second = item->second;
		break;
	case RECORD_COUNTERS:
		apply_counters(applier, &item->counters);
		break;
	case RECORD_REFUSED:
		if (!is_repeated(applier, item->refused.tenant, item->refused.has_id,
				 item->refused.id_number))
			apply_refused(applier, &item->refused);
		break;
	default:
		if (!is_repeated(applier, item->profile.tenant, item->profile.has_id,
				 item->profile.id_number))
			apply_of_profile(applier, item->kind, &item->profile);
		break;
	}
	return true;
}

/* After the record, so that its own profiles do not meet themselves. */
static void remember_ids(struct sqlite_samples *store, const uint8_t *bytes, size_t length)
{
	const uint8_t *at = bytes;
	struct record_item item;

	while (record_next(&at, bytes + length, &item) && item.kind != RECORD_END)
		if (item.kind == RECORD_IDS)
			report_window_add(&store->window, &item.ids);
}

void store_apply(struct sqlite_samples *store, uint64_t end, const uint8_t *bytes, size_t length,
		 bool is_replay)
{
	struct applier applier = {
		.store = store, .end = end, .is_replay = is_replay, .now_ms = store_now_ms()};
	const uint8_t *at = bytes;
	struct record_item item;

	for (;;) {
		if (!record_next(&at, bytes + length, &item)) {
			note_damage(&applier, "its entries cannot be read");
			break;
		}
		if (item.kind == RECORD_END || !apply_item(&applier, &item))
			break;
	}
	if (is_replay && end > store->state_position) {
		remember_ids(store, bytes, length);
		store->counters.replayed++;
	}
	store->applied = end;
}
