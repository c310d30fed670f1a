/* SPDX-License-Identifier: Apache-2.0 */
/* Deleting samples by what they are of. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_UPKEEP_DELETE_H
#define SYMBOL_SERVER_STORE_SQLITE_UPKEEP_DELETE_H

#include "symbol-server/store/sqlite/samples_store.h"

bool sqlite_samples_delete(struct samples_store *base, const struct samples_query *query,
			   struct samples_deleted *deleted, struct error *err);

#endif
