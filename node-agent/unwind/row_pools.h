/* SPDX-License-Identifier: Apache-2.0 */
/* Where rows lie: elements of 1024 rows in pools that are made one by one up to a limit, in the
 * kernel's maps or in memory of our own. Rows are only added; room is found again by counting what
 * is still in use, after every reader is done. */
#ifndef NODE_AGENT_UNWIND_ROW_POOLS_H
#define NODE_AGENT_UNWIND_ROW_POOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/unwind_rows.h"
#include "common/error.h"

struct row_pools;

#define ROW_PLACE_NONE UINT32_MAX

/* pools_map: of bpf/unwind_rows.h, borrowed; −1: memory of our own. limit_bytes: rounded to whole
 * pools, at least one. The first pool is made here. */
struct row_pools *row_pools_new(int pools_map, uint64_t limit_bytes, struct error *err);
void row_pools_free(struct row_pools *pools);

/* Takes room for count rows in the pools that are there: in one element, or from slot 0 on in
 * consecutive elements of one pool. The first row's number, as in struct unwind_page. */
uint32_t row_pools_place(struct row_pools *pools, uint32_t count);

/* One pool more. False: the limit is reached, or the kernel refuses. Readers are waited for. */
bool row_pools_grow(struct row_pools *pools, struct error *err);

/* Within the room that was taken. */
bool row_pools_write(struct row_pools *pools, uint32_t first, const struct unwind_row *rows,
		     uint32_t count, struct error *err);
bool row_pools_read(struct row_pools *pools, uint32_t row, struct unwind_row *out);

/* Until every reader in the kernel has ended that was there before: some ms. */
bool row_pools_wait(const struct row_pools *pools, struct error *err);

/* All room is free again but what is kept from here on. Only after a wait. */
void row_pools_recount(struct row_pools *pools);
void row_pools_keep(struct row_pools *pools, uint32_t first, uint32_t count);

uint32_t row_pools_elements(const struct row_pools *pools); /* in the pools that are there */

#endif
