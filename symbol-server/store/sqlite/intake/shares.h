/* SPDX-License-Identifier: Apache-2.0 */
/* What one sender (a host) may add to a day's dictionary while there is little room: of the series
 * that a day may have, and of the memory that all dictionaries may take. Under the store's lock. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_INTAKE_SHARES_H
#define SYMBOL_SERVER_STORE_SQLITE_INTAKE_SHARES_H

#include "symbol-server/store/sqlite/samples_store.h"

/* The profile's series: as it is; or, when its host has its share or may not add to the dictionary,
 * the one that all such of a host are (process "other"), *is_other then; 0: there is no room for
 * that either. What is not taken leaves no texts behind. */
uint32_t share_take_series(struct sqlite_samples *store, struct day *day, uint32_t tenant,
			   const struct batch_series *series, bool *is_other);

/* Of the sender whose profiles are being added to one day. */
struct dictionary_share {
	struct sqlite_samples *store;
	struct day *day;
	struct text host; /* of the last one */
	uint64_t weight;  /* of the dictionary before it */
	bool is_begun;
};

/* Before and after what this host adds: it may, or new stacks, series and contexts find no room;
 * and what came is counted as its. */
void share_begin(struct dictionary_share *share, struct text host);
void share_end(struct dictionary_share *share);

#endif
