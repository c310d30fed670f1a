/* SPDX-License-Identifier: Apache-2.0 */
/* What a damaged record of the journal costs those that come after it. What it defined is made up
 * (catalog_mend()), so that the others can be used; its samples are accounted for as lost: by the
 * counters that its agent sends next, or by who refers to its series. All under the lock. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_INTAKE_REPLAY_LOSSES_H
#define SYMBOL_SERVER_STORE_SQLITE_INTAKE_REPLAY_LOSSES_H

#include "symbol-server/store/sqlite/journal/record.h"
#include "symbol-server/store/sqlite/samples_store.h"

/* catalog_decode() that makes up what is missing; false with ERROR_FORMAT when it had to, or could
 * not. */
bool replay_define(struct catalog *catalog, const struct record_item *item, struct error *err);

/* Makes up what the profile's samples refer to and is not defined. */
void replay_mend(struct sqlite_samples *store, struct catalog *catalog,
		 const struct record_profile *profile);

/* The profile cannot be used. */
void replay_lose(struct sqlite_samples *store, const struct day *day,
		 const struct record_profile *profile);

/* What the agent took since its last report and neither lost nor sent in this one: it was in
 * records that are damaged, when there are such and reports are missing. */
void replay_lose_missing(struct sqlite_samples *store, const struct day *day,
			 const struct record_counters *counters, const struct agent_report *report,
			 const struct agent_delta *delta);

/* At the end, when no number of a dictionary is taken any more: puts them into the accounts. */
void replay_settle(struct sqlite_samples *store);

#endif
