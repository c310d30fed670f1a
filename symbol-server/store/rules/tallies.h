/* SPDX-License-Identifier: Apache-2.0 */
/* What agents count of a type beside its samples: how much there was of it on the whole host, and
 * how much of that its samples stand for. Kept by host and minute among the losses, under names
 * that no sender's reason can have; they are no losses. */
#ifndef SYMBOL_SERVER_STORE_RULES_TALLIES_H
#define SYMBOL_SERVER_STORE_RULES_TALLIES_H

#include "symbol-server/store/samples_query.h"

/* Names of what the store counts itself, of any type: samples that are stored under their host's
 * series "other", and without their stack, because their sender had its share of the room. */
#define TALLY_SERIES_FOLDED "folded:series"
#define TALLY_STACKS_FOLDED "folded:stacks"

/* Milliseconds that a host's reports stand for: of those that began in the minute. */
#define TALLY_REPORTED "reported:ms"

/* NULL: none such. */
const struct tally *tally_find(const char *name);

bool tallies_has_type(int type); /* are there any of it */

/* Adds to the host's account of that type; false: it is no tally, but a loss. */
bool tallies_add(struct host_accounting *host, int type, const char *name, uint64_t count);

/* Samples that the host lost for that reason; beyond BATCH_LOST_REASONS they count for the last
 * one. A reason that is new is copied into the arena; NULL: it ends in a NUL and lives as long as
 * the host. False: no room. */
bool losses_add(struct host_accounting *host, struct text reason, uint64_t count,
		struct arena *arena);

/* By name, as answers have them. */
void hosts_sort(struct host_accounting *hosts, uint32_t count);

#endif
