/* SPDX-License-Identifier: Apache-2.0 */
/* Where rows lie: elements of 1024 rows in pools that are made one by one up to a limit, in the
 * kernel's maps or in memory of our own. */
#ifndef NODE_AGENT_UNWIND_ROW_POOLS_H
#define NODE_AGENT_UNWIND_ROW_POOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/unwind_rows.h"
#include "common/error.h"

struct row_pools;

/* pools_map: of bpf/unwind_rows.h, borrowed; −1: memory of our own. limit_bytes: rounded to whole
 * pools, at least one. The first pool is made here. */
struct row_pools *row_pools_new(int pools_map, uint64_t limit_bytes, struct error *err);
void row_pools_free(struct row_pools *pools);

/* One pool more. False: the limit is reached, or the kernel refuses. Readers are waited for. */
bool row_pools_grow(struct row_pools *pools, struct error *err);

uint32_t row_pools_count(const struct row_pools *pools);

/* Rows as in struct unwind_page, of pools that are there. What else is in their elements is written
 * over with itself. */
bool row_pools_write(struct row_pools *pools, uint32_t first, const struct unwind_row *rows,
		     uint32_t count, struct error *err);
bool row_pools_read(struct row_pools *pools, uint32_t row, struct unwind_row *out);

/* Until every reader in the kernel has ended that was there before: some ms. */
bool row_pools_wait(const struct row_pools *pools, struct error *err);

#endif
