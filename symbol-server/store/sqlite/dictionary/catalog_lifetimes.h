/* SPDX-License-Identifier: Apache-2.0 */
/* What a day's dictionary knows of processes: its strings are the contexts. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_DICTIONARY_CATALOG_LIFETIMES_H
#define SYMBOL_SERVER_STORE_SQLITE_DICTIONARY_CATALOG_LIFETIMES_H

#include "symbol-server/store/rules/lifetimes.h"
#include "symbol-server/store/sqlite/dictionary/catalog.h"

/* Of the dictionary's strings below that number, whose numbers they are. NULL: no memory. */
struct lifetimes *catalog_lifetimes_new(const struct catalog *catalog, uint32_t strings);

#endif
