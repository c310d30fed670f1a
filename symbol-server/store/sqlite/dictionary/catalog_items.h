/* SPDX-License-Identifier: Apache-2.0 */
/* Appending to a catalog without looking for equal items: used when adding and when reading back.
 * All return the new number, 0 when there is no room. References are the caller's to check. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_DICTIONARY_CATALOG_ITEMS_H
#define SYMBOL_SERVER_STORE_SQLITE_DICTIONARY_CATALOG_ITEMS_H

#include "symbol-server/store/sqlite/dictionary/catalog.h"

uint32_t catalog_put_string(struct catalog *catalog, const char *text, uint32_t length);
uint32_t catalog_put_module(struct catalog *catalog, const struct catalog_module *module);
uint32_t catalog_put_location(struct catalog *catalog, const struct catalog_location *location);
uint32_t catalog_put_stack(struct catalog *catalog, const uint64_t hash[2],
			   const uint32_t *locations, uint32_t depth);
uint32_t catalog_put_series(struct catalog *catalog, uint32_t tenant, const uint32_t *labels,
			    uint32_t count);

#endif
