/* SPDX-License-Identifier: Apache-2.0 */
/* A set of 64-bit ids with a ceiling. Pure. */
#ifndef SYMBOL_SERVER_STORE_CLICKHOUSE_ID_SET_H
#define SYMBOL_SERVER_STORE_CLICKHOUSE_ID_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct id_set {
	uint64_t *slots; /* 0: free */
	size_t size;     /* a power of two, or 0 */
	size_t count;
};

bool id_set_has(const struct id_set *set, uint64_t id);
/* False: it was there already, or there is no memory. */
bool id_set_add(struct id_set *set, uint64_t id);
void id_set_clear(struct id_set *set);
void id_set_release(struct id_set *set);

#endif
