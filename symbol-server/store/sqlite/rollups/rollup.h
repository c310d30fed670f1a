/* SPDX-License-Identifier: Apache-2.0 */
/* Adding up: minutes of a day to ten minutes in the same file. What a roll-up stands for is in the
 * same transaction as its rows, so that a crash anywhere leaves each sample in exactly one of the
 * two. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_ROLLUPS_ROLLUP_H
#define SYMBOL_SERVER_STORE_SQLITE_ROLLUPS_ROLLUP_H

#include "symbol-server/store/rules/rollup_choice.h"
#include "symbol-server/store/rules/series_labels.h"
#include "symbol-server/store/sqlite/samples_store.h"

enum {
	hour_ms = 3600000,
	ROLLUP_SLICE_MS = 2000, /* of one turn of the fold thread */
	ROLLUP_RETRY_MS = 60000,
};

/* A turn of the fold thread: days that need it, the newest first, for ROLLUP_SLICE_MS. */
void rollup_turn(struct sqlite_samples *store, int64_t now_ms);

#endif
