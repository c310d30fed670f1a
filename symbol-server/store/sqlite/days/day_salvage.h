/* SPDX-License-Identifier: Apache-2.0 */
/* What can still be read of a damaged day's file, as a new file. Damage costs the rows in the pages
 * that it hit: what those had of samples is in the accounts as lost, for the reason "damaged". */
#ifndef SYMBOL_SERVER_STORE_SQLITE_DAYS_DAY_SALVAGE_H
#define SYMBOL_SERVER_STORE_SQLITE_DAYS_DAY_SALVAGE_H

#include "symbol-server/store/sqlite/dictionary/catalog.h"
#include "symbol-server/store/sqlite/days/day_file.h"

#define SALVAGE_REASON "damaged" /* of samples that are lost */

struct salvaged {
	uint64_t rows, rows_lost; /* of samples and accounts; lost: as far as they were seen */
	uint64_t samples, samples_lost; /* lost: by the accounts */
	uint64_t definitions_lost;
	uint64_t folded_through;
};

/* A day's dictionary in memory, which others add to. */
struct salvage_dictionary {
	struct catalog *catalog;
	struct catalog_mark mark; /* numbers below are written */
	uint32_t reason;          /* SALVAGE_REASON, of its strings */
};

/* from: a path. to: of a new file, which is whole when this returns, and not there on failure.
 * dictionary NULL: it is read from the file. ERROR_UNSUPPORTED: its
 * minutes were deleted, sums are not saved here; ERROR_FORMAT: nothing of it can be read. */
bool day_salvage(const char *from, const char *to, uint32_t day,
		 const struct salvage_dictionary *dictionary, struct salvaged *salvaged,
		 struct error *err);

#endif
