/* SPDX-License-Identifier: Apache-2.0 */
/* Loaded tables by build-id, least recently used out first when their bytes pass the limit. A table
 * that is still held elsewhere lives on until released. Thread-safe. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_SYMBOL_CACHE_H
#define SYMBOL_SERVER_SYMBOLIZE_SYMBOL_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "common/build_id.h"
#include "symbol-server/symbolize/symbol_table.h"

struct symbol_cache;

struct symbol_cache *symbol_cache_new(size_t limit_bytes);
/* Held for the caller; NULL: not there. */
struct symbol_table *symbol_cache_take(struct symbol_cache *cache, const struct build_id *id);
/* Keeps a reference of its own; replaces an older table of that id. */
void symbol_cache_put(struct symbol_cache *cache, const struct build_id *id,
		      struct symbol_table *table);
void symbol_cache_drop(struct symbol_cache *cache, const struct build_id *id);
void symbol_cache_size(struct symbol_cache *cache, uint64_t *tables, uint64_t *bytes);
void symbol_cache_free(struct symbol_cache *cache);

#endif
