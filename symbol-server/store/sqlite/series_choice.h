/* SPDX-License-Identifier: Apache-2.0 */
/* Which series of a dictionary a query wants. Of sqlite/ only. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_SERIES_CHOICE_H
#define SYMBOL_SERVER_STORE_SQLITE_SERIES_CHOICE_H

#include "symbol-server/store/sqlite/dictionary/catalog.h"
#include "symbol-server/store/limits.h"

/* Sets is_wanted of the series from first (at least 1) up to those of the mark: 1 takes part, 0
 * does not. Each value of a label is asked for once. watch NULL: however long it takes. */
bool series_choose(const struct catalog *catalog, const struct catalog_mark *mark, uint32_t first,
		   const struct samples_query *query, uint8_t *is_wanted, struct limit_watch *watch,
		   struct error *err);

#endif
