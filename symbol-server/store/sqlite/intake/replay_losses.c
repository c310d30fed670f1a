/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/intake/replay_losses.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/log.h"
#include "symbol-server/store/sqlite/days/day_salvage.h"
#include "symbol-server/store/rules/tallies.h"

enum { LOSSES_MAX = 1 << 20 };

struct replay_loss {
	uint32_t day, tenant, type, bucket, host;
	uint64_t taken, lost;
};

/* ---- definitions ---- */

bool replay_define(struct catalog *catalog, const struct record_item *item, struct error *err)
{
	const uint8_t *at = item->definitions.bytes.at;
	uint64_t before = catalog->mended;
	bool ok;

	catalog->mends = true;
	ok = catalog_decode(catalog, item->definitions.kind, item->definitions.first,
			    item->definitions.count, &at, at + item->definitions.bytes.length, err);
	catalog->mends = false;
	if (ok && catalog->mended > before)
		ok = error_set(err, ERROR_FORMAT, "%llu definitions before it are missing",
			       (unsigned long long)(catalog->mended - before));
	return ok;
}

static bool mend_pair(void *context, const struct packed_pair *pair)
{
	struct catalog *catalog = context;

	return catalog_mend(catalog, CATALOG_STRINGS, pair->thread + 1) &&
	       catalog_mend(catalog, CATALOG_STACKS, pair->stack + 1);
}

void replay_mend(struct sqlite_samples *store, struct catalog *catalog,
		 const struct record_profile *profile)
{
	if (journal_gaps(store->journal))
		packed_each(profile->samples.at, profile->samples.length, mend_pair, catalog);
}

/* ---- samples ---- */

static void note(struct sqlite_samples *store, const struct replay_loss *loss)
{
	if ((loss->taken | loss->lost) && store->loss_count < LOSSES_MAX &&
	    ARRAY_GROW(store->losses, store->loss_count, store->loss_room))
		store->losses[store->loss_count++] = *loss;
}

static bool count_pair(void *context, const struct packed_pair *pair)
{
	*(uint64_t *)context += pair->samples;
	return true;
}

void replay_lose(struct sqlite_samples *store, const struct day *day,
		 const struct record_profile *profile)
{
	const struct catalog *catalog = day->catalog;
	struct replay_loss loss = {day->day, profile->tenant, profile->type, profile->bucket, 0, 0,
				   0};

	if (!profile_type_name(profile->type) || profile->bucket >= MINUTES_PER_DAY ||
	    !packed_each(profile->samples.at, profile->samples.length, count_pair, &loss.lost))
		return;
	if (profile->series < catalog->items[CATALOG_SERIES].count)
		loss.host = catalog_series(catalog, profile->series)->host;
	loss.taken = profile->is_counted ? 0 : loss.lost;
	note(store, &loss);
}

void replay_lose_missing(struct sqlite_samples *store, const struct day *day,
			 const struct record_counters *counters, const struct agent_report *report,
			 const struct agent_delta *delta)
{
	struct replay_loss loss = {.day = day->day,
				   .tenant = counters->tenant,
				   .bucket = counters->bucket,
				   .host = counters->host};
	uint64_t known = report->own_samples;

	for (unsigned i = 0; i < report->numbers->lost_count; i++)
		known += tally_find(report->lost[i]) ? 0 : delta->lost[i];
	if (!journal_gaps(store->journal) || delta->taken <= known)
		return;
	loss.lost = delta->taken - known;
	note(store, &loss);
}

/* ---- the end ---- */

static void settle(struct sqlite_samples *store, const struct replay_loss *loss)
{
	const struct text reason = {SALVAGE_REASON, sizeof SALVAGE_REASON - 1};
	struct day *day = store_open_day(store, loss->day, false, NULL);
	struct packed_account account = {.host = loss->host, .taken = loss->taken, .lost_count = 1};
	struct cell_key key = {loss->day, loss->bucket, loss->tenant, loss->type, 0};
	struct memory_cell *cell = day ? memory_table_cell(store->active, &key) : NULL;
	struct buffer *scratch = &store->scratch;

	if (day) /* nobody makes it go yet */
		store_leave_day(store, day);
	if (!cell)
		return;
	account.lost[0].reason = catalog_add_string(day->catalog, reason);
	account.lost[0].count = loss->lost;
	buffer_clear(scratch);
	account_encode(&account, scratch);
	memory_cell_append(store->active, cell, scratch->bytes, (uint32_t)scratch->length);
	store->counters.samples_damaged += loss->lost;
}

void replay_settle(struct sqlite_samples *store)
{
	uint64_t before = store->counters.samples_damaged;

	for (uint32_t i = 0; i < store->loss_count; i++)
		settle(store, &store->losses[i]);
	if (journal_gaps(store->journal))
		log_error("journal is damaged", "gaps=%u samples_lost=%llu",
			  journal_gaps(store->journal),
			  (unsigned long long)(store->counters.samples_damaged - before));
	free(store->losses);
	store->losses = NULL;
	store->loss_count = store->loss_room = 0;
}
