/* SPDX-License-Identifier: Apache-2.0 */
/* What was deleted leaves the files wholly: names that nothing refers to any more, and the room.
 * Of this folder and the fold thread. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_UPKEEP_ERASE_H
#define SYMBOL_SERVER_STORE_SQLITE_UPKEEP_ERASE_H

#include "symbol-server/store/sqlite/samples_store.h"

/* In the transaction that deleted from the day's or month's file: it is to be written anew. */
bool erase_is_due(sqlite3 *db, struct error *err);

/* Writes those files anew that samples were deleted from and that nothing is on its way to: today's
 * tomorrow. Numbers of the dictionary stay, what they stood for goes. A host of which nothing is
 * left in a file is one of "[deleted]" in its accounts, so that sums stay right; its agent is
 * forgotten when it is silent. The fold thread's; the files are locked. */
void erase_turn(struct sqlite_samples *store, int64_t now_ms);

#endif
