/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/unwind/row_pools.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node-agent/kernel/bpf_map.h"

enum {
	ELEMENT_BYTES = UNWIND_ELEMENT_ROWS * sizeof(struct unwind_row),
	POOL_BYTES = UNWIND_POOL_ELEMENTS * ELEMENT_BYTES,
	/* Of the kernel's: the pages of one stack that is being finished, and the one that fills.
	 */
	CACHED_ELEMENTS = 16,
	NO_ELEMENT = UINT32_MAX,
};

struct pool {
	int fd;                  /* the kernel's, or −1 */
	struct unwind_row *rows; /* ours, or NULL */
};

struct cached_element {
	uint32_t element, used_at;
	struct unwind_row rows[UNWIND_ELEMENT_ROWS];
};

struct row_pools {
	int outer_fd;
	uint32_t count, limit;
	uint32_t clock;
	struct cached_element *cache; /* CACHED_ELEMENTS; NULL in memory */
	struct pool pools[UNWIND_POOLS_MAX];
};

static bool is_in_kernel(const struct row_pools *pools)
{
	return pools->outer_fd >= 0;
}

struct row_pools *row_pools_new(int pools_map, uint64_t limit_bytes, struct error *err)
{
	struct row_pools *pools = calloc(1, sizeof *pools);
	uint64_t limit = limit_bytes / POOL_BYTES;

	if (!pools)
		goto no_memory;
	pools->outer_fd = pools_map;
	pools->limit = limit < 1                  ? 1
		       : limit > UNWIND_POOLS_MAX ? UNWIND_POOLS_MAX
						  : (uint32_t)limit;
	if (is_in_kernel(pools)) {
		pools->cache = calloc(CACHED_ELEMENTS, sizeof *pools->cache);
		if (!pools->cache)
			goto no_memory;
		for (int i = 0; i < CACHED_ELEMENTS; i++)
			pools->cache[i].element = NO_ELEMENT;
	}
	if (row_pools_grow(pools, err))
		return pools;
	row_pools_free(pools);
	return NULL;
no_memory:
	error_set(err, ERROR_MEMORY, "no memory for unwind rows");
	row_pools_free(pools);
	return NULL;
}

void row_pools_free(struct row_pools *pools)
{
	if (!pools)
		return;
	for (uint32_t i = 0; i < pools->count; i++) {
		if (is_in_kernel(pools))
			close(pools->pools[i].fd); /* the rows go with the map of pools */
		free(pools->pools[i].rows);
	}
	free(pools->cache);
	free(pools);
}

bool row_pools_grow(struct row_pools *pools, struct error *err)
{
	struct pool *pool = &pools->pools[pools->count];

	if (pools->count >= pools->limit)
		return error_set(err, ERROR_LIMIT, "%u MiB of unwind rows are the limit",
				 pools->limit);
	if (!is_in_kernel(pools)) {
		pool->rows = calloc(UNWIND_POOL_ELEMENTS, ELEMENT_BYTES);
		if (!pool->rows)
			return error_set(err, ERROR_MEMORY, "no memory for unwind rows");
	} else {
		pool->fd = bpf_map_new_array(ELEMENT_BYTES, UNWIND_POOL_ELEMENTS, err);
		if (pool->fd < 0)
			return error_prefix(err, "unwind rows");
		if (!bpf_map_write(pools->outer_fd, &pools->count, &pool->fd, err)) {
			close(pool->fd);
			return error_prefix(err, "unwind rows");
		}
	}
	pools->count++;
	return true;
}

/* The kernel waits for running programs before a change of an array of maps returns, on every
 * kernel (since 4.19); membarrier(2) would do the same, but not with nohz_full. */
bool row_pools_wait(const struct row_pools *pools, struct error *err)
{
	const uint32_t first = 0;

	return !is_in_kernel(pools) ||
	       bpf_map_write(pools->outer_fd, &first, &pools->pools[0].fd, err);
}

uint32_t row_pools_count(const struct row_pools *pools)
{
	return pools->count;
}

/* --- rows --- */

static struct pool *pool_of(struct row_pools *pools, uint32_t element)
{
	return &pools->pools[element / UNWIND_POOL_ELEMENTS];
}

/* The element as the kernel has it. */
static struct cached_element *cached(struct row_pools *pools, uint32_t element, struct error *err)
{
	uint32_t index = element % UNWIND_POOL_ELEMENTS;
	struct cached_element *oldest = &pools->cache[0];

	pools->clock++;
	for (int i = 0; i < CACHED_ELEMENTS; i++) {
		struct cached_element *at = &pools->cache[i];

		if (at->element == element) {
			at->used_at = pools->clock;
			return at;
		}
		if (pools->clock - at->used_at > pools->clock - oldest->used_at)
			oldest = at;
	}
	oldest->element = NO_ELEMENT;
	if (!bpf_map_read(pool_of(pools, element)->fd, &index, oldest->rows, err))
		return NULL;
	oldest->element = element;
	oldest->used_at = pools->clock;
	return oldest;
}

static bool write_element(struct row_pools *pools, uint32_t element, uint32_t slot,
			  const struct unwind_row *rows, uint32_t count, struct error *err)
{
	uint32_t index = element % UNWIND_POOL_ELEMENTS;
	struct cached_element *to;

	if (!is_in_kernel(pools)) {
		memcpy(pool_of(pools, element)->rows + index * UNWIND_ELEMENT_ROWS + slot, rows,
		       count * sizeof *rows);
		return true;
	}
	to = cached(pools, element, err);
	if (!to)
		return false;
	memcpy(to->rows + slot, rows, count * sizeof *rows);
	if (bpf_map_write(pool_of(pools, element)->fd, &index, to->rows, err))
		return true;
	to->element = NO_ELEMENT;
	return false;
}

bool row_pools_write(struct row_pools *pools, uint32_t first, const struct unwind_row *rows,
		     uint32_t count, struct error *err)
{
	while (count) {
		uint32_t slot = first % UNWIND_ELEMENT_ROWS;
		uint32_t room = UNWIND_ELEMENT_ROWS - slot, part = count < room ? count : room;

		if (!write_element(pools, first / UNWIND_ELEMENT_ROWS, slot, rows, part, err))
			return error_prefix(err, "unwind rows");
		first += part;
		rows += part;
		count -= part;
	}
	return true;
}

bool row_pools_read(struct row_pools *pools, uint32_t row, struct unwind_row *out)
{
	uint32_t element = row / UNWIND_ELEMENT_ROWS, slot = row % UNWIND_ELEMENT_ROWS;
	const struct cached_element *from;

	if (element >= pools->count * UNWIND_POOL_ELEMENTS)
		return false;
	if (!is_in_kernel(pools)) {
		*out = pool_of(pools, element)
			       ->rows[row % (UNWIND_POOL_ELEMENTS * UNWIND_ELEMENT_ROWS)];
		return true;
	}
	from = cached(pools, element, NULL);
	if (!from)
		return false;
	*out = from->rows[slot];
	return true;
}
