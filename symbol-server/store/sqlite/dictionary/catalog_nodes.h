/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of a catalog's stacks: adding to it. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_DICTIONARY_CATALOG_NODES_H
#define SYMBOL_SERVER_STORE_SQLITE_DICTIONARY_CATALOG_NODES_H

#include "symbol-server/store/sqlite/dictionary/catalog.h"

/* The node of that location under its caller, added when new. 0: no room. */
uint32_t catalog_node_take(struct catalog_nodes *nodes, uint32_t caller, uint32_t location);
size_t catalog_nodes_bytes(const struct catalog_nodes *nodes);
/* What finds nodes: made when there is none or it is too small, dropped. False: no memory. */
bool catalog_nodes_index(struct catalog_nodes *nodes);
void catalog_nodes_drop_index(struct catalog_nodes *nodes);
void catalog_nodes_release(struct catalog_nodes *nodes);

#endif
